"""Effects: the actions that a node wants done. Drivers carry effects out and report back with events; they decide
nothing."""

from msgspec import Struct

from daws.model.task import NodeId, ObjectTransfer, Ready
from daws.wire.calls import CallStore as CallStore
from daws.wire.messages import MessageType


class Effect(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class StartRun(Effect, frozen=True):
    """Run a task on executor `slot` (behind what was sent to it before), and on `more_slots` if it needs several cores.
    All its inputs are here."""

    run: int
    slot: int
    ready: Ready
    more_slots: tuple[int, ...] = ()


class StartRuns(Effect, frozen=True):
    """The same for many plain tasks of one kind, in this order; for drivers that want it (`starts_together`)."""

    runs: list[int]
    slot: int
    tasks: list[Ready]


class StopRun(Effect, frozen=True):
    """Kill a run; it is not reported any more."""

    task: int
    run: int


class RecallRun(Effect, frozen=True):
    """Give back a run that was sent ahead, if it has not started: answered by RunRecalled or, too late, by RunEnded."""

    task: int
    run: int


class ResumeRun(Effect, frozen=True):
    """The tasks that a suspended run waited for have ended; it may go on, on executor `slot` and `more_slots`."""

    task: int
    run: int
    slot: int
    more_slots: tuple[int, ...] = ()


class Send(Effect, frozen=True):
    to: NodeId
    message: MessageType


class SetTimer(Effect, frozen=True):
    timer: int
    at_ns: int


class FetchObjects(Effect, frozen=True):
    """Bring objects here, mostly all that one task lacks; answered by one or several ObjectsFetched."""

    wanted: tuple[ObjectTransfer, ...]


class FetchAgain(Effect, frozen=True):
    """The members are known now: the answer to PlaceUnknown."""


class DropObject(Effect, frozen=True):
    """The bytes of this object are not needed here any more."""

    object: int


class Restart(Effect, frozen=True):
    """This incarnation was declared dead: stop all its runs, forget its objects, begin again as a new one."""

    reason: str


class Left(Effect, frozen=True):
    """The node is no member any more: end it. `behind` says what it could not hand over; empty if nothing."""

    behind: str = ""


EffectType = (
    StartRun
    | StartRuns
    | StopRun
    | RecallRun
    | ResumeRun
    | Send
    | CallStore
    | SetTimer
    | FetchObjects
    | FetchAgain
    | DropObject
    | Restart
    | Left
)

# The timers of a node.
TICK = 0  # the lease, messages and calls to repeat because they may be lost, audits; decides nothing
POLL = 1  # look for work again, or for somebody to give work to
DEADLINE = 2  # of a node that leaves
COMMIT = 3  # ends of tasks that were kept back for company
RECALL = 4  # an executor has been idle for a while, and others have tasks waiting
PATIENCE = 5  # an executor was kept for a more critical task for long enough
STALL = 6  # tasks wait for this node alone: has any run ended here meanwhile?
CALL = 7  # names and invitations are given anew
VALIDATE = 8  # what became of the tasks of which this node has copies?
ASK_AGAIN = 9  # rows about tasks that were not in the store yet are sent again
