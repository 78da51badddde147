"""Telling children, stopping subtrees, waking waiters: intents are carried out to the end, then cleared."""

from daws.core.effects import ASK_AGAIN, CallStore, DropObject, StartRun
from daws.core.events import RunEnded
from daws.core.node import NodeConfig
from daws.core.store_calls import UNKNOWN_WAIT_NS
from daws.model.cluster import Members
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.task import CLIENT, Ready
from daws.store.memory import MemoryStore
from daws.testing import Driver, created, members_of, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import (
    Awake,
    CancelOrder,
    CancelTaken,
    Releases,
    StopDone,
    StopOrder,
    Submission,
    SubmissionTaken,
    Wake,
)
from daws.wire.store import (
    CANCELLED,
    OK,
    SATISFY,
    STOP,
    UNKNOWN,
    Cancel,
    Clear,
    Committed,
    Leased,
    Release,
    Resume,
    Satisfy,
    Stopped,
    outbox_key,
)

TICK = 0
KEY = outbox_key(1, SATISFY)


def committed(node: Driver, *children: int) -> CallStore:
    """Task 1 runs and commits; the call that tells its children."""
    node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
    node.expect(SubmissionTaken)
    run = node.expect(StartRun)
    node.give(RunEnded(1, run.run, 50_000_000, (BIG,)))
    node.answer(node.expect(CallStore), Committed(KEY, children, mark=7))
    return node.expect(CallStore)


def tick(node: Driver) -> CallStore:
    node.fire(TICK)
    call = node.expect(CallStore)
    node.answer(call, Leased(), *[OK] * (len(call.rows) - 1))
    return call


def test_children_are_told_what_there_is_and_the_intent_is_cleared():
    with Driver("mlb", members=1, cores=1) as node:
        call = committed(node, 2, 3)
        given = (object_at(1, 0),)
        assert [(row.task, row.parent, row.inputs) for row in call.rows] == [(2, 1, given), (3, 1, given)]  # type: ignore[union-attr]
        node.answer(call, Ready(ready(2, object_at(1, 0)).spec, 0, 1, given), OK)
        assert node.expect(StartRun, task=2).ready.inputs == given
        cleared = tick(node)
        assert cleared.rows[1:] == [Clear(0, (KEY,), (7,))]


def test_an_intent_is_kept_until_everybody_was_told():
    with Driver("mlb", members=1) as node:
        call = committed(node, 2)
        assert len(tick(node).rows) == 1
        node.answer(call, UNKNOWN)
        for wait_ns in (UNKNOWN_WAIT_NS, 2 * UNKNOWN_WAIT_NS):
            assert node.timers[ASK_AGAIN] == node.now_ns + wait_ns
            node.fire(ASK_AGAIN)
            asked = node.expect(CallStore)
            assert isinstance(asked.rows[0], Satisfy), "the child was not in the store yet: it is asked for again"
            node.answer(asked, UNKNOWN)
        node.fire(ASK_AGAIN)
        node.answer(node.expect(CallStore), OK)
        assert ASK_AGAIN not in node.timers
        assert tick(node).rows[1:] == [Clear(0, (KEY,), (7,))]


def test_objects_stay_until_all_who_read_them_have_ended():
    with Driver("mlb", members=2, config=NodeConfig(freed_batch=1)) as node:
        node.answer(committed(node, 2, 3), OK, OK)
        node.give(Releases(1, ((1, 2),)))
        assert 1 in node.core.objects.sizes
        node.give(Releases(1, ((1, 3),)))
        node.expect(DropObject, object=1)
        assert node.expect(CallStore).rows == [Release(1)]


def test_objects_are_not_kept_for_children_that_were_cancelled():
    with Driver("mlb", members=2, config=NodeConfig(freed_batch=1)) as node:
        node.answer(committed(node, 2), CANCELLED)
        node.expect(DropObject, object=1)
        assert node.expect(CallStore).rows == [Release(1)]


