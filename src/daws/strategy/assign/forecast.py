"""Plans that simulate the run: free cores, transfers over each link, and objects that are there already."""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush, heapreplace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from daws.model.cluster import Members
from daws.model.task import INLINE_BYTES, NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, spread, where_most_is
from daws.strategy.assign.dealt import AssignDealt, dealt_by_runs
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    from daws.model.graph import Graph

LONGEST_SHARE = 32
"""A bag's order does not matter if each core's work is at least this many times its longest task."""
TURN_NS = 300_000.0
"""The time from the end of a task to the start of the next: a commit and a dispatch."""
OVERTAKES = 5.0
"""A task whose data is on the node of a free core may overtake a more critical one: by at most this many times the time
that moving the data would take."""
HOLDERS_MAX = 12
"""The number of nodes with most of a task's inputs that are compared, and of latest copies of an object that are
used."""
CHILDREN_MAX = 4
"""The number of a task's children that are searched for the places of their other inputs."""
SIBLINGS_MAX = 64
"""The number of parents up to which a child is searched."""
SPEEDS_MAX = 4
"""The number of different speeds up to which the first free node of each speed is compared; else the first of all."""


class AssignForecast(ParameterizedAnswer, frozen=True):
    """A simulated run before the real one, which decides where each task runs.

    Whenever a core is free, the ready task with the longest path to the end of the graph (its upward rank) goes to the
    node where it costs least. The cost is the time at which it would end there, plus the time for which it would occupy
    links. The candidates are the nodes that have most of its inputs, the nodes that have other inputs of its children,
    and the first node to be free. Links carry one transfer after the other, and an object that was fetched for one task
    is there for the next. A task whose data (or whose siblings' output) is on the node of the free core may overtake a
    somewhat more critical one. Many tasks near their data are worth more than the exact order.

    A bag of many short tasks needs no simulation; its tasks are dealt out, a few neighbours at a time. Lengths are
    those that `critical-path` uses. The cost is a few steps per input and task, however many nodes there are.

    Helps when the graph is known: links and copies are planned for, and tasks that were planned wrongly can be stolen.
    Hurts when lengths are far off and nothing may be moved afterwards.
    """

    def plan(self, graph: Graph, site: Site) -> Plan:
        import numpy as np

        if is_even_bag(graph, site.members):
            homes = spread(graph, site.members, lambda tasks, able: dealt_by_runs(tasks, able, site.seed))
            return Plan(homes, np.zeros(graph.task_count, np.int64))
        return Plan(np.array(_Play(graph, site).homes(), np.int64), graph.planned_rank_ns())

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        """The node with most input bytes. Without a graph there is nothing to simulate."""
        return where_most_is(newcomer, members)

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        if is_even_bag(graph, site.members):
            return {
                "able_count": AssignDealt().explain(graph, site, task)["able_count"],
                "choice": int(self.plan(graph, site).homes[task]),
            }
        play = _Play(graph, site)
        play.watched = task
        homes = play.homes()
        return {"rank_ns": int(graph.planned_rank_ns()[task]), **play.reasons, "choice": homes[task]}


def is_even_bag(graph: Graph, members: Members) -> bool:
    """Whether tasks read nothing, and none of them is long beside the work of each core."""
    if len(graph.inputs) or graph.edge_count or not graph.task_count:
        return False
    cores = sum(info.cores for info in members.infos)
    return LONGEST_SHARE * int(graph.planned_ns.max()) * cores <= int(graph.planned_ns.sum())


class _Read(NamedTuple):
    """A large object that a task reads: where and when it was made, and when other nodes have fetched a copy."""

    object_: int
    size: int
    maker: int  # position of the node; -1 if it comes from the client
    since: float
    copies: dict[int, float]


class _Offer(NamedTuple):
    """The cost of running a task on a node; the smallest is the best."""

    cost: float
    missing: int
    free_at: float
    node: int
    end: float


