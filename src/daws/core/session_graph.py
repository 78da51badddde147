"""A whole graph in a session: planned, written into the store in columns, handed out, and counted as it ends.

The graph is in the store, and safe, before its first task is handed out, so no parent can finish before its children
exist. The client has no future of its tasks. Tasks that end well are only counted, and so are those that they create.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise, repeat
from operator import itemgetter, not_, sub
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from daws.core.config import NodeConfig
from daws.core.session_ends import READ_NS
from daws.core.session_events import GraphAdvanced, GraphSubmitted
from daws.model.cluster import Members
from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NO_TASK, NOBODY, Input, Needs, NodeId, Ready, TaskSpec
from daws.strategy.decisions import raised_ranks
from daws.wire.ends import Outcome
from daws.wire.store import CANCELLED as IS_CANCELLED
from daws.wire.store import DONE as HAS_ENDED
from daws.wire.store import OK, SHARD_BLOCK_BITS, STRUCK, AnswerType, Create, LoggedEnd, LogRow, Row, shard_of

if TYPE_CHECKING:
    from daws.core.session import SessionCore

CALL_ROWS = 4096
CALLS_MAX = 8
"""The number of calls that may be under way while a graph is written: the rows of a graph of millions of tasks never
exist at once."""
SHARD_BLOCK = 1 << SHARD_BLOCK_BITS
CHUNK_TASKS = 64 * SHARD_BLOCK
NOT_TOLD = -1
NOT_TAKEN = (FAILED, "another task of the session has its number")
END_OF = {HAS_ENDED: (DONE, ""), IS_CANCELLED: (CANCELLED, "")}
"""Answers to a task that the store does not take because the task has ended, and its end."""


class SessionGraph:
    """A graph on its way through a cluster. `left` is the number of tasks that have not ended: of the graph, and of
    those that its tasks have created. `spawned` has the latter, with those that have ended."""

    __slots__ = (
        "_apart",
        "_began_ns",
        "_calls",
        "_creations",
        "_ended_spawned",
        "_first",
        "_has_ended",
        "_moving",
        "_pause_max_ns",
        "_ready",
        "_rows",
        "_struck",
        "_to_join",
        "_told",
        "is_written",
        "left",
        "spawned",
    )

    def __init__(self, config: NodeConfig, now_ns: int, event: GraphSubmitted, members: Members) -> None:
        self.left = event.graph.task_count
        self.spawned: set[int] = set()
        self.is_written = False
        self._began_ns = now_ns
        self._pause_max_ns = config.tick_ns
        self._first = event.first
        self._to_join = [node for node in event.site.members.nodes if node not in members]
        self._rows = GraphRows(event)
        self._ready: list[Ready] = []
        self._calls = self._make_calls(config.shard_count)
        self._has_ended = bytearray(event.graph.task_count)
        self._ended_spawned: set[int] = set()
        self._creations: dict[int, tuple[int, ...]] = {}  # tasks, and those that they have created
        self._struck: list[Create] = []  # tasks whose homes have died before the store heard of them
        # Tasks that do not go to their homes: what was written with another node, or None if the store did not take it.
        self._apart: dict[int, Create | None] = {}
        self._moving: set[int] = set()  # of these, the tasks that the store has yet to take
        self._told = NOT_TOLD

    def is_pending(self, task: int) -> bool:
        """Is this a task of the graph that has not ended?"""
        place = task - self._first
        return 0 <= place < len(self._has_ended) and not self._has_ended[place]

    def pending(self) -> Iterator[int]:
        """The tasks of the graph that have not ended, without those that they have created."""
        return (self._first + place for place, has_ended in enumerate(self._has_ended) if not has_ended)

    def pause_ns(self, now_ns: int) -> int:
        """The time between two reads of the logs. A graph of an hour is looked at less often than one of a second."""
        return max(READ_NS, min((now_ns - self._began_ns) // 20, self._pause_max_ns))

    # -- into the store ------------------------------------------------------------------------------------------------

    def write(self, core: "SessionCore", now_ns: int) -> None:
        """Send the next rows. When all are in the store, and safe, hand out what is ready."""
        if self.is_written:
            return
        calls = core.calls
        while calls.graph_call_count < CALLS_MAX:
            shard, rows = next(self._calls, (0, None))
            if rows is None:
                break
            calls.send_graph_rows(shard, rows, now_ns, core.out)
        if not (calls.graph_call_count or self._struck or self._moving) and calls.is_safe:
            self.is_written = True
            self._hand_out(core)
            del self._rows, self._ready

    def move_struck(self, core: "SessionCore") -> None:
        """Write tasks once more whose homes have died before the store heard of them, now with other nodes: on each
        tick, and when there are other members."""
        if not core.members:
            return
        for row in self._struck:
            task = row.spec.id
            moved = replace(row, owner=core.node_for(row))
            self._apart[task] = moved
            self._moving.add(task)
            core.ask(task, moved)
        self._struck.clear()

    def on_created(self, core: "SessionCore", row: Create, answer: AnswerType) -> None:
        """Take the answer to one row. Calls of which all rows were taken are not looked at row by row."""
        task = row.spec.id
        if answer == STRUCK:
            if self._apart.get(task, row) is row:  # else it was moved before, and a failover had both rows sent again
                self._struck.append(row)
            return
        self._moving.discard(task)
        if answer != OK:
            self._apart[task] = None
            state, error = END_OF.get(answer, NOT_TAKEN) if isinstance(answer, int) else NOT_TAKEN
            core.ends.take_commits(core, [LoggedEnd(task, state, error, ())])

    def _hand_out(self, core: "SessionCore") -> None:
        core.hand_outs.expect([node for node in self._to_join if node not in core.members])
        for node, ready in self._rows.by_home(self._ready).items():
            tasks = [one for one in ready if one.spec.id not in self._apart] if self._apart else ready
            if tasks:
                core.hand_outs.add_many(node, tasks)
        for row in self._apart.values():
            if row is not None:
                core.hand_outs.add(row.owner, Ready(row.spec, 0, 0, row.inputs))

    def _make_calls(self, shard_count: int) -> Iterator[tuple[int, list[Row]]]:
        """The rows of the graph, call by call, each with its shard. Notes the tasks that are ready."""
        waiting: list[list[Row]] = [[] for _ in range(shard_count)]
        count = len(self._has_ended)
        skew = self._first % SHARD_BLOCK  # so many numbers of the first block are none of the graph's
        for first in range(0, count, CHUNK_TASKS):
            rows, ready = self._rows.of_part(first, min(first + CHUNK_TASKS, count))
            self._ready += ready
            for low in range(-skew, len(rows), SHARD_BLOCK):
                shard = shard_of(self._first + first + low, shard_count)
                waiting[shard] += rows[max(low, 0) : low + SHARD_BLOCK]
                if len(waiting[shard]) >= CALL_ROWS:
                    yield shard, waiting[shard]
                    waiting[shard] = []
        yield from ((shard, rows) for shard, rows in enumerate(waiting) if rows)

    # -- how it ends ---------------------------------------------------------------------------------------------------

    def take_ends(self, rows: Sequence[LogRow], ended: list[Outcome]) -> list[LogRow]:
        """Count the ends of the graph's tasks in a log, each once, and add to `ended` those that did not end well.
        Return the ends of other tasks."""
        if not self._creations and {*map(type, rows)} == {int} and self._take_plain(rows):  # type: ignore[arg-type]
            return []
        ends = [LoggedEnd(row, DONE, "", ()) if isinstance(row, int) else row for row in rows]
        return [row for row, end in zip(rows, ends, strict=True) if not self._take_end(end, ended)]

    def _take_plain(self, tasks: Sequence[int]) -> bool:
        """Count tasks that have ended well and have created none, all at once. False if some are not the graph's."""
        first, has_ended = self._first, self._has_ended
        if min(tasks) < first or max(tasks) >= first + len(has_ended):
            return False
        before = has_ended.count(1)
        deque(map(has_ended.__setitem__, map(sub, tasks, repeat(first)), repeat(1)), maxlen=0)
        self.left -= has_ended.count(1) - before
        return True

    def _take_end(self, end: LoggedEnd, ended: list[Outcome]) -> bool:
        """Count the end of a task if it is news. Is it one of the graph's?"""
        task = end.task
        place = task - self._first
        if 0 <= place < len(self._has_ended):
            self._note_creations(task, end.spawned, True)
            if self._has_ended[place]:
                return True
            self._has_ended[place] = 1
            self.left -= 1
        elif task >= FIRST_SPAWNED_ID:
            self._note_creations(task, end.spawned, task in self.spawned)
            if task in self._ended_spawned:
                return True
            self._ended_spawned.add(task)  # perhaps before its creator's end was read, which may never come
            self.left -= task in self.spawned
        else:
            return False
        if end.state != DONE:
            ended.append(Outcome(task, (), end.state, end.error))
        return True

    def _note_creations(self, task: int, spawned: tuple[int, ...], counts: bool) -> None:
        """Note the tasks that a task has created. The store may have forgotten its end, and these: when the task ran
        again, it has created others."""
        if spawned == self._creations.get(task, ()):
            return
        for name in self._creations.pop(task, ()):
            self._disown(name)
        self._creations[task] = spawned
        if counts:  # else it is not known yet whether it counts itself
            self._own(spawned)

    def _own(self, spawned: tuple[int, ...]) -> None:
        """Count tasks that a task has created which counts, and the tasks that these have created."""
        for name in spawned:
            if name not in self.spawned:
                self.spawned.add(name)
                self.left += name not in self._ended_spawned
                self._own(self._creations.get(name, ()))

    def _disown(self, task: int) -> None:
        """The run that has created a task counts no more, nor does what the task has created itself."""
        if task in self.spawned:
            self.spawned.discard(task)
            self.left -= task not in self._ended_spawned
            for name in self._creations.get(task, ()):
                self._disown(name)

    def tell(self, core: "SessionCore") -> None:
        """Tell how many tasks are left, if that has changed."""
        if self.left != self._told:
            self._told = self.left
            core.out.append(GraphAdvanced(self.left))


