"""Messages between a client and a node, about the client's session. A frame is a list of them.

They may be lost or doubled, as those of `daws.wire.cluster`.
"""

from msgspec import msgpack

from daws.wire.cluster import Ends, Word
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewStrategy, NewTasks, Submission, SubmissionTaken
from daws.wire.notes import Counters, FactType, News

# -- from a client -----------------------------------------------------------------------------------------------------


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


class Count(Word, frozen=True):
    """A question to a node, answered by Counted with the same number: an answer that comes late is for no other."""

    number: int = 0


class Depart(Word, frozen=True):
    """A node is to leave in good order, and to be gone after so many seconds in any case."""

    within_s: float


# -- from a node -------------------------------------------------------------------------------------------------------


class Counted(Word, frozen=True):
    """The counters of a node, and the tasks that its workers have."""

    counters: Counters
    started: list[int]
    number: int = 0


class Sealed(Word, frozen=True):
    """Tasks that have ended well, and the stamps of their cells before and after."""

    outcomes: list[Outcome]
    seal: tuple[bytes, bytes]


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


ToNode = Here | Fresh | Submission | NewTasks | LetGo | CancelOrder | Depart | NewStrategy | Count
ToClient = Ends | Sealed | TaskPrinted | Ran | Learnt | Counted | CancelTaken | SubmissionTaken

TO_NODE: msgpack.Decoder[list[ToNode]] = msgpack.Decoder(list[ToNode])
TO_CLIENT: msgpack.Decoder[list[ToClient]] = msgpack.Decoder(list[ToClient])
