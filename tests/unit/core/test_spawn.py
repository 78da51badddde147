"""Graphs that grow: tasks that create tasks and wait for them."""

import pytest

from daws.core.effects import CallStore, DropObject, ResumeRun, StartRun, StopRun
from daws.core.events import RunEnded, RunSpawned, RunWaits
from daws.core.outbox import carry_out
from daws.core.remake import claim_remake
from daws.core.schedule import DEATHS_WAITED_MAX
from daws.model.session import brought_id
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY
from daws.model.task import CLIENT, REPLICA, Input, Ready, TaskSpec, spawned_id
from daws.store.memory import MemoryStore
from daws.testing import Driver, created, members_of, ready, task
from daws.testing.build import BIG, object_at
from daws.wire.messages import StopDone, StopOrder, Submission, SubmissionTaken
from daws.wire.store import (
    OK,
    REFUSED,
    Available,
    Cancel,
    Claim,
    Clear,
    Committed,
    Create,
    Estate,
    Finish,
    LoggedEnd,
    Noted,
    Open,
    Register,
    Remake,
    Resume,
    Satisfy,
    Spawn,
    Suspend,
    TakeOver,
    Unready,
    function_row,
)

FUNCTION = function_row(brought_id(0, b"digest"), b"pickled")
CHILD = spawned_id(1, 0, 0)
OTHER = spawned_id(1, 0, 1)


def with_store(graph: dict[int, list[int]] | None = None, cores: int = 1) -> tuple[Driver, MemoryStore, StartRun]:
    """Task 1 runs on the first (or only) executor of node 0."""
    store = MemoryStore()
    store.join(members_of(1).infos)
    rows = created(graph or {1: []}, 0)
    store.apply(0, rows, 0)
    node = Driver("mlb", members=1, cores=cores)
    node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
    node.expect(SubmissionTaken)
    return node, store, node.expect(StartRun, task=1)


def end(node: Driver, run: StartRun, sizes: tuple[int, ...] = (10,), error: str = "") -> None:
    node.give(RunEnded(run.ready.spec.id, run.run, 50_000_000, sizes, error))


def state(store: MemoryStore, task: int) -> int:
    record = store.record(task)
    assert record is not None
    return record.state


def test_a_child_is_listed_created_and_opened_before_its_spawner_may_end():
    with Driver("mlb", members=1, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun)
        node.give(RunSpawned(1, run.run, ((task(-1, estimate_ns=5), ()),)))
        call = node.expect_rows(Spawn(1, 0, 0, (CHILD,)))
        end(node, run, ())
        assert 1 in node.core.executors.running, "its end has to wait"
        node.answer(call, OK)
        spec = TaskSpec(CHILD, estimate_ns=5, home=0)
        node.answer(node.expect_rows(Create(spec, (), (), (), 0, True)), OK)
        call = node.expect_rows(Open(CHILD, 0))
        node.answer(call, ready(CHILD))
        node.expect_rows(Finish(1, 0, 0))
        node.expect(StartRun, task=CHILD)


def test_a_run_may_end_when_the_store_has_the_functions_of_its_tasks():
    with Driver("mlb", members=1, cores=2) as node:
        node.give(Submission(CLIENT, 0, (ready(1), ready(2))))
        node.expect(SubmissionTaken)
        runs = [node.expect(StartRun, task=number) for number in (1, 2)]
        node.give(RunSpawned(1, runs[0].run, (), False, (FUNCTION,)))
        first = node.expect_rows(FUNCTION)
        node.give(RunSpawned(2, runs[1].run, (), False, (FUNCTION,)))
        second = node.expect_rows(FUNCTION)
        end(node, runs[0], ())
        assert 1 in node.core.executors.running, "its end has to wait"
        node.answer(first, OK)
        node.answer(node.expect_rows(Finish(1, 0, 0)), None)
        end(node, runs[1], ())
        node.answer(node.expect_rows(Finish(2, 0, 0)), None)
        node.answer(second, OK)


