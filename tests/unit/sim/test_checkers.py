"""Each thing that checkers watch for: done by hand to a cluster that is told nothing of it, and noticed."""

from types import SimpleNamespace

import pytest

from daws.core.config import Phase
from daws.core.effects import CallStore, DropObject, Left, RecallRun, Restart, ResumeRun, StartRun, StopRun
from daws.core.events import Leave, ObjectsPut, RunEnded, RunRecalled, RunWaits
from daws.core.node import NodeCore
from daws.core.objects import Made, own_objects
from daws.model.context import Label
from daws.model.graph import Growth
from daws.model.graph_builder import GraphBuilder
from daws.model.states import CANCELLED, DONE, FAILED, RUNNING
from daws.model.task import REMAKE, REPLICA, SUSPECT, Input, Needs, Ready, TaskSpec, node_id, spawned_id
from daws.sim.checkers import Checker, Violation
from daws.sim.checkers.commits import ORPHAN_LEASES
from daws.sim.cluster import cluster_of, joined, parse_group
from daws.sim.simulate import Settings, make_kernel
from daws.store.memory.store import HeldIntent
from daws.strategy import parse_strategy
from daws.testing.build import fetched, not_fetched
from daws.wire.store import (
    OK,
    REFUSED,
    STOP,
    Cancel,
    Committed,
    Create,
    Estate,
    Finish,
    Lease,
    LoggedEnd,
    OutboxEntry,
    Remake,
    Spawn,
    Stopped,
    TakeOver,
)

BIG = 100_000  # bytes: such an object is fetched
SMALL = 10  # bytes: such an object travels with its record


def bag(growth=()):
    builder = GraphBuilder()
    for _ in range(6):
        builder.add_task("step", 1000)
    graph = builder.build()
    graph.kinds = ("step", "spawned")
    graph.growth = tuple(growth)
    return graph


def chain():
    """Task 0 makes objects 0 (big) and 1 (small); tasks 1 and 2 read both of them."""
    builder = GraphBuilder()
    parent = builder.add_task("make", 1000, (), (BIG, SMALL))
    for _ in range(2):
        builder.add_task("read", 1000, [parent.outputs[0], parent.outputs[1]], (BIG,))
    return builder.build()


def watched(graph, cluster=None, faults=None, **settings):
    """A checker of a cluster of 4 nodes with 2 cores each, whose session is in the store."""
    kernel = make_kernel(graph, cluster or cluster_of(4, 2), parse_strategy("daws"), Settings(**settings))
    kernel.faults = faults
    kernel.checker = Checker(kernel)
    kernel.start()
    return kernel.checker


def ready_of(checker, task, attempt=0, mode=0, needs=None, inputs=()):
    graph = checker.known.graph
    if task >= graph.task_count:
        return Ready(TaskSpec(task), attempt, 0)
    reads, makes = tuple(graph.inputs_of(task).tolist()), tuple(graph.outputs_of(task))
    return Ready(TaskSpec(task, inputs=reads, outputs=makes, needs=needs), attempt, 0, inputs, mode)


def start(checker, node, task, attempt=0, mode=0, run=0, slot=0, needs=None, inputs=()):
    checker.kernel.starts.append(0)
    checker.on_start(node, StartRun(run, slot, ready_of(checker, task, attempt, mode, needs, inputs)), 0)


def step(checker, node, *events, out=()):
    machine = checker.kernel.seats[node]
    for event in events:
        if type(event) is RunEnded and not event.error:
            checker.kernel.runs.keep_outputs(machine, event)
        machine.change_objects(event)
    checker.on_step(machine.core, 0, events, out)
    dropped = {effect.object for effect in out if isinstance(effect, DropObject)}
    machine.objects = machine.objects - dropped


def end(checker, node, task, run=0, error=""):
    sizes = tuple(checker.kernel.sizes[one] for one in checker.known.graph.outputs_of(task))
    step(checker, node, RunEnded(task, run, 1000, sizes, error), out=[CallStore(0, 0, [])])


def commit(checker, node, task, attempt=0, answer=None):
    checker.on_row(Finish(task, attempt, node), answer)


def remake(checker, task, attempt):
    """The store lets somebody make a task again."""
    checker.on_store(0, [Remake(task, 5, 0)], [ready_of(checker, task, attempt, REMAKE)], 0)


def run_all(checker):
    """What an honest cluster does with the tasks that have not run yet, all of them on node 0."""
    store = checker.kernel.store
    for task in range(checker.count):
        if checker.committed[task] is None:
            start(checker, 0, task)
            end(checker, 0, task)
            commit(checker, 0, task)
            log(store, task)


def log(store, task, state=DONE):
    store.shards[0].log.append(task if state == DONE else LoggedEnd(task, state, "", ()))
    if store.record(task) is not None:
        store.record(task).state = state


def complains(words):
    return pytest.raises(Violation, match=words)


# -- commits ---------------------------------------------------------------------------------------------------------


def test_an_honest_bag_passes():
    checker = watched(bag())
    run_all(checker)
    checker.finish()