def test_what_a_run_that_lost_has_made_is_dropped():
    with Driver("mlb", members=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun)
        node.give(RunEnded(1, run.run, 50_000_000, (BIG,)))
        node.answer(node.expect(CallStore), CANCELLED)
        node.expect(DropObject, object=1)


def test_rivals_are_told_to_stop():
    with Driver("adage") as node:
        node.give(Submission(CLIENT, 0, (ready(1, home=0),)))
        node.expect(SubmissionTaken)
        node.give(RunEnded(1, node.expect(StartRun).run, 50_000_000))
        node.answer(node.expect(CallStore), Committed(-1, (), (2,)))
        assert node.expect(StopOrder, to=2).attempt == 0


def cancelled(node: Driver, *children: int, nodes: tuple[int, ...] = ()) -> CallStore | None:
    """A client cancels task 1."""
    node.give(CancelOrder(CLIENT, 4, (1,)))
    call = node.expect(CallStore)
    assert [type(row) for row in call.rows] == [Cancel]
    node.answer(call, Stopped(outbox_key(1, STOP), children, nodes, mark=9))
    node.expect(CancelTaken, to=CLIENT, batch=4)
    return node.expect(CallStore) if children else None


def test_an_end_that_comes_from_two_parents_spreads_once():
    with Driver() as node:
        call = cancelled(node, 2, 3)
        assert call is not None
        both = Stopped(outbox_key(4, STOP), (5, 6), (), mark=11)
        node.answer(
            call, Stopped(outbox_key(2, STOP), (4,), (), mark=10), Stopped(outbox_key(3, STOP), (4,), (), mark=12)
        )
        below = node.expect(CallStore)
        assert [(row.task, row.parent) for row in below.rows] == [(4, 2), (4, 3)]  # type: ignore[union-attr]
        node.answer(below, both, both)  # the store says it to its holder as often as it is asked
        last = node.expect(CallStore)
        assert [row.task for row in last.rows] == [5, 6], "not twice"  # type: ignore[union-attr]
        node.answer(last, CANCELLED, CANCELLED)
        (clear,) = tick(node).rows[1:]
        assert isinstance(clear, Clear) and sorted(clear.marks) == [9, 10, 11, 12]
        assert not node.core.outbox.spreading


def test_a_cancel_spreads_to_children_and_to_who_runs_it():
    with Driver() as node:
        call = cancelled(node, 2, nodes=(2,))
        assert call is not None
        row = call.rows[0]
        assert isinstance(row, Cancel) and (row.task, row.parent, row.error) == (2, 1, "")
        order = node.expect(StopOrder, to=2)
        node.answer(call, OK)
        assert len(tick(node).rows) == 1
        node.expect(StopOrder, to=2, key=order.key)
        node.give(StopDone(2, 1, order.key))
        assert tick(node).rows[1:] == [Clear(0, (outbox_key(1, STOP),), (9,))]
        node.give(StopDone(2, 1, order.key))


def test_who_has_died_need_not_be_stopped():
    with Driver() as node:
        cancelled(node, nodes=(2,))
        for _ in range(4):
            node.fire(TICK)
            call = node.expect(CallStore)
            node.answer(call, Leased(Members(2, members_of(2).infos)), *[OK] * (len(call.rows) - 1))
            if any(isinstance(row, Clear) for row in call.rows):
                break
        else:
            raise AssertionError("the intent is never cleared")
        node.drop(StopOrder)


def test_an_order_to_cancel_is_answered_when_the_store_knows():
    with Driver() as node:
        node.give(CancelOrder(CLIENT, 4, (1, 2)))
        node.give(CancelOrder(CLIENT, 4, (1, 2)))
        call = node.expect(CallStore)
        node.answer(call, CANCELLED, UNKNOWN)
        node.expect(CancelTaken, batch=4)


