"""A model of one node's hardware: executors that run one task after the other, a network link in each direction, and a
disk with objects."""

from collections.abc import Iterable

from daws.core.events import EventType, ObjectsFetched, ObjectsLost, ObjectsPut
from daws.core.node import NodeCore
from daws.model.cluster import NodeInfo
from daws.model.task import INLINE_BYTES
from daws.wire.messages import NewTasks

STORE = -2
"""The address of the store on the event heap; the event is (caller, call)."""
FATE = -3
"""The address of what happens to the cluster from outside; the event is a function of the simulation."""

_NEVER_USED: list[int] = ()  # type: ignore[assignment]
"""The executors of a machine that has run nothing yet, as most machines of a large cluster."""
_NOTHING: set[int] = frozenset()  # type: ignore[assignment]
"""The objects of a machine that has none."""
BRING_OBJECTS = frozenset((ObjectsFetched, ObjectsPut, ObjectsLost, NewTasks))
"""Events by which the objects of a machine change, beside ends of runs."""


class Machine:
    """The hardware of a simulated node. `busy_ns` is when its scheduler has dealt with all events so far.

    `objects` are the objects that are really here, whatever the node believes: other nodes fetch from them. An object
    that travels inside records is not among them.
    """

    __slots__ = ("busy_ns", "core", "in_free_ns", "info", "mail", "objects", "out_free_ns", "slot_free_ns", "speed")

    def __init__(self, info: NodeInfo) -> None:
        self.info = info
        self.core: NodeCore  # of whoever lives here
        self.speed = info.speed
        self.busy_ns = 0
        self.in_free_ns = 0
        self.out_free_ns = 0
        self.slot_free_ns = _NEVER_USED  # by executor
        self.objects = _NOTHING
        self.mail: list[EventType] | None = None  # answers that can wait until the node wakes up for something else

    def keep(self, objects: Iterable[int]) -> None:
        """Add objects that were made here or have arrived."""
        if self.objects is _NOTHING:
            self.objects = set()
        self.objects.update(objects)

    def keep_one(self, object_: int) -> None:
        """Add an object that was made here."""
        if self.objects is _NOTHING:
            self.objects = set()
        self.objects.add(object_)

    def change_objects(self, event: EventType) -> None:
        """Add or remove the objects of an event that the node is about to receive."""
        if isinstance(event, ObjectsFetched):
            self.keep([one.object for one in event.fetched])
        elif isinstance(event, ObjectsPut):
            self.keep([one[0] for one in event.objects])
        elif isinstance(event, NewTasks):
            self.keep([one.object for row in event.tasks for one in row.outputs if one.size_bytes > INLINE_BYTES])
        elif isinstance(event, ObjectsLost) and self.objects:
            self.objects.difference_update(event.objects)

    def open_slots(self) -> list[int]:
        self.slot_free_ns = [0] * self.info.cores
        return self.slot_free_ns

    def transfer(self, to: "Machine", size_bytes: int, now_ns: int, bytes_per_s: float) -> int:
        """Send an object, and return the time at which it has arrived. A link carries one transfer after the other in
        each direction."""
        took_ns = int(size_bytes * 1_000_000_000 / bytes_per_s)
        begin_ns = now_ns if now_ns > self.out_free_ns else self.out_free_ns
        self.out_free_ns = begin_ns + took_ns
        to.in_free_ns = end_ns = (begin_ns if begin_ns > to.in_free_ns else to.in_free_ns) + took_ns
        return end_ns