def test_a_second_run_that_is_committed_too_is_noticed():
    checker = watched(bag())
    commit(checker, 0, 3)
    commit(checker, 0, 3, answer=Committed(-1))  # the same run again: the answer got lost
    with complains(r"task 3 was committed twice: by \(0, 0\) and by \(2, 0\)"):
        commit(checker, 2, 3)


def test_an_attempt_is_committed_once_as_well():
    checker = watched(bag())
    commit(checker, 0, 3, attempt=1)
    with complains(r"task 3 was committed twice: by \(0, 1\) and by \(2, 1\)"):
        commit(checker, 2, 3, attempt=1)


def test_refused_rows_commit_nothing():
    checker = watched(bag())
    commit(checker, 0, 3, answer=REFUSED)
    commit(checker, 1, 3)
    assert checker.committed[3] == 1


def test_a_remake_is_a_later_attempt_that_stands_once_in_the_log():
    checker = watched(bag())
    store = checker.kernel.store
    reborn = node_id(3, 7)
    commit(checker, reborn, 3, attempt=1)
    log(store, 3)
    remake(checker, 3, attempt=2)
    commit(checker, 2, 3, attempt=2)
    log(store, 3)
    remake(checker, 3, attempt=3)
    with complains("task 3 stands 2 times in the commit log"):
        commit(checker, 1, 3, attempt=4)  # the third was lost
    with complains(rf"committed twice: by \(1, 4\) and by \({reborn}, 3\)"):
        commit(checker, reborn, 3, attempt=3)


def test_a_later_attempt_is_no_remake_unless_somebody_asked_for_one():
    checker = watched(bag())
    commit(checker, 0, 3)
    remake(checker, 3, attempt=1)
    commit(checker, 1, 3, attempt=1)
    with complains(r"task 3 was committed twice: by \(1, 1\) and by \(2, 2\)"):
        commit(checker, 2, 3, attempt=2)
    with complains("node 2 makes task 4 again although nobody asked for it"):
        start(checker, 2, 4, attempt=1, mode=REMAKE)
    with complains("task 4 is made again although it was never done"):
        remake(checker, 4, attempt=1)


@pytest.mark.parametrize("excuse", ["", "another need", "it has died", "it has dropped it"])
def test_what_was_made_again_for_a_need_is_not_made_once_more_for_it(excuse):
    checker = watched(chain())
    for node, attempt in ((0, 0), (1, 1)):
        start(checker, node, 0, attempt, REMAKE if attempt else 0, run=attempt)
        end(checker, node, 0, run=attempt)
        commit(checker, node, 0, attempt, Committed(0, (1, 2)))
        if not attempt:
            remake(checker, 0, 1)
    if excuse == "it has died":
        checker.on_death(1)
    elif excuse == "it has dropped it":
        checker.objects.holdings[1].clear()
    late = Remake(0, 5, 0, need=1) if excuse == "another need" else Remake(0, 5, 0)
    again = ready_of(checker, 0, 2, REMAKE)
    if excuse:
        checker.on_store(0, [late], [again], 0)
    else:
        with complains("task 0 is made again for task 5, though node 1 has made it since"):
            checker.on_store(0, [late], [again], 0)


def test_what_a_remake_spawned_must_not_outlive_it():
    checker = watched(bag([Growth(0, 1, 1, 1000)]), faults=SimpleNamespace(plan=SimpleNamespace(horizon_ns=50)))
    kernel = checker.kernel
    old, *new = spawned_id(3, 0, 0), *(spawned_id(3, 1, number) for number in range(3))
    checker.on_row(Spawn(3, 0, 0, (old,)), OK)
    commit(checker, 0, 3)
    remake(checker, 3, attempt=1)
    start(checker, 1, 3, attempt=1, mode=REMAKE)
    checker.on_row(Spawn(3, 1, 1, tuple(new)), OK)
    kernel.now_ns = 10 * kernel.config.lease_ns * ORPHAN_LEASES
    commit(checker, 1, new[0])  # the remake has not ended
    commit(checker, 1, 3, attempt=1)
    kernel.now_ns += kernel.config.lease_ns * ORPHAN_LEASES
    commit(checker, 1, new[1])
    kernel.now_ns += 1
    commit(checker, 1, old)  # it counts
    with complains(f"task {new[2]} was committed long after attempt 1 of task 3, which spawned it"):
        commit(checker, 1, new[2])


