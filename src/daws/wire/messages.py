"""Messages between nodes, and between a node and the client. Every message names its sender, one start of a node.

Any message may be lost, doubled or late. None of them decides anything by itself: ownership moves in the store, and a
message is a hint about it or a request that its sender repeats until it was answered.
"""

from itertools import repeat

from msgspec import Struct

from daws.model.context import Context, Wish
from daws.model.task import NOBODY, NodeId, Ready, TaskSpec
from daws.wire.columns import each
from daws.wire.store import Submit

# Why tasks are offered.
PUSH = 0  # their data is at the receiver, or only the receiver can run them
STOLEN = 1
GIVEN = 2
COPY = 3  # run a second copy; the sender keeps its own
LEAVING = 4  # the sender is about to leave the cluster: find a place for them

LEAVES = -1
"""A load that means: the sender is about to leave, count it neither among the idle nodes nor among those with many
tasks."""


class Message(Struct, frozen=True, array_like=True, gc=False, tag=True):
    sender: NodeId


class LoadQuery(Message, frozen=True):
    pass


class LoadReply(Message, frozen=True):
    """The load of a node. `stealable` tasks may leave; `load` is the number of all that wait or run, or LEAVES.

    `rich` is a node that had `riches` tasks to steal when the sender last heard of it (NOBODY: it knows none).
    """

    stealable: int
    load: int
    rich: NodeId = NOBODY
    riches: int = 0


class StealRequest(Message, frozen=True):
    """An idle node asks for work that executors with these contexts may run (None: executors without a context).

    Without a wish it takes the tasks that come next in the victim's own order. If the victim has none, and the thief
    `waits`, the victim remembers the thief and hands over tasks that become ready later.
    """

    contexts: tuple[Context | None, ...] | None = None
    wish: Wish | None = None
    waits: bool = False


class StealDenied(Message, frozen=True):
    pass


class Invitation(Message, frozen=True):
    """More tasks are ready at the sender than it can run: a node with free executors may ask it for a task, up to
    `count` times."""

    count: int


class Offer(Message, frozen=True):
    """Tasks the receiver may claim from the sender. `number` tells a doubled offer from a new one."""

    number: int
    why: int
    tasks: tuple[Ready, ...]


class Taken(Message, frozen=True):
    """The sender of this claimed these tasks, offered with this move number; the lender may forget them."""

    tasks: tuple[tuple[int, int], ...]


class Refusal(Message, frozen=True):
    """The sender is about to leave and claims nothing: the node that offered these tasks may take them back."""

    tasks: tuple[tuple[int, int], ...]


class Releases(Message, frozen=True):
    """A list of (producer, child) pairs: the child has finished and needs the producer's objects no more."""

    pairs: tuple[tuple[int, int], ...]


class HandOver(Message, frozen=True):
    """Objects of a node that is about to leave; the receiver is to keep them instead.

    An entry has the producer, its attempt, the tasks that have yet to read the objects, and the objects with their
    sizes.
    """

    entries: tuple[tuple[int, int, tuple[int, ...], tuple[tuple[int, int], ...]], ...]


class Kept(Message, frozen=True):
    """The objects of these tasks are here, as the store knows, or no task needs them: the node that handed them over
    may go."""

    producers: tuple[int, ...]


class Wake(Message, frozen=True):
    """The tasks that `task` waited for have ended; `key` comes back in the answer."""

    task: int
    key: int


class Awake(Message, frozen=True):
    task: int
    key: int


NO_ANSWER = -1
"""The key of a StopOrder that may get lost."""


class StopOrder(Message, frozen=True):
    """An order to stop all runs of `task` up to `attempt`: it was cancelled, failed, or another run won. Answered by
    StopDone with the same `key`, unless that is NO_ANSWER."""

    task: int
    key: int
    attempt: int


class StopDone(Message, frozen=True):
    task: int
    key: int


class Submission(Message, frozen=True):
    """The client hands ready tasks to the node that owns them in the store."""

    batch: int
    tasks: tuple[Ready, ...]


NO_BATCH = -1
"""The batch of a message that comes once: its sender is in the same process, and waits for no receipt."""


class NewTasks(Message, frozen=True):
    """A client's graph has grown: put these tasks into the store. Answered by SubmissionTaken if it has a batch."""

    batch: int
    tasks: tuple[Submit, ...]


class PlainTasks(Message, frozen=True):
    """`NewTasks` for many plain tasks, as columns. A plain task has a kind and arguments and nothing else.

    Each task makes one object, which has the task's number. The tasks belong to the node that receives this message. If
    all have the same kind, or the same arguments, the column has one entry.
    """

    batch: int
    tasks: list[int]
    kinds: list[int]
    payloads: list[bytes]

    def rows(self, node: NodeId) -> list[Submit]:
        """The tasks as one row each."""
        tasks = self.tasks
        kinds, payloads = each(self.kinds, len(tasks)), each(self.payloads, len(tasks))
        none, zero, nodes = repeat(()), repeat(0), repeat(node)
        usual = repeat(None), zero, zero, nodes, repeat(False)
        specs = map(TaskSpec, tasks, kinds, zero, none, zip(tasks), *usual, payloads)
        return list(map(Submit, specs, none, nodes))


class LetGo(Message, frozen=True):
    """The client does not hold these tasks any more: their objects may go when no other task reads them.

    The store's server adds, for each task, the tasks that have yet to read its objects, before it answers the end of
    any of those. The nodes that ran the readers then send `Releases`. If a message names no readers, the receiver does
    not rely on it: it asks the store.
    """

    tasks: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...] = ()


class SubmissionTaken(Message, frozen=True):
    batch: int


class CancelOrder(Message, frozen=True):
    """A request to cancel these tasks, repeated until it is answered. With an `error`, they fail instead: a task that
    they need has failed."""

    batch: int
    tasks: tuple[int, ...]
    error: str = ""


class CancelTaken(Message, frozen=True):
    """The store has accepted the cancel: it will spread even if the sender dies now."""

    batch: int


class NewStrategy(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """The cluster uses another strategy from now on, which was checked before. `text` spells all of it out."""

    text: str


MessageType = (
    LoadQuery
    | LoadReply
    | StealRequest
    | StealDenied
    | Invitation
    | Offer
    | Taken
    | Refusal
    | Releases
    | HandOver
    | Kept
    | Wake
    | Awake
    | StopOrder
    | StopDone
    | Submission
    | NewTasks
    | PlainTasks
    | LetGo
    | SubmissionTaken
    | CancelOrder
    | CancelTaken
)
