"""What futures say of where their tasks ran and why."""

from typing import Any

import pytest

import daws
from daws.client.cluster import Cluster
from daws.client.explaining import NOT_RECORDED, NOTHING_TOLD, Explanation
from daws.model.errors import UsageError
from daws.wire.messages import STOLEN
from daws.wire.notes import Decided, Handed, RunFact, Sent


def large(size: int) -> bytes:
    return bytes(size)


def length(*parts: bytes) -> int:
    return sum(map(len, parts))


def fail() -> None:
    raise ValueError("no luck")


def explain_inside() -> str:
    inner = daws.current().submit(pow, 2, 3)
    assert inner.result() == 8
    try:
        inner.explain()
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("form", [{}, {"node": "process"}, {"nodes": 2, "strategy": "flds:t=0"}], ids=str)
def test_a_future_says_where_its_task_ran_and_why(form: dict[str, Any]):
    with Cluster(1, explain=True, **form) as cluster:
        made = cluster.submit(large, 100_000)
        read = cluster.submit(length, made)
        bad = cluster.submit(fail)
        assert read.result() == 100_000 and isinstance(bad.exception(), ValueError)
        why, how = read.explain(), made.explain()
        assert how.outputs == ((how.outputs[0][0], (how.node,)),) and how.outputs[0][0] >= 100_000
        assert why.state == "done" and why.worker == 0 and why.node in (0, 1)
        assert why.reasons["place"]["largest_bytes"] == how.outputs[0][0]
        assert why.facts is not None
        (ran,) = [fact for fact in why.facts if isinstance(fact, RunFact)]
        (sent,) = [fact for fact in why.facts if isinstance(fact, Sent)]
        assert ran.is_good and ran.node == sent.node and sent.read_bytes == how.outputs[0][0]
        assert why.ran_s is not None and why.waited_s is not None and why.waited_s > 0
        assert "place=" in str(why) and "ran" in str(why) and repr(why) == str(why)
        assert "ValueError: no luck" in str(bad.explain()) and "raised after" in str(bad.explain())
        if "nodes" in form:
            assert "assign" in why.reasons
    assert read.explain() == why  # also when all is over


def test_nothing_is_recorded_unless_asked_for():
    with pytest.raises(UsageError, match="True or False"):
        Cluster(1, explain="yes")  # type: ignore[arg-type]
    with Cluster(1) as cluster:
        made = cluster.submit(large, 100_000)
        assert cluster.submit(length, made).result() == 100_000
        why = made.explain()
        assert why.facts is None and why.node is why.worker is why.ran_s is why.waited_s is None
        assert why.outputs[0][1] == (0,) and NOT_RECORDED in str(why)
        assert "insideatask" in cluster.submit(explain_inside).result().replace(" ", "")


def test_what_waits_is_explained_as_far_as_it_came(tmp_path: Any):
    gate = tmp_path / "gate"

    def wait() -> None:
        while not gate.exists():
            pass

    with Cluster(1, explain=True) as cluster:
        assert NOTHING_TOLD in str(cluster.put(7).explain())
        first = cluster.submit(wait)
        behind = cluster.submit(pow, 2, 3)
        never = cluster.submit(length, first)
        try:
            assert "no node has told of it yet" in str(never.explain())
        finally:
            gate.touch()
        assert behind.result() == 8


def test_words_for_moves_and_attempts():
    facts = (
        Decided(5, 1, 0, "assign", "data", {"held_bytes": {1: 5000}, "choice": 1}),
        Decided(5, 1, 1_000_000, "place", "daws", {"estimate_ns": 2_000_000, "limit_bytes": 0.5, "choice": -2}),
        Handed(5, 0, 2_000_000, 1, STOLEN, ((1, 7),)),
        Sent(5, 0, 3_000_000, 2, 1, 3000, 1000),
        RunFact(5, 0, 9_000_000, 2, 4_000_000, 10, False),
    )
    assert str(Explanation(5, "failed", "ValueError: x", (), facts)).splitlines() == [
        "task 5: failed, ValueError: x",
        "  +0.0 ms  the client: assign=data chose node 1 (held bytes 1: 5,000)",
        "  +1.0 ms  node 1: place=daws kept it for this node (estimate 2.0 ms, limit 0 bytes)",
        "  +2.0 ms  node 0 had nothing to do and stole it from node 1 (to be stolen: 7 on node 1)",
        "  +3.0 ms  node 0: sent to worker 2, attempt 2; it reads 3,000 bytes, 1,000 of them from other nodes",
        "  +9.0 ms  node 0: raised after 5.0 ms on worker 2",
    ]
