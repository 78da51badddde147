"""A private cluster: work spreads, objects travel, and processes that die are named and replaced."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daws.client.cluster import Cluster
from daws.client.gathering import gather
from daws.client.waiting import wait
from daws.core.journal import Journal, replay
from daws.model.errors import ClosedError, DawsError, UnavailableError, UsageError
from daws.runtime.cluster.private import PrivateCluster
from daws.strategy.presets import PRESETS
from tests.unit.client.inner_jobs import fibonacci
from tests.unit.runtime.jobs import add, begin_once_and_hang, blob, first, mix, which_node
from tests.unit.workers.crew import gone
from tests.unit.workers.test_vanishing import descendants

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    with Cluster(1, nodes=4) as cluster:
        yield cluster


def test_work_spreads(four: Cluster, tmp_path: Path):
    nodes = gather([four.submit(which_node, str(tmp_path), 4) for _ in range(12)], timeout=60)
    assert len(set(nodes)) == 4


def test_idle_nodes_steal(tmp_path: Path):
    with Cluster(1, nodes=4, strategy="mlb:assign=one") as cluster:
        nodes = gather([cluster.submit(which_node, str(tmp_path), 4) for _ in range(12)], timeout=60)
    assert len(set(nodes)) == 4


def test_large_objects_travel_between_nodes_and_to_the_client(four: Cluster):
    made = [four.submit(blob, number, 1 << 20) for number in range(8)]
    mixed = [four.submit(mix, *made[low : low + 4]) for low in (0, 2, 4)]
    total = four.submit(mix, *mixed)
    assert total.result(60) == blob((0 + 1 + 2 + 3) + (2 + 3 + 4 + 5) + (4 + 5 + 6 + 7), 1 << 20)
    assert [one.result(60)[-1] for one in made] == list(range(8))


def test_what_is_put_in_can_be_read_elsewhere_at_once(tmp_path: Path):
    """By a node that hears of it before the node that it was given to."""
    with Cluster(1, nodes=2, strategy="daws:assign=round-robin,place=keep") as cluster:
        for number in range(150):
            big = cluster.put(blob(number % 100, 100_000))
            readers = [cluster.submit(first, big) for _ in range(2)]
            del big
            assert gather(readers, timeout=60) == [number % 100] * 2
        gone, kept = cluster.put(blob(1, 100_000)), cluster.put(blob(2, 100_000))
        cancelled, read = cluster.submit(first, gone), cluster.submit(first, kept)
        cancelled.cancel()
        assert read.result(60) == 2
        assert cancelled.cancelled() or cancelled.result(60) == 1


def test_every_node_counts_what_it_did(four: Cluster):
    before = {one.node: one for one in four.counters()}
    made = [four.submit(blob, number, 1 << 20) for number in range(8)]
    assert four.submit(mix, *made).result(60)[0] == sum(range(8))
    after = four.counters()
    assert [one.node for one in after] == [0, 1, 2, 3]
    moved = [one.moved_bytes - before[one.node].moved_bytes for one in after]
    assert max(moved) >= 1 << 20, "not all of them were made in the same place"
    assert sum(one.done - before[one.node].done for one in after) == 9


def test_arrays_of_other_nodes_are_mapped_not_copied(four: Cluster):
    array = four.submit(np.arange, 200_000).result(60)
    assert array[-1] == 199_999 and not array.flags.owndata and array.flags.writeable


def test_a_function_reaches_every_node_before_it_is_needed(four: Cluster, tmp_path: Path):
    for number in range(20):
        assert four.submit(eval(f"lambda: {number}")).result(60) == number


# Graphs whose answers are known: what came out, and what should have.


def total_of(futures: list[Any]) -> int:
    return int(sum(gather(futures, timeout=60)))


def bag(cluster: Cluster) -> tuple[int, int]:
    return total_of([cluster.submit(add, number) for number in range(40)]), 780


def fan_out(cluster: Cluster) -> tuple[int, int]:
    root = cluster.submit(add, 100)
    return total_of([cluster.submit(add, root, number) for number in range(40)]), 4780


def fan_in(cluster: Cluster) -> tuple[int, int]:
    return total_of([cluster.submit(add, *[cluster.submit(add, number) for number in range(40)])]), 780


def pipeline(cluster: Cluster) -> tuple[int, int]:
    lines = [cluster.submit(add, number) for number in range(4)]
    for _ in range(9):
        lines = [cluster.submit(add, line, 1) for line in lines]
    return total_of(lines), 6 + 4 * 9


def all_pairs(cluster: Cluster) -> tuple[int, int]:
    made = [cluster.submit(blob, number) for number in range(5)]
    pairs = [cluster.submit(mix, one, other) for one in made for other in made]
    return total_of([cluster.submit(first, pair) for pair in pairs]), 100


def random_dag(cluster: Cluster) -> tuple[int, int]:
    rng = random.Random(7)
    futures: list[Any] = []
    values: list[int] = []
    for number in range(60):
        above = rng.sample(range(number), min(number, rng.randrange(4)))
        futures.append(cluster.submit(add, number, *[futures[one] for one in above]))
        values.append(number + sum(values[one] for one in above))
    return total_of(futures), sum(values)


def recursion(cluster: Cluster) -> tuple[int, int]:
    """A graph that grows while it runs."""
    return cluster.submit(fibonacci, 7).result(), 13


GRAPHS: list[Callable[[Cluster], tuple[int, int]]] = [bag, fan_out, fan_in, pipeline, all_pairs, random_dag, recursion]


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.filterwarnings("ignore:strategy .* works differently")
@pytest.mark.parametrize("strategy", PRESETS)
def test_every_preset_is_right_on_every_graph(strategy: str, nodes: int, tmp_path: Path):
    with Cluster(1, nodes=nodes, strategy=strategy, journal=tmp_path) as cluster:
        for graph in GRAPHS:
            got, expected = graph(cluster)
            assert got == expected, graph.__name__
    for node in range(nodes):
        journal = Journal.from_bytes((tmp_path / f"node-{node}.journal").read_bytes())
        assert journal.steps and replay(journal) is None


def test_a_node_on_a_thread_keeps_a_journal_too(tmp_path: Path):
    with Cluster(1, journal=tmp_path / "new") as cluster:
        assert fan_in(cluster) == (780, 780)
    journal = Journal.from_bytes((tmp_path / "new" / "node-0.journal").read_bytes())
    assert journal.steps and replay(journal) is None
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="journal="):
        Cluster(1, journal=tmp_path / "file")


def engine_of(cluster: Cluster) -> PrivateCluster:
    engine = cluster._open().engine
    assert isinstance(engine, PrivateCluster)
    return engine


@pytest.mark.parametrize("who", ["node 1", "the store"])
def test_whoever_is_killed_is_named_and_replaced(who: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    before = set(descendants(os.getpid()))
    with Cluster(1, nodes=3) as cluster:
        folders = [folder for folder in (cluster._folders.memory, cluster._folders.scratch) if folder is not None]
        engine = engine_of(cluster)
        put = [cluster.put(blob(100 + number)) for number in range(3)]
        made = [cluster.submit(blob, number) for number in range(9)]
        wait(made, 60)
        begun = [cluster.submit(begin_once_and_hang, str(tmp_path / f"begun{slot}"), slot) for slot in range(3)]
        behind = [cluster.submit(add, *begun, number) for number in range(20)]
        for slot in range(3):
            wait_for_file(tmp_path / f"begun{slot}")
        old = engine.pids
        os.kill(old[who], signal.SIGKILL)
        wait_until(lambda: who not in engine.pids or engine.pids[who] not in (0, old[who]))
        for slot in range(3):
            (tmp_path / f"begun{slot}.go").touch()
        assert gather(behind, timeout=60) == [3 + number for number in range(20)]
        assert [one.result(60)[0] for one in made] == list(range(9)), "what was lost is made again"
        assert [cluster.submit(first, one).result(60) for one in put] == [100, 101, 102], "another node had a copy"
        wait_until(lambda: len(engine.members) == 3 and len(engine.pids) == 4)
        assert gather([cluster.submit(which_node, str(tmp_path), 3) for _ in range(9)], timeout=60)
        family = [pid for pid in descendants(os.getpid()) if pid not in before]
    (line,) = [line for line in caplog.messages if "has ended" in line]
    assert line.startswith(f"{who} has ended, by signal 9")
    assert gone(family, folders)


def test_a_node_and_the_store_may_die_together():
    with Cluster(1, nodes=2) as cluster:
        pids = engine_of(cluster).pids
        running = [cluster.submit(add, number) for number in range(500)]
        os.kill(pids["the store"], signal.SIGKILL)
        os.kill(pids["node 0"], signal.SIGKILL)
        assert gather(running, timeout=60) == list(range(500))
        engine = engine_of(cluster)
        wait_until(lambda: set(engine.members.nodes) == {1, 2})


def test_a_cluster_whose_nodes_die_again_and_again_is_broken():
    with Cluster(1, nodes=1, node="process") as cluster:
        engine = engine_of(cluster)
        waiting = cluster.submit(time.sleep, 1000)
        dead: set[int] = set()
        while engine._broken is None:
            wait_until(lambda: engine._broken is not None or (len(engine.members) > 0 and nodes_of(engine) - dead))
            for pid in nodes_of(engine) - dead:
                dead.add(pid)
                os.kill(pid, signal.SIGKILL)
        error = waiting.exception(60)
        assert isinstance(error, DawsError) and ("signal 9" in str(error) or "when they died" in str(error))
        with pytest.raises(ClosedError, match="signal 9"):
            cluster.submit(add)


def nodes_of(engine: PrivateCluster) -> set[int]:
    return {pid for name, pid in engine.pids.items() if name.startswith("node ")}


def wait_until(condition: Callable[[], Any], within_s: float = 30.0) -> None:
    until_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until_s, "it did not come to pass in time"
        time.sleep(0.01)


def wait_for_file(path: Path) -> None:
    wait_until(path.exists)


def test_nodes_that_cannot_start_say_why():
    def fail_to_set_up() -> None:
        raise ValueError("no licence")

    before = set(descendants(os.getpid()))
    with pytest.raises(UnavailableError, match="no licence"):
        Cluster(1, nodes=2, setup=fail_to_set_up)
    assert gone([pid for pid in descendants(os.getpid()) if pid not in before], [])


def test_what_is_closed_leaves_nothing():
    before = set(descendants(os.getpid()))
    with Cluster(1, nodes=2) as cluster:
        big = cluster.submit(blob, 1)
        wait([big], 60)
        folders = [folder for folder in (cluster._folders.memory, cluster._folders.scratch) if folder is not None]
        family = [pid for pid in descendants(os.getpid()) if pid not in before]
        assert len(family) >= 8  # a fork server, the store, and two nodes with a fork server and a worker each
    assert gone(family, folders)
    assert big.result() == blob(1), "what somebody may ask for was brought here before"


@pytest.mark.parametrize("given", [{"nodes": 0}, {"nodes": 1.5}, {"node": "moon"}])
def test_what_makes_no_sense_is_refused(given: dict[str, Any]):
    with pytest.raises(UsageError, match=next(iter(given))):
        Cluster(1, **given)


def test_nothing_is_left_of_a_client_that_was_killed(tmp_path: Path):
    for slot in range(2):
        os.mkfifo(tmp_path / f"begun{slot}")
    command = [sys.executable, str(Path(__file__).parents[1] / "owner.py"), str(tmp_path / "begun")]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folders = [Path(line) for line in (owner.stdout.readline().strip(), owner.stdout.readline().strip()) if line]
        for slot in range(2):
            open(tmp_path / f"begun{slot}").close()  # waits until the task has opened it, too
        family = descendants(owner.pid)
        assert len(family) >= 8 and all(folder.exists() for folder in folders)
        owner.kill()
    assert gone(family, folders)


def test_a_cluster_is_open_when_its_session_is(monkeypatch: pytest.MonkeyPatch):
    """The nodes may be there long before the store has opened the session."""
    call_store: Any = PrivateCluster._call_store
    calls: list[Any] = []

    def late(engine: PrivateCluster, effect: Any) -> None:
        calls.append(effect)
        if len(calls) == 1:
            engine._full.add_done_callback(lambda _: engine.loop.call_later(0.2, call_store, engine, effect))
        else:
            call_store(engine, effect)

    monkeypatch.setattr(PrivateCluster, "_call_store", late)
    with Cluster(1, nodes=2) as cluster:
        assert cluster.submit(pow, 2, 3).result(30) == 8


def test_an_error_before_a_cluster_is_open_ends_its_start(monkeypatch: pytest.MonkeyPatch):
    def fail(engine: PrivateCluster) -> None:
        raise RuntimeError("no session")

    monkeypatch.setattr(PrivateCluster, "_attach", fail)
    with pytest.raises(RuntimeError, match="no session"):
        Cluster(1, nodes=2)
