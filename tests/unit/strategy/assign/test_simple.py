"""The planners that look at nothing but numbers of tasks: one, round-robin, dealt, hashed."""

import numpy as np
import pytest

from daws.model.context import parse_context
from daws.model.errors import StrategyError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.dealt import AssignDealt, dealt, dealt_by_runs
from daws.strategy.assign.hashed import AssignHashed
from daws.strategy.assign.one import AssignOne
from daws.strategy.assign.round_robin import AssignRoundRobin
from daws.strategy.decisions import Assign, Site
from tests.unit.strategy.fakes import members_of


def bag(count: int, gpu_every: int = 0) -> Graph:
    builder = GraphBuilder()
    for i in range(count):
        context = parse_context("gpu") if gpu_every and i % gpu_every == 0 else None
        builder.add_task("work", 5, context=context)
    return builder.build()


def site(count: int, contexts: dict[int, str] | None = None, seed: int = 1) -> Site:
    return Site(members_of(count, contexts=contexts), 1e9, np.zeros(0, np.int64), seed)


def test_one():
    assert set(AssignOne(node=2).plan(bag(9), site(4)).homes.tolist()) == {2}
    # tasks that the node cannot run go to the first that can
    assert AssignOne().plan(bag(4, gpu_every=2), site(4, {2: "gpu", 3: "gpu"})).homes.tolist() == [2, 0, 2, 0]
    with pytest.raises(StrategyError, match="node=4: expected less than the number of nodes, 4"):
        AssignOne(node=4).plan(bag(1), site(4))


def test_round_robin():
    assert AssignRoundRobin().plan(bag(7), site(3)).homes.tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_dealt_is_as_even_as_round_robin_without_its_pattern():
    homes = AssignDealt().plan(bag(4002), site(4)).homes
    for start in range(0, 4000, 4):
        assert sorted(homes[start : start + 4].tolist()) == [0, 1, 2, 3], "each round has one for everybody"
    assert len(set(homes[4000:].tolist())) == 2
    by_turn = AssignRoundRobin().plan(bag(4002), site(4)).homes
    assert 800 < (homes == by_turn).sum() < 1200
    assert (AssignDealt().plan(bag(4002), site(4)).homes == homes).all()
    assert (AssignDealt().plan(bag(4002), site(4, seed=2)).homes != homes).any()


@pytest.mark.parametrize(("count", "run"), [(159, 1), (320, 2), (1283, 8), (9999, 8)])
def test_neighbours_are_dealt_together_and_everybody_gets_as_many(count: int, run: int):
    tasks, able = np.arange(count), np.array([3, 4, 5, 7, 8, 9, 11, 12, 13, 14])
    homes = dealt_by_runs(tasks, able, 1)
    shares = [int((homes == node).sum()) for node in able]
    assert sum(shares) == count and max(shares) - min(shares) <= 1
    whole = count // len(able) // run * run * len(able)
    cards = homes[:whole].reshape(-1, run)
    assert (cards == cards[:, :1]).all() and (run == 1 or len(set(cards[:10, 0])) == 10)
    assert (run > 1) == (homes.tolist() != dealt(tasks, able, 1).tolist())


def test_dealt_says_which_round_a_task_is_in():
    reasons = AssignDealt().explain(bag(20, gpu_every=3), site(6, {1: "gpu", 4: "gpu"}), 9)
    assert (reasons["round"], reasons["able_count"]) == (1, 2), "the fourth of the tasks for two nodes"


def test_hashed_is_even_and_follows_the_seed():
    homes = AssignHashed().plan(bag(4000), site(4)).homes
    assert np.bincount(homes, minlength=4).min() > 900
    assert (AssignHashed().plan(bag(4000), site(4)).homes == homes).all()
    assert (AssignHashed().plan(bag(4000), site(4, seed=2)).homes != homes).any()


@pytest.mark.parametrize("assign", [AssignOne(), AssignRoundRobin(), AssignDealt(), AssignHashed()], ids=repr)
def test_homes_can_run_their_tasks_and_explain_agrees(assign: Assign):
    graph, where = bag(20, gpu_every=3), site(6, {1: "gpu", 4: "gpu"})
    plan = assign.plan(graph, where)
    assert plan.ranks is None
    for task, home in enumerate(plan.homes.tolist()):
        assert (home in (1, 4)) == (task % 3 == 0)
        assert assign.explain(graph, where, task)["choice"] == home
