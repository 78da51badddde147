"""What the processes of one cluster say to each other, link by link. A frame is a list of these.

What a node and the store tell each other are the core's own effects and events: the sockets add nothing to them.
"""

from msgspec import Struct, msgpack

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.runs.facts import FactType
from daws.runs.notes import News
from daws.runtime.crew import Crew
from daws.runtime.ports import Counters, Outcome
from daws.wire.messages import MessageType
from daws.wire.worker import Learn


class Word(Struct, frozen=True, array_like=True, tag=True):
    pass


# -- the client to a process that was just forked ----------------------------------------------------------------------


class BeStore(Word, frozen=True):
    """`run` is the folder of the sockets."""

    run: str
    members: Members


class BeNode(Word, frozen=True):
    """`strategy` is pickled; `memory` and `scratch` are this node's folders; `journal` is a file, or empty."""

    node: NodeId
    run: str
    crew: Crew
    strategy: bytes
    memory: str
    scratch: str
    limit_bytes: int
    journal: str = ""


# -- the client and the nodes ------------------------------------------------------------------------------------------


class Go(Word, frozen=True):
    """Everybody is up: begin."""

    members: Members


class Stop(Word, frozen=True):
    """End in good order."""


class Adopt(Word, frozen=True):
    """The client has written an object into the node's folder. Answered by Adopted."""

    object: int
    path: str
    size_bytes: int


class Adopted(Word, frozen=True):
    object: int


class Count(Word, frozen=True):
    """Answered by Counted."""


class Counted(Word, frozen=True):
    """What a node has seen so far, and the tasks that its workers have."""

    counters: Counters
    started: list[int]


class Up(Word, frozen=True):
    """The process listens, and if it is a node its workers take orders."""


class Broken(Word, frozen=True):
    """Nothing will come from this process any more. `failure` is an exception as it travels."""

    failure: bytes


class Said(Word, frozen=True):
    """What a task wrote to its standard output (1) or error (2), or what it logged (see `daws.wire.worker.Printed`)."""

    stream: int
    text: bytes
    task: int = -1


class Ran(Word, frozen=True):
    """What the workers of a node have run."""

    news: News


class Learnt(Word, frozen=True):
    """Something about one task, for those who ask why."""

    fact: FactType


# -- nodes, and the store ----------------------------------------------------------------------------------------------


class Hello(Word, frozen=True):
    """A node says who it is."""

    node: NodeId


class KeepFailure(Word, frozen=True):
    """What the last run of a task raised; said before the end of that run is."""

    task: int
    failure: bytes


class Ends(Word, frozen=True):
    """Tasks have ended; the store tells the client, or the node where a run has created them."""

    outcomes: list[Outcome]


ToFork = BeStore | BeNode
ToNode = Go | Stop | Count | Adopt | Learn | NewStrategy | MessageType
FromNode = Up | Broken | Said | Ran | Learnt | Counted | Adopted | Learn | MessageType
ToStore = CallStore | KeepFailure | Hello
FromStore = Up | Broken | StoreAnswered | CallFine | Ends

BEGIN: msgpack.Decoder[list[ToFork]] = msgpack.Decoder(list[ToFork])
TO_NODE: msgpack.Decoder[list[ToNode]] = msgpack.Decoder(list[ToNode])
FROM_NODE: msgpack.Decoder[list[FromNode]] = msgpack.Decoder(list[FromNode])
TO_STORE: msgpack.Decoder[list[ToStore]] = msgpack.Decoder(list[ToStore])
FROM_STORE: msgpack.Decoder[list[FromStore]] = msgpack.Decoder(list[FromStore])
BETWEEN_NODES: msgpack.Decoder[list[MessageType]] = msgpack.Decoder(list[MessageType])


def store_path(run: str) -> str:
    """Where the store listens."""
    return f"{run}/store.sock"


def node_path(run: str, node: NodeId) -> str:
    """Where a node listens to others."""
    return f"{run}/node-{node}.sock"


def objects_path(run: str, node: NodeId) -> str:
    """Where a node gives objects away."""
    return f"{run}/objects-{node}.sock"
