"""Tasks as they travel: a frozen specification, and the copy of it that a node owns.

`TaskSpec` never changes after a task was created. `Ready` is what the store hands to the node that becomes the owner of
a ready task: the specification plus the numbers (attempt, move) that make later claims and commits safe. Nodes of a
simulation share both, because neither can change.
"""

from msgspec import Struct

from daws.model.context import Context

NodeId = int
"""One start (incarnation) of a node: `incarnation << 32 | index`. A restarted node has a new NodeId, so facts about the
old one (owner, place, lease) can never be mistaken for facts about the new one."""

NODE_INDEX_MASK = (1 << 32) - 1
CLIENT: NodeId = -1
"""The address of the client. It serves objects that a client has put in, when no node has them."""
NOBODY: NodeId = -1
"""No node: the owner of a task without an owner, the home of a task without a home."""
NO_TASK = -1
"""No task: the producer of an object that came from outside, the parent of a cancel without a parent."""

INLINE_BYTES = 4096
"""Objects up to this size travel inside records and are never fetched."""

GUESS_NS = 50_000_000
"""The length assumed for a task of unknown length: the mean of MATRIX's Table 3."""

RAISED = 1 << 61
"""Added to the rank of a planned task that is ordered by a depth-first run, so that work that was begun is finished.
The rank without this bit orders the task; no executor is kept idle for such a task."""

FROM_OUTSIDE = -2
"""The kind of a task that stands for an object that a client has put in: it was done when it came, and never runs."""


def node_id(index: int, incarnation: int) -> NodeId:
    return incarnation << 32 | index


class Input(Struct, frozen=True, array_like=True, gc=False):
    """One object that a task reads or has made: its number, its size, and where it is.

    `producer` is the task that makes it, or NO_TASK. `places` are the nodes that have it. `value` is its content if it
    is small enough to travel inside records (`INLINE_BYTES`), else empty; simulations have none. A node may
    hold millions of these, so the garbage collector does not track them. They travel as arrays, without names.
    """

    object: int
    size_bytes: int
    producer: int
    places: tuple[int, ...]
    value: bytes


class ObjectTransfer(Struct, frozen=True, array_like=True, gc=False):
    """One object on its way to a node, from `source`: a node that has it, or CLIENT."""

    object: int
    size_bytes: int
    source: NodeId


class Needs(Struct, frozen=True, array_like=True, gc=False):
    """The requirements of a task on an executor and its node. None on a task means one core, no context and no memory.

    `memory_bytes` is the memory that the task declares to need while it runs, 0 if it declares none.
    """

    cores: int = 1
    context: Context | None = None
    memory_bytes: int = 0


class TaskSpec(Struct, frozen=True, array_like=True, gc=False):
    """The part of a task that never changes.

    `inputs` and `outputs` are object ids; `rank` is the upward rank. `home` is the node that gets the task first. If
    the task was `planned` with the whole graph, it should also run there. `estimate_ns` is its expected run time on a
    node of speed 1, 0 if unknown.
    """

    id: int
    kind: int = 0
    estimate_ns: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    needs: Needs | None = None
    priority: int = 0
    rank: int = 0
    home: NodeId = NOBODY
    leaf: bool = False  # no task waits for it and none ever will, so its end need not be told at once
    payload: bytes = b""  # input of the worker that runs it (its arguments); simulations have none
    retries: int = 0  # the number of times that it may be tried again after a failure
    timeout_ns: int = 0  # a run that takes longer is stopped; 0 means no limit
    planned: bool = False


# Flags that say how a Ready came to be; they can be combined.
REMAKE = 1  # done before; runs again only to make a lost object
REPLICA = 2  # a second run of a task that another node owns
SUSPECT = 4  # a node died while it owned this task: announce it before it runs, and send nothing ahead beside it
AGAIN = 8  # only in answers of the store: this answer is a repetition, so the caller may have the task already


class Ready(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """A ready task in the hands of its owner, or of a second node that runs it as a replica."""

    spec: TaskSpec
    attempt: int
    move: int
    inputs: tuple[Input, ...] = ()
    mode: int = 0


FIRST_SPAWNED_ID = 1 << 60


def spawned_id(parent: int, attempt: int, number: int) -> int:
    """The id of the number-th task that one attempt of a task spawned. The same arguments always give the same id.

    The id is a 60-bit mix with a bit set above it. It cannot collide with ids that clients count up from zero, and the
    key of an outbox entry (two bits longer) is still a 64-bit number. The store refuses a second task with the same id
    and another origin.
    """
    x = (parent * 0x9E3779B97F4A7C15 + attempt * 0xBF58476D1CE4E5B9 + number * 0x94D049BB133111EB + 1) & (2**64 - 1)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
    return (x ^ (x >> 31)) >> 4 | FIRST_SPAWNED_ID
