"""Rows of a store call, and their answers.

A call carries any mix of rows for one shard and is answered row by row. Each row is idempotent: a caller that heard
nothing sends it again. A row touches one record (`Clear`, `Lease`, `TakeOver`, those of sessions and the log touch none
of a task's).
"""

from hashlib import blake2b

from msgspec import Struct, field

from daws.model.session import NO_SESSION as NO_SESSION
from daws.model.session import SESSION_BITS as SESSION_BITS
from daws.model.session import HeldTask as HeldTask
from daws.model.session import SessionEntry as SessionEntry
from daws.model.session import owner_of as owner_of
from daws.model.session import session_of as session_of
from daws.model.task import FROM_OUTSIDE, NO_TASK, NOBODY, Input, NodeId, Ready, TaskSpec
from daws.wire.membership import MEMBERSHIP_SHARD as MEMBERSHIP_SHARD
from daws.wire.membership import TO_END as TO_END
from daws.wire.membership import TO_SWEEP as TO_SWEEP
from daws.wire.membership import TO_USE as TO_USE
from daws.wire.membership import Answer as Answer
from daws.wire.membership import AttachSession as AttachSession
from daws.wire.membership import CloseSession as CloseSession
from daws.wire.membership import DetachSession as DetachSession
from daws.wire.membership import EnrolNode as EnrolNode
from daws.wire.membership import ForgetSession as ForgetSession
from daws.wire.membership import Lease as Lease
from daws.wire.membership import Leased as Leased
from daws.wire.membership import ListSessions as ListSessions
from daws.wire.membership import NodeEnrolled as NodeEnrolled
from daws.wire.membership import Row as Row
from daws.wire.membership import SessionAttached as SessionAttached
from daws.wire.membership import SessionList as SessionList
from daws.wire.membership import UseStrategy as UseStrategy
from daws.wire.membership import Watch as Watch

SHARD_BLOCK_BITS = 6
CLIENT_HOLDER = 0
ALL_READ = -1
"""The holder in a Release when all tasks that read the objects have finished."""
HELD = -1
"""A reader of an object that is no task: the client."""
LOG_END = -1
"""A start of `ReadLog` that asks for no rows, only for the number that the next commit will have."""


def shard_of(task: int, shard_count: int) -> int:
    """Neighbouring ids share a shard, so the children of a task and the loot of a steal need few calls."""
    return (task >> SHARD_BLOCK_BITS) % shard_count


# Why a row was refused, or what became of the task meanwhile.
OK = 0
REFUSED = 1  # the compare-and-set failed: somebody else owns it, or another run won
CANCELLED = 2
FAILED = 3
UNKNOWN = 4  # no such record (yet): keep what you have and ask again
STRUCK = 5  # the caller's incarnation was declared dead: it must start anew
DONE = 6
UNDERWAY = 7

# Why a task is claimed.
MOVE = 0  # from the node that offered it, or by the lender from itself
ANNOUNCE = 1  # by the owner, before it runs a suspect task
RETRY = 2  # by the owner, after its run failed: a new attempt
REPLICATE = 3  # a second run beside the owner's


class Create(Row, frozen=True):
    """A new task. `guarded` adds an edge to itself that its creator drops when all parents know of it."""

    spec: TaskSpec
    parents: tuple[int, ...] = ()
    children: tuple[int, ...] = ()
    inputs: tuple[Input, ...] = ()
    owner: NodeId = NOBODY
    guarded: bool = False
    held: bool = False


class Submit(Row, frozen=True):
    """A new task of a client, who holds what it will make. Its parents live in the same shard.

    Answered with the task if it has parents and all are done; `node` owns it then. Else answered with None: it is ready
    at `node` without parents, waits for parents, or has ended because a parent failed or was cancelled. With `outputs`
    it is no task to run, but objects that a client has put on `node`: done, and no run can make them again.
    """

    spec: TaskSpec
    parents: tuple[int, ...]
    node: NodeId
    outputs: tuple[Input, ...] = ()


def function_row(function: int, pickled: bytes) -> Submit:
    """The row that brings in a function for a run (`brought_id`): it is done, is held by its session, and has no place.
    Answered by OK, as the run waits for it; another function with the same number is REFUSED."""
    digest = blake2b(pickled, digest_size=16).digest()
    spec = TaskSpec(function, FROM_OUTSIDE, outputs=(function,), payload=digest)
    return Submit(spec, (), NOBODY, (Input(function, len(pickled), function, (), pickled),))


