"""Ranks with which nodes finish what was begun, wherever the critical path leaves time for that.

By upward rank alone a graph of chains runs breadth-first: no chain goes on before all of them have begun, and what the
first tasks made waits all the time. Here the run is played through on as many cores as there are, without transfers.
While too much is held, and while the most critical ready task could as well run later, the task that comes next in
depth-first order runs before it. Such a task is *raised*: its rank becomes the time from its start to the end of the
play, which is more than any rank of a task that was ready then and waited. All other ranks stay as they are. A second
play, by rank alone, shows whether that is worth it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from daws.model.task import INLINE_BYTES, RAISED
from daws.strategy.order.depth_first import depth_first_turns

if TYPE_CHECKING:
    import numpy as np

    from daws.model.cluster import Members
    from daws.model.graph import Graph

LEAST_BYTES = 32_000_000
"""A graph that makes no more than this is not worth a thought."""
CAUTIONS = (2.0, 4.0, 8.0)
"""A task counts as critical while the work that is left takes all cores less than so many times its way to the end: the
last tasks cannot be spread evenly. The next number is tried where one costs too much time."""
CAUTION_APART = 2.0
"""On several nodes so many times more, and so much more room. There, data travels and queues differ, of which the play
knows nothing."""
WORTH = ((0.8, 1.0005), (0.7, 1.003), (0.25, 1.01))
"""What may be held and how long a play may take, as parts of what they are by rank alone: one pair is enough."""


def finishing_ranks(graph: Graph, ranks: np.ndarray, members: Members, room_bytes: float) -> np.ndarray:
    """These ranks, some of them raised, so that about `room_bytes` per core are held at once; or as they are, if that
    would hold hardly less or take longer."""
    cores = sum(info.cores for info in members.infos)
    wide = graph.total_core_ns / graph.total_length_ns if graph.total_length_ns else 1.0
    cores = max(1, round(cores / wide))
    apart = CAUTION_APART if len(members.infos) > 1 else 1.0
    room = room_bytes * cores * apart
    if _read_bytes(graph) <= max(room, LEAST_BYTES):
        return ranks
    game = _Game(graph, ranks)
    by_rank = _Play(game, cores, inf, 0.0)
    if by_rank.peak <= room:
        return ranks
    for caution in CAUTIONS:
        play = _Play(game, cores, room, caution * apart)
        if not play.raised:
            return ranks
        if any(play.peak <= held * by_rank.peak and play.now <= time * by_rank.now for held, time in WORTH):
            return play.ranks(ranks)
    return ranks


def _read_bytes(graph: Graph) -> int:
    """How much there is that is made by one task and read by another, and does not travel inside records."""
    import numpy as np

    read = np.zeros(graph.object_count, bool)
    read[graph.inputs] = True
    read &= graph.object_bytes > INLINE_BYTES
    return int(graph.object_bytes[: graph.external_start][read[: graph.external_start]].sum())


class _Game:
    """What all plays of a graph have in common, as lists."""

    def __init__(self, graph: Graph, ranks: np.ndarray) -> None:
        import numpy as np

        self.rank: list[int] = ranks.tolist()
        self.lengths: list[int] = graph.planned_ns.tolist()
        turns = depth_first_turns(graph)
        self.turn: list[int] = turns.tolist()
        self.task_at: list[int] = np.argsort(turns).tolist()
        self.child_start, self.children = graph.child_start.tolist(), graph.children.tolist()
        self.parent_count = np.diff(graph.parent_start)
        self.input_start, self.inputs = graph.input_start.tolist(), graph.inputs.tolist()
        self.output_start = graph.output_start.tolist()
        sizes = np.where(graph.object_bytes > INLINE_BYTES, graph.object_bytes, 0)
        sizes[graph.external_start :] = 0
        self.sizes = sizes.tolist()
        self.reader_count = np.bincount(graph.inputs, minlength=graph.object_count)


class _Play:
    """A run on paper, of single-core tasks on equal cores. Heaps know tasks by their turns in depth-first order."""

    def __init__(self, game: _Game, cores: int, room: float, caution: float) -> None:
        self.game, self.cores, self.room, self.caution = game, cores, room, caution
        self.waits_for: list[int] = game.parent_count.tolist()
        self.readers: list[int] = game.reader_count.tolist()
        self.begun_at = [-1] * len(game.rank)
        self.raised: list[int] = []
        sources = [task for task, count in enumerate(self.waits_for) if not count]
        self.by_turn = [game.turn[task] for task in sources]
        self.by_rank = [(-game.rank[task], game.turn[task]) for task in sources]
        heapify(self.by_turn)
        heapify(self.by_rank)
        self.running: list[tuple[int, int]] = []
        self.now = self.held = self.peak = 0
        self.left_ns = sum(game.lengths)  # of tasks that have not begun
        self.ends_ns = 0  # of tasks that run, added up
        self._run()

    def ranks(self, ranks: np.ndarray) -> np.ndarray:
        """These, but for tasks that were raised."""
        found = ranks.copy()
        for task in self.raised:
            found[task] = self.now - self.begun_at[task] + RAISED
        return found

    def _run(self) -> None:
        """To the end."""
        while True:
            while len(self.running) < self.cores and (task := self._next()) >= 0:
                self._begin(task)
            if not self.running:
                return
            self.now = self.running[0][0]
            while self.running and self.running[0][0] == self.now:
                self._end(heappop(self.running)[1])

    def _next(self) -> int:
        """The ready task that is to run next, -1 if there is none."""
        by_turn, by_rank, task_at, begun_at = self.by_turn, self.by_rank, self.game.task_at, self.begun_at
        while by_rank and begun_at[task_at[by_rank[0][1]]] >= 0:
            heappop(by_rank)
        if not by_rank:
            return -1
        critical = task_at[by_rank[0][1]]
        if self.held < self.room or self._is_urgent(critical):
            return critical
        while begun_at[task_at[by_turn[0]]] >= 0:
            heappop(by_turn)
        first = task_at[by_turn[0]]
        if self.game.rank[first] == self.game.rank[critical]:
            return critical
        self.raised.append(first)
        return first

    def _is_urgent(self, task: int) -> bool:
        left_ns = self.left_ns + self.ends_ns - self.now * len(self.running)
        return self.caution * self.game.rank[task] * self.cores >= left_ns

    def _begin(self, task: int) -> None:
        length = self.game.lengths[task]
        self.begun_at[task] = self.now
        self.left_ns -= length
        self.ends_ns += self.now + length
        heappush(self.running, (self.now + length, task))

    def _end(self, task: int) -> None:
        game, readers = self.game, self.readers
        self.ends_ns -= self.now
        for object_ in range(game.output_start[task], game.output_start[task + 1]):
            if readers[object_]:
                self.held += game.sizes[object_]
        if self.held > self.peak:
            self.peak = self.held
        for object_ in game.inputs[game.input_start[task] : game.input_start[task + 1]]:
            readers[object_] -= 1
            if not readers[object_]:
                self.held -= game.sizes[object_]
        for child in game.children[game.child_start[task] : game.child_start[task + 1]]:
            self.waits_for[child] -= 1
            if not self.waits_for[child]:
                heappush(self.by_turn, game.turn[child])
                heappush(self.by_rank, (-game.rank[child], game.turn[child]))
