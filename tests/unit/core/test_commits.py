"""Ends of tasks: those that somebody waits for leave at once, those of leaves in company."""

from daws.core.commits import on_finish_answer
from daws.core.effects import COMMIT, TICK, CallStore, DropObject, StartRun
from daws.core.events import CallFine, RunEnded, TimerFired
from daws.core.node import SECOND_NS, NodeConfig
from daws.core.outbox import carry_out
from daws.core.placement import enqueue
from daws.core.places import holds
from daws.core.store_calls import ENDS_HELD_MAX, ENDS_PER_LOOK
from daws.core.transfer import know_until
from daws.model.task import AGAIN, CLIENT, INLINE_BYTES, REPLICA, Input
from daws.store.memory import MemoryStore
from daws.testing import Driver, ready
from daws.testing.build import BIG, created
from daws.wire.messages import COPY, LoadQuery, LoadReply, Offer, Submission, SubmissionTaken
from daws.wire.store import SATISFY, Committed, Finish, Granted, Lease, OutboxEntry, outbox_key

MS = 1_000_000
DELAY_NS = 100 * MS


def busy(leaves: int, other: int = 0, cores: int = 1) -> Driver:
    """A node with more to do than executors: leaves first, then tasks that others wait for."""
    node = Driver("mlb", cores=cores, config=NodeConfig(lease_ns=8 * SECOND_NS, commit_delay_ns=DELAY_NS))
    tasks = [ready(task, leaf=task < leaves) for task in range(leaves + other)]
    node.give(Submission(CLIENT, 1, tuple(tasks)))
    node.expect(SubmissionTaken)
    return node


def end(node: Driver, task: int, took_ns: int = 10 * MS) -> None:
    node.give(RunEnded(task, node.expect(StartRun, task=task).run, took_ns), later_ns=took_ns)


def test_ends_of_leaves_leave_together():
    with busy(leaves=30) as node:
        for task in range(10):
            end(node, task)
        assert not any(isinstance(effect, CallStore) for effect in node.effects), "all wait for company"
        assert holds(node.core, 3), "a task whose end has not left is still here"
        end(node, 10)
        call = node.expect_rows(*[Finish(task, 0, 0) for task in range(11)])
        assert call.lazy
        node.give(CallFine(call.token))
        assert not holds(node.core, 3)
        node.expect(StartRun, task=11)


def test_an_idle_executor_means_that_nobody_else_will_come():
    with busy(leaves=2) as node:
        end(node, 0)
        end(node, 1)
        node.expect_rows(Finish(0, 0, 0), Finish(1, 0, 0))


def test_what_others_wait_for_takes_along_what_is_held():
    with busy(leaves=1, other=2) as node:
        end(node, 0)
        end(node, 1)
        call = node.expect_rows(Finish(0, 0, 0), Finish(1, 0, 0))
        assert not call.lazy
        node.answer(call, None, Committed(-1))
        node.expect(StartRun, task=2)


def test_long_tasks_do_not_keep_the_ends_of_others():
    with busy(leaves=3) as node:
        end(node, 0, took_ns=2 * DELAY_NS)
        node.expect_rows(Finish(0, 0, 0))
        node.expect(StartRun, task=1)


def test_the_tick_sends_what_an_unusually_long_task_has_kept():
    with busy(leaves=3) as node:
        end(node, 0)
        node.fire(TICK)
        (lease,) = node.expect(CallStore).rows
        assert isinstance(lease, Lease), "a call of its own"
        node.expect_rows(Finish(0, 0, 0))
        node.expect(StartRun, task=1)


def test_a_renewal_hurries_nothing_that_is_kept():
    with busy(leaves=3) as node:
        end(node, 0)
        node.give(TimerFired(TICK))
        (lease,) = node.expect(CallStore).rows
        assert isinstance(lease, Lease) and node.core.store.rows == [Finish(0, 0, 0)]
        node.expect(StartRun, task=1)


def test_an_unusually_long_task_keeps_the_ends_of_short_ones_not_until_the_tick():
    """One core, 5 ms each: whether something is due is looked up after as many runs as that may cost."""
    with busy(leaves=42) as node:
        for task in range(40):
            end(node, task, took_ns=5 * MS)
        rows = sum(len(effect.rows) for effect in node.effects if isinstance(effect, CallStore))
        assert rows < 40, "the last ones are kept"
        node.drop(CallStore)
        node.fire(COMMIT)
        assert node.now_ns <= (ENDS_PER_LOOK + 1) * 5 * MS
        assert len(node.expect(CallStore).rows) == 40 - rows
        node.expect(StartRun, task=40)


