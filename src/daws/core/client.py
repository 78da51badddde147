"""The client as a value: it puts a graph into the store, hands ready tasks to their homes, and reads the log.

The whole graph is in the store before the first task is handed out (`create_calls`), so no parent can finish before its
children exist. A hand-out is repeated until it is acknowledged; if its node dies first, the node that takes over finds
the tasks in the store.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, pairwise, repeat
from operator import itemgetter, not_
from typing import NamedTuple

import numpy as np

from daws.core.config import NodeConfig
from daws.core.effects import TICK, CallStore, EffectType, Send, SetTimer
from daws.core.events import EventType, Started, StoreAnswered, StoreChanged, TimerFired
from daws.model.cluster import Members
from daws.model.graph import Graph
from daws.model.states import DONE
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NO_TASK, Input, Needs, NodeId, Ready, TaskSpec
from daws.strategy.decisions import Plan, Site, Strategy, raised_ranks
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.store import SHARD_BLOCK_BITS, Create, Leased, Log, LogRow, ReadLog, Row, Watch, shard_of

FIRST_BATCH_TASKS = 4
BATCH_GROWTH = 4
BATCH_TASKS = 1000
CALL_ROWS = 4096
SHARD_BLOCK = 1 << SHARD_BLOCK_BITS
CHUNK_TASKS = 64 * SHARD_BLOCK
NOT_SENT = -1
PERIOD_MIN_NS = 20_000_000


class ClientCore:
    """One session: a graph on its way through a cluster."""

    resends = False
    """The whole graph is in the store, and safe, before anything else happens."""

    def __init__(self, graph: Graph, strategy: Strategy, site: Site, config: NodeConfig) -> None:
        self.graph = graph
        self.config = config
        self.members = site.members
        self.places = site.places
        plan = strategy.assign.plan(graph, site)
        self.planned = plan.ranks is not None
        ranks = plan.ranks
        if ranks is None and strategy.order.needs_ranks:
            ranks = graph.planned_rank_ns()
        if ranks is not None:
            ranks = raised_ranks(strategy.order, graph, ranks, site.members)
        self.plan = Plan(plan.homes, ranks)
        self.submissions: dict[int, tuple[NodeId, Submission, int]] = {}  # on their way, and since when
        # A node gets one batch after the other, and has time for others in between.
        self.waiting: dict[NodeId, deque[Submission]] = {}
        self.read_to = [0] * config.shard_count
        self.reading: dict[int, int] = {}
        self.token = 0
        self.waiting_for = graph.task_count
        self.ended: dict[int, tuple[int, str]] = {}  # only those that did not end well
        self.ends: set[int] | None = set() if config.replicated else None  # of which tasks the end was read
        self.spawned: set[int] = set()
        self.seen_spawned: set[int] = set()
        self.creations: dict[int, tuple[int, ...]] = {}  # of a store that forgets: which task has created which
        self.started_ns = 0
        self.cancels: dict[int, CancelOrder] = {}
        self.batches = 0
        self.turn = 0

    @property
    def is_done(self) -> bool:
        return self.waiting_for == 0

    def create_calls(self) -> Iterator[CallStore]:
        """The rows that describe the graph, call by call; also makes the hand-outs."""
        shard_count = self.config.shard_count
        waiting: list[list[Row]] = [[] for _ in range(shard_count)]
        ready: list[Ready] = []
        for first in range(0, self.graph.task_count, CHUNK_TASKS):
            rows, some_ready = self._rows(first, min(first + CHUNK_TASKS, self.graph.task_count))
            ready += some_ready
            for low in range(0, len(rows), SHARD_BLOCK):
                shard = shard_of(first + low, shard_count)
                waiting[shard] += rows[low : low + SHARD_BLOCK]
                if len(waiting[shard]) >= CALL_ROWS:
                    yield self._call(shard, waiting[shard])
                    waiting[shard] = []
        for shard, some in enumerate(waiting):
            if some:
                yield self._call(shard, some)
        self._hand_out(ready)

    def _call(self, shard: int, rows: list[Row]) -> CallStore:
        self.token += 1
        return CallStore(self.token, shard, rows)  # type: ignore[arg-type]

    def _hand_out(self, ready: list[Ready]) -> None:
        """First a few tasks for everybody, then more and more: nobody has to steal because others were served first."""
        batches = self._by_home(ready)
        low = 0
        size = FIRST_BATCH_TASKS
        while True:
            some = {node: tasks[low : low + size] for node, tasks in batches.items() if len(tasks) > low}
            if not some:
                return
            for node, tasks in some.items():
                submission = Submission(CLIENT, self.batches, tuple(tasks))
                if low:
                    self.waiting.setdefault(node, deque()).append(submission)
                else:
                    self.submissions[self.batches] = (node, submission, NOT_SENT)
                self.batches += 1
            low += size
            size = min(BATCH_GROWTH * size, BATCH_TASKS)

    def _by_home(self, ready: list[Ready]) -> dict[NodeId, list[Ready]]:
        """Tasks that are ready from the start, in the order of their ids; homes in the order of their first tasks."""
        homes = self.plan.homes[np.diff(self.graph.parent_start) == 0]
        order = np.argsort(homes, kind="stable")
        bounds = [*np.flatnonzero(np.diff(homes[order], prepend=-1)).tolist(), len(order)]
        groups = sorted([order[low:high].tolist() for low, high in pairwise(bounds)], key=itemgetter(0))
        return {ready[group[0]].spec.home: list(map(ready.__getitem__, group)) for group in groups}

    def _hand_out_next(self, taken: int, now_ns: int, out: list[EffectType]) -> None:
        node, _, _ = self.submissions.pop(taken, (None, None, 0))
        if node is not None and self.waiting.get(node):
            submission = self.waiting[node].popleft()
            self.submissions[submission.batch] = (node, submission, now_ns)
            out.append(Send(node, submission))

    def _rows(self, low: int, high: int) -> tuple[list[Create], Iterable[Ready]]:
        """The tasks of a part of the graph, and those that are ready from the start.

        Written for the loops of the interpreter itself: with millions of tasks, a line of Python for each is felt.
        """
        graph, columns = self.graph, self._columns
        ids, part = columns.ids, slice(low, high)
        before = _tuples(graph.parent_start, columns.parents, low, high)
        after = _tuples(graph.child_start, columns.children, low, high)
        reads = _tuples(graph.input_start, columns.inputs, low, high)
        specs = list(
            map(
                TaskSpec,
                ids[part],
                graph.kind[part].tolist(),
                repeat(0) if graph.estimate_ns is None else graph.estimate_ns[part].tolist(),
                reads,
                _tuples(graph.output_start, ids, low, high),
                repeat(None) if columns.needs is None else columns.needs[part],
                graph.priority[part].tolist(),
                repeat(0) if self.plan.ranks is None else self.plan.ranks[part].tolist(),
                columns.homes[part],
                map(not_, after),
                repeat(b""),
                repeat(0),
                repeat(0),
                repeat(self.planned),
            )
        )
        given = self._given(reads)
        roots = list(map(not_, before))
        owners = [home if root else -1 for root, home in zip(roots, columns.homes[part], strict=True)]
        ready = map(Ready, compress(specs, roots), repeat(0), repeat(0), compress(given, roots))
        return list(map(Create, specs, before, after, given, owners)), ready

    @cached_property
    def _columns(self) -> "_Columns":
        """Ids are shared objects: a task, its parents and its children name each other by the same int."""
        graph = self.graph
        ids = list(range(max(graph.task_count, graph.object_count)))
        names = ids.__getitem__
        nodes = self.members.nodes
        return _Columns(
            ids,
            list(map(names, graph.inputs.tolist())),
            list(map(names, graph.parents.tolist())),
            list(map(names, graph.children.tolist())),
            list(map(nodes.__getitem__, self.plan.homes.tolist())),
            self._needs(),
        )

    def _given(self, reads: Sequence[tuple[int, ...]]) -> list[tuple[Input, ...]]:
        """The objects from outside that these tasks read."""
        first = self.graph.external_start
        external = self._externals
        if not external:
            return [()] * len(reads)
        return [tuple([external[one - first] for one in inputs if one >= first]) for inputs in reads]

    @cached_property
    def _externals(self) -> list[Input]:
        graph = self.graph
        first = graph.external_start
        nodes = self.members.nodes
        sizes = graph.object_bytes[first:].tolist()
        return [
            (first + index, size, NO_TASK, (nodes[place], CLIENT) if place >= 0 else (CLIENT,), b"")
            for index, (size, place) in enumerate(zip(sizes, self.places.tolist(), strict=True))
        ]

    def _needs(self) -> list[Needs | None] | None:
        graph = self.graph
        if not graph.context.any() and (graph.cores == 1).all() and graph.memory_bytes is None:
            return None
        memory = repeat(0, graph.task_count) if graph.memory_bytes is None else graph.memory_bytes.tolist()
        keys = list(zip(graph.context.tolist(), graph.cores.tolist(), memory, strict=True))
        known: dict[tuple[int, int, int], Needs | None] = {(0, 1, 0): None}
        for key in keys:
            if key not in known:
                known[key] = Needs(key[1], graph.contexts[key[0]], key[2])
        return list(map(known.__getitem__, keys))

    # -- while it runs -------------------------------------------------------------------------------------------------

    def step(self, now_ns: int, events: Sequence[EventType], out: list[EffectType]) -> None:
        for event in events:
            if isinstance(event, Started):
                self.started_ns = now_ns
                self._send(now_ns, out)
                self._set_timer(now_ns, out)
            elif isinstance(event, SubmissionTaken):
                self._hand_out_next(event.batch, now_ns, out)
            elif isinstance(event, StoreAnswered):
                self._read(event, now_ns)
            elif isinstance(event, TimerFired):
                self._send(now_ns, out)
                self._ask_logs(out)
                self._set_timer(now_ns, out)
            elif isinstance(event, StoreChanged):
                # Its log may have lost what was read, and have it again in another order.
                self.read_to[event.shard] = 0
                self.reading = {token: shard for token, shard in self.reading.items() if shard != event.shard}
                self.members = Members(0, self.members.infos, self.members.strategy)
            elif isinstance(event, CancelTaken):
                self.cancels.pop(event.batch, None)

    def cancel(self, tasks: tuple[int, ...], out: list[EffectType]) -> None:
        """Ask one node after the other to cancel these tasks, until one says that the store knows."""
        batch = self.batches
        self.batches += 1
        self.cancels[batch] = CancelOrder(CLIENT, batch, tasks)
        self._send_cancels(out)

    def _send_cancels(self, out: list[EffectType]) -> None:
        nodes = self.members.nodes
        for batch, order in self.cancels.items():
            self.turn += 1
            out.append(Send(nodes[(batch + self.turn) % len(nodes)], order))

    def _send(self, now_ns: int, out: list[EffectType]) -> None:
        """Hand out, and repeat what was not acknowledged for long (many nodes need some time to be served at all)."""
        for batch, (node, submission, since_ns) in self.submissions.items():
            if since_ns == NOT_SENT or now_ns - since_ns >= self.config.tick_ns:
                self.submissions[batch] = (node, submission, now_ns)
                out.append(Send(node, submission))
        self._send_cancels(out)

    def _set_timer(self, now_ns: int, out: list[EffectType]) -> None:
        """Read more and more rarely: a session of an hour need not be looked at every few milliseconds."""
        period_ns = max(PERIOD_MIN_NS, min((now_ns - self.started_ns) // 20, self.config.tick_ns))
        out.append(SetTimer(TICK, now_ns + period_ns))

    def _ask_logs(self, out: list[EffectType]) -> None:
        for shard, start in enumerate(self.read_to):
            rows: list[Row] = [ReadLog(start)]
            if shard == 0:
                rows.append(Watch(self.members.version))
            call = self._call(shard, rows)
            self.reading[call.token] = shard
            out.append(call)

    def _read(self, event: StoreAnswered, now_ns: int) -> None:
        shard = self.reading.pop(event.token, None)
        if shard is None:
            return
        for answer in event.answers:
            if isinstance(answer, Leased) and answer.members is not None and answer.members.infos:
                self.members = answer.members
            if not isinstance(answer, Log) or answer.next <= self.read_to[shard]:
                continue
            skip = self.read_to[shard] - (answer.next - len(answer.rows))
            self.read_to[shard] = answer.next
            count = self.graph.task_count
            rows = answer.rows[skip:] if self.ends is None else self._first_ends(answer.rows[skip:])
            plain = [row for row in rows if row.__class__ is int and row < count]
            self.waiting_for -= len(plain)
            if len(plain) == len(rows):
                continue  # all went well, as usual
            for row in rows:
                if not isinstance(row, int):
                    self._note(*row)
                elif row >= count:
                    self._note(row, DONE, "", ())

    def overhear(self, rows: list[LogRow]) -> None:
        """Tasks that belong to those that have created them have ended. Only these need to hear of it: the store may
        forget such an end for good, before a client has read it."""
        spawned = [row for row in rows if (row if isinstance(row, int) else row[0]) >= FIRST_SPAWNED_ID]
        for row in self._first_ends(spawned):
            self._note(*((row, DONE, "", ()) if isinstance(row, int) else row))

    def _first_ends(self, rows: list[LogRow]) -> list[LogRow]:
        """Leave out ends that were read before the store forgot them: a future keeps its first value."""
        assert self.ends is not None
        for row in rows:
            self._note_creations(*((row, ()) if isinstance(row, int) else (row[0], row[3])))
        found: list[LogRow] = []
        for row in rows:
            task = row if isinstance(row, int) else row[0]
            if task not in self.ends:
                self.ends.add(task)
                found.append(row)
        return found

    def _note_creations(self, task: int, spawned: tuple[int, ...]) -> None:
        """The store may have forgotten the end of a task and the tasks that it had created. When the task ran again, it
        has created others."""
        if spawned == self.creations.get(task, ()):
            return
        for name in self.creations.pop(task, ()):
            self._disown(name)
        self.creations[task] = spawned
        if task < self.graph.task_count or task in self.spawned:  # else nobody knows whether it counts itself
            self._own(spawned)

    def _own(self, spawned: tuple[int, ...]) -> None:
        """Tasks that a task has created which counts: all has ended when they have, and what they have created."""
        for name in spawned:
            if name not in self.spawned:
                self.spawned.add(name)
                if name not in self.seen_spawned:
                    self.waiting_for += 1
                self._own(self.creations.get(name, ()))

    def _disown(self, task: int) -> None:
        """The run that has created it counts no more, nor does what it has created itself."""
        assert self.ends is not None
        if task not in self.spawned:
            return
        self.spawned.discard(task)
        if task in self.ends:
            self.seen_spawned.add(task)
        else:
            self.waiting_for -= 1
        for name in self.creations.get(task, ()):
            self._disown(name)

    def _note(self, task: int, state: int, error: str, spawned: tuple[int, ...]) -> None:
        if state != DONE:
            self.ended[task] = (state, error)
        if task < self.graph.task_count or task in self.spawned:
            self.waiting_for -= 1
        else:
            self.seen_spawned.add(task)  # its spawner's commit was not read yet, or will never come
        if self.ends is None:
            self._own(spawned)


class _Columns(NamedTuple):
    """Columns of the graph as lists of shared objects."""

    ids: list[int]
    inputs: list[int]
    parents: list[int]
    children: list[int]
    homes: list[NodeId]
    needs: list[Needs | None] | None


def _tuples(starts: "np.ndarray", values: list[int], low: int, high: int) -> list[tuple[int, ...]]:
    """Cut a column into one tuple for each task from `low` to `high`: the values from its offset to the next one's."""
    bounds = starts[low : high + 1]
    counts = np.diff(bounds)
    most = int(counts.max(initial=0))
    if most == counts.min(initial=0):  # all alike
        if not most:
            return [()] * (high - low)
        some = iter(values[bounds[0] : bounds[-1]])
        return list(zip(*[some] * most, strict=True))
    ends = bounds.tolist()
    return list(map(tuple, map(values.__getitem__, map(slice, ends, ends[1:]))))