def test_functions_come_before_the_tasks_that_need_them():
    with Driver("mlb", members=1, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun)
        node.give(RunSpawned(1, run.run, ((task(-1), ()),), False, (FUNCTION,)))
        call = node.expect_rows(FUNCTION, Spawn(1, 0, 0, (CHILD,)))
        end(node, run, ())
        node.answer(call, OK, OK)
        node.answer(node.expect_rows(Create(TaskSpec(CHILD, home=0), (), (), (), 0, True)), OK)
        node.answer(node.expect_rows(Open(CHILD, 0)), ready(CHILD))
        node.expect_rows(Finish(1, 0, 0))
        node.expect(StartRun, task=CHILD)


def test_two_functions_with_one_number_fail_the_task_that_comes_second():
    node, store, run = with_store()
    store.apply(0, [function_row(FUNCTION.spec.id, b"another")], 0)
    node.give(RunSpawned(1, run.run, (), False, (FUNCTION,)))
    node.serve(store)
    node.expect(StopRun, task=1)
    assert state(store, 1) == STATE_FAILED


def test_a_spawner_whose_attempt_is_over_creates_nothing():
    with Driver("mlb", members=1, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun)
        node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
        node.answer(node.expect(CallStore), REFUSED)
        node.expect(StopRun, task=1)
        end(node, run, ())
        assert not node.core.executors.running, "without its children it must not be committed"


def test_a_run_that_has_ended_is_not_committed_without_its_children():
    """A copy of a task may not create anything: only its owner can."""
    with Driver("mlb", members=1, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun)
        node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
        call = node.expect(CallStore)
        end(node, run)
        node.answer(call, REFUSED)
        node.expect(DropObject, object=1)
        assert not node.core.executors.running


def test_children_run_and_the_log_names_them():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()), (task(-1), (CHILD,)))))
    node.serve(store)
    end(node, run)
    node.serve(store)
    end(node, node.expect(StartRun, task=CHILD), ())
    node.serve(store)
    end(node, node.expect(StartRun, task=OTHER), ())
    node.serve(store)
    node.nothing_left()
    assert [state(store, one) for one in (1, CHILD, OTHER)] == [STATE_DONE] * 3
    assert store.shards[0].log[0] == LoggedEnd(1, STATE_DONE, "", (CHILD, OTHER))


def registering(node: Driver) -> CallStore:
    """Task 1 spawned a child that reads object 7: the child exists, and its parent is told of it."""
    node.give(Submission(CLIENT, 0, (ready(1),)))
    node.expect(SubmissionTaken)
    run = node.expect(StartRun)
    node.give(RunSpawned(1, run.run, ((task(-1, [7]), (7,)),)))
    node.answer(node.expect(CallStore), OK)
    node.answer(node.expect(CallStore), OK)
    return node.expect_rows(Register(7, CHILD))


def test_a_child_of_a_task_that_is_done_gets_its_object_at_once():
    with Driver("mlb", members=1, cores=1) as node:
        given = (Input(7, 10, 7, (0,), b""),)
        node.answer(registering(node), Available(given))
        node.expect_rows(Satisfy(CHILD, 7, 0, given), Open(CHILD, 0))


def test_a_child_of_a_task_that_was_forgotten_fails_instead_of_waiting_for_ever():
    with Driver("mlb", members=1, cores=1) as node:
        node.answer(registering(node), REFUSED)
        call = node.expect(CallStore)
        assert [type(row) for row in call.rows] == [Cancel, Open]
        assert call.rows[0].error  # type: ignore[union-attr]


def test_a_task_that_waits_for_its_children_holds_no_executor():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()), (task(-1), ()))))
    node.give(RunWaits(1, run.run, (CHILD, OTHER)))
    node.serve(store)
    for _ in range(2):
        end(node, node.expect(StartRun), ())
        node.serve(store)
    assert node.expect(ResumeRun, task=1).slot == 0
    end(node, run)
    node.serve(store)
    node.nothing_left()
    assert state(store, 1) == STATE_DONE


