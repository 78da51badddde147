"""The client as a value: it puts a graph into the store, hands ready tasks to their homes, and reads the log.

The whole graph is in the store before the first task is handed out (`create_calls`), so no parent can finish before its
children exist. A hand-out is repeated until it is acknowledged; if its node dies first, the node that takes over finds
the tasks in the store.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

import numpy as np

from daws.core.effects import TICK, CallStore, EffectType, Send, SetTimer
from daws.core.events import EventType, Started, StoreAnswered, TimerFired
from daws.core.node import NodeConfig
from daws.model.graph import Graph
from daws.model.states import DONE
from daws.model.task import CLIENT, Input, Needs, NodeId, Ready, TaskSpec
from daws.strategy.decisions import Plan, Site, Strategy
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.store import SHARD_BLOCK_BITS, Create, Leased, Log, ReadLog, Row, Watch

FIRST_BATCH_TASKS = 32
BATCH_TASKS = 1000
CALL_ROWS = 4096
PERIOD_MIN_NS = 20_000_000


class ClientCore:
    """One session: a graph on its way through a cluster."""

    def __init__(self, graph: Graph, strategy: Strategy, site: Site, config: NodeConfig) -> None:
        self.graph = graph
        self.config = config
        self.members = site.members
        self.places = site.places
        plan = strategy.assign.plan(graph, site)
        ranks = plan.ranks
        if ranks is None and strategy.order.needs_ranks:
            ranks = graph.upward_rank_ns()
        self.plan = Plan(plan.homes, ranks)
        self.submissions: dict[int, tuple[NodeId, Submission]] = {}  # on their way
        # A node gets one batch after the other, and has time for others in between.
        self.waiting: dict[NodeId, deque[Submission]] = {}
        self.read_to = [0] * config.shard_count
        self.reading: dict[int, int] = {}
        self.token = 0
        self.waiting_for = graph.task_count
        self.ended: dict[int, tuple[int, str]] = {}  # only those that did not end well
        self.spawned: set[int] = set()
        self.seen_spawned: set[int] = set()
        self.started_ns = 0
        self.cancels: dict[int, CancelOrder] = {}
        self.batches = 0
        self.turn = 0

    @property
    def is_done(self) -> bool:
        return self.waiting_for == 0

    def create_calls(self) -> Iterator[CallStore]:
        """The rows that describe the graph, call by call; also makes the hand-outs."""
        waiting: dict[int, list[Row]] = {}
        batches: dict[NodeId, list[Ready]] = {}
        for row in self._rows():
            task = row.spec.id
            shard = (task >> SHARD_BLOCK_BITS) % self.config.shard_count
            rows = waiting.setdefault(shard, [])
            rows.append(row)
            if len(rows) == CALL_ROWS:
                yield self._call(shard, waiting.pop(shard))
            if not row.parents:
                batch = batches.get(row.owner)
                if batch is None:
                    batch = batches[row.owner] = []
                batch.append(Ready(row.spec, 0, 0, row.inputs))
        for shard, rows in waiting.items():
            yield self._call(shard, rows)
        self._hand_out(batches)

    def _call(self, shard: int, rows: list[Row]) -> CallStore:
        self.token += 1
        return CallStore(self.token, shard, rows)  # type: ignore[arg-type]

    def _hand_out(self, batches: dict[NodeId, list[Ready]]) -> None:
        """First a few tasks for everybody, then the rest: nobody has to steal because the others were served first."""
        low = 0
        for size in chain((FIRST_BATCH_TASKS,), repeat(BATCH_TASKS)):
            some = {node: tasks[low : low + size] for node, tasks in batches.items() if len(tasks) > low}
            if not some:
                return
            for node, tasks in some.items():
                submission = Submission(CLIENT, self.batches, tuple(tasks))
                if low:
                    self.waiting.setdefault(node, deque()).append(submission)
                else:
                    self.submissions[self.batches] = (node, submission)
                self.batches += 1
            low += size

    def _hand_out_next(self, taken: int, out: list[EffectType]) -> None:
        node, _ = self.submissions.pop(taken, (None, None))
        if node is not None and self.waiting.get(node):
            submission = self.waiting[node].popleft()
            self.submissions[submission.batch] = (node, submission)
            out.append(Send(node, submission))

    def _rows(self) -> Iterator[Create]:
        graph = self.graph
        count = graph.task_count
        # Ids are shared objects: a task, its parents and its children name each other by the same int.
        ids = list(range(max(count, graph.object_count)))
        nodes = np.array(self.members.nodes, dtype=np.int64)
        homes = nodes[self.plan.homes].tolist()
        ranks = [0] * count if self.plan.ranks is None else self.plan.ranks.tolist()
        needs = self._needs()
        kinds = graph.kind.tolist()
        priorities = graph.priority.tolist() if graph.priority.any() else None
        outputs = _slices(graph.output_start, ids)
        if not len(graph.inputs):
            for task in ids[:count]:
                spec = TaskSpec(
                    task, kinds[task], 0, (), next(outputs), needs[task] if needs else None,
                    priorities[task] if priorities else 0, ranks[task], homes[task], True,
                )  # fmt: skip
                yield Create(spec, (), (), (), homes[task])
            return
        inputs = _gather(graph.input_start, graph.inputs, ids)
        parents = _gather(graph.parent_start, graph.parents, ids)
        children = _gather(graph.child_start, graph.children, ids)
        external = self._externals()
        first_external = graph.external_start
        for task in ids[:count]:
            reads = next(inputs)
            after = next(children)
            spec = TaskSpec(
                task, kinds[task], 0, reads, next(outputs), needs[task] if needs else None,
                priorities[task] if priorities else 0, ranks[task], homes[task], not after,
            )  # fmt: skip
            given = (
                tuple([external[one - first_external] for one in reads if one >= first_external]) if external else ()
            )
            before = next(parents)
            yield Create(spec, before, after, given, -1 if before else homes[task])

    def _externals(self) -> list[Input]:
        graph = self.graph
        first = graph.external_start
        nodes = self.members.nodes
        sizes = graph.object_bytes[first:].tolist()
        return [
            (first + index, size, -1, (nodes[place], CLIENT) if place >= 0 else (CLIENT,))
            for index, (size, place) in enumerate(zip(sizes, self.places.tolist(), strict=True))
        ]

    def _needs(self) -> list[Needs | None] | None:
        graph = self.graph
        if not graph.context.any() and (graph.cores == 1).all():
            return None
        known: dict[tuple[int, int], Needs | None] = {(0, 1): None}
        for key in set(zip(graph.context.tolist(), graph.cores.tolist(), strict=True)):
            if key != (0, 1):
                known[key] = Needs(key[1], graph.contexts[key[0]])
        return [known[key] for key in zip(graph.context.tolist(), graph.cores.tolist(), strict=True)]

    # -- while it runs -------------------------------------------------------------------------------------------------

    def step(self, now_ns: int, events: Sequence[EventType], out: list[EffectType]) -> None:
        for event in events:
            if isinstance(event, Started):
                self.started_ns = now_ns
                self._send(out)
                self._set_timer(now_ns, out)
            elif isinstance(event, SubmissionTaken):
                self._hand_out_next(event.batch, out)
            elif isinstance(event, StoreAnswered):
                self._read(event, now_ns)
            elif isinstance(event, TimerFired):
                self._send(out)
                self._ask_logs(out)
                self._set_timer(now_ns, out)
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

    def _send(self, out: list[EffectType]) -> None:
        for node, submission in self.submissions.values():
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
            for row in answer.rows[skip:]:
                if row.__class__ is int and row < count:
                    self.waiting_for -= 1
                elif isinstance(row, int):
                    self._note(row, DONE, "", ())
                else:
                    self._note(*row)

    def _note(self, task: int, state: int, error: str, spawned: tuple[int, ...]) -> None:
        if state != DONE:
            self.ended[task] = (state, error)
        if task < self.graph.task_count or task in self.spawned:
            self.waiting_for -= 1
        else:
            self.seen_spawned.add(task)  # its spawner's commit was not read yet, or will never come
        for name in spawned:
            if name not in self.spawned:
                self.spawned.add(name)
                if name not in self.seen_spawned:
                    self.waiting_for += 1


def _slices(starts: "np.ndarray", ids: list[int]) -> Iterator[tuple[int, ...]]:
    """The ids from one offset to the next, task by task."""
    bounds = starts.tolist()
    low = bounds[0]
    for high in bounds[1:]:
        yield tuple(ids[low:high]) if high - low != 1 else (ids[low],)
        low = high


def _gather(starts: "np.ndarray", values: "np.ndarray", ids: list[int]) -> Iterator[tuple[int, ...]]:
    """The values from one offset to the next, task by task, as shared ints."""
    bounds = starts.tolist()
    named = [ids[value] for value in values.tolist()]
    low = bounds[0]
    for high in bounds[1:]:
        yield tuple(named[low:high])
        low = high