@pytest.mark.parametrize("answer", [None, Committed(-1)])
def test_a_commit_after_the_end_is_noticed(answer):
    checker = watched(bag())
    checker.on_row(Cancel(3, 0), Stopped(0))
    with complains("task 3 was committed by node 1 after it had failed or been cancelled"):
        commit(checker, 1, 3, answer=answer)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (Finish(3, 0, 0, (), "broken"), Stopped(0)),
        (Cancel(3, 0), Stopped(0)),
        (TakeOver(1, 0), Estate((), (OutboxEntry(14, STOP, 3, error="kills nodes"),))),
    ],
)
def test_an_end_after_the_commit_is_noticed(row, answer):
    checker = watched(bag())
    checker.on_store(0, [Create(TaskSpec(3)), row], [OK, answer], 0)
    assert 3 in checker.known.ended
    checker = watched(bag())
    commit(checker, 0, 3)
    checker.kernel.store.record(3).state = DONE
    checker.on_row(row, answer)  # it came too late and changed nothing
    checker.kernel.store.record(3).state = CANCELLED
    with complains("task 3 failed or was cancelled after it had been committed"):
        checker.on_store(0, [Create(TaskSpec(3)), row], [OK, answer], 0)


def test_an_outdated_run_must_not_be_committed():
    checker = watched(bag())
    start(checker, 0, 3)
    start(checker, 1, 3, attempt=1)
    with complains(r"task 3: an outdated run \(0, 0\) was committed, attempt 1 is under way"):
        commit(checker, 0, 3)


def test_every_row_has_an_answer():
    checker = watched(bag())
    with complains("2 rows of node 1 got 1 answers"):
        checker.on_store(1, [Create(TaskSpec(0)), Create(TaskSpec(1))], [OK], 0)


def test_what_a_lost_attempt_spawned_must_not_live_on():
    checker = watched(bag([Growth(0, 1, 1, 1000)]))
    kernel = checker.kernel
    kernel.faults = SimpleNamespace(plan=SimpleNamespace(horizon_ns=50))
    children = [spawned_id(0, 0, number) for number in range(2)]
    start(checker, 0, 0)
    checker.on_store(0, [Spawn(0, 0, 0, tuple(children))], [OK], 0)
    start(checker, 1, 0, attempt=1)
    commit(checker, 0, children[0])  # it ended before it could hear of it
    kernel.now_ns = 51 + kernel.config.lease_ns * ORPHAN_LEASES
    with complains(f"task {children[1]} was committed long after attempt 0 of task 0"):
        commit(checker, 0, children[1])
    committed = watched(bag([Growth(0, 1, 1, 1000)]))
    committed.kernel.faults = kernel.faults
    start(committed, 0, 0)
    committed.on_row(Spawn(0, 0, 0, tuple(children)), OK)
    commit(committed, 0, 0)
    remake(committed, 0, attempt=1)
    start(committed, 1, 0, attempt=1, mode=REMAKE)
    committed.kernel.now_ns = kernel.now_ns
    commit(committed, 0, children[1])  # its spawner had won before it was made again


# -- runs ------------------------------------------------------------------------------------------------------------


def test_a_task_runs_once_at_a_time_on_a_node():
    checker = watched(bag())
    start(checker, 0, 3)
    with complains("node 0 started task 3 twice at once"):
        start(checker, 0, 3, run=1)


def test_a_run_that_came_back_without_having_begun_may_be_started_again():
    checker = watched(bag())
    start(checker, 0, 3, run=5)
    step(checker, 0, RunRecalled(3, 5))
    start(checker, 0, 3, run=6)


@pytest.mark.parametrize("goes", [StopRun(3, 5), RunEnded(3, 5, 1000)])
def test_a_run_that_is_over_does_not_begin_again(goes):
    checker = watched(bag())
    start(checker, 0, 3, run=5)
    events, out = ((), [goes]) if isinstance(goes, StopRun) else ([goes], ())
    step(checker, 0, *events, out=out)
    with complains("node 0 started attempt 0 of task 3 again"):
        start(checker, 0, 3, run=6)


def test_the_end_of_an_older_run_ends_nothing():
    checker = watched(bag())
    start(checker, 0, 3, run=5)
    end(checker, 0, 3, run=4)
    with complains("started task 3 twice at once"):
        start(checker, 0, 3, run=6)


@pytest.mark.parametrize(("attempt", "mode"), [(0, 0), (0, SUSPECT), (2, 0), (2, REMAKE)])
def test_an_attempt_belongs_to_one_node(attempt, mode):
    checker = watched(bag())
    if mode & REMAKE:
        commit(checker, 3, 3)
        remake(checker, 3, attempt)
    start(checker, 0, 3, attempt, mode)
    start(checker, 1, 3, attempt, REPLICA)
    with complains(f"attempt {attempt} of task 3 runs on nodes 0 and 2"):
        start(checker, 2, 3, attempt, mode)


def test_a_usual_run_after_a_suspect_one_elsewhere_is_noticed():
    checker = watched(bag())
    start(checker, 0, 3, mode=SUSPECT)
    with complains("attempt 0 of task 3 runs on nodes 0 and 2"):
        start(checker, 2, 3)


def test_a_task_that_is_done_starts_again_only_to_be_remade():
    checker = watched(bag())
    commit(checker, 0, 3)
    remake(checker, 3, attempt=1)
    start(checker, 1, 3, attempt=1, mode=REMAKE)
    start(checker, 2, 3, attempt=2, mode=REPLICA)
    with complains("node 3 started task 3 again although it is done"):
        start(checker, 3, 3, attempt=2)


