"""What is said on the links between the store's server and nodes, clients and tools. A frame is a list of these.

A link may break at any time, and then what was on its way is lost. So whoever connects again asks for what it may have
missed, and says again what was not answered; each word can be heard twice without harm.
"""

from msgspec import Struct, msgpack

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.runs.facts import FactType
from daws.runs.notes import News
from daws.runtime.crew import Crew
from daws.runtime.ports import Counters
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission
from daws.wire.store import SESSION_BITS as SESSION_BITS
from daws.wire.store import session_of as session_of
from daws.wire.worker import Learn

NOBODY = -1


def in_use(name: str) -> str:
    """Why somebody cannot have this session."""
    return f"session {name!r} is in use by another client; it is free when that one closes it, or is gone for a lease"


class Word(Struct, frozen=True, array_like=True, tag=True):
    pass


# -- nodes and the store -----------------------------------------------------------------------------------------------


class Enrol(Word, frozen=True):
    """A node says who it is; a new incarnation is NOBODY and gets a number. Answered by Enrolled."""

    node: NodeId = NOBODY


class Enrolled(Word, frozen=True):
    """`strategy` is what the cluster goes by now, as text; `shard_count` of how many shards its store is."""

    node: NodeId
    lease_ns: int
    strategy: str
    shard_count: int = 1


class KeepFailure(Word, frozen=True):
    """What the last run of a task raised; said before the end of that run is."""

    task: int
    failure: bytes


class Ends(Word, frozen=True):
    """Tasks have ended; told to their client, or to the node where a run has created them."""

    outcomes: list[Outcome]


class AskEnds(Word, frozen=True):
    """Which of these tasks have ended? Answered by Ends with those that have. If all of them `have_ended`, as far as
    the node that asks knows, also by Forgotten with those that the store does not know any more."""

    tasks: list[int]
    have_ended: bool = False


class Forgotten(Word, frozen=True):
    """Nobody knows any more how these tasks have ended."""

    tasks: list[int]


class AskFunction(Word, frozen=True):
    """Answered by Learn, as soon as somebody knows it."""

    function: int


class OpenSessions(Word, frozen=True):
    """Said to nodes when sessions have ended: those that have not. What was kept of others can go."""

    sessions: list[int]


class Printed(Word, frozen=True):
    """What a task wrote to its standard output (1) or error (2), or logged, on its way to its client. For one that a
    run has created, `task` is a number of the same session."""

    task: int
    stream: int
    text: bytes


class TakeNotes(Word, frozen=True):
    """Sent to nodes: the sessions that want to hear of runs, and those that want to hear of decisions. Nodes take notes
    only while there are such sessions."""

    runs: list[int] = []
    decisions: list[int] = []


class Ran(Word, frozen=True):
    """Runs of a session's tasks that have ended on a node. `clock_ns` is the time of day at which the node's monotonic
    clock was 0."""

    session: int
    news: News
    clock_ns: int


class Learnt(Word, frozen=True):
    """A fact about one task of a session. `clock_ns` as in `Ran`."""

    session: int
    fact: FactType
    clock_ns: int


class Count(Word, frozen=True):
    """A question to a node, answered by Counted; or of a client to the store, answered by Counts."""


class Counted(Word, frozen=True):
    """What a node has seen so far, and the tasks that its workers have."""

    counters: Counters
    started: list[int]


class Depart(Word, frozen=True):
    """A node is to leave in good order, and to be gone after so many seconds in any case."""

    within_s: float


# -- clients and the store ---------------------------------------------------------------------------------------------


class Attach(Word, frozen=True):
    """A client opens a session, or goes on with one: with the `session` that it knows, or a `name` that it was kept
    under. If it is `kept`, it goes on when the client is gone. With `runs` and `decisions` the client wants to hear of
    each run and each decision about its tasks. Answered by Attached or Refused."""

    nonce: bytes
    name: str = ""
    kept: bool = False
    session: int = NOBODY
    runs: bool = False
    decisions: bool = False


