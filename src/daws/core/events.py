"""Events: all that can happen to a node. Messages of other nodes (`daws.wire.messages`) are events too."""

from msgspec import Struct

from daws.model.cluster import Members
from daws.model.task import ObjectTransfer, TaskSpec
from daws.wire.calls import CallFine as CallFine
from daws.wire.calls import CallsSafe as CallsSafe
from daws.wire.calls import StoreAnswered as StoreAnswered
from daws.wire.calls import StoreChanged as StoreChanged
from daws.wire.messages import MessageType
from daws.wire.messages import NewStrategy as NewStrategy
from daws.wire.store import Submit

NEVER_NS = 1 << 62


class Event(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class Started(Event, frozen=True):
    """The node exists: these are the members, itself included. Idle nodes begin to look for work."""

    members: Members


class RunEnded(Event, frozen=True):
    """A run is over. `sizes` are the bytes of its outputs, `error` is empty if it went well. `retry`: its worker died;
    `waited`: while it was suspended, so it was hardly its fault. `failure` is the exception as it travels.

    `values` are the outputs that are small enough to travel inside records, empty for others; simulations have none.
    """

    task: int
    run: int
    duration_ns: int
    sizes: tuple[int, ...] = ()
    error: str = ""
    retry: bool = False
    values: tuple[bytes, ...] = ()
    waited: bool = False
    failure: bytes = b""


class RunDone(Event, frozen=True):
    """The usual end of a short run: it went well and made one object that is small enough to travel inside records."""

    task: int
    run: int
    duration_ns: int
    value: bytes


class RunsDone(Event, frozen=True):
    """Many of those at once, mostly of one executor, in the order in which they ended."""

    tasks: list[int]
    runs: list[int]
    durations_ns: list[int]
    values: list[bytes]


class RunLacks(Event, frozen=True):
    """A run found the file of an object that it reads damaged, or gone; nobody is to blame. The loss of the object was
    said before."""

    task: int
    run: int
    object: int


class RunRecalled(Event, frozen=True):
    """A run that was sent ahead came back without having started."""

    task: int
    run: int


class RunSpawned(Event, frozen=True):
    """A running task creates tasks; their ids follow from its own id, its attempt and their number.

    If they are `held`, the run may ask for what they make: it stays until the run has ended. `functions` are brought in
    for these tasks (`function_row`).
    """

    task: int
    run: int
    tasks: tuple[tuple[TaskSpec, tuple[int, ...]], ...]
    held: bool = False
    functions: tuple[Submit, ...] = ()


class RunWaits(Event, frozen=True):
    """A running task waits for others and can spare its executor."""

    task: int
    run: int
    on: tuple[int, ...]


class ObjectsPut(Event, frozen=True):
    """Objects (id, size in bytes) from outside were put on this node."""

    objects: tuple[tuple[int, int], ...]


class ObjectsFetched(Event, frozen=True):
    """Transfers ended. Those that failed: the source did not have the object, or could not be reached."""

    fetched: tuple[ObjectTransfer, ...] = ()
    failed: tuple[ObjectTransfer, ...] = ()


class PlaceUnknown(Event, frozen=True):
    """A run needs an object of a node that is no member as far as this node knows: the node may have died, or may have
    joined lately. Answered by FetchAgain when the store has said who is a member."""


class ObjectsLost(Event, frozen=True):
    """Files of objects turned out to be damaged, or gone: they are not here any more."""

    objects: tuple[int, ...]


class Leave(Event, frozen=True):
    """The node is to leave in good order: its pilot ends soon, or somebody drains it. There is no way back.

    Runs and objects are waited for until `deadline_ns`; who has to be gone by a certain time gives one well before it.
    """

    deadline_ns: int = NEVER_NS


class Pressure(Event, frozen=True):
    """Objects take more room here than they may (`on`), or there is enough again."""

    on: bool


class TimerFired(Event, frozen=True):
    timer: int


EventType = (
    Started
    | RunEnded
    | RunDone
    | RunsDone
    | RunLacks
    | RunRecalled
    | RunSpawned
    | RunWaits
    | ObjectsPut
    | ObjectsFetched
    | PlaceUnknown
    | ObjectsLost
    | StoreAnswered
    | CallFine
    | CallsSafe
    | StoreChanged
    | Leave
    | NewStrategy
    | Pressure
    | TimerFired
    | MessageType
)
