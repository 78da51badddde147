"""Messages of a session's client to nodes: tasks that they own, objects that were put there, and orders to cancel.

A message is repeated until it was acknowledged. If its node dies first, the node that takes over finds the tasks
in the store, and any other node can cancel.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from daws.core.effects import Send
from daws.core.session_events import SessionEffect
from daws.model.cluster import Members
from daws.model.task import AGAIN, CLIENT, SUSPECT, NodeId, Ready
from daws.wire.messages import CancelOrder, LetGo, NewTasks, Submission
from daws.wire.store import Submit

TASKS_PER_ORDER = 4096
FIRST_TASKS = 4
MORE_TASKS = 4
TASKS_MAX = 1000
"""The most tasks of a graph in one message. A node gets a few tasks first, and a larger batch when it has taken the one
before. Nodes need not steal then because others were served first."""
NONCE_BYTES = 5
COUNTER_BITS = 23
NOT_SENT = -1
Announced = Sequence[tuple[NodeId, Submit]]
"""Objects that a client has put on nodes, each with one of its nodes."""


class HandOuts:
    """Tasks and objects on their way to the nodes that own them."""

    __slots__ = ("_expected", "_later", "_next", "_number", "_objects", "_ready", "_under_way")

    def __init__(self, nonce: bytes) -> None:
        # A node that has heard of a batch takes no other one with its number: those of two clients must differ.
        self._number = int.from_bytes(nonce[:NONCE_BYTES].ljust(NONCE_BYTES), "big") << COUNTER_BITS
        self._ready: dict[NodeId, dict[int, Ready]] = {}
        self._objects: dict[NodeId, list[Submit]] = {}
        self._under_way: dict[int, _SentBatch] = {}  # by the number of the batch
        self._later: dict[NodeId, _Rest] = {}  # tasks of a graph that are handed out batch by batch
        self._next: list[NodeId] = []  # nodes that can have the next batch
        self._expected: set[NodeId] = set()  # nodes that have yet to join

    def __bool__(self) -> bool:
        return bool(self._ready or self._objects or self._under_way or self._later)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def add(self, node: NodeId, ready: Ready) -> None:
        """Hand out a task. Its owner may have run one that was said before, and asks the store before it starts it."""
        if ready.mode & AGAIN:
            ready = Ready(ready.spec, ready.attempt, ready.move, ready.inputs, ready.mode | SUSPECT)
        self._ready.setdefault(node, {})[ready.spec.id] = ready

    def add_new(self, rows: Iterable[Submit]) -> None:
        """Hand out tasks that nobody has heard of."""
        ready = self._ready
        for row in rows:
            spec, node = row.spec, row.node
            if node not in ready:
                ready[node] = {}
            ready[node][spec.id] = Ready(spec, 0, 0)

    def put(self, row: Submit) -> None:
        """Objects that a client has put on nodes: who has them has to know."""
        for node in row.outputs[0].places:
            self._objects.setdefault(node, []).append(row)

    def add_many(self, node: NodeId, tasks: list[Ready]) -> None:
        """Hand out the tasks of a graph whose home this node is, a few at first."""
        self._later[node] = _Rest(tasks)
        self._next.append(node)

    def expect(self, nodes: Iterable[NodeId]) -> None:
        """The plan counts on these nodes, which have yet to join: they are not dead."""
        self._expected.update(nodes)

    def flush(self, now_ns: int, out: list[SessionEffect]) -> None:
        for node in self._next:
            rest = self._later.get(node)
            if rest is not None:
                self._send(node, Submission(CLIENT, self.next_number(), rest.take()), now_ns, out)
                if not rest:
                    del self._later[node]
        self._next.clear()
        for node, rows in self._objects.items():
            self._send(node, NewTasks(CLIENT, self.next_number(), tuple(rows)), now_ns, out)
        for node, tasks in self._ready.items():
            self._send(node, Submission(CLIENT, self.next_number(), tuple(tasks.values())), now_ns, out)
        self._objects.clear()
        self._ready.clear()

    def _send(self, node: NodeId, message: Submission | NewTasks, now_ns: int, out: list[SessionEffect]) -> None:
        self._under_way[message.batch] = _SentBatch(node, message, now_ns, now_ns)
        out.append(Send(node, message))

    def taken(self, batch: int) -> Announced:
        """Note that a batch was taken. Return the objects of which the node has heard."""
        sent = self._under_way.pop(batch, None)
        if sent is None:
            return ()
        if sent.node in self._later:
            self._next.append(sent.node)
        return sent.objects()

    def repeat(
        self, now_ns: int, after_ns: int, lease_ns: int, members: Members, out: list[SessionEffect]
    ) -> Announced:
        """Send again what was not taken. A node that is no member is dead, or so new that this client has not heard of
        it, but not for as long as a lease. Answers the objects on nodes that were silent for as long as a lease."""
        silent: list[tuple[NodeId, Submit]] = []
        for batch, sent in list(self._under_way.items()):
            node = sent.node
            if self._expected and node in members:
                self._expected.discard(node)
            is_overdue = now_ns - sent.first_ns > lease_ns and node not in self._expected
            if is_overdue:
                silent += sent.objects()
            if is_overdue and node not in members:
                self._later.pop(node, None)
                self.taken(batch)
            elif now_ns - sent.last_ns >= after_ns:
                sent.last_ns = now_ns
                out.append(Send(node, sent.message))
        return silent


class _SentBatch(Struct):
    """A batch that its node has yet to take, and when it was sent first and last."""

    node: NodeId
    message: Submission | NewTasks
    first_ns: int
    last_ns: int

    def objects(self) -> Announced:
        return [(self.node, row) for row in self.message.tasks] if isinstance(self.message, NewTasks) else ()


class _Rest:
    """Tasks that a node has yet to get."""

    __slots__ = ("_next", "_size", "_tasks")

    def __init__(self, tasks: list[Ready]) -> None:
        self._tasks = tasks
        self._next = 0
        self._size = FIRST_TASKS

    def __bool__(self) -> bool:
        return self._next < len(self._tasks)

    def take(self) -> tuple[Ready, ...]:
        """The next batch."""
        first, self._next = self._next, self._next + self._size
        self._size = min(MORE_TASKS * self._size, TASKS_MAX)
        return tuple(self._tasks[first : self._next])


class Cancels:
    """Tasks that are to be cancelled, until they have ended, and orders to see to it."""

    __slots__ = ("_ordered", "_orders", "_turn", "_wanted")

    def __init__(self) -> None:
        self._wanted: dict[int, str] = {}  # tasks, and what they fail by, if they are to fail
        self._ordered: set[int] = set()  # those for which there is an order, or was one that was taken
        self._orders: dict[int, tuple[CancelOrder, int]] = {}  # by batch, and when it was sent
        self._turn = 0

    def __bool__(self) -> bool:
        return bool(self._orders) or any(task not in self._ordered for task in self._wanted)

    @property
    def has_any(self) -> bool:
        """Is there a task that is to be cancelled and has not ended?"""
        return bool(self._wanted or self._ordered)

    def want(self, task: int, error: str = "") -> None:
        self._wanted.setdefault(task, error)

    def wants(self, task: int) -> bool:
        return task in self._wanted

    def ended(self, task: int) -> None:
        self._wanted.pop(task, None)
        self._ordered.discard(task)

    def want_again(self) -> None:
        """The store may have forgotten tasks when a node asked it to cancel them: order all that have not ended."""
        self._ordered.clear()

    def flush(self, hand_outs: HandOuts, unwritten: Collection[int]) -> None:
        """Order what the store knows of by now."""
        by_error: dict[str, list[int]] = {}
        for task, error in self._wanted.items():
            if task not in self._ordered and task not in unwritten:
                by_error.setdefault(error, []).append(task)
        for error, tasks in by_error.items():
            self._ordered.update(tasks)
            for start in range(0, len(tasks), TASKS_PER_ORDER):
                batch = hand_outs.next_number()
                order = CancelOrder(CLIENT, batch, tuple(tasks[start : start + TASKS_PER_ORDER]), error)
                self._orders[batch] = (order, NOT_SENT)

    def send(self, now_ns: int, after_ns: int, members: Members, out: list[SessionEffect]) -> None:
        """Any node can see to it; one after the other is asked until one has."""
        nodes = members.nodes
        for batch, (order, sent_ns) in self._orders.items():
            if nodes and (sent_ns == NOT_SENT or now_ns - sent_ns >= after_ns):
                self._turn += 1
                self._orders[batch] = (order, now_ns)
                out.append(Send(nodes[(batch + self._turn) % len(nodes)], order))

    def taken(self, batch: int) -> tuple[int, ...]:
        """An order is carried out. Answers its tasks."""
        order, _ = self._orders.pop(batch, (None, 0))
        return () if order is None else order.tasks


class LettingGo:
    """Tasks that nobody holds, and whose objects lie on nodes: these are told until the objects are gone."""

    __slots__ = ("_places", "_unread", "_unsent")

    def __init__(self) -> None:
        self._places: dict[int, tuple[NodeId, ...]] = {}
        self._unsent: dict[NodeId, list[int]] = {}
        self._unread: dict[NodeId, list[int]] = {}  # of these it is known that no task will read them any more

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def tasks(self) -> tuple[int, ...]:
        return tuple(self._places)

    def waits_for(self, task: int) -> bool:
        """Are the objects of this task yet to go?"""
        return task in self._places

    def add(self, task: int, places: tuple[NodeId, ...], members: Members, is_unread: bool = False) -> None:
        """Let the objects of a task go. If `is_unread`, no task will read them, so that nodes need not ask for it."""
        there = tuple([place for place in places if place in members])
        if not there:
            self._places.pop(task, None)  # the objects are gone with their nodes
            return
        self._places[task] = there
        unsent = self._unread if is_unread else self._unsent
        for place in there:
            unsent.setdefault(place, []).append(task)

    def flush(self, out: list[SessionEffect]) -> None:
        for place, tasks in self._unsent.items():
            out.append(Send(place, LetGo(CLIENT, tuple(tasks))))
        for place, tasks in self._unread.items():
            out.append(Send(place, LetGo(CLIENT, tuple(tasks), ((),) * len(tasks))))
        self._unsent.clear()
        self._unread.clear()

    def gone(self, task: int) -> None:
        self._places.pop(task, None)