class Attached(Word, frozen=True):
    """`tasks` are those that the session has and holds, with the number of their outputs; `next_task` is free."""

    session: int
    name: str
    next_task: int
    members: Members
    strategy: str
    tasks: list[tuple[int, int]] = []


class Refused(Word, frozen=True):
    """What was asked for cannot be; says why, in one line for people."""

    reason: str


class NowMembers(Word, frozen=True):
    members: Members


class CancelTasks(Word, frozen=True):
    tasks: tuple[int, ...]


class Close(Word, frozen=True):
    """The client goes. A session that is not kept ends with it: what has not ended is cancelled. Answered by Closed."""

    keep: bool


class Closed(Word, frozen=True):
    pass


class Counts(Word, frozen=True):
    """What all nodes have seen, and the tasks that their workers have."""

    nodes: list[Counted]


class NodeDied(Word, frozen=True):
    """The client of a private cluster has seen the process of this node end."""

    node: NodeId


# -- the client of a private cluster and the processes that it starts --------------------------------------------------


class StartStore(Word, frozen=True):
    """Be the store. `run` is the folder of the sockets, `state` that of the log."""

    run: str
    state: str
    strategy: str


class StartNode(Word, frozen=True):
    """Be a node. `strategy` is pickled. Its folders are made in `memory` (empty: there is none) and `scratch`. With
    `journal`, a folder, it writes a journal there when it is stopped."""

    run: str
    crew: Crew
    strategy: bytes
    memory: str
    scratch: str
    limit_bytes: int
    journal: str = ""


class Up(Word, frozen=True):
    """The process can be used. `node` is its number, NOBODY for the store."""

    node: NodeId = NOBODY


class Broken(Word, frozen=True):
    """The process ends because of an error. `failure` is an exception as it travels."""

    failure: bytes


# -- tools and the store -----------------------------------------------------------------------------------------------


class SessionInfo(Struct, frozen=True, array_like=True):
    """A session for people."""

    session: int
    name: str
    kept: bool
    attached: bool
    since: float
    waiting: int
    done: int
    failed: int


class AskMembers(Word, frozen=True):
    """Answered by NowMembers."""


class AskSessions(Word, frozen=True):
    """Answered by Sessions."""


class Sessions(Word, frozen=True):
    sessions: list[SessionInfo]


class Drain(Word, frozen=True):
    """Have a node leave. Answered by Done or Refused."""

    node: NodeId
    within_s: float


class EndSession(Word, frozen=True):
    """End a session that was kept. Answered by Done or Refused."""

    name: str


class Done(Word, frozen=True):
    pass


ToStore = (
    Enrol
    | CallStore
    | KeepFailure
    | AskEnds
    | AskFunction
    | Learn
    | Printed
    | Counted
    | CancelTaken
    | Ran
    | Learnt
    | NodeDied
    | Attach
    | CancelTasks
    | Count
    | NewStrategy
    | Close
    | AskMembers
    | AskSessions
    | Drain
    | EndSession
)
FromStore = (
    Enrolled
    | StoreAnswered
    | CallFine
    | Ends
    | Forgotten
    | Learn
    | Submission
    | NewTasks
    | LetGo
    | CancelOrder
    | Depart
    | OpenSessions
    | TakeNotes
    | NewStrategy
    | Count
    | Attached
    | Refused
    | NowMembers
    | Printed
    | Ran
    | Learnt
    | Counts
    | Closed
    | Sessions
    | Done
)

TO_STORE: msgpack.Decoder[list[ToStore]] = msgpack.Decoder(list[ToStore])
FROM_STORE: msgpack.Decoder[list[FromStore]] = msgpack.Decoder(list[FromStore])
START: msgpack.Decoder[list[StartStore | StartNode]] = msgpack.Decoder(list[StartStore | StartNode])
FROM_CHILD: msgpack.Decoder[list[Up | Broken]] = msgpack.Decoder(list[Up | Broken])