def test_a_task_that_waits_may_be_created_anew():
    """The store has forgotten who created it, so that is done again, by a run on the same node."""
    with Driver("mlb", members=1, cores=2) as node:
        node.give(Submission(CLIENT, 0, (ready(1), ready(CHILD))))
        node.expect(SubmissionTaken)
        creator, waiting = node.expect(StartRun, task=1), node.expect(StartRun, task=CHILD)
        node.give(RunWaits(CHILD, waiting.run, (7,)))
        node.answer(node.expect_rows(Suspend(CHILD, 0, 0, (7,))), OK)
        register = node.expect_rows(Register(7, CHILD, True))
        node.give(RunSpawned(1, creator.run, ((task(-1), ()),)))
        node.answer(node.expect_rows(Spawn(1, 0, 0, (CHILD,))), OK)
        node.answer(node.expect(CallStore), OK)
        node.answer(node.expect_rows(Open(CHILD, 0)), OK)
        assert not node.core.executors.running[1].growing, "it is there"
        node.answer(register, OK)
        node.answer(node.expect_rows(Open(CHILD, 0, True)), Resume(0))
        node.expect(ResumeRun, task=CHILD)


def test_a_task_that_waits_hears_of_failures_too():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
    node.give(RunWaits(1, run.run, (CHILD,)))
    node.serve(store)
    end(node, node.expect(StartRun, task=CHILD), (), "bad")
    node.serve(store)
    node.expect(ResumeRun, task=1)
    assert state(store, CHILD) == STATE_FAILED


def test_waiting_for_what_has_ended_is_no_wait():
    node, store, run = with_store({1: [], 2: []})
    store.apply(0, [Finish(2, 0, 0, (Input(2, 10, 2, (0,), b""),))], 0)
    node.give(RunWaits(1, run.run, (2,)))
    node.serve(store)
    node.expect(ResumeRun, task=1)
    node.nothing_left()


def test_children_of_an_attempt_that_is_tried_again_are_cancelled():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
    node.serve(store)
    node.give(RunEnded(1, run.run, 5, (), "worker died", True))
    node.serve(store)
    assert state(store, CHILD) == STATE_CANCELLED
    node.expect(StartRun, task=CHILD)
    node.give(node.expect(StopOrder, to=0))
    node.expect(StopRun, task=CHILD)
    assert node.expect(StartRun, task=1).ready.attempt == 1


@pytest.mark.parametrize("answered", range(4))
def test_a_run_that_ends_while_it_is_written_that_it_waits_does_not_hold_up_the_next(answered: int):
    node, store, run = with_store(cores=3)

    def answer_next() -> None:
        if any(isinstance(effect, CallStore) for effect in node.effects):
            call = node.expect(CallStore)
            node.answer(call, *store.apply(call.shard, call.rows, 0))

    node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
    node.serve(store)
    node.give(RunWaits(1, run.run, (CHILD,)))
    for _ in range(answered):
        answer_next()
    node.give(RunEnded(1, run.run, 5, (), "worker died", True, (), True))
    while not (begun := [one for one in node.effects if isinstance(one, StartRun) and one.ready.spec.id == 1]):
        answer_next()
    again = spawned_id(1, 1, 0)
    node.give(RunSpawned(1, begun[0].run, ((task(-1), ()),)), RunWaits(1, begun[0].run, (again,)))
    node.serve(store)
    end(node, node.expect(StartRun, task=again))
    node.serve(store)
    assert node.expect(ResumeRun).run == begun[0].run


