"""What was typed as cases, and what one of them gives."""

import pytest

from daws.compare.cases import Case, cases_of, read_sizes, run_case, split_strategies
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import SimulatedCluster, cluster_of
from daws.sim.simulate import Settings
from daws.workloads import parse_workload


class Small:
    """A recipe for tests."""

    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        return (
            parse_workload("fan-in:tasks=30,degree=5").build(nodes, 2, seed),
            cluster_of(nodes, 2),
            Settings(seed=seed),
        )


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["daws,flds,random"], ["daws", "flds", "random"]),
        (
            ["daws:t=0.2,order=critical-path,flds:tt=5,t=1,mdl"],
            ["daws:t=0.2,order=critical-path", "flds:tt=5,t=1", "mdl"],
        ),
        (["flds:tt=5", "daws , mlb"], ["flds:tt=5", "daws", "mlb"]),
        (["flds:place=random,random"], ["flds:place=random", "random"]),
        (["master-worker,daws"], ["master-worker", "daws"]),
    ],
)
def test_commas_separate_strategies_before_the_name_of_a_preset(texts, found):
    assert split_strategies(texts) == found


@pytest.mark.parametrize("text", ["daws,fdls,random", "daws,fdls", "fdls:t=1,daws", "random,fdls:t=1"])
def test_of_several_strategies_the_unknown_one_is_named(text):
    with pytest.raises(UsageError, match=r"^unknown strategy 'fdls';"):
        split_strategies([text])


@pytest.mark.parametrize("text", ["daws,fdls", "daws,daws", "", "daws,", "daws:nonsense=1"])
def test_strategies_that_make_no_sense(text):
    with pytest.raises(UsageError):
        split_strategies([text])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4", [4]),
        ("16, 1,4,4", [1, 4, 16]),
        ("1,4,...,1024", [1, 4, 16, 64, 256, 1024]),
        ("1,2,…,10", [1, 2, 4, 8, 10]),
        ("4,6,...,10", [4, 6, 8, 10]),
    ],
)
def test_sizes(text, found):
    assert read_sizes(text) == found


@pytest.mark.parametrize(
    "text", ["", "0", "1,x", "...,4", "1,...,8", "1,2,...", "4,2,...,8", "1,2,...,8,16", "1e9", "-1"]
)
def test_sizes_that_make_no_sense(text):
    with pytest.raises(UsageError, match="--nodes"):
        read_sizes(text)


def test_every_strategy_meets_every_size_with_every_seed_small_ones_first():
    cases = cases_of(["daws", "mdl"], [1, 4], 2)
    assert len(set(cases)) == len(cases) == 8
    assert [case.nodes for case in cases] == [1] * 4 + [4] * 4
    with pytest.raises(UsageError, match="--seeds"):
        cases_of(["daws"], [1], 0)


def test_a_run_says_how_far_from_the_best_it_was():
    run = run_case(Small(), Case("flds", 2, 3))
    assert run.case == Case("flds", 2, 3)
    assert (run.tasks, run.bound_share) == (30, run.bound_s / run.makespan_s)
    assert 0 < run.efficiency <= run.bound_share <= 1


def test_a_case_that_does_not_work_is_named():
    with pytest.raises(UsageError, match="unheard-of on 2 nodes"):
        run_case(Small(), Case("unheard-of", 2, 0))
