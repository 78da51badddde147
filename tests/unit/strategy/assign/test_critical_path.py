from heapq import heapreplace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.model.task import Needs
from daws.strategy.assign import critical_path
from daws.strategy.assign.critical_path import AssignCriticalPath
from daws.strategy.decisions import Site

NET = 1e9


def naive(graph: Graph, site: Site) -> list[int]:
    """For each task, most critical first, look at every node."""
    infos = site.members.infos
    free = [[0.0] * info.cores for info in infos]
    homes, ended = [-1] * graph.task_count, [0.0] * graph.task_count
    slack = graph.critical_path_ns() - graph.upward_rank_ns()
    for task in sorted(range(graph.task_count), key=lambda task: (slack[task], graph.levels()[task], task)):
        cores = int(graph.cores[task])
        options = []
        for position, info in enumerate(infos):
            if not info.can_run(needs_of(graph, task)):
                continue
            data_at, missing = 0.0, 0
            for object_ in graph.inputs_of(task).tolist():
                maker = int(graph.producer[object_])
                place = homes[maker] if maker >= 0 else int(site.places[object_ - graph.external_start])
                data_at = max(data_at, ended[maker] if maker >= 0 else 0.0)
                missing += int(graph.object_bytes[object_]) if place != position else 0
            cpu_at = sorted(free[position])[cores - 1]
            start = max(cpu_at, data_at + missing * (1e9 / site.net_bytes_per_s))
            options.append((start, missing, cpu_at, position))
        start, _, _, home = min(options)
        homes[task], ended[task] = home, start + int(graph.length_ns[task]) / infos[home].speed
        free[home] = sorted(free[home])[cores:] + [ended[task]] * cores
    return homes


def needs_of(graph: Graph, task: int) -> Needs:
    return Needs(int(graph.cores[task]), graph.contexts[graph.context[task]])


def cluster(cores: list[int], contexts: dict[int, str] | None = None) -> Members:
    offered = contexts or {}
    return Members(
        1,
        tuple(
            NodeInfo(i, (ExecutorClass(count, parse_context(offered.get(i, ""))),), speed=1.0 + i % 2)
            for i, count in enumerate(cores)
        ),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, Site]:
    builder = GraphBuilder()
    sizes = st.sampled_from([0, 1, 10, 1000])
    outside = [builder.add_external(size) for size in draw(st.lists(sizes, max_size=3))]
    objects: list[int] = list(outside)
    for _ in range(draw(st.integers(0, 14))):
        builder_task = builder.add_task(
            "work",
            draw(st.sampled_from([0, 1, 5, 100])),
            draw(st.lists(st.sampled_from(objects), max_size=3)) if objects else [],
            draw(st.lists(sizes, max_size=2)),
            parse_context(draw(st.sampled_from(["", "", "gpu"]))),
            cores=draw(st.sampled_from([1, 1, 2])),
        )
        objects += builder_task.outputs
    members = cluster([2, *draw(st.lists(st.integers(2, 3), max_size=4))], {0: "gpu>any", 2: "gpu"})
    place = st.integers(-1, len(members) - 1)
    places = draw(st.lists(place, min_size=len(outside), max_size=len(outside)))
    return builder.build(), Site(members, NET, np.array(places, np.int64), 1)


@given(cases())
def test_it_is_the_greedy_search_over_all_nodes(case: tuple[Graph, Site]):
    graph, site = case
    plan = AssignCriticalPath().plan(graph, site)
    assert plan.homes.tolist() == naive(graph, site)
    assert plan.ranks is not None
    assert plan.ranks.tolist() == graph.upward_rank_ns().tolist()
    for task in range(graph.task_count):
        reasons = AssignCriticalPath().explain(graph, site, task)
        assert reasons["choice"] == plan.homes[task]
        assert reasons["slack_ns"] + reasons["rank_ns"] == graph.critical_path_ns()
        assert reasons["start_ns"] >= max(reasons["cpu_free_ns"], reasons["data_ns"])


@given(cases(), st.data())
def test_estimates_take_the_place_of_lengths(case: tuple[Graph, Site], data: st.DataObject):
    graph, site = case
    estimates = data.draw(st.lists(st.integers(1, 100), min_size=graph.task_count, max_size=graph.task_count))
    plan = AssignCriticalPath().plan(graph.changed(estimate_ns=estimates), site)
    known = AssignCriticalPath().plan(graph.changed(length_ns=estimates), site)
    assert plan.homes.tolist() == known.homes.tolist()
    assert plan.ranks is not None and known.ranks is not None and plan.ranks.tolist() == known.ranks.tolist()


def test_a_chain_stays_where_its_data_is():
    builder = GraphBuilder()
    before = builder.add_task("work", 10**6, (), [10**9])
    for _ in range(9):
        before = builder.add_task("work", 10**6, [before], [10**9])
    site = Site(cluster([1] * 8), NET, np.zeros(0, np.int64), 1)
    assert len(set(AssignCriticalPath().plan(builder.build(), site).homes.tolist())) == 1


def test_a_bag_fills_every_core_once_before_any_twice():
    builder = GraphBuilder()
    for _ in range(24):
        builder.add_task("work", 10**6)
    members = Members(1, tuple(NodeInfo(i, (ExecutorClass(3),)) for i in range(8)))
    homes = AssignCriticalPath().plan(builder.build(), Site(members, NET, np.zeros(0, np.int64), 1)).homes
    assert np.bincount(homes).tolist() == [3] * 8


def test_the_cost_per_task_does_not_grow_with_the_nodes(monkeypatch):
    """Counted in repairs of the heap, the only step that could depend on the number of nodes."""
    builder = GraphBuilder()
    root = builder.add_task("work", 10, (), [100])
    for _ in range(4000):
        builder.add_task("work", 1000, [root], [100])
    graph = builder.build()
    counts = []
    for nodes in (16, 256, 2048):
        repairs = 0

        def counted(heap, item, real=heapreplace):
            nonlocal repairs
            repairs += 1
            return real(heap, item)

        with monkeypatch.context() as patch:
            patch.setattr(critical_path, "heapreplace", counted)
            AssignCriticalPath().plan(graph, Site(cluster([1] * nodes), NET, np.zeros(0, np.int64), 1))
        counts.append(repairs)
    assert max(counts) <= graph.task_count  # each task makes at most one entry out of date
    assert all(later <= earlier for earlier, later in pairwise(counts))
