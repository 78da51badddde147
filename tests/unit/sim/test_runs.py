"""Simulated runs that are recalled, stopped or suspended, and kernels that end."""

import gc
import weakref

from daws.core.effects import RecallRun, ResumeRun, StartRun
from daws.core.events import RunEnded, RunRecalled, RunSpawned, RunWaits
from daws.model.graph import Growth
from daws.model.graph_builder import GraphBuilder
from daws.model.task import Ready, TaskSpec
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Settings, make_kernel, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

MS = 1_000_000


def kernel_of(growth=()):
    builder = GraphBuilder()
    for _ in range(4):
        builder.add_task("a", 10 * MS)
    graph = builder.build().changed(kinds=("a", "b"), growth=growth)
    kernel = make_kernel(graph, cluster_of(1, 1), parse_strategy("daws"), Settings())
    kernel.agenda.heap.clear()
    return kernel


def start(kernel, task, leaves_ns=0):
    kernel.runs.start(kernel, 0, kernel.seats[0], leaves_ns, StartRun(task, 0, Ready(TaskSpec(task), 0, 0)))


def events(kernel, kind):
    return [(at_ns, event) for at_ns, _, _, event in sorted(kernel.agenda) if type(event) is kind]


def test_runs_follow_one_another_on_an_executor_and_those_that_have_not_begun_come_back():
    kernel = kernel_of()
    start(kernel, 0)
    start(kernel, 1)
    (first_ns, _), (second_ns, _) = events(kernel, RunEnded)
    assert second_ns - first_ns == 10 * MS
    machine = kernel.seats[0]
    kernel.runs.recall(kernel, 0, machine, 5 * MS, RecallRun(0, 0))
    assert not events(kernel, RunRecalled), "it has begun"
    kernel.runs.recall(kernel, 0, machine, 5 * MS, RecallRun(1, 1))
    ((_, recalled),) = events(kernel, RunRecalled)
    assert recalled == RunRecalled(1, 1)
    assert kernel.runs.was_stopped(0, 1) and not kernel.runs.was_stopped(0, 1), "its end is ignored once"
    assert not kernel.runs.was_stopped(0, 0)


class Listener:
    """A node that does nothing but hear."""

    node = 0

    def __init__(self):
        self.heard = []

    def step(self, now_ns, batch, out):
        self.heard.extend(batch)


def test_a_node_does_not_hear_that_a_run_which_was_given_back_has_ended():
    kernel = kernel_of()
    machine = kernel.seats[0]
    machine.core = node = Listener()
    for task in (0, 1, 2):
        start(kernel, task)
    kernel.runs.recall(kernel, 0, machine, 5 * MS, RecallRun(1, 1))
    kernel.run_on(100 * MS)
    ends = [event.task for event in node.heard if type(event) is RunEnded]
    assert (ends, RunRecalled(1, 1) in node.heard) == ([0, 2], True)


def test_a_suspended_run_goes_on_once_and_not_after_its_worker_has_died():
    kernel = kernel_of([Growth(0, 1, 1, MS, waits=True)])
    machine = kernel.seats[0]
    for task in (0, 1):
        start(kernel, task)
    assert not events(kernel, RunEnded)
    kernel.runs.resume(kernel, 0, machine, 50 * MS, ResumeRun(0, 0, 0))
    assert [event.task for _, event in events(kernel, RunEnded)] == [0]
    kernel.runs.resume(kernel, 0, machine, 60 * MS, ResumeRun(0, 0, 0))
    kernel.runs.forget(0, 1)
    kernel.runs.resume(kernel, 0, machine, 60 * MS, ResumeRun(1, 1, 0))
    assert [event.task for _, event in events(kernel, RunEnded)] == [0]


def test_a_run_that_was_given_back_creates_no_tasks_and_waits_for_none():
    kernel = kernel_of([Growth(0, 1, 1, MS, waits=True)])
    machine = kernel.seats[0]
    machine.core = node = Listener()
    for task in (0, 1):
        start(kernel, task)
    kernel.runs.recall(kernel, 0, machine, 0, RecallRun(1, 1))
    kernel.run_on(100 * MS)
    told = [(type(event), event.task) for event in node.heard]
    assert told == [(RunRecalled, 1), (RunSpawned, 0), (RunWaits, 0)]
    assert len(kernel.starts) == len(kernel.ends) == 2, "the one that was given back ends once"


def test_a_run_that_waits_or_has_ended_with_its_node_ends_once():
    kernel = kernel_of([Growth(0, 1, 1, MS, waits=True)])
    machine = kernel.seats[0]
    machine.core = Listener()
    start(kernel, 0)
    kernel.run_on(8 * MS)
    kernel.runs.stop(kernel, 0, machine, 0)
    assert len(kernel.ends) == 1, "it waited, so its executor was free"
    start(kernel, 1, leaves_ns=8 * MS)
    kernel.ends.append(kernel.now_ns)  # as `kill` does for runs that do not wait
    kernel.runs.forget_node(0)
    kernel.run_on(100 * MS)
    assert len(kernel.ends) == 2


def test_a_simulation_that_has_ended_is_not_kept_in_memory():
    gc.disable()
    try:
        graph = parse_workload("fan-out:tasks=9,degree=4,output-mb=1").build(2, 1, 0)
        _, kernel = simulate(graph, cluster_of(2, 1), parse_strategy("daws"))
        gone = weakref.ref(kernel)
        del kernel
        assert gone() is None, "a part of the kernel refers to it"
    finally:
        gc.enable()
