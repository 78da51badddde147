"""A plan that is played through: what is near stays near, links have queues, and nobody waits for nothing."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.dealt import dealt_by_runs
from daws.strategy.assign.forecast import AssignForecast, _Play, is_even_bag
from daws.strategy.decisions import Plan, Site
from daws.workloads import parse_workload

MS = 1_000_000
MB = 1_000_000


def site_of(nodes: int, cores: int = 1, places: tuple[int, ...] = (), contexts: dict[int, str] | None = None) -> Site:
    offered = contexts or {}
    infos = [NodeInfo(i, (ExecutorClass(cores, parse_context(offered.get(i, ""))),)) for i in range(nodes)]
    return Site(Members(1, tuple(infos)), 1e9, np.array(places, np.int64), 0)


def plan(graph: Graph, site: Site) -> Plan:
    return AssignForecast().plan(graph, site)


def homes(graph: Graph, site: Site) -> list[int]:
    found: list[int] = plan(graph, site).homes.tolist()
    return found


def test_the_longest_tasks_of_a_bag_are_spread_first():
    builder = GraphBuilder()
    for length in (10, 10, 20, 10, 30):
        builder.add_task("work", length * MS)
    found = homes(builder.build(), site_of(2))
    assert found[4] != found[2], "the two longest"
    assert Counter(found)[found[4]] == 2, "40 ms on either node"


def test_many_short_tasks_are_dealt_out_and_none_comes_first():
    graph = parse_workload("bot:tasks=1000").build(2, 2, 0)
    site = site_of(2, 2)
    assert is_even_bag(graph, site.members)
    found = plan(graph, site)
    assert (found.homes == dealt_by_runs(np.arange(1000), np.array([0, 1]), site.seed)).all()
    assert AssignForecast().explain(graph, site, 7) == {"able_count": 2, "choice": found.homes[7]}
    assert found.ranks is not None and not found.ranks.any()


def test_a_bag_is_planned_as_if_it_were_played_through():
    """A short way for bags; a play that is watched does not take it."""
    graph = parse_workload("bot:tasks=60").build(3, 2, 5)
    site = site_of(3, 2)
    play = _Play(graph, site)
    play.watched = 0
    assert not is_even_bag(graph, site.members) and play.homes() == homes(graph, site)


def test_a_chain_stays_where_its_data_is():
    graph = parse_workload("pipeline:tasks=80,size=10").build(4, 2, 3)
    found = homes(graph, site_of(4, 2))
    moved = sum(found[int(parent)] != found[task] for task in range(80) for parent in graph.parents_of(task))
    assert moved <= 8, "of 72 steps"


def test_tasks_that_a_common_child_reads_run_together():
    builder = GraphBuilder()
    groups = []
    for _ in range(4):
        outputs = [builder.add_task("leaf", 10 * MS, outputs_bytes=[80 * MB]) for _ in range(4)]
        groups.append([one.id for one in outputs])
        builder.add_task("sum", 10 * MS, inputs=outputs)
    found = homes(builder.build(), site_of(4))
    assert [len({found[task] for task in group}) for group in groups] == [1, 1, 1, 1]


def test_what_was_fetched_once_is_there_for_the_next():
    builder = GraphBuilder()
    shared = builder.add_external(90 * MB)
    for _ in range(4):
        builder.add_task("read", 100 * MS, inputs=[shared])
    # The third task ends earlier where it has to fetch the object. The fourth does so only if it need not fetch again.
    assert homes(builder.build(), site_of(2, places=(0,))) == [0, 0, 1, 1]


def test_the_link_of_a_node_that_everybody_reads_from_is_planned_for():
    builder = GraphBuilder()
    objects = [builder.add_external(100 * MB) for _ in range(8)]
    for one in objects:
        builder.add_task("read", 50 * MS, inputs=[one])
    # Every transfer takes 100 ms, and the link carries them one after the other: at its data a task waits less.
    found = Counter(homes(builder.build(), site_of(8, places=(0,) * 8)))
    assert found[0] >= 4


def test_only_nodes_that_can_run_it():
    builder = GraphBuilder()
    for _ in range(6):
        builder.add_task("work", MS, context=parse_context("gpu"))
    assert set(homes(builder.build(), site_of(4, contexts={2: "gpu", 3: "gpu"}))) == {2, 3}


def test_slow_nodes_get_less():
    builder = GraphBuilder()
    for _ in range(22):
        builder.add_task("work", 10 * MS)
    infos = tuple(NodeInfo(i, (ExecutorClass(1, None),), speed=speed) for i, speed in enumerate((1.0, 0.1)))
    found = homes(builder.build(), Site(Members(1, infos), 1e9, np.zeros(0, np.int64), 0))
    assert Counter(found) == {0: 20, 1: 2}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, Site]:
    builder = GraphBuilder()
    sizes = st.sampled_from([0, 10, 10_000, 50 * MB])
    objects = [builder.add_external(size) for size in draw(st.lists(sizes, max_size=3))]
    places = tuple(draw(st.sampled_from([-1, 0, 1])) for _ in objects)
    for _ in range(draw(st.integers(0, 14))):
        inputs = draw(st.lists(st.sampled_from(objects), max_size=3, unique=True)) if objects else []
        made = builder.add_task(
            "work",
            draw(st.sampled_from([0, MS, 40 * MS])),
            inputs=inputs,
            outputs_bytes=draw(st.lists(sizes, max_size=2)),
            cores=draw(st.sampled_from([1, 1, 2])),
        )
        objects += made.outputs
    return builder.build(), site_of(3, 2, places)


@given(cases())
def test_every_task_has_a_home_and_a_reason(case: tuple[Graph, Site]):
    graph, site = case
    found = plan(graph, site)
    assert ((found.homes >= 0) & (found.homes < 3)).all()
    assert found.ranks is not None and len(found.ranks) == graph.task_count
    for task in range(graph.task_count):
        assert AssignForecast().explain(graph, site, task)["choice"] == found.homes[task]


@pytest.mark.parametrize("workload", ["montage:tasks=60", "all-pairs:files=6", "fan-in:tasks=40"])
def test_the_same_graph_has_the_same_plan(workload: str):
    graph = parse_workload(workload).build(4, 2, 1)
    site = site_of(4, 2, (0, 1, 2, 3) * (graph.external_count // 4) + (0,) * (graph.external_count % 4))
    assert homes(graph, site) == homes(graph, site)