_NO_COPIES: dict[int, float] = {}


class _Play:
    """A simulated run. Tasks are known by their number, and in heaps by their turn: the most critical has the first."""

    def __init__(self, graph: Graph, site: Site) -> None:
        import numpy as np

        infos = site.members.infos
        found = capable(graph, site.members)
        self.class_of = found.class_of.tolist()
        self.cores_of = found.cores
        everywhere = len(infos)
        self.able = [None if len(some) == everywhere else frozenset(some.tolist()) for some in found.positions]
        self.free_at = [[0.0] * info.cores for info in infos]
        self.speeds = [info.speed for info in infos]
        # Heaps of (when enough cores are free, node). Nodes only get later, so an outdated entry is too early, comes up
        # too soon, and is corrected then.
        self.any_node = [(0.0, node) for node in range(everywhere)]
        self.by_class = [self._by_speed(some.tolist()) for some in found.positions]
        self.in_free = [0.0] * everywhere
        self.out_free = [0.0] * everywhere
        self.ns_per_byte = 1e9 / site.net_bytes_per_s

        self.lengths = graph.planned_ns.tolist()
        self.input_start, self.inputs = graph.input_start.tolist(), graph.inputs.tolist()
        self.producer, self.sizes = graph.producer.tolist(), graph.object_bytes.tolist()
        self.child_start, self.children = graph.child_start.tolist(), graph.children.tolist()
        self.parent_start, self.parents = graph.parent_start.tolist(), graph.parents.tolist()
        made = np.concatenate([[0], np.cumsum(graph.object_bytes)])
        self.made = (made[graph.output_start[1:]] - made[graph.output_start[:-1]]).tolist()
        self.external_start, self.external_places = graph.external_start, np.asarray(site.places).tolist()

        ranks = graph.planned_rank_ns()
        # Parents before children also where lengths are 0, because their level is lower.
        self.order = np.lexsort((graph.levels(), -ranks)).tolist()
        self.rank = ranks.tolist()
        turns = np.empty(graph.task_count, np.int64)
        turns[self.order] = np.arange(graph.task_count)
        self.turn = turns.tolist()
        self.home_of = [-1] * graph.task_count
        self.ended_at = [0.0] * graph.task_count
        self.ready_at = [0.0] * graph.task_count
        self.waits_for = np.diff(graph.parent_start).tolist()
        self.is_ready = [False] * graph.task_count
        self.bonus = [0.0] * graph.task_count  # of rank, at the node where its data is
        self.ready: list[int] = []
        self.near: list[list[int]] = [[] for _ in infos]  # by node: ready tasks whose data is there
        self.coming: list[tuple[float, int]] = []
        self.copies: dict[int, dict[int, float]] = {}
        self.gathering: dict[int, dict[int, int]] = {}  # by child: bytes for it by the node where they are made
        self.watched = -1
        self.reasons: Reasons = {}

    def homes(self) -> list[int]:
        """Run the simulation to the end, and return the position of each task's node."""
        is_bag = not self.children and not self.inputs
        if is_bag and self.watched < 0 and self.cores_of == [1] and len(self.by_class[0]) == 1:
            self._deal_bag()
            return self.home_of
        for task in self.order:
            if not self.waits_for[task]:
                self._make_ready(task)
        while True:
            free_at, node = self._first(self.any_node, 1)
            if not self.ready:
                if not self.coming:
                    return self.home_of
                free_at = max(free_at, self.coming[0][0])
            while self.coming and self.coming[0][0] <= free_at:
                self._make_ready(self.order[heappop(self.coming)[1]])
            task, is_near = self._next(node)
            if task >= 0:
                self._run(task, *self._best_offer(task, node if is_near else -1))

    def _deal_bag(self) -> None:
        """Simulate single cores of equally fast nodes with nothing to read: the next task goes to the first core that
        is free."""
        nodes = [node for _, node in self.by_class[0][0]]
        free = [(0.0, node) for node in nodes for _ in self.free_at[node]]  # sorted, and so a heap
        home_of, lengths, speed = self.home_of, self.lengths, self.speeds[nodes[0]]
        for task in self.order:
            free_at, node = free[0]
            home_of[task] = node
            heapreplace(free, (free_at + lengths[task] / speed + TURN_NS, node))

    def _by_speed(self, nodes: list[int]) -> list[list[tuple[float, int]]]:
        speeds = dict.fromkeys(self.speeds[node] for node in nodes)
        if len(speeds) > SPEEDS_MAX:
            return [[(0.0, node) for node in nodes]]
        return [[(0.0, node) for node in nodes if self.speeds[node] == speed] for speed in speeds]

    def _first(self, heap: list[tuple[float, int]], cores: int) -> tuple[float, int]:
        """The first node in the heap with this many free cores, and when they are free."""
        free_at, node = heap[0]
        while self.free_at[node][cores - 1] != free_at:
            heapreplace(heap, (self.free_at[node][cores - 1], node))
            free_at, node = heap[0]
        return free_at, node

    def _make_ready(self, task: int) -> None:
        self.is_ready[task] = True
        heappush(self.ready, self.turn[task])
        held: dict[int, int] = {}
        for object_ in self.inputs[self.input_start[task] : self.input_start[task + 1]]:
            size, maker = self.sizes[object_], self.producer[object_]
            if size > INLINE_BYTES and maker >= 0:
                node = self.home_of[maker]
                held[node] = held.get(node, 0) + size
        if held:
            node = max(held, key=held.__getitem__)
            self._draw_near(task, node, held[node])

    def _draw_near(self, task: int, node: int, size: int) -> None:
        self.bonus[task] = OVERTAKES * size * self.ns_per_byte
        heappush(self.near[node], self.turn[task])

    def _next(self, node: int) -> tuple[int, bool]:
        """The most critical task. Or, with True, one that is nearly as critical and near the free core."""
        task, other = self._head(self.ready), self._head(self.near[node])
        if other >= 0 and self.rank[other] + self.bonus[other] >= self.rank[task]:
            return other, True
        return task, False

    def _head(self, heap: list[int]) -> int:
        """The first task in the heap that has not run yet, -1 if there is none."""
        while heap and self.home_of[self.order[heap[0]]] >= 0:
            heappop(heap)
        return self.order[heap[0]] if heap else -1

    def _best_offer(self, task: int, only: int) -> tuple[_Offer, list[_Read]]:
        """The best offer of the candidate nodes, or that of the only node given, and the objects that the task
        reads."""
        number = self.class_of[task]
        cores, allowed = self.cores_of[number], self.able[number]
        read, held = self._read(task)
        nodes = list(held)
        if len(nodes) > HOLDERS_MAX:
            nodes = sorted(nodes, key=held.__getitem__, reverse=True)[:HOLDERS_MAX]
        pulls = self._pulls(task)
        nodes += pulls
        nodes += [self._first(heap, cores)[1] for heap in self.by_class[number]]
        if only >= 0 and cores == 1 and (allowed is None or only in allowed):
            nodes = [only]
        offers: dict[int, _Offer] = {}
        for node in nodes:
            if node not in offers and (allowed is None or node in allowed):
                offers[node] = self._offer(task, cores, node, read, pulls)
        if task == self.watched:
            self.reasons = {
                "costs_ns": {node: one.cost for node, one in offers.items()},
                "missing_bytes": {node: one.missing for node, one in offers.items()},
            }
        return min(offers.values()), read

    def _read(self, task: int) -> tuple[list[_Read], dict[int, int]]:
        """The large objects that a task reads, and how many bytes of them the likely nodes have."""
        read: list[_Read] = []
        held: dict[int, int] = {}
        for object_ in self.inputs[self.input_start[task] : self.input_start[task + 1]]:
            size, maker = self.sizes[object_], self.producer[object_]
            if size <= INLINE_BYTES:
                continue
            if maker < 0:
                node, since = self.external_places[object_ - self.external_start], 0.0
            else:
                node, since = self.home_of[maker], self.ended_at[maker]
            copies = self.copies.get(object_, _NO_COPIES)
            read.append(_Read(object_, size, node, since, copies))
            if node >= 0:
                held[node] = held.get(node, 0) + size
            for other in islice(reversed(copies), HOLDERS_MAX):
                held[other] = held.get(other, 0) + size
        return read, held

    def _pulls(self, task: int) -> dict[int, float]:
        """The time that it takes to bring this task's output to each node that has inputs of a common child."""
        pulls: dict[int, float] = {}
        if self.made[task] > INLINE_BYTES:
            first = self.child_start[task]
            for child in self.children[first : min(first + CHILDREN_MAX, self.child_start[task + 1])]:
                gathered = self.gathering.get(child)
                if gathered:
                    node = max(gathered, key=gathered.__getitem__)
                    pulls[node] = pulls.get(node, 0.0) + self.made[task] * self.ns_per_byte
        return pulls

    def _offer(self, task: int, cores: int, node: int, read: list[_Read], pulls: dict[int, float]) -> _Offer:
        came, there, missing = self.ready_at[task], self.in_free[node], 0
        for one in read:
            if one.maker == node:
                continue
            copied_at = one.copies.get(node)
            if copied_at is None:
                missing += one.size
                copied_at = there = self._arrives(one, there)
            if copied_at > came:
                came = copied_at
        free_at = self.free_at[node][cores - 1]
        end = max(free_at, came) + self.lengths[task] / self.speeds[node]
        cost = end + missing * self.ns_per_byte
        if pulls:
            cost += sum(pulls.values()) - pulls.get(node, 0.0)
        return _Offer(cost, missing, free_at, node, end)

    def _arrives(self, one: _Read, there: float) -> float:
        """When an object has come over both links, if the receiver's is free by then."""
        begin = max(one.since, there)
        if one.maker >= 0 and self.out_free[one.maker] > begin:
            begin = self.out_free[one.maker]
        return begin + one.size * self.ns_per_byte

    def _run(self, task: int, offer: _Offer, read: list[_Read]) -> None:
        node = offer.node
        if offer.missing:
            there = self.in_free[node]
            for one in read:
                if one.maker == node or node in one.copies:
                    continue
                there = self._arrives(one, there)
                if one.maker >= 0:
                    self.out_free[one.maker] = there
                self.copies.setdefault(one.object_, {})[node] = there
            self.in_free[node] = there
        end = offer.end + TURN_NS
        self.home_of[task], self.ended_at[task] = node, end
        row, cores = self.free_at[node], self.cores_of[self.class_of[task]]
        del row[:cores]
        for _ in range(cores):
            insort(row, end)
        children = self.children[self.child_start[task] : self.child_start[task + 1]]
        if self.made[task] > INLINE_BYTES:
            for child in children[:CHILDREN_MAX]:
                self._gather(child, node, self.made[task])
        for child in children:
            if end > self.ready_at[child]:
                self.ready_at[child] = end
            self.waits_for[child] -= 1
            if not self.waits_for[child]:
                heappush(self.coming, (self.ready_at[child], self.turn[child]))

    def _gather(self, child: int, node: int, size: int) -> None:
        """Note where the first parent of a child has run; the other parents then prefer that node."""
        gathered = self.gathering.get(child)
        if gathered is not None:
            gathered[node] = gathered.get(node, 0) + size
            return
        self.gathering[child] = {node: size}
        first, end = self.parent_start[child], self.parent_start[child + 1]
        if end - first <= SIBLINGS_MAX:
            for other in self.parents[first:end]:
                if self.is_ready[other] and self.home_of[other] < 0 and not self.bonus[other]:
                    self._draw_near(other, node, self.made[other])