@pytest.mark.parametrize(("attempt", "mode"), [(0, 0), (0, SUSPECT), (2, 0), (2, REMAKE)])
def test_a_run_that_was_committed_does_not_begin_again(attempt, mode):
    checker = watched(bag())
    if mode & REMAKE:
        commit(checker, 1, 3)
        remake(checker, 3, attempt)
    start(checker, 0, 3, attempt, mode)
    end(checker, 0, 3)
    commit(checker, 0, 3, attempt)
    with complains(f"node 0 started attempt {attempt} of task 3 again"):
        start(checker, 0, 3, attempt, mode, run=1)


def test_an_owner_may_begin_before_it_hears_that_a_copy_has_won():
    checker = watched(bag())
    start(checker, 1, 3, mode=REPLICA)
    commit(checker, 1, 3)
    start(checker, 0, 3)


def test_a_node_has_as_many_runs_as_cores():
    checker = watched(bag())
    start(checker, 0, 0)
    start(checker, 0, 1, slot=1)
    step(checker, 0, RunWaits(0, 0, ()))
    start(checker, 0, 3)  # in the place of one that waits
    with complains("node 0 uses 3 of its 2 cores"):
        start(checker, 0, 4, slot=2)


def test_a_task_that_resumes_needs_an_executor_too():
    checker = watched(bag())
    start(checker, 0, 0)
    step(checker, 0, RunWaits(0, 0, ()))
    start(checker, 0, 1)
    start(checker, 0, 2, slot=1)
    with complains("tasks 1 and 0 are both on executor 0 of node 0, but the first may be long"):
        step(checker, 0, out=[ResumeRun(0, 0, 0)])


def hurried(**more):
    """A node with two executors has run a task of a kind that is short, and two other tasks of that kind run there."""
    checker = watched(bag())
    start(checker, 0, 0)
    end(checker, 0, 0)
    start(checker, 0, 5, slot=1)
    start(checker, 0, 1, **more)
    return checker


def test_short_tasks_may_be_sent_behind_short_tasks():
    checker = hurried()
    for task in (2, 3):
        start(checker, 0, task)


@pytest.mark.parametrize(("more", "why"), [({"mode": SUSPECT}, "is suspected"), ({"needs": Needs(1)}, "has needs")])
def test_nothing_is_sent_behind_a_task_that_is_suspected_or_wide_nor_that_behind_others(more, why):
    with complains(f"tasks 1 and 2 are both on executor 0 of node 0, but the first {why}"):
        start(hurried(**more), 0, 2)
    with complains(f"tasks 2 and 1 are both on executor 0 of node 0, but the first {why}"):
        start(hurried(), 0, 2, **more)


def test_nothing_is_sent_ahead_of_which_a_node_does_not_know_how_long_it_takes():
    checker = watched(bag())
    start(checker, 0, 0)
    start(checker, 0, 5, slot=1)
    with complains("tasks 0 and 1 are both on executor 0 of node 0, but the first may be long for all that node knows"):
        start(checker, 0, 1)
    checker = hurried()
    spec = TaskSpec(2, kind=1)
    with complains("tasks 2 and 1 are both on executor 0 of node 0, but the first may be long"):
        checker.on_start(0, StartRun(7, 0, Ready(spec, 0, 0)), 0)


def test_small_and_large_nodes_have_limits_of_their_own():
    checker = watched(bag(), joined([parse_group("1x1"), parse_group("1x3")]))
    for task in range(3):
        start(checker, 1, task, slot=task)
    with complains("node 1 uses 4 of its 3 cores"):
        start(checker, 1, 3, slot=3)
    with complains("node 0 has no executor 1, but runs task 4 there"):
        start(checker, 0, 4, slot=1, needs=Needs(1))


@pytest.mark.parametrize("needs", [None, Needs(1, Label("cpu"))])
def test_executors_are_asked_for_their_context(needs):
    checker = watched(bag(), joined([parse_group("1x2[gpu]+2[cpu>any]"), parse_group("1x4")]))
    start(checker, 0, 1, slot=2, needs=needs)
    with complains("task 2 runs on executor 0 of node 0, whose context is gpu"):
        start(checker, 0, 2, needs=needs)


def test_cores_are_counted_where_tasks_need_several():
    checker = watched(bag())
    start(checker, 0, 0, needs=Needs(2))
    with complains("node 0 uses 3 of its 2 cores"):
        start(checker, 0, 1, slot=1, needs=Needs(1))


def test_memory_is_counted_where_tasks_declare_it():
    checker = watched(bag(), joined([parse_group("2x4:memory-gb=3")]))
    needs = Needs(1, None, 2 * 10**9)
    start(checker, 0, 0, needs=needs)
    start(checker, 1, 1, needs=needs)
    start(checker, 0, 2, slot=1)
    with complains("tasks that declare 4000000000 bytes of memory run together on node 0, which has 3000000000"):
        start(checker, 0, 3, slot=2, needs=needs)