class Finish(Row, frozen=True):
    """A run ended: commit its outputs, or (with `error`) its failure for good. `failure` is the exception as it
    travels; it stays with the record of the task (`Story.failure`)."""

    task: int
    attempt: int
    node: NodeId
    outputs: tuple[Input, ...] = ()
    error: str = ""
    failure: bytes = b""


class FinishSmall(Row, frozen=True):
    """The `Finish` of a run whose only output is a small object with the task's own number, from a node in the process
    of its client (`small_finishes`). Neither row nor record refers to a tuple then. The garbage collector of that
    process would look at each tuple, which took a tenth of the time of a small task."""

    task: int
    attempt: int
    node: NodeId
    value: bytes

    def in_full(self) -> Finish:
        return Finish(self.task, self.attempt, self.node, small_output(self.task, self.node, self.value))


def small_output(task: int, node: NodeId, value: bytes) -> tuple[Input, ...]:
    """The outputs of a task that has made one small object with its own number, on this node."""
    return (Input(task, len(value), task, (node,), value),)


class Satisfy(Row, frozen=True):
    """`parent` is done and its objects are `inputs`; the caller owns the child if this was its last edge."""

    task: int
    parent: int
    node: NodeId
    inputs: tuple[Input, ...] = ()
    intent: int = 0  # the caller's own number of what this is part of; the store ignores it
    need: int = 0  # for a child that went back to waiting: which of its needs this is for


class Open(Row, frozen=True):
    """All parents of a guarded task know of it: drop its edge to itself. `waits` is the caller's own: whether it is a
    task that is suspended, or a new one."""

    task: int
    node: NodeId
    waits: bool = False


class Claim(Row, frozen=True):
    """Become owner (or a second run) of a task that still is at `owner` with this move number."""

    task: int
    owner: NodeId
    move: int
    node: NodeId
    why: int = MOVE
    intent: int = 0


class Unready(Row, frozen=True):
    """The owner cannot get these inputs any more: back to waiting for the tasks that make them."""

    task: int
    node: NodeId
    move: int
    producers: tuple[int, ...] = ()


class Remake(Row, frozen=True):
    """Run a done task again because `waiter` needs an object of it that has no place left.

    Answers the task with owner -1: whoever means to run it claims it then, so a row that comes late does no harm.
    """

    task: int
    waiter: int
    node: NodeId
    gone: tuple[NodeId, ...] = ()
    intent: int = 0
    need: int = 0  # the mark of the waiter's intent


class Register(Row, frozen=True):
    """`child` waits for `task` too: the graph grew, or a running task is suspended (`watches`) until that one has
    ended, well or not."""

    task: int
    child: int
    watches: bool = False


class Spawn(Row, frozen=True):
    """An attempt of `task` is about to create these tasks; refused once another attempt has the task. Tasks that a
    remake creates are for this remake alone: they are stopped when it is committed."""

    task: int
    attempt: int
    node: NodeId
    tasks: tuple[int, ...] = ()


class Suspend(Row, frozen=True):
    """A running task waits for others: it gets edges to them and one to itself, and keeps its owner."""

    task: int
    attempt: int
    node: NodeId
    parents: tuple[int, ...] = ()


class Cancel(Row, frozen=True):
    """Cancel a task, or fail it because of `error` (the root cause). `parent` is the task it spreads from, if any; its
    record remembers that one (`Story.cause`)."""

    task: int
    node: NodeId
    error: str = ""
    parent: int = NO_TASK
    intent: int = 0


class Retain(Row, frozen=True):
    """Somebody holds the outputs of a task."""

    task: int
    holder: int


class Release(Row, frozen=True):
    """A holder lets go (`holder`), or all children have finished and the bytes that `attempt` made are gone (`holder` =
    ALL_READ). Bytes that a later attempt has made are not meant."""

    task: int
    holder: int = ALL_READ
    attempt: int = 0


class Locate(Row, frozen=True):
    """Where are the outputs of a task?"""

    task: int


class AddPlace(Row, frozen=True):
    task: int
    object: int
    node: NodeId


class DropPlace(Row, frozen=True):
    task: int
    object: int
    node: NodeId


class Inspect(Row, frozen=True):
    """What became of a task? (For audits and `explain`.) A `brief` answer leaves out what it waits for."""

    task: int
    brief: bool = False