def test_what_a_repeated_call_has_cancelled_is_spread():
    """The task came into the store between the two calls, of which the first was answered first."""
    with Driver() as node:
        node.give(CancelOrder(CLIENT, 4, (1,)))
        call = node.expect(CallStore)
        node.answer(call, UNKNOWN)
        node.expect(CancelTaken, batch=4)
        node.answer(call, Stopped(outbox_key(1, STOP), (2,), (), mark=9))
        spread = node.expect(CallStore)
        assert [(row.task, row.node) for row in spread.rows if isinstance(row, Cancel)] == [(2, 0)]
        node.answer(spread, CANCELLED)


def test_an_order_may_say_by_what_tasks_have_failed():
    with Driver() as node:
        node.give(CancelOrder(CLIENT, 4, (1,), "task 0 has failed"))
        call = node.expect(CallStore)
        assert [row.error for row in call.rows if isinstance(row, Cancel)] == ["task 0 has failed"]
        node.answer(call, CANCELLED)
        node.expect(CancelTaken, batch=4)


def test_an_order_to_cancel_nothing_is_answered():
    with Driver() as node:
        node.give(CancelOrder(CLIENT, 4, ()))
        node.expect(CancelTaken, batch=4)


def test_the_owner_of_a_suspended_task_is_woken_until_it_says_so():
    with Driver("mlb", members=3) as node:
        node.answer(committed(node, 2), Resume(2))
        wake = node.expect(Wake, to=2)
        assert wake.task == 2
        assert len(tick(node).rows) == 1
        node.expect(Wake, to=2)
        node.give(Awake(2, 2, wake.key))
        assert tick(node).rows[1:] == [Clear(0, (KEY,), (7,))]


def test_waking_somebody_who_is_not_here_is_acknowledged():
    with Driver() as node:
        node.give(Wake(2, 5, 1))
        node.expect(Awake, to=2, task=5, key=1)


def run_all(node: Driver, store: MemoryStore, fails: int = -1) -> None:
    node.serve(store)
    while any(isinstance(effect, StartRun) for effect in node.effects):
        run = node.expect(StartRun)
        error = "bad" if run.ready.spec.id == fails else ""
        sizes = () if error else (BIG,)
        node.give(RunEnded(run.ready.spec.id, run.run, 50_000_000, sizes, error))
        node.serve(store)


def with_graph(graph: dict[int, list[int]]) -> tuple[Driver, MemoryStore]:
    store = MemoryStore()
    store.join(members_of(1).infos)
    rows = created(graph, 0)
    store.apply(0, rows, 0)
    node = Driver("flds", members=1)
    roots = tuple(Ready(row.spec, 0, 0) for row in rows if not row.parents)
    node.give(Submission(CLIENT, 0, roots))
    return node, store


def states(store: MemoryStore, graph: dict[int, list[int]]) -> dict[int, int]:
    return {task: record.state for task in graph if (record := store.record(task)) is not None}


DIAMOND: dict[int, list[int]] = {1: [], 2: [1], 3: [1], 4: [2, 3], 5: []}


def test_a_graph_runs_to_its_end_and_nothing_is_kept():
    node, store = with_graph(DIAMOND)
    run_all(node, store)
    assert set(states(store, DIAMOND).values()) <= {STATE_DONE}
    assert not node.core.objects.sizes and not node.core.objects.made
    node.fire(TICK)
    node.serve(store)
    assert not store.shards[0].outbox


def test_a_failure_fails_all_below_with_the_same_cause():
    node, store = with_graph(DIAMOND)
    run_all(node, store, fails=2)
    ended = states(store, DIAMOND)
    assert [task for task, state in ended.items() if state == STATE_FAILED] == [2, 4]
    record = store.record(4)
    assert record is not None and record.more().error == "bad"
    node.fire(TICK)
    node.serve(store)
    assert not store.shards[0].outbox and not node.core.objects.sizes


def test_a_cancel_cancels_all_below():
    node, store = with_graph(DIAMOND)
    node.expect(SubmissionTaken)
    node.give(CancelOrder(CLIENT, 1, (1,)))
    node.serve(store)
    node.expect(StopOrder, to=0)
    node.drop(StartRun)
    ended = states(store, DIAMOND)
    assert [task for task, state in ended.items() if state == STATE_CANCELLED] == [1, 2, 3, 4]
