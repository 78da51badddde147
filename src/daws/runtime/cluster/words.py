"""The messages on the links between the store's server, nodes, clients and tools. A frame is a list of them.

A link may break at any time, and messages on their way are lost then. A process that connects again asks for what it
may have missed, and sends again what was not answered. Each message can be received twice without harm.
"""

from msgspec import Struct, msgpack

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, NewStrategy, StoreAnswered, StoreChanged
from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.runs.facts import FactType
from daws.runs.notes import News
from daws.runtime.crew import Crew
from daws.runtime.ports import Counters
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission, SubmissionTaken
from daws.wire.store import NO_SESSION
from daws.wire.store import SESSION_BITS as SESSION_BITS
from daws.wire.store import session_of as session_of
from daws.wire.worker import Learn

NOBODY = -1


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


class Ends(Word, frozen=True):
    """Tasks have ended; told to their client, or to the node where a run has created them."""

    outcomes: list[Outcome]


class AskEnds(Word, frozen=True):
    """Which of these tasks have ended? Answered by Ends with those that have. If all of them `have_ended`, as far as
    the node that asks knows, also by Forgotten with those that the store does not know any more."""

    tasks: list[int]
    have_ended: bool = False


class Forgotten(Word, frozen=True):
    """The store does not know any more how these tasks have ended."""

    tasks: list[int]


class AskFunction(Word, frozen=True):
    """Answered by Learn, as soon as somebody knows it."""

    function: int


class OpenSessions(Word, frozen=True):
    """The sessions that have not ended, sent to nodes when others have. All that was kept of these can go."""

    sessions: list[int]


class TaskPrinted(Word, frozen=True):
    """Output of a task to its standard output (1) or error (2), or to a log, on its way to its client. If a run has
    created the task, `task` is another number of the same session."""

    task: int
    stream: int
    text: bytes


class Ran(Word, frozen=True):
    """The runs of a session's tasks that have ended on a node. `clock_ns` is the time of day at which the node's
    monotonic clock was 0."""

    session: int
    news: News
    clock_ns: int


class Learnt(Word, frozen=True):
    """A fact about one task of a session. `clock_ns` as in `Ran`."""

    session: int
    fact: FactType
    clock_ns: int


class Count(Word, frozen=True):
    """A question to a node, answered by Counted."""


class Counted(Word, frozen=True):
    """The counters of a node, and the tasks that its workers have."""

    counters: Counters
    started: list[int]


class Depart(Word, frozen=True):
    """A node is to leave in good order, and to be gone after so many seconds in any case."""

    within_s: float


# -- clients and the store ---------------------------------------------------------------------------------------------


class AskCluster(Word, frozen=True):
    """The first message of a client or a tool. Answered by ClusterIs; from then on it is told of all members."""


class ClusterIs(Word, frozen=True):
    """`strategy` is what the cluster goes by now, as text; `shard_count` of how many shards its store is. `proposal` is
    a number for a session that the client may open."""

    lease_ns: int
    strategy: str
    shard_count: int
    members: Members
    proposal: int = NO_SESSION


class Refused(Word, frozen=True):
    """The answer to a question that cannot be answered, or an order that cannot be carried out: why, in one line."""

    reason: str


class NowMembers(Word, frozen=True):
    members: Members


# -- clients and nodes -------------------------------------------------------------------------------------------------


class Here(Word, frozen=True):
    """A client says to a node whose it is: output of its tasks is sent on this link. With `runs` and `decisions` so are
    each run and each decision about its tasks."""

    session: int
    runs: bool = False
    decisions: bool = False


class Fresh(Word, frozen=True):
    """Tasks that their client has just written into a Valkey store, and the stamps of their cells (see
    `daws.store.valkey.told`)."""

    submission: Submission
    stamps: tuple[tuple[int, bytes], ...]


class Sealed(Word, frozen=True):
    """Tasks that have ended well, and the stamps of their cells before and after."""

    outcomes: list[Outcome]
    seal: tuple[bytes, bytes]


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


ToStore = (
    Enrol | CallStore | AskEnds | AskFunction | SubmissionTaken | CancelTaken | NodeDied | AskCluster | NewStrategy
)
FromStore = (
    Enrolled
    | ClusterIs
    | StoreAnswered
    | CallFine
    | CallsSafe
    | StoreChanged
    | Ends
    | Forgotten
    | Learn
    | Submission
    | NewTasks
    | LetGo
    | CancelOrder
    | OpenSessions
    | NewStrategy
    | NowMembers
    | Refused
)
ToNode = Here | Fresh | Submission | NewTasks | LetGo | CancelOrder | Depart | NewStrategy | Count
ToClient = Ends | Sealed | TaskPrinted | Ran | Learnt | Counted | CancelTaken | SubmissionTaken

TO_STORE: msgpack.Decoder[list[ToStore]] = msgpack.Decoder(list[ToStore])
FROM_STORE: msgpack.Decoder[list[FromStore]] = msgpack.Decoder(list[FromStore])
TO_NODE: msgpack.Decoder[list[ToNode]] = msgpack.Decoder(list[ToNode])
TO_CLIENT: msgpack.Decoder[list[ToClient]] = msgpack.Decoder(list[ToClient])
START: msgpack.Decoder[list[StartStore | StartNode]] = msgpack.Decoder(list[StartStore | StartNode])
FROM_CHILD: msgpack.Decoder[list[Up | Broken]] = msgpack.Decoder(list[Up | Broken])
