"""What a task is, as it travels: a frozen specification, and the copy of it that a node owns.

`TaskSpec` never changes after a task was created. `Ready` is what the store hands to the node that becomes the owner of
a ready task: the specification plus the numbers (attempt, move) that make later claims and commits safe. Both are
shared freely between nodes of a simulation because nobody can change them.
"""

from msgspec import Struct

from daws.model.context import Context

NodeId = int
"""One start (incarnation) of a node: `incarnation << 32 | index`. A restarted node is a new NodeId, so whatever
was said about the old one (owner, place, lease) can never be mistaken for the new one."""

NODE_INDEX_MASK = (1 << 32) - 1
CLIENT: NodeId = -1
"""The address of the client; it serves objects that were put in from outside when no node has them."""

INLINE_BYTES = 4096
"""Objects up to this size travel inside records and are never fetched."""

GUESS_NS = 50_000_000
"""The length assumed for a task of which nothing is known: the mean of MATRIX's Table 3."""

RAISED = 1 << 61
"""Added to the rank of a planned task that is ordered by a depth-first run, so that what was begun is finished.
What is left without it is the rank by which the task is ordered; no executor is kept idle for such a task."""

FROM_OUTSIDE = -2
"""The kind of a task that stands for an object that a client has put in: it was done when it came, and never runs."""

Input = tuple[int, int, int, tuple[int, ...], bytes]
"""One object a task reads: (object id, size in bytes, producing task or -1, places that have it, its value).

The value is there if the object is small enough to travel inside records. Simulations have none."""

Transfer = tuple[int, int, int]
"""One object on its way to a node: (object id, size in bytes, the place that it comes from)."""


def node_id(index: int, incarnation: int) -> NodeId:
    return incarnation << 32 | index


class Needs(Struct, frozen=True, array_like=True, gc=False):
    """What an executor, and its node, must offer; None on a task stands for one core, no context and no memory.

    `memory_bytes` is what the task declares to need while it runs, 0 if it says nothing.
    """

    cores: int = 1
    context: Context | None = None
    memory_bytes: int = 0


class TaskSpec(Struct, frozen=True, array_like=True, gc=False):
    """The part of a task that never changes. `inputs` and `outputs` are object ids; `rank` is the upward rank;
    `home` is the node that gets it first, and where it had better run if it was `planned` with the whole graph.

    `estimate_ns` is how long it is said to run on a node of speed 1, 0 if nobody knows.
    """

    id: int
    kind: int = 0
    estimate_ns: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    needs: Needs | None = None
    priority: int = 0
    rank: int = 0
    home: int = -1
    leaf: bool = False  # no task waits for it and none ever will: nobody needs to hear at once that it is done
    payload: bytes = b""  # what a worker needs to run it (its arguments); simulations have none
    retries: int = 0  # so often it may be tried again after it failed
    timeout_ns: int = 0  # a run that takes longer is stopped; 0 is without limit
    planned: bool = False


# How a Ready came to be; they combine.
REMAKE = 1  # done before; runs again only to make a lost object
REPLICA = 2  # a second run of a task that somebody else owns
SUSPECT = 4  # a node died while it owned this task: announce before running, nothing sent ahead beside it
AGAIN = 8  # only in answers of the store: it was said before, so the caller may have the task already


class Ready(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """A ready task in the hands of its owner (or, as a replica, of a second runner)."""

    spec: TaskSpec
    attempt: int
    move: int
    inputs: tuple[Input, ...] = ()
    mode: int = 0


FIRST_SPAWNED_ID = 1 << 60


def spawned_id(parent: int, attempt: int, number: int) -> int:
    """The id of the number-th task that one attempt of a task spawned: the same each time it is asked for.

    A 60-bit mix with a bit set above it, so it cannot collide with ids that clients count up from zero, and the key of
    an outbox entry (two bits longer) is still a 64-bit number. The store refuses a second task under the same id with
    another origin.
    """
    x = (parent * 0x9E3779B97F4A7C15 + attempt * 0xBF58476D1CE4E5B9 + number * 0x94D049BB133111EB + 1) & (2**64 - 1)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
    return (x ^ (x >> 31)) >> 4 | FIRST_SPAWNED_ID
