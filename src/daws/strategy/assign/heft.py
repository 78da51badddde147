"""HEFT: tasks by upward rank, each into the slot where it ends first."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, ClassVar

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, where_most_is
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    import numpy as np

    from daws.model.graph import Graph

Gap = tuple[float, float]
"""When an idle time of a core ends, and when it begins."""


class AssignHeft(ParameterizedAnswer, frozen=True):
    """Tasks by upward rank falling, each to the node where it ends first, also in gaps between tasks planned before.

    Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu, 2002). A rank is the mean run time over all nodes plus
    the largest sum of transfer time and rank among the children. A task can start when a core is free and the outputs
    of all parents have come, each in its own time; parents on the same node cost nothing. A gap takes a task that needs
    one core; wide ones go behind all others. The ranks of the plan say how long before the last planned start a task
    starts: with `order=critical-path` nodes run their tasks in the planned sequence. Slots are not reserved: a node
    never waits for a task that was planned first but is late.

    Every node is looked at for every task, in one numpy operation. Lengths are those that `critical-path` uses.

    Helps when lengths and sizes are known and nodes differ. Hurts when they are not known; links have no queues in it.
    """

    needs_graph: ClassVar[bool] = True

    def plan(self, graph: Graph, site: Site) -> Plan:
        import numpy as np

        homes, starts = _schedule(graph, site, -1, {})
        last = max(starts, default=0.0)
        return Plan(np.array(homes, np.int64), np.array([round(last - start) for start in starts], np.int64))

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        """The node with most input bytes. There are no ranks without a graph, and the load of nodes is not known."""
        return where_most_is(newcomer, members)

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        reasons: Reasons = {}
        homes, _ = _schedule(graph, site, task, reasons)
        return reasons | {"choice": homes[task]}


def upward_ranks(graph: Graph, site: Site) -> list[float]:
    """The mean run time of each task, plus the longest path from its end to the end of the graph with all transfers."""
    import numpy as np

    infos = site.members.infos
    mean_pace = sum(1 / info.speed for info in infos) / len(infos)
    ns_per_byte = 1e9 / site.net_bytes_per_s if len(infos) > 1 else 0.0
    ranks: list[float] = (graph.planned_ns * mean_pace).tolist()
    lengths = ranks.copy()
    for task in np.argsort(-graph.levels(), kind="stable").tolist():
        rank = ranks[task]
        for maker, (size, _) in _read(graph, task).items():
            if maker >= 0:
                ranks[maker] = max(ranks[maker], lengths[maker] + size * ns_per_byte + rank)
    return ranks


def _read(graph: Graph, task: int) -> dict[int, tuple[int, list[int]]]:
    """The inputs of a task by the task that makes them (-1: from outside): the number of bytes, and the objects."""
    read: dict[int, tuple[int, list[int]]] = {}
    for object_ in graph.inputs[graph.input_start[task] : graph.input_start[task + 1]].tolist():
        maker = int(graph.producer[object_])
        size, objects = read.get(maker, (0, []))
        read[maker] = (size + int(graph.object_bytes[object_]), [*objects, object_])
    return read


def _schedule(graph: Graph, site: Site, watched: int, reasons: Reasons) -> tuple[list[int], list[float]]:
    """The home and the planned start of each task. The numbers that were compared for the watched one go to
    `reasons`."""
    import numpy as np

    infos = site.members.infos
    found = capable(graph, site.members)
    shut = []  # by class of tasks: infinitely late on nodes that cannot run them
    for positions in found.positions:
        row = np.full(len(infos), np.inf)
        row[positions] = 0.0
        shut.append(row)
    speeds = np.array([info.speed for info in infos])
    cores_most = max((info.cores for info in infos), default=1)
    # By node: when each of its cores is free, ascending. Cores that it does not have are free at infinity.
    free = np.full((len(infos), cores_most), np.inf)
    for position, info in enumerate(infos):
        free[position, : info.cores] = 0.0
    gaps = _Gaps(len(infos))
    ns_per_byte = 1e9 / site.net_bytes_per_s
    ranks = upward_ranks(graph, site)
    homes, starts, ends = [-1] * graph.task_count, [0.0] * graph.task_count, [0.0] * graph.task_count
    lengths = graph.planned_ns.tolist()
    for task in np.lexsort((graph.levels(), -np.array(ranks))).tolist():
        number = int(found.class_of[task])
        cores = found.cores[number]
        ready = _ready_at(graph, site, task, homes, ends, ns_per_byte)
        took = lengths[task] / speeds + shut[number]
        start = np.maximum(free[:, cores - 1], ready)
        home = int(np.argmin(start + took))
        begin = float(start[home])
        end = begin + float(took[home])
        slot = gaps.first(ready, took, end) if cores == 1 else None
        if slot is not None:
            home, begin = slot
            end = begin + float(took[home])
            gaps.fill(home, begin, end)
        else:
            row = free[home]
            for idle in row[:cores].tolist():
                gaps.add(home, idle, begin)
            row[:cores] = end
            row.sort()
        homes[task], starts[task], ends[task] = home, begin, end
        if task == watched:
            reasons |= {
                "rank_ns": ranks[task],
                "ready_ns": float(ready[home]),
                "start_ns": begin,
                "end_ns": end,
                "in_gap": slot is not None,
            }
    return homes, starts


def _ready_at(
    graph: Graph, site: Site, task: int, homes: list[int], ends: list[float], ns_per_byte: float
) -> np.ndarray:
    """The time at which all inputs of the task are there, for each node."""
    import numpy as np

    arrivals: list[tuple[int, float, float]] = []  # where it is made, when it is there, and when it is elsewhere
    for maker, (size, objects) in _read(graph, task).items():
        if maker >= 0:
            arrivals.append((homes[maker], ends[maker], ends[maker] + size * ns_per_byte))
            continue
        held: dict[int, int] = {}
        for object_ in objects:
            place = int(site.places[object_ - graph.external_start])
            held[place] = held.get(place, 0) + int(graph.object_bytes[object_])
        arrivals += [(place, 0.0, part * ns_per_byte) for place, part in held.items()]
    ready = np.full(len(site.members), max([elsewhere for _, _, elsewhere in arrivals], default=0.0))
    for place in dict.fromkeys([place for place, _, _ in arrivals if place >= 0]):
        ready[place] = max([there if at == place else elsewhere for at, there, elsewhere in arrivals])
    return ready


class _Gaps:
    """Idle times between planned tasks, by node; which core they are on does not matter."""

    def __init__(self, node_count: int) -> None:
        import numpy as np

        self.lists: list[list[Gap]] = [[] for _ in range(node_count)]  # by when they end
        self.longest = np.zeros(node_count)
        self.last = np.zeros(node_count)

    def first(self, ready: np.ndarray, took: np.ndarray, before: float) -> tuple[int, float] | None:
        """The node and the start with the earliest end, if that is earlier than a given time."""
        import numpy as np

        soonest = ready + took
        found: tuple[int, float] | None = None
        for node in np.flatnonzero((soonest < before) & (self.longest >= took) & (self.last >= soonest)).tolist():
            length, since = float(took[node]), float(ready[node])
            row = self.lists[node]
            for end, begin in row[bisect_left(row, (since + length, -1.0)) :]:
                start = max(begin, since)
                if start + length <= end and start + length < before:
                    found, before = (node, start), start + length
                    if start == since:
                        break
        return found

    def add(self, node: int, begin: float, end: float) -> None:
        if end > begin:
            insort(self.lists[node], (end, begin))
            self._measure(node)

    def fill(self, node: int, begin: float, end: float) -> None:
        """Plan something from one time to another, within the first gap that has room for it."""
        row = self.lists[node]
        at = next(index for index, gap in enumerate(row) if gap[1] <= begin and end <= gap[0])
        until, since = row.pop(at)
        self.add(node, since, begin)
        self.add(node, end, until)
        self._measure(node)

    def _measure(self, node: int) -> None:
        row = self.lists[node]
        self.longest[node] = max([end - begin for end, begin in row], default=0.0)
        self.last[node] = row[-1][0] if row else 0.0