class Clear(Row, frozen=True):
    """Outbox entries that have been carried out. `marks` tell an entry from a later one under the same key; without
    them the keys alone count."""

    node: NodeId
    keys: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()


class TakeOver(Row, frozen=True):
    """Strike a dead incarnation from this shard and take what it owned, part by part. A part has `limit` tasks and
    intents, or one more: a task and the intent to stop what it has spawned are not torn apart."""

    dead: NodeId
    node: NodeId
    part: int = 0
    limit: int = 1000
    shard: int = 0


class Owned(Row, frozen=True):
    """Which ready tasks of this shard belong to the caller? Answered by an Estate, with an outbox if the caller asks
    for its `intents`. A node asks when it leaves, as it may not have heard of all its tasks, and after a failover.
    `look` is the caller's own number; the store ignores it."""

    node: NodeId
    look: int = 0
    limit: int = 1000
    intents: bool = False


class Owners(Row, frozen=True):
    """Who has anything in this shard that others would have to take over? Answered by OwnedBy. A store that has
    forgotten who joined it may not know all of them."""


class Buried(Row, frozen=True):
    """Every shard was taken over: nobody has to look at this dead incarnation again. `node` has heard what it got."""

    dead: NodeId
    node: NodeId = NOBODY


class ReadLog(Row, frozen=True):
    """The commits of this shard from number `start` on; with a `session`, only those of its tasks (all are counted)."""

    start: int
    limit: int = 100_000
    session: int = NO_SESSION


class TrimLog(Row, frozen=True):
    """Drop the commits of this shard with numbers below `before`, as far as there are any. All others keep their
    numbers. A reader that comes later learns from `Log.trimmed` that it has missed some. Always OK."""

    before: int


class FindHeld(Row, frozen=True):
    """What has a session in this shard, from task `start` on? Answered by HeldTasks, after a long search. `spawned`:
    also what its runs have created. Of that, functions and tasks that have ended are listed as long as they are held,
    and those that have not ended are counted."""

    session: int
    start: int = 0
    limit: int = 10_000
    spawned: bool = False


class Committed(Answer, frozen=True):
    """The run won. `key` is the outbox entry to clear when all `children` were told; `rivals` are to be stopped.

    Children in the same shard may have been told in the same update: those that became ready by it are `ready`. After a
    remake only those who asked are told (`needs` says for what). The objects stay for all `readers`.
    """

    key: int
    children: tuple[int, ...] = ()
    rivals: tuple[NodeId, ...] = ()
    readers: tuple[int, ...] = ()
    mark: int = 0
    needs: tuple[int, ...] = ()
    ready: tuple[Ready, ...] = ()
    held: bool = False  # by the client: the objects stay until it lets go
    stop: "Stopped | None" = None  # what a remake has spawned: it was for that remake alone


class Resume(Answer, frozen=True):
    """The last edge of a suspended task is gone: tell its owner."""

    node: NodeId


class Available(Answer, frozen=True):
    """The objects of a done task and where they are."""

    inputs: tuple[Input, ...] = ()


class Unheld(Answer, frozen=True):
    """The client has let go of a task whose objects lie in `places`, made by `attempt`; `readers` are tasks that have
    yet to read them."""

    places: tuple[NodeId, ...]
    readers: tuple[int, ...] = ()
    attempt: int = 0


