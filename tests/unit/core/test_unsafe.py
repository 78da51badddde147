"""What was acknowledged is kept until it is safe, and what cannot be taken back waits for that."""

from daws.core.effects import CallStore, StartRun
from daws.core.events import CallsSafe, RunEnded
from daws.core.node import SECOND_NS, NodeConfig
from daws.core.unsafe import Keeping, tasks_of, when_safe
from daws.model.task import CLIENT, TaskSpec
from daws.testing import Driver, ready
from daws.wire.messages import CancelOrder, CancelTaken, Submission
from daws.wire.store import (
    DONE,
    OK,
    REFUSED,
    UNKNOWN,
    Claim,
    Create,
    Finish,
    Inspect,
    Lease,
    Register,
    Satisfy,
)

REPLICATED = NodeConfig(lease_ns=8 * SECOND_NS, replicated=True)


def test_a_store_that_forgets_nothing_costs_nothing():
    with Driver() as node:
        assert node.core.keeping is None
        done: list[int] = []
        when_safe(node.core, lambda: done.append(1))
        assert done == [1]


def test_rows_that_changed_something_are_kept_until_they_are_safe():
    keeping = Keeping()
    call = CallStore(7, 1, [Finish(1, 0, 0), Claim(2, 1, 0, 0), Satisfy(3, 1, 0), Inspect(4), Lease(0, 0)])
    keeping.keep(call, [None, REFUSED, UNKNOWN, DONE, OK])
    assert keeping.rows == {1: [Finish(1, 0, 0)]}
    keeping.keep(CallStore(8, 1, [Inspect(4)]), [DONE])
    assert keeping.count == 1, "nothing in it can be lost"
    keeping.forget(0, (7,))
    assert keeping.rows
    keeping.forget(1, (7, 99))
    assert not keeping.rows


def test_what_a_row_is_about():
    assert tasks_of(Register(1, 2)) == (1, 2)
    assert tasks_of(Create(TaskSpec(3))) == (3,)
    assert tasks_of(Finish(4, 0, 0)) == (4,)
    assert tasks_of(Lease(0, 0)) == ()


def test_a_cancel_is_acknowledged_when_it_is_safe():
    with Driver(config=REPLICATED) as node:
        node.give(CancelOrder(CLIENT, 0, (5,)))
        call = node.expect(CallStore)
        node.answer(call, DONE)
        node.nothing_left()
        node.give(CallsSafe(call.shard, (call.token,)))
        node.expect(CancelTaken)


def test_what_waits_is_done_in_order_and_only_when_all_before_it_is_safe():
    with Driver(config=REPLICATED) as node:
        node.give(Submission(CLIENT, 0, (ready(5), ready(6))))
        first = node.expect(StartRun, task=5)
        second = node.expect(StartRun, task=6)
        node.effects.clear()
        calls = []
        for run in (first, second):
            node.give(RunEnded(run.ready.spec.id, run.run, 1))
            calls.append(node.expect(CallStore))
            node.effects.clear()
            node.answer(calls[-1], None)
        done: list[int] = []
        when_safe(node.core, lambda: done.append(1))
        node.give(CallsSafe(0, (calls[1].token,)))
        assert done == [], "the first is not"
        node.give(CallsSafe(0, (calls[0].token,)))
        assert done == [1]
        node.effects.clear()