def test_the_dead_start_nothing():
    checker = watched(bag())
    start(checker, 0, 0)
    checker.kernel.kill(0)
    with complains("node 0 started task 1 after it had died"):
        start(checker, 0, 1)


def test_with_faults_about_a_node_needs_a_lease():
    checker = watched(bag())
    kernel = checker.kernel
    start(checker, 0, 0)
    kernel.faults = SimpleNamespace()
    start(checker, 1, 1)
    kernel.now_ns = kernel.store.leases[1] + 1
    with complains("node 1 started task 2 after its lease had run out"):
        start(checker, 1, 2, slot=1)
    kernel.now_ns = 0
    del kernel.store.leases[2]
    with complains("node 2 started task 3 after its lease had run out"):
        start(checker, 2, 3)


def test_nothing_is_left_behind_a_task_that_waits():
    checker = watched(bag())
    start(checker, 0, 0, run=1)
    step(checker, 0, RunWaits(0, 1, ()))
    start(checker, 0, 1, run=2)  # in its place
    step(checker, 0, out=[ResumeRun(0, 1, 1)])
    checker.runs.known_kinds[0].add(0)
    start(checker, 0, 2, run=3, slot=1)  # sent ahead
    with complains("task 2 is left on executor 1 of node 0 behind task 0, which waits"):
        step(checker, 0, RunWaits(0, 1, ()))


@pytest.mark.parametrize("out", [RecallRun(1, 2), StopRun(1, 2)])
def test_what_is_called_back_is_not_left_behind(out):
    checker = watched(bag())
    checker.runs.known_kinds[0].add(0)
    start(checker, 0, 0, run=1)
    start(checker, 0, 1, run=2)
    step(checker, 0, RunWaits(0, 7, ()))  # of another run
    step(checker, 0, RunWaits(0, 1, ()), out=[out])


def test_only_what_runs_is_resumed():
    checker = watched(bag())
    with complains("node 0 resumed task 1, which does not run there"):
        step(checker, 0, out=[ResumeRun(1, 0, 0)])


def test_invariants_are_checked_after_each_step_of_a_node_that_goes_on():
    seen: list[NodeCore] = []
    checker = watched(bag())
    checker.deep = seen.append
    step(checker, 2)
    checker.kernel.seats[3].core.phase = Phase.RESTARTING
    step(checker, 3)
    assert seen == [checker.kernel.seats[2].core]


# -- objects ---------------------------------------------------------------------------------------------------------


def made():
    """Task 0 was run and committed by node 0, which says so."""
    checker = watched(chain())
    start(checker, 0, 0)
    end(checker, 0, 0)
    commit(checker, 0, 0, answer=Committed(-1))
    checker.kernel.store.record(0).outputs = (Input(0, BIG, 0, (0,), b""), Input(1, SMALL, 0, (0,), b""))
    return checker


def test_nothing_starts_before_its_parents_are_done():
    checker = watched(chain())
    start(checker, 0, 0)
    end(checker, 0, 0)
    with complains("task 1 started on node 0 before its parent 0 was done"):
        start(checker, 0, 1)


def test_big_inputs_must_be_there():
    checker = made()
    start(checker, 0, 1)
    step(checker, 1, not_fetched(0, 0))
    with complains("task 2 started on node 1 without its input 0"):
        start(checker, 1, 2)


@pytest.mark.parametrize("event", [fetched(0, 0), ObjectsPut(((0, BIG),))])
def test_inputs_arrive(event):
    checker = made()
    step(checker, 1, event)
    start(checker, 1, 2)


def test_runs_that_failed_made_nothing():
    checker = watched(chain())
    start(checker, 0, 0)
    end(checker, 0, 0, error="broken")
    commit(checker, 1, 0)
    with complains("task 1 started on node 0 without its input 0"):
        start(checker, 0, 1)


def test_a_node_that_died_comes_back_without_objects():
    checker = made()
    checker.kernel.kill(0)
    again = checker.kernel.revive(0)
    with complains("without its input 0"):
        start(checker, again, 1)


def test_a_node_that_believes_to_have_what_it_has_dropped_is_found_out():
    checker = made()
    checker.deep = lambda core: None
    core = checker.kernel.seats[0].core
    own_objects(core).sizes = {0: BIG}
    step(checker, 0)
    checker.kernel.store.record(0).outputs = ()
    with complains("node 0 believes to have object 0, which its machine does not have"):
        step(checker, 0, out=[DropObject(0)])
    own_objects(core).sizes = {7: BIG}
    with complains("node 0 believes to have object 7, which its machine does not have"):
        step(checker, 0)


def test_what_was_dropped_is_not_read():
    checker = made()
    checker.kernel.store.record(0).outputs = ()
    step(checker, 0, out=[DropObject(0)])
    with complains("task 1 started on node 0 without its input 0"):
        start(checker, 0, 1)