def test_who_waited_when_its_worker_died_is_tried_again_more_often():
    node, store, run = with_store()
    for number in range(DEATHS_WAITED_MAX):
        assert run.ready.attempt == number
        name = spawned_id(1, number, 0)
        node.give(RunSpawned(1, run.run, ((task(-1), ()),)), RunWaits(1, run.run, (name,)))
        node.serve(store)
        node.expect(StartRun, task=name)
        node.give(RunEnded(1, run.run, 5, (), "worker died", True, (), True))
        node.serve(store)
        node.give(node.expect(StopOrder, task=name))
        node.expect(StopRun, task=name)
        node.give(node.expect(StopDone))
        node.serve(store)
        run = node.expect(StartRun, task=1)
    node.give(RunEnded(1, run.run, 5, (), "worker died", True, (), True))
    node.serve(store)
    assert state(store, 1) == STATE_FAILED


def test_children_of_an_attempt_that_died_with_its_node_are_cancelled():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()),)))
    node.serve(store)
    heir = Driver("mlb", members=2, node=1)
    (estate,) = store.apply(0, [TakeOver(0, 1)], 0)
    assert isinstance(estate, Estate)
    for entry in estate.outbox:
        carry_out(heir.core, entry)
    heir.give()
    heir.serve(store)
    assert state(store, CHILD) == STATE_CANCELLED


def remade(store: MemoryStore, claimed: bool = True) -> None:
    """Task 2 was done on node 1, which is gone; task 3, which reads what it made, has it made again by node 0."""
    given = (object_at(2, 1),)
    for row in created({2: [], 3: [2]}, 1):
        store.apply(0, [row], 0)
    (told,) = store.apply(0, [Finish(2, 0, 1, given)], 0)
    (child,) = store.apply(0, [Satisfy(3, 2, 0, given)], 0)
    assert isinstance(child, Ready) and isinstance(told, Committed)
    store.apply(0, [Clear(1, (told.key,), (told.mark,))], 0)
    (noted,) = store.apply(0, [Unready(3, 0, child.move, (2,))], 0)
    assert isinstance(noted, Noted)
    (again,) = store.apply(0, [Remake(2, 3, 0, (1,), 0, noted.mark)], 0)
    assert isinstance(again, Ready)
    if claimed:
        store.apply(0, [Claim(2, -1, again.move, 0)], 0)


def test_waiting_for_a_task_that_is_made_again_is_no_wait():
    node, store, run = with_store()
    remade(store)
    node.give(RunWaits(1, run.run, (2,)))
    node.serve(store)
    node.expect(ResumeRun, task=1)
    node.nothing_left()


def test_who_needs_a_remake_that_nobody_runs_has_it_run():
    node, store, run = with_store()
    remade(store, claimed=False)
    node.give(RunSpawned(1, run.run, ((task(-1, [2]), (2,)),)))
    node.serve(store)
    end(node, run)
    node.serve(store)
    again = node.expect(StartRun, task=2)
    assert again.ready.attempt == 1
    end(node, again, (BIG,))
    node.serve(store)
    while any(isinstance(effect, StartRun) for effect in node.effects):
        end(node, node.expect(StartRun), (BIG,) if state(store, 3) != STATE_DONE else ())
        node.serve(store)
    assert state(store, CHILD) == STATE_DONE


@pytest.mark.parametrize("error", ["", "bad"])
def test_what_a_remake_has_spawned_ends_with_it(error):
    node, store, run = with_store()
    remade(store, claimed=False)
    end(node, run)
    node.serve(store)
    (again,) = store.apply(0, [Remake(2, 3, 0)], 0)
    assert isinstance(again, Ready)
    claim_remake(node.core, again, 0)
    node.give()
    node.serve(store)
    rerun = node.expect(StartRun, task=2)
    node.give(RunSpawned(2, rerun.run, ((task(-1), ()),)))
    node.serve(store)
    name = spawned_id(2, 1, 0)
    assert state(store, name) == READY
    end(node, rerun, () if error else (BIG,), error)
    node.serve(store)
    if error:
        assert [state(store, one) for one in (2, 3, name)] == [STATE_DONE, STATE_FAILED, STATE_FAILED]
    else:
        assert [state(store, one) for one in (2, 3, name)] == [STATE_DONE, READY, STATE_CANCELLED]


