"""ADAGE's planner: the most critical task first, each to the node where it can start first."""

from __future__ import annotations

from bisect import insort
from heapq import heapreplace
from typing import TYPE_CHECKING, ClassVar

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, where_most_is
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    from daws.model.graph import Graph


class AssignCriticalPath(ParameterizedAnswer, frozen=True):
    """Tasks by slack (critical path − upward rank) ascending, each to the node where it would start earliest.

    ADAGE (2021), section III-A. A task can start when enough cores are free, all parents have ended, and the bytes that
    are not on the node have arrived. If starts are equal, fewer bytes to move win, then the node that has been free for
    longer, then the first. Nodes count with all their cores and their speed (the published code ran one task per node
    at a time).

    The search is exact, yet it does not look at all nodes. Nodes that hold none of a task's inputs differ only in when
    they are free, so the first of them to be free stands for all. The cost is one step per input and task.

    Lengths are the estimates that a graph gives. A graph without any estimates is planned with its true lengths, as the
    paper supposes: then this planner knows more than any scheduler could. Sizes of objects are known in any case.

    Helps when lengths and sizes are known. Hurts when they are not; and it knows neither contention nor caches.
    """

    needs_graph: ClassVar[bool] = True

    def plan(self, graph: Graph, site: Site) -> Plan:
        import numpy as np

        return Plan(np.array(_greedy(graph, site, -1, {}), np.int64), graph.planned_rank_ns())

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        """The node with most input bytes. Without a graph, neither slack nor the load of nodes is known."""
        return where_most_is(newcomer, members)

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        ranks = graph.planned_rank_ns()
        reasons: Reasons = {"rank_ns": int(ranks[task]), "slack_ns": int(ranks.max() - ranks[task])}
        reasons["choice"] = _greedy(graph, site, task, reasons)[task]
        return reasons


def _greedy(graph: Graph, site: Site, watched: int, reasons: Reasons) -> list[int]:
    """The home of each task. The numbers that were compared for the watched task go to `reasons`."""
    import numpy as np

    found = capable(graph, site.members)
    class_of = found.class_of.tolist()
    able = [None if len(some) == len(site.members) else frozenset(some.tolist()) for some in found.positions]
    # Per class a heap of (when enough cores are free, node). Nodes only get later, so an outdated entry is too early,
    # comes up too soon, and is corrected then.
    heaps = [[(0.0, position) for position in some.tolist()] for some in found.positions]
    free_at = [[0.0] * info.cores for info in site.members.infos]
    speeds = [info.speed for info in site.members.infos]
    ns_per_byte = 1e9 / site.net_bytes_per_s

    lengths = graph.planned_ns.tolist()
    input_start, inputs = graph.input_start.tolist(), graph.inputs.tolist()
    producer, sizes = graph.producer.tolist(), graph.object_bytes.tolist()
    external_start, external_places = graph.external_start, np.asarray(site.places).tolist()
    homes = [-1] * graph.task_count
    ended_at = [0.0] * graph.task_count

    # Parents before children also where lengths are 0, because their level is lower.
    order = np.lexsort((graph.levels(), -graph.planned_rank_ns()))
    for task in order.tolist():
        number = class_of[task]
        cores = found.cores[number]
        total, data_at = 0, 0.0
        held: dict[int, int] = {}
        for object_ in inputs[input_start[task] : input_start[task + 1]]:
            size, maker = sizes[object_], producer[object_]
            if maker < 0:
                place = external_places[object_ - external_start]
            else:
                place = homes[maker]
                if ended_at[maker] > data_at:
                    data_at = ended_at[maker]
            total += size
            if place >= 0:
                held[place] = held.get(place, 0) + size

        heap = heaps[number]
        cpu_at, best = heap[0]
        while free_at[best][cores - 1] != cpu_at:
            heapreplace(heap, (free_at[best][cores - 1], best))
            cpu_at, best = heap[0]
        missing = total - held.get(best, 0)
        key = (max(cpu_at, data_at + missing * ns_per_byte), missing, cpu_at, best)
        allowed = able[number]
        for place, size in held.items():
            if allowed is None or place in allowed:
                cpu_at, missing = free_at[place][cores - 1], total - size
                key = min(key, (max(cpu_at, data_at + missing * ns_per_byte), missing, cpu_at, place))

        start, missing, cpu_at, home = key
        end = start + lengths[task] / speeds[home]
        homes[task], ended_at[task] = home, end
        row = free_at[home]
        del row[:cores]
        for _ in range(cores):
            insort(row, end)
        if task == watched:
            reasons |= {"start_ns": start, "missing_bytes": missing, "cpu_free_ns": cpu_at, "data_ns": data_at}
    return homes
