"""Messages between the store, nodes, clients and tools. A frame is a list of them.

A link may break at any time, and messages on their way are lost then. A process that connects again asks for what it
may have missed, and sends again what was not answered. Each message can be received twice without harm.
"""

from msgspec import Struct, msgpack

from daws.model.cluster import Members
from daws.model.session import NO_SESSION
from daws.model.task import NOBODY, NodeId
from daws.wire.calls import CallFine, CallsSafe, CallStore, StoreAnswered, StoreChanged
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewStrategy, NewTasks, Submission, SubmissionTaken
from daws.wire.worker import Learn


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
    """The store does not know these tasks any more, nor how they have ended. Functions among them have gone with their
    session."""

    tasks: list[int]


class AskFunction(Word, frozen=True):
    """Answered by Learn, as soon as somebody knows it, or by Forgotten if nobody ever will."""

    function: int


class OpenSessions(Word, frozen=True):
    """The sessions that have not ended, sent to nodes when others have. All that was kept of these can go."""

    sessions: list[int]


class NodeDied(Word, frozen=True):
    """The client of a private cluster has seen the process of this node end."""

    node: NodeId


# -- clients and the store ---------------------------------------------------------------------------------------------


class AskCluster(Word, frozen=True):
    """The first message of a client or a tool. Answered by ClusterIs; from then on it is told of all members. With
    `opens_session` the answer has a number for a new session, where the store does not choose it itself."""

    opens_session: bool = False


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
TO_STORE: msgpack.Decoder[list[ToStore]] = msgpack.Decoder(list[ToStore])
FROM_STORE: msgpack.Decoder[list[FromStore]] = msgpack.Decoder(list[FromStore])
