"""What nodes (and the client) say to each other. Every message names its sender, one start of a node.

Any message may be lost, doubled or late. None of them decides anything by itself: ownership moves in the store, and a
message is a hint about it or a request that its sender repeats until it was answered.
"""

from itertools import repeat

from msgspec import Struct

from daws.model.context import Context, Wish
from daws.model.task import NodeId, Ready, TaskSpec
from daws.wire.columns import each
from daws.wire.store import Submit

# Why tasks are offered.
PUSH = 0  # their data is at the receiver, or only the receiver can run them
STOLEN = 1
GIVEN = 2
COPY = 3  # run a second copy; the sender keeps its own
LEAVING = 4  # the sender is about to leave the cluster: find a place for them

LEAVES = -1
"""Instead of a load: the sender is about to leave, count it neither among the idle nor among the rich."""


class Message(Struct, frozen=True, array_like=True, gc=False, tag=True):
    sender: NodeId


class LoadQuery(Message, frozen=True):
    pass


class LoadReply(Message, frozen=True):
    """`stealable` tasks may leave; `load` is all that waits or runs, or LEAVES. `rich` is a node that had `riches` to
    steal when the sender last heard of it, -1 if it knows none."""

    stealable: int
    load: int
    rich: NodeId = -1
    riches: int = 0


class StealRequest(Message, frozen=True):
    """An idle node asks for work that executors with these contexts may run (None: executors without a context).

    Without a wish it takes what the victim's own order hands over. If there is nothing, and it `waits`, the victim
    remembers it and hands over what comes up later.
    """

    contexts: tuple[Context | None, ...] | None = None
    wish: Wish | None = None
    waits: bool = False


class StealDenied(Message, frozen=True):
    pass


class Invitation(Message, frozen=True):
    """More is ready at the sender than it can run: who has time may ask it for a task, up to `count` times."""

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
    """The sender of this is about to leave and claims nothing: whoever offered these tasks may take them back."""

    tasks: tuple[tuple[int, int], ...]


class Releases(Message, frozen=True):
    """(producer, child) pairs: the child has finished and needs the producer's objects no more."""

    pairs: tuple[tuple[int, int], ...]


class HandOver(Message, frozen=True):
    """Of a node that is about to leave: (producer, attempt, who is yet to read it, its objects and their sizes). The
    receiver is to have them instead."""

    entries: tuple[tuple[int, int, tuple[int, ...], tuple[tuple[int, int], ...]], ...]


class Kept(Message, frozen=True):
    """The objects of these tasks are here, as the store knows, or nobody needs them: who handed them over may go."""

    producers: tuple[int, ...]


class Wake(Message, frozen=True):
    """The tasks that `task` waited for have ended; `key` comes back in the answer."""

    task: int
    key: int


class Awake(Message, frozen=True):
    task: int
    key: int


class StopOrder(Message, frozen=True):
    """Runs of `task` up to `attempt` are pointless: it was cancelled, failed, or another run won."""

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


class NewTasks(Message, frozen=True):
    """A client's graph has grown: put these tasks into the store. Answered by SubmissionTaken."""

    batch: int
    tasks: tuple[Submit, ...]


class PlainTasks(Message, frozen=True):
    """The same for many tasks about which there is nothing to say but their kinds and arguments, as columns: each makes
    one object, which has its number. They belong to the node that is told. If all have the same kind, or the same
    arguments, these are there once."""

    batch: int
    tasks: list[int]
    kinds: list[int]
    payloads: list[bytes]

    def rows(self, node: NodeId) -> list[Submit]:
        """One by one."""
        tasks = self.tasks
        kinds, payloads = each(self.kinds, len(tasks)), each(self.payloads, len(tasks))
        none, zero, nodes = repeat(()), repeat(0), repeat(node)
        usual = repeat(None), zero, zero, nodes, repeat(False)
        specs = map(TaskSpec, tasks, kinds, zero, none, zip(tasks), *usual, payloads)
        return list(map(Submit, specs, none, nodes))


class LetGo(Message, frozen=True):
    """The client does not hold these tasks any more: what they made may go when no other task reads it. The store's
    server says for each of them which tasks have yet to read it, before it answers the end of any of those; the nodes
    that ran them then say `Releases`. To others, who say no readers, a node does not listen: it asks the store."""

    tasks: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...] = ()


class SubmissionTaken(Message, frozen=True):
    batch: int


class CancelOrder(Message, frozen=True):
    """Somebody with the right to do so wants these tasks cancelled; repeated until it is answered. With an `error` they
    have failed by that: something that they need has."""

    batch: int
    tasks: tuple[int, ...]
    error: str = ""


class CancelTaken(Message, frozen=True):
    """The store knows: whatever happens to the sender now, the cancel will spread."""

    batch: int


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