class GraphRows:
    """The rows of a graph, part by part, and its plan.

    Written for the loops of the interpreter itself: with millions of tasks, a line of Python for each is felt.
    """

    __slots__ = ("_columns", "_externals", "_first", "_graph", "_homes", "_is_planned", "_ranks", "nodes")

    def __init__(self, event: GraphSubmitted) -> None:
        graph, site, order = event.graph, event.site, event.strategy.order
        plan = event.strategy.assign.plan(graph, site)
        ranks = plan.ranks
        if ranks is None and order.needs_ranks:
            ranks = graph.planned_rank_ns()
        self.nodes = site.members.nodes
        self._graph = graph
        self._first = event.first
        self._homes = plan.homes
        self._is_planned = plan.ranks is not None
        self._ranks = None if ranks is None else raised_ranks(order, graph, ranks, site.members)
        self._columns = self._make_columns()
        self._externals = self._make_externals(site.places.tolist())

    def of_part(self, low: int, high: int) -> tuple[list[Create], Iterable[Ready]]:
        """The tasks of a part of the graph, and those that are ready from the start."""
        graph, columns = self._graph, self._columns
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
                repeat(0) if self._ranks is None else self._ranks[part].tolist(),
                columns.homes[part],
                map(not_, after),
                repeat(b""),
                repeat(0),
                repeat(0),
                repeat(self._is_planned),
            )
        )
        given = self._given(reads)
        roots = list(map(not_, before))
        owners = [home if root else NOBODY for root, home in zip(roots, columns.homes[part], strict=True)]
        ready = map(Ready, compress(specs, roots), repeat(0), repeat(0), compress(given, roots))
        return list(map(Create, specs, before, after, given, owners)), ready

    def by_home(self, ready: list[Ready]) -> dict[NodeId, list[Ready]]:
        """Tasks that are ready from the start, in the order of their ids; homes in the order of their first tasks."""
        homes = self._homes[np.diff(self._graph.parent_start) == 0]
        order = np.argsort(homes, kind="stable")
        bounds = [*np.flatnonzero(np.diff(homes[order], prepend=-1)).tolist(), len(order)]
        groups = sorted([order[low:high].tolist() for low, high in pairwise(bounds)], key=itemgetter(0))
        return {ready[group[0]].spec.home: list(map(ready.__getitem__, group)) for group in groups}

    def _make_columns(self) -> "_Columns":
        """Ids are shared objects: a task, its parents and its children name each other by the same int."""
        graph, first = self._graph, self._first
        ids = list(range(first, first + max(graph.task_count, graph.object_count)))
        names = ids.__getitem__
        return _Columns(
            ids,
            list(map(names, graph.inputs.tolist())),
            list(map(names, graph.parents.tolist())),
            list(map(names, graph.children.tolist())),
            list(map(self.nodes.__getitem__, self._homes.tolist())),
            self._needs(),
        )

    def _given(self, reads: Sequence[tuple[int, ...]]) -> list[tuple[Input, ...]]:
        """The objects from outside that these tasks read."""
        external = self._externals
        if not external:
            return [()] * len(reads)
        first = external[0].object
        return [tuple([external[one - first] for one in inputs if one >= first]) for inputs in reads]

    def _make_externals(self, places: list[int]) -> list[Input]:
        """The objects from outside, each on the node of its place, if it has one, and with the client."""
        first = self._graph.external_start
        sizes = self._graph.object_bytes[first:].tolist()
        return [
            Input(
                object=self._first + first + index,
                size_bytes=size,
                producer=NO_TASK,
                places=(self.nodes[place], CLIENT) if place >= 0 else (CLIENT,),
                value=b"",
            )
            for index, (size, place) in enumerate(zip(sizes, places, strict=True))
        ]

    def _needs(self) -> list[Needs | None] | None:
        graph = self._graph
        if not graph.context.any() and (graph.cores == 1).all() and graph.memory_bytes is None:
            return None
        memory = repeat(0, graph.task_count) if graph.memory_bytes is None else graph.memory_bytes.tolist()
        keys = list(zip(graph.context.tolist(), graph.cores.tolist(), memory, strict=True))
        known: dict[tuple[int, int, int], Needs | None] = {(0, 1, 0): None}
        for key in keys:
            if key not in known:
                known[key] = Needs(key[1], graph.contexts[key[0]], key[2])
        return list(map(known.__getitem__, keys))


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