def test_as_many_sizes_as_outputs():
    checker = watched(chain())
    start(checker, 0, 0)
    with pytest.raises(ValueError, match="shorter"):
        step(checker, 0, RunEnded(0, 0, 1000, (BIG,)))


def test_objects_are_kept_for_their_readers():
    checker = made()
    commit(checker, 0, 1)
    with complains("node 0 dropped object 0 although task 2 has not read it yet"):
        step(checker, 0, out=[DropObject(0)])


def test_objects_of_later_attempts_are_kept_too():
    checker = made()
    checker.kernel.store.record(0).outputs = (Input(0, BIG, 0, (3,), b""),)
    remake(checker, 0, attempt=2)
    commit(checker, 3, 0, attempt=2)
    with complains("node 3 dropped object 0 although task 1 has not read it yet"):
        step(checker, 3, out=[DropObject(0)])


def test_objects_may_go_when_nobody_will_read_them():
    checker = made()
    commit(checker, 0, 1)
    checker.on_row(Cancel(2, 0), Stopped(0))
    step(checker, 0, out=[DropObject(0)])
    assert 0 not in checker.objects.holdings[0]


def test_excuses_for_dropping_an_object():
    checker = made()
    step(checker, 1, out=[DropObject(0)])  # it did not win
    checker.kernel.store.record(0).outputs = (Input(0, BIG, 0, (2,), b""),)
    step(checker, 0, out=[DropObject(0)])  # the store sends nobody there
    checker = made()
    del checker.kernel.store.infos[0]
    step(checker, 0, out=[DropObject(0)])  # it is dead and does not know it yet


def test_copies_are_kept_while_they_are_read():
    checker = made()
    step(checker, 1, fetched(0, 0))
    start(checker, 1, 2, inputs=(Input(0, BIG, 0, (0,), b""),))
    with complains("node 1 dropped object 0 while task 2 was reading it"):
        step(checker, 1, out=[DropObject(0)])
    step(checker, 1, fetched(0, 0))
    end(checker, 1, 2)
    step(checker, 1, out=[DropObject(0)])


def test_objects_from_outside_may_be_dropped():
    builder = GraphBuilder()
    builder.add_task("read", 1000, [builder.add_external(BIG)])
    checker = watched(builder.build())
    step(checker, 0, ObjectsPut(((0, BIG),)))
    step(checker, 0, out=[DropObject(0)])
    with complains("without its input 0"):
        start(checker, 0, 0)


# -- at the end ------------------------------------------------------------------------------------------------------


def test_lost_tasks_are_noticed():
    checker = watched(bag())
    run_all(checker)
    checker.kernel.store.shards[0].log.remove(4)
    with complains("task 4 was lost: it never ended"):
        checker.finish()


@pytest.mark.parametrize("task", [4, spawned_id(0, 0, 0)])
def test_what_stands_twice_in_the_log_is_noticed(task):
    checker = watched(bag())
    run_all(checker)
    checker.kernel.store.shards[0].log += [LoggedEnd(task, DONE, "", ())] * (1 if task == 4 else 2)
    with complains(f"task {task} stands 2 times in the commit log"):
        checker.finish()


def test_what_is_in_the_log_was_committed_or_failed():
    checker = watched(bag())
    log(checker.kernel.store, 5, FAILED)
    start(checker, 0, 5)
    for task in range(5):
        commit(checker, 0, task)
        log(checker.kernel.store, task)
    checker.finish(killers_allowed=True)
    with complains("task 5 is in the log but no run of it was committed"):
        checker.finish()
    checker.on_row(Cancel(5, 0), Stopped(0))
    checker.finish()


def test_what_was_committed_is_in_the_log():
    checker = watched(bag([Growth(0, 1, 1, 1000)]))
    run_all(checker)
    commit(checker, 0, 77)
    with complains("task 77 was committed but is not in the log"):
        checker.finish()


def test_what_nodes_hold_is_what_they_think():
    checker = made()
    checker.kernel.store.shards[0].log.append(0)
    checker.kernel.store.record(0).state = DONE
    run_all(checker)
    machine = checker.kernel.seats[0]
    own_objects(machine.core).sizes = {0: BIG, 3: BIG}
    with complains(r"objects \[\], which its machine does not have, and does not know of \[2\]"):
        checker.finish()
    own_objects(machine.core).sizes = {0: BIG, 2: BIG, 3: BIG}
    checker.finish()
    machine.objects.add(1)
    machine.core.objects.sizes[1] = BIG
    with complains(r"the machine of node 0 has \[1\] but not \[\]"):
        checker.finish()
    machine.objects.discard(1)
    with complains(r"objects \[1\], which its machine does not have, and does not know of \[\]"):
        checker.finish()
    del machine.core.objects.sizes[1]
    checker.objects.fetched_bytes = 1
    with complains("1 bytes arrived but only 0 were sent"):
        checker.finish()


def test_bytes_that_were_sent_arrive():
    checker = watched(bag())
    run_all(checker)
    checker.known.kernel.transfers.fetched_bytes = 30
    checker.objects.fetched_bytes = 10
    with complains("30 bytes were sent, 10 arrived and 0 are under way"):
        checker.finish()
    checker.objects.sizes = [20]
    checker.kernel.push(5, 1, fetched(0, 0))
    checker.finish()


