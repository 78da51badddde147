"""Cases in processes: the same runs as without, and no process is left behind."""

import multiprocessing
import os
import signal

import pytest

from daws.compare.cases import Case, CaseResult, cases_of
from daws.compare.jobs import run_cases
from daws.model.errors import InternalError, UnavailableError, UsageError
from daws.model.graph import Graph
from daws.sim.cluster import SimulatedCluster, cluster_of
from daws.sim.simulate import Settings
from daws.workloads import parse_workload

CASES = cases_of(["daws", "random"], [1, 2], 2)


class Small:
    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        return parse_workload("bot:tasks=20").build(nodes, 2, seed), cluster_of(nodes, 2), Settings(seed=seed)


class Wrong(Small):
    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        raise UsageError("cannot be")


class Broken(Small):
    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        raise ZeroDivisionError("a bug")


class Deadly(Small):
    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        if seed == 1 and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().make(nodes, seed)


def results(runs: list[CaseResult]) -> dict[Case, float]:
    return {run.case: run.makespan_s for run in runs}


def test_processes_change_nothing():
    alone = results(list(run_cases(Small(), CASES, 1)))
    assert set(alone) == set(CASES)
    handler = signal.getsignal(signal.SIGINT)
    assert results(list(run_cases(Small(), CASES, 2))) == alone
    assert not multiprocessing.active_children()
    assert signal.getsignal(signal.SIGINT) is handler  # processes start deaf to interrupts, we do not stay so


@pytest.mark.parametrize(
    ("recipe", "error", "says"),
    [
        (Wrong(), UsageError, "on 1 nodes: cannot be"),
        (Broken(), InternalError, "a bug"),
        (Deadly(), UnavailableError, "ended without a result"),
    ],
)
def test_an_error_ends_all_processes(recipe, error, says):
    with pytest.raises(error, match=says):
        list(run_cases(recipe, CASES, 2))
    assert not multiprocessing.active_children()


def test_who_stops_listening_leaves_no_process_behind():
    runs = run_cases(Small(), CASES, 2)
    next(runs)
    assert multiprocessing.active_children()
    runs.close()
    assert not multiprocessing.active_children()


def test_nothing_to_do_starts_nothing():
    assert list(run_cases(Small(), [], 4)) == []
