"""Tasks that come one by one: each planner's choice for a single task, which nobody can compare with what follows."""

import numpy as np
import pytest

from daws.model.context import parse_context
from daws.model.errors import StrategyError
from daws.model.graph_builder import GraphBuilder
from daws.model.task import INLINE_BYTES, Input, Needs
from daws.strategy.assign.critical_path import AssignCriticalPath
from daws.strategy.assign.data import AssignData
from daws.strategy.assign.dealt import AssignDealt
from daws.strategy.assign.hashed import AssignHashed
from daws.strategy.assign.one import AssignOne
from daws.strategy.assign.round_robin import AssignRoundRobin
from daws.strategy.decisions import Assign, Newcomer, Site
from daws.strategy.presets import PRESETS
from tests.unit.strategy.fakes import members_of

GPU = Needs(1, parse_context("gpu"))


def homes(assign: Assign, count: int, nodes: int, seed: int = 1) -> list[int]:
    return [assign.home(Newcomer(number, turn=number), members_of(nodes), seed) for number in range(count)]


@pytest.mark.parametrize("assign", [AssignOne(), AssignOne(node=2), AssignRoundRobin(), AssignDealt(), AssignHashed()])
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_one_by_one_they_go_where_they_would_go_together(assign: Assign, seed: int):
    builder = GraphBuilder()
    for _ in range(49):  # whole rounds
        builder.add_task("work", 5)
    plan = assign.plan(builder.build(), Site(members_of(7), 1e9, np.zeros(0, np.int64), seed))
    assert homes(assign, 49, 7, seed) == plan.homes.tolist()


@pytest.mark.parametrize("assign", [AssignRoundRobin(), AssignDealt()])
def test_each_class_of_tasks_goes_around_from_where_it_begins(assign: Assign):
    members = members_of(4, contexts={1: "gpu", 3: "gpu"})
    found = [assign.home(Newcomer(1 + 2 * count, GPU, (), 1 + count), members, 0) for count in range(9)]
    assert {found.count(1), found.count(3)} == {4, 5}


@pytest.mark.parametrize("preset", PRESETS)
def test_nobody_gets_what_it_cannot_run(preset: str):
    members = members_of(6, contexts={1: "gpu", 4: "gpu"})
    read: tuple[Input, ...] = (Input(9, 1 << 20, 3, (2, 5), b""),)
    for number in range(20):
        assert PRESETS[preset].strategy.assign.home(Newcomer(number, GPU, read, number), members, 0) in (1, 4)


@pytest.mark.parametrize("assign", [AssignData(), AssignCriticalPath()])
def test_most_bytes_win(assign: Assign):
    read: tuple[Input, ...] = (
        Input(1, 10_000, 1, (2,), b""),
        Input(2, 15_000, 2, (1, 3), b""),
        Input(3, 10_000, 3, (2,), b""),
        Input(4, INLINE_BYTES, 4, (0,), b"x"),
    )
    members = members_of(4)
    assert assign.home(Newcomer(0, None, read), members, 0) == 2
    assert assign.home(Newcomer(0, None, read[1:2]), members, 0) == 1, "the first of equals"
    assert assign.home(Newcomer(3, None, read[3:], 3), members, 0) == 3, "small values are everywhere: in turn"
    assert [assign.home(Newcomer(number, turn=number), members, 0) for number in range(5)] == [0, 1, 2, 3, 0]
    gone: tuple[Input, ...] = (Input(1, 10_000, 1, (-1,), b""),)
    assert assign.home(Newcomer(1, None, gone, 1), members, 0) == 1, "only the client has it"


def test_a_node_that_is_not_there():
    with pytest.raises(StrategyError, match="node=9: expected less than the number of nodes, 2"):
        homes(AssignOne(node=9), 1, 2)