def test_every_run_that_was_begun_is_accounted_for():
    checker = watched(bag())
    start(checker, 0, 0, run=1)
    step(checker, 0, RunWaits(0, 1, ()))
    step(checker, 0, out=[ResumeRun(0, 1, 0)])
    checker.kernel.starts.append(0)
    start(checker, 1, 0, mode=REPLICA)
    start(checker, 2, 1)
    step(checker, 2, RunRecalled(1, 0))
    start(checker, 3, 2, attempt=1)
    checker.ends.check_starts()
    checker.kernel.starts.append(0)
    with complains("6 runs were begun instead of 5"):
        checker.ends.check_starts()


# -- what must not take long -------------------------------------------------------------------------------------------

HORIZON_NS = 5_000


def healing():
    """A checker of a world that heals; it is told when that is past."""
    checker = watched(chain(), faults=SimpleNamespace(plan=SimpleNamespace(horizon_ns=HORIZON_NS)))
    checker.kernel.now_ns = HORIZON_NS + checker.kernel.config.lease_ns
    for node in range(4):
        checker.kernel.store.leases[node] = 1 << 62
    return checker


def test_who_runs_what_another_has_won_is_stopped_soon():
    checker = healing()
    kernel = checker.kernel
    for node in (0, 1, 2):
        start(checker, node, 0, mode=REPLICA if node else 0)
    commit(checker, 1, 0, answer=Committed(-1, rivals=(0, 2)))
    kernel.now_ns += kernel.config.tick_ns
    step(checker, 0, RunEnded(0, 0, 1000, (BIG, SMALL)), out=[CallStore(0, 0, [Finish(0, 0, 0)])])
    kernel.now_ns += 1
    with complains("node 2 ended a run of task 0 2.5 s after another has won"):
        end(checker, 2, 0)
    with complains("node 3 began a run of task 0 2.5 s after another has won"):
        start(checker, 3, 0, mode=REPLICA)


def test_while_the_world_is_hostile_rivals_may_not_hear_of_it():
    checker = healing()
    checker.kernel.now_ns = HORIZON_NS
    start(checker, 0, 0)
    commit(checker, 1, 0, answer=Committed(-1, rivals=(0,)))
    checker.kernel.now_ns += 100 * checker.kernel.config.lease_ns
    step(checker, 0, RunEnded(0, 0, 1000, (BIG, SMALL)), out=[CallStore(0, 0, [Finish(0, 0, 0)])])


@pytest.mark.parametrize(("task", "leaf"), [(0, False), (1, True)])
def test_ends_are_told_at_once_or_soon(task, leaf):
    checker = healing()
    core = checker.kernel.seats[0].core
    delay_ns = checker.kernel.config.commit_delay_ns
    if leaf:
        checker.committed[0] = 1
        step(checker, 0, fetched(0, 0))
    spec = TaskSpec(task, outputs=tuple(checker.known.graph.outputs_of(task)), leaf=leaf)
    sizes = tuple(checker.kernel.sizes[one] for one in spec.outputs)
    checker.on_start(0, StartRun(0, 0, Ready(spec, 0, 0)), 0)
    told = [CallStore(0, 0, [Finish(task, 0, 0)])]
    checker.on_step(core, 0, [RunEnded(task, 0, 1000, sizes)], () if leaf else told)
    checker.on_step(core, delay_ns - 1, [], ())
    checker.on_step(core, delay_ns, [], told)
    checker.on_step(core, 2 * delay_ns, [], ())
    checker.known.started[task] = None
    checker.on_start(0, StartRun(1, 0, Ready(spec, 0, 0)), 0)
    if leaf:
        checker.on_step(core, 0, [RunEnded(task, 1, 1000, sizes)], ())
    with complains(f"node 0 keeps the end of task {task} to itself"):
        checker.on_step(core, delay_ns if leaf else 0, [] if leaf else [RunEnded(task, 1, 1000, sizes)], ())


@pytest.mark.parametrize("goes", [Restart("struck"), Left()])
def test_who_is_gone_tells_nothing(goes):
    checker = healing()
    step(checker, 0, Leave())
    del checker.kernel.store.infos[0]
    checker.known.running[0] = {}
    checker.prompt.on_run_ended(0, TaskSpec(0), 0)
    for task in range(3):
        checker.kernel.store.record(task).owner = 1
    step(checker, 0, out=[goes])
    checker.prompt.on_run_ended(0, TaskSpec(0), 0)
    checker.on_death(0)
    step(checker, 0)


def test_bytes_that_arrive_are_counted():
    checker = made()
    step(checker, 1, fetched(0, 0), not_fetched(0, 0))
    assert checker.objects.fetched_bytes == BIG