def test_what_was_kept_lately_is_looked_at_again():
    with busy(leaves=99) as node:
        for task in range(63):
            end(node, task)
        node.drop(CallStore)
        node.fire(COMMIT)
        node.expect(StartRun, task=63)
        assert not node.effects, "nothing is due yet"
        node.fire(COMMIT)
        assert node.expect(CallStore).rows[-1] == Finish(62, 0, 0)
        assert not node.core.store.commit_armed


def test_there_is_a_limit_to_company():
    with busy(leaves=2 * ENDS_HELD_MAX) as node:
        for task in range(ENDS_HELD_MAX):
            end(node, task, took_ns=MS)
        assert len(node.expect(CallStore).rows) == ENDS_HELD_MAX
        node.expect(StartRun, task=ENDS_HELD_MAX)


def test_small_values_travel_inside_records():
    store = MemoryStore(direct=True)
    with Driver("mlb", members=1, cores=1) as node:
        store.apply(0, created({1: [], 2: [1]}, owner=0), 0)
        node.give(Submission(CLIENT, 1, (ready(1, makes=[1]),)))
        node.expect(SubmissionTaken)
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, MS, (3,), values=(b"abc",)))
        node.serve(store)
        assert node.expect(StartRun, task=2).ready.inputs == (Input(1, 3, 1, (0,), b"abc"),)


def test_a_task_that_is_ready_again_is_taken_once_whichever_answer_comes_first():
    """Told twice after it had gone back to waiting; the answer that says so overtakes the other."""
    with Driver(cores=1) as node:
        told = OutboxEntry(outbox_key(7, SATISFY), SATISFY, 7, (8,), (), mark=3, needs=(5,))
        calls = []
        for _ in range(2):
            carry_out(node.core, told)
            node.give(LoadQuery(1))
            calls.append(node.expect(CallStore))
        node.drop(LoadReply)
        node.answer(calls[1], ready(8, move=2, mode=AGAIN))
        node.answer(calls[0], ready(8, move=2))
        node.expect(StartRun, task=8)


def test_a_copy_gives_way_to_the_task_when_that_is_ready_again():
    with Driver("adage", cores=1) as node:
        node.give(Offer(1, 1, COPY, (ready(8),)))
        node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        run = node.expect(StartRun, task=8)
        carry_out(node.core, OutboxEntry(outbox_key(7, SATISFY), SATISFY, 7, (8,), (), mark=3, needs=(5,)))
        node.give(LoadQuery(1))
        node.drop(LoadReply)
        node.answer(node.expect(CallStore), ready(8, move=2))
        assert (
            node.core.executors.running[8].number == run.run and not node.core.executors.running[8].ready.mode & REPLICA
        )


def test_what_a_task_makes_that_was_planned_for_another_node_is_known_as_astray():
    with Driver("daws", cores=2) as node:
        tasks = [ready(task, makes=[task], rank=1, home=home, planned=True) for task, home in ((1, 0), (2, 1))]
        for one in tasks:
            enqueue(node.core, one, False)  # the second was stolen
        node.give()
        runs = [node.expect(StartRun, task=task) for task in (1, 2)]
        node.give(*[RunEnded(run.ready.spec.id, run.run, MS, (BIG,)) for run in runs])
        assert [node.core.strayed(object_) for object_ in (1, 2)] == [False, True]
        call = node.expect(CallStore)
        node.answer(call, Committed(-1), Committed(-1))
        assert not node.core.objects.strays, "nobody reads it: it is gone"
        node.drop(DropObject)
        node.drop(LoadQuery)


def test_what_travels_inside_records_is_nowhere_and_not_astray():
    with Driver("daws") as node:
        enqueue(node.core, ready(1, makes=[1, 2], rank=1, home=1, planned=True), False)
        node.give()
        run = node.expect(StartRun, task=1)
        node.give(RunEnded(1, run.run, MS, (INLINE_BYTES, BIG)))
        node.answer(node.expect(CallStore), Committed(-1, readers=(7,)))
        assert node.core.objects.strays == {2}
        node.drop(LoadQuery)


def test_a_child_that_went_back_to_waiting_is_not_queued_by_an_older_answer():
    driver = Driver(cores=1)
    core = driver.core
    child = ready(2, makes=(2,), move=1)
    know_until(core, child)
    core.out = []
    on_finish_answer(core, Finish(1, 0, 0), Committed(-1, (), ready=(child,)))
    assert not [*core.queues.shared.all()]