class Stopped(Answer, frozen=True):
    """A cancel or failure took effect: the outbox entry, the children to stop next, who may be running it, and the
    suspended tasks that waited for its end."""

    key: int
    children: tuple[int, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    error: str = ""
    watchers: tuple[int, ...] = ()
    mark: int = 0


class Granted(Answer, frozen=True):
    """A claim succeeded: these are the numbers from now on. `stop` is what the attempt before has spawned."""

    move: int
    attempt: int
    mode: int = 0
    stop: Stopped | None = None


class Noted(Answer, frozen=True):
    """An intent was written into the outbox."""

    key: int
    mark: int


class OutboxEntry(Struct, frozen=True, array_like=True, gc=False):
    """An intent that outlives the node that had it. `verb` is one of SATISFY, REMAKE_FOR, STOP."""

    key: int
    verb: int
    task: int
    others: tuple[int, ...] = ()
    inputs: tuple[Input, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    error: str = ""
    watchers: tuple[int, ...] = ()
    mark: int = 0
    needs: tuple[int, ...] = ()


# The verbs of an outbox. A key is `task << 2 | verb`, so writing an intent twice leaves one entry.
SATISFY = 0  # tell `others` that `task` is done with `inputs`
REMAKE_FOR = 1  # remake `others` for the waiting `task`
STOP = 2  # cancel or fail `others`, and tell `nodes` to stop running `task`


def outbox_key(task: int, verb: int) -> int:
    return task << 2 | verb


class Estate(Answer, frozen=True):
    """The ready tasks and the outbox of a dead incarnation in one shard, or of a node that leaves."""

    ready: tuple[Ready, ...] = ()
    outbox: tuple[OutboxEntry, ...] = ()
    more: bool = False


class OwnedBy(Answer, frozen=True):
    """Owners of tasks that are ready or run, of copies, and of intents."""

    nodes: tuple[NodeId, ...] = ()


class Story(Answer, frozen=True):
    """A record for people and clients: state, owner, attempt, unfinished edges, error, and the log of its life.

    `ended`: the task has ended, even if its objects are being made again. `kind` is the number of its function. A task
    that failed by itself has the exception of its last run (`failure`, empty if its node or worker died). One that
    failed or was cancelled because of another task names that task: `cause`, else -1. A client that asks for one cause
    after the other comes to the root. A task that is done has them, too, if its objects could not be made again.
    """

    state: int
    owner: NodeId
    move: int
    attempt: int
    edges: tuple[int, ...] = ()
    error: str = ""
    history: tuple[tuple[int, int, NodeId], ...] = ()
    ended: bool = False
    kind: int = 0
    failure: bytes = b""
    cause: int = NO_TASK


class HeldTasks(Answer, frozen=True):
    """`next` is a number above all tasks of the session here. `ready` are tasks of which their owners may not have
    heard, `unfinished` those of which their parents may not have. With `more`, the list goes on."""

    next: int
    tasks: tuple[HeldTask, ...] = ()
    ready: tuple[tuple[NodeId, Ready], ...] = ()
    unfinished: tuple[Submit, ...] = ()
    more: bool = False
    spawned: int = 0  # tasks that runs have created and that have not ended


class LoggedEnd(Struct, frozen=True, array_like=True, gc=False):
    """The end of a task in the log of its shard, if more is to be said than the task's number: it did not end well, or
    its run has `spawned` tasks. `state` is one of `daws.model.states`."""

    task: int
    state: int
    error: str
    spawned: tuple[int, ...]


LogRow = int | LoggedEnd
"""One commit: the task alone if all went well and it spawned nothing."""


def logged_task(row: LogRow) -> int:
    """The task that a row of the log is about."""
    return row if isinstance(row, int) else row.task


class Log(Answer, frozen=True):
    """Each commit from the asked number on.

    `trimmed` commits from the asked number on are missing, because they were dropped (`TrimLog`): the reader asks
    (`Inspect`) for all tasks of this shard whose ends it waits for.
    """

    next: int
    rows: list[LogRow] = field(default_factory=list)
    trimmed: int = 0


def is_quiet(row: Row, answer: "AnswerType") -> bool:
    """Whether no one waits for this answer: the caller may get it when it wakes up for something else."""
    if type(row) is Finish or type(row) is FinishSmall:
        return answer is None or (
            type(answer) is Committed
            and answer.key < 0
            and not answer.ready
            and not answer.rivals
            and answer.stop is None
        )
    return answer == OK and type(row) in (Satisfy, Release, Clear)


RowType = (
    Create
    | Submit
    | Finish
    | FinishSmall
    | Satisfy
    | Open
    | Claim
    | Unready
    | Remake
    | Register
    | Spawn
    | Suspend
    | Cancel
    | Retain
    | Release
    | Locate
    | AddPlace
    | DropPlace
    | Inspect
    | Clear
    | Lease
    | Watch
    | EnrolNode
    | UseStrategy
    | TakeOver
    | Owned
    | Owners
    | Buried
    | ReadLog
    | TrimLog
    | AttachSession
    | DetachSession
    | ListSessions
    | CloseSession
    | ForgetSession
    | FindHeld
)

AnswerType = (
    int
    | Ready
    | Committed
    | Granted
    | Resume
    | Available
    | Unheld
    | Stopped
    | Noted
    | Leased
    | NodeEnrolled
    | Estate
    | OwnedBy
    | Story
    | Log
    | SessionAttached
    | SessionList
    | HeldTasks
    | None
)