def test_no_record_is_left_unfinished():
    checker = watched(bag())
    run_all(checker)
    checker.ends.check_settled()
    checker.kernel.store.record(2).state = RUNNING
    for check in (checker.finish, checker.ends.check_settled):
        with complains("task 2 is still in state 3 although all has ended"):
            check()


def test_no_intent_is_left():
    checker = watched(bag())
    run_all(checker)
    checker.kernel.store.shards[0].outbox[2 << 2 | STOP] = HeldIntent(0, None, 1)
    with complains("intent 2 of task 2 was never carried out"):
        checker.ends.check_settled()


def test_no_cancel_of_the_client_is_left():
    checker = watched(bag())
    run_all(checker)
    checker.kernel.cancel((2,))
    with complains("nobody has carried out"):
        checker.ends.check_settled()


def test_objects_that_nobody_will_read_are_freed():
    checker = made()
    own_objects(checker.kernel.seats[0].core).made = {0: Made({1, 2}, 0, (0, 1))}
    commit(checker, 0, 1)
    checker.objects.check_freed()
    checker.on_row(Cancel(2, 0), Stopped(0))
    with complains(r"node 0 still keeps objects \(0, 1\) of task 0, which nobody will read"):
        checker.objects.check_freed()


def test_whatever_a_task_spawned_has_ended_and_is_known():
    checker = watched(bag([Growth(0, 1, 2, 1000)]))
    commit(checker, 0, 0, attempt=3)
    remake(checker, 0, attempt=4)
    commit(checker, 1, 0, attempt=4)  # made again: what the first winner spawned counts
    children = [spawned_id(0, 3, number) for number in range(2)]
    commit(checker, 0, children[0])
    checker.kernel.client.spawned.add(children[0])
    with complains(f"task 0 is done, but its child {children[1]} was lost"):
        checker.ends.check_grown()
    commit(checker, 0, children[1])
    with complains(f"the client was never told of {children[1]}, a child of task 0"):
        checker.ends.check_grown()


# -- nodes that leave ------------------------------------------------------------------------------------------------


def leave(checker, node, behind=""):
    """Tell a node to leave; it says at once that it has."""
    step(checker, node, Leave())
    checker.kernel.store.apply(0, [Lease(node, 0, leaving=True)], 0)
    step(checker, node, out=[Left(behind)])


def test_a_node_leaves_with_nothing_of_its_own():
    checker = watched(bag())
    for task in range(6):
        checker.kernel.store.record(task).owner = 1
    leave(checker, 0)
    assert checker.leavers.left == {0: ""}


def test_nobody_leaves_unasked_or_as_a_member():
    checker = watched(bag())
    with complains("node 0 left although nobody told it to"):
        step(checker, 0, out=[Left()])
    with complains("node 0 left and is still a member"):
        step(checker, 0, Leave(), out=[Left()])


def test_a_task_that_is_left_behind_is_noticed_unless_it_was_said():
    checker = watched(bag())
    owner = checker.kernel.store.record(0).owner
    leave(checker, owner, "a task or two")
    with complains(rf"node {owner} left in good order, but task \d is still its own"):
        leave(checker, owner)


def test_an_intent_that_is_left_behind_is_noticed():
    checker = watched(bag())
    for task in range(6):
        checker.kernel.store.record(task).owner = 1
    checker.kernel.store.shards[0].outbox[3 << 2 | STOP] = HeldIntent(0, (), 1)
    with complains(f"but intent {STOP} of task 3 is still its own"):
        leave(checker, 0)


def test_who_leaves_starts_nothing_and_ends_what_it_began():
    checker = watched(bag())
    for task in range(6):
        checker.kernel.store.record(task).owner = 1
    start(checker, 0, 3)
    step(checker, 0, Leave())
    with complains("node 0 started task 4 after it was told to leave"):
        start(checker, 0, 4)
    with complains("left in good order with task 3 running"):
        leave(checker, 0)


def test_who_was_told_to_leave_has_left_in_the_end():
    checker = watched(bag())
    step(checker, 2, Leave())
    with complains("node 2 was told to leave and is still there"):
        checker.leavers.check_left(orderly=False)
    checker.kernel.kill(2)
    checker.leavers.check_left(orderly=True)


def test_where_nodes_only_leave_nothing_begins_again():
    checker = watched(bag())
    leave(checker, 0, "this and that")
    checker.kernel.kill(0)
    checker.leavers.check_left(orderly=False)
    with complains("node 0 had all the time it wanted, but left behind this and that"):
        checker.leavers.check_left(orderly=True)
    checker.ends.check_begun_once()
    start(checker, 1, 3, attempt=1)
    with complains("task 3 was begun 2 times, although nodes only left"):
        checker.ends.check_begun_once()


def test_a_run_that_came_back_may_begin_elsewhere():
    checker = watched(bag())
    start(checker, 0, 3)
    step(checker, 0, RunRecalled(3, 0))
    start(checker, 1, 3)
    start(checker, 0, 4, attempt=1)
    step(checker, 0, RunRecalled(4, 0))
    start(checker, 1, 4, attempt=1, slot=1)
