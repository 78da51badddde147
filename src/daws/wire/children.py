"""Messages between the client of a private cluster and the processes that it starts, on a pair of sockets."""

from msgspec import msgpack

from daws.model.task import NOBODY, NodeId
from daws.wire.cluster import Word
from daws.wire.crew import Crew


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


START: msgpack.Decoder[list[StartStore | StartNode]] = msgpack.Decoder(list[StartStore | StartNode])
FROM_CHILD: msgpack.Decoder[list[Up | Broken]] = msgpack.Decoder(list[Up | Broken])