def child_with_object(node: Driver, store: MemoryStore, run: StartRun) -> None:
    """Task 1 holds the large object of its child, and nobody has asked for it yet."""
    node.give(RunSpawned(1, run.run, ((task(-1, makes=[CHILD]), ()),), held=True))
    node.give(RunWaits(1, run.run, (CHILD,)))
    node.serve(store)
    end(node, node.expect(StartRun, task=CHILD), (BIG,))
    node.serve(store)
    node.expect(ResumeRun, task=1)


def test_what_a_child_has_made_stays_until_its_spawner_has_ended():
    node, store, run = with_store()
    child_with_object(node, store, run)
    assert not any(isinstance(effect, DropObject) for effect in node.effects)
    end(node, run)
    node.serve(store)
    node.expect(DropObject, object=CHILD)
    node.nothing_left()
    record = store.record(CHILD)
    assert record is None or not record.held


def test_what_a_child_makes_after_its_spawner_has_ended_goes_at_once():
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1, makes=[CHILD]), ()),), held=True))
    node.serve(store)
    end(node, run)
    node.serve(store)
    end(node, node.expect(StartRun, task=CHILD), (BIG,))
    node.serve(store)
    node.expect(DropObject, object=CHILD)


def test_a_child_reads_what_another_has_made_though_their_spawner_has_ended():
    node, store, run = with_store()
    child_with_object(node, store, run)
    node.give(RunSpawned(1, run.run, ((task(-1, [CHILD]), (CHILD,)),), held=True))
    node.serve(store)
    end(node, run)
    node.serve(store)
    reader = node.expect(StartRun, task=OTHER)
    assert not any(isinstance(effect, DropObject) for effect in node.effects), "it is being read"
    end(node, reader, ())
    node.serve(store)
    node.expect(DropObject, object=CHILD)


def test_a_spawner_that_is_called_off_holds_nothing():
    node, store, run = with_store()
    child_with_object(node, store, run)
    store.apply(0, [Cancel(1, 0)], 0)
    node.give(StopOrder(0, 1, -1, 0))
    node.expect(StopRun, task=1)
    node.serve(store)
    node.expect(DropObject, object=CHILD)
    record = store.record(CHILD)
    assert record is None or not record.held


def test_a_copy_that_may_not_spawn_lets_go_of_nothing_that_its_owner_has_spawned():
    """Both spawn under the same names. Who lets go of what another waits for has it forgotten before it is heard of."""
    node, store, run = with_store()
    node.give(RunSpawned(1, run.run, ((task(-1), ()),), held=True), RunWaits(1, run.run, (CHILD,)))
    node.serve(store)
    with Driver("mlb", members=2, cores=1, node=1) as other:
        other.give(Submission(CLIENT, 0, (ready(1, makes=[1], mode=REPLICA),)))
        other.expect(SubmissionTaken)
        copy = other.expect(StartRun, task=1)
        other.give(RunSpawned(1, copy.run, ((task(-1), ()),), held=True))
        other.serve(store)
        other.expect(StopRun, task=1)
    record = store.record(CHILD)
    assert record is not None and record.held
    end(node, node.expect(StartRun, task=CHILD))
    node.serve(store)
    node.expect(ResumeRun, task=1)
    end(node, run)
    node.serve(store)
    assert not record.held, "but its owner does"


def test_a_task_goes_on_where_it_has_waited():
    node = Driver("mlb", members=1, cores=3)
    store = MemoryStore()
    store.join(members_of(1).infos)
    store.apply(0, created({1: [], 2: [], 3: []}, 0), 0)
    node.give(Submission(CLIENT, 0, (ready(1), ready(2), ready(3))))
    node.expect(SubmissionTaken)
    runs = {number: node.expect(StartRun, task=number) for number in (1, 2, 3)}
    for number in (1, 2):
        node.give(RunWaits(number, runs[number].run, (3,)))
    node.serve(store)
    end(node, runs[3])
    node.serve(store)
    assert [node.expect(ResumeRun, task=number).slot for number in (1, 2)] == [runs[1].slot, runs[2].slot]
