import numpy as np
import pytest
from hypothesis import given

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.heft import AssignHeft, upward_ranks
from daws.strategy.decisions import Site
from tests.unit.strategy.assign.test_critical_path import NET, cases, needs_of


def naive(graph: Graph, site: Site) -> list[float]:
    """The end of each task, if each in turn is tried on every core of every node, at every moment when one is free."""
    infos = site.members.infos
    planned: list[list[list[tuple[float, float]]]] = [[[] for _ in range(info.cores)] for info in infos]
    homes, ends = [-1] * graph.task_count, [0.0] * graph.task_count
    ranks = upward_ranks(graph, site)
    for task in sorted(range(graph.task_count), key=lambda task: (-ranks[task], graph.levels()[task], task)):
        cores, length = int(graph.cores[task]), int(graph.length_ns[task])
        options = []
        for position, info in enumerate(infos):
            if not info.can_run(needs_of(graph, task)):
                continue
            ready = 0.0
            elsewhere: dict[tuple[int, int], int] = {}
            for object_ in graph.inputs_of(task).tolist():
                maker = int(graph.producer[object_])
                place = homes[maker] if maker >= 0 else int(site.places[object_ - graph.external_start])
                at = ends[maker] if maker >= 0 else 0.0
                key = (maker, place)
                elsewhere[key] = elsewhere.get(key, 0) + (int(graph.object_bytes[object_]) if place != position else 0)
                ready = max(ready, at + elsewhere[key] * 1e9 / site.net_bytes_per_s)
            took = length / info.speed
            behind = sorted(max([end for _, end in core], default=0.0) for core in planned[position])
            moments = [max(ready, behind[cores - 1])]
            if cores == 1:
                idle = [end for core in planned[position] for _, end in core]
                moments += [max(ready, start) for start in (0.0, *idle)]
            for start in moments:
                fitting = [core for core in planned[position] if all(start + took <= b or e <= start for b, e in core)]
                last = [core for core in fitting if all(e <= start for _, e in core)]
                if len(last) >= cores or (cores == 1 and fitting):
                    options.append((start + took, start, position))
        end, start, home = min(options)
        chosen = [core for core in planned[home] if all(end <= b or e <= start for b, e in core)]
        # Cores that are free for the shortest time beforehand stay useful for others least: any choice ends alike here.
        chosen.sort(key=lambda core: max([e for _, e in core if e <= start], default=0.0))
        for core in chosen[:cores]:
            core.append((start, end))
        homes[task], ends[task] = home, end
    return ends


@given(cases())
def test_the_first_task_ends_as_early_as_anywhere_and_no_core_is_used_twice(case: tuple[Graph, Site]):
    graph, site = case
    plan = AssignHeft().plan(graph, site)
    infos = site.members.infos
    for task in range(graph.task_count):
        assert infos[plan.homes[task]].can_run(needs_of(graph, task))
    if not graph.task_count:
        return
    assert plan.ranks is not None
    starts = plan.ranks.max() - plan.ranks
    for position, info in enumerate(infos):
        own = [task for task in range(graph.task_count) if plan.homes[task] == position]
        for task in own:
            running = [
                other
                for other in own
                # It plans with estimates, and ranks are whole nanoseconds, which starts need not be.
                if starts[other] <= starts[task] < starts[other] + int(graph.planned_ns[other]) / info.speed - 1
            ]
            assert sum(int(graph.cores[other]) for other in running) <= info.cores
    ranks = upward_ranks(graph, site)
    first = min(range(graph.task_count), key=lambda task: (-ranks[task], graph.levels()[task], task))
    reasons = AssignHeft().explain(graph, site, first)
    assert reasons["choice"] == plan.homes[first]
    assert reasons["end_ns"] == pytest.approx(naive(graph, site)[first])


def chain_and_fork() -> tuple[Graph, Site]:
    """One long chain whose data takes long to move, and small tasks that fit into the gap before its end."""
    builder = GraphBuilder()
    a = builder.add_task("work", 100, [], [50])
    b = builder.add_task("work", 100, [], [50])
    builder.add_task("work", 100, [*a.outputs, *b.outputs], [])
    builder.add_task("work", 10, [], [])
    members = Members(1, tuple(NodeInfo(i, (ExecutorClass(1),)) for i in range(2)))
    return builder.build(), Site(members, 1e9, np.array([], np.int64), 1)


def test_ranks_have_transfers_in_them():
    graph, site = chain_and_fork()
    assert upward_ranks(graph, site) == [250.0, 250.0, 100.0, 10.0]
    alone = Site(Members(1, site.members.infos[:1]), NET, site.places, 1)
    assert upward_ranks(graph, alone) == [200.0, 200.0, 100.0, 10.0]


def test_a_small_task_goes_into_the_gap():
    graph, site = chain_and_fork()
    plan = AssignHeft().plan(graph, site)
    assert plan.ranks is not None
    starts = (plan.ranks.max() - plan.ranks).tolist()
    assert starts == [0, 0, 150, 100], "the last one runs before the third, in the time of its transfer"
    reasons = AssignHeft().explain(graph, site, 3)
    assert (reasons["start_ns"], reasons["end_ns"]) == (100.0, 110.0)


def test_faster_nodes_are_preferred_where_they_end_first():
    builder = GraphBuilder()
    for _ in range(3):
        builder.add_task("work", 100, [], [])
    infos = tuple(NodeInfo(i, (ExecutorClass(1),), speed=speed) for i, speed in enumerate((1.0, 4.0)))
    plan = AssignHeft().plan(builder.build(), Site(Members(1, infos), NET, np.array([], np.int64), 1))
    assert plan.homes.tolist() == [1, 1, 1]
