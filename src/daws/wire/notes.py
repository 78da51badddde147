"""Notes on runs and decisions, and counters, as nodes send them to the sessions that ask for them."""

from typing import Any

from msgspec import Struct

from daws.model.task import NodeId

Row = tuple[int, int, int, int, int, int, int, int, int, int]
"""A run that ended: (task, kind, node, executor, start, end, cores, bytes read, bytes written, 1 or 0 if it raised).

Times are in nanoseconds of the machine's monotonic clock; the kind is the number of the task's function. It stays a
bare tuple, because a node builds one for each run and clients read it in one go, by unpacking."""


Sized = tuple[int, int]
"""An object and its size in bytes."""

Phase = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A part of a run that ends where the run waits: (nanoseconds of work until then, tasks that it has created since the
part before, tasks that it waits for). The last part waits for nothing."""


class Counters(Struct, frozen=True, array_like=True, gc=False):
    """The counters of one node: tasks that ended well there, tasks that it has stolen, bytes that its tasks have read,
    and bytes of these that it had to fetch."""

    node: NodeId
    done: int
    stolen: int
    read_bytes: int
    moved_bytes: int


class RunLinks(Struct, frozen=True, array_like=True, gc=False):
    """The connections of a run: the objects that it read and made, and the tasks that it created. They are sent only
    for runs that read something, made several objects, created tasks, or need memory."""

    task: int
    start_ns: int
    inputs: tuple[Sized, ...] = ()
    outputs: tuple[Sized, ...] = ()
    phases: tuple[Phase, ...] = ()
    memory_bytes: int = 0


class News(Struct, frozen=True, array_like=True, gc=False):
    """One message of a node: runs that ended, how many of its executors were busy just before, and how many bytes it
    has fetched from other nodes so far."""

    node: int
    rows: tuple[Row, ...]
    busy_count: int
    fetched_bytes: int
    links: tuple[RunLinks, ...] = ()


class Fact(Struct, frozen=True, array_like=True, tag=True):
    """`at_ns` is of the machine's monotonic clock."""

    task: int
    node: NodeId
    at_ns: int


class Decided(Fact, frozen=True):
    """An answer of the strategy was asked about the task; `reasons` are the numbers that it compared, and its choice.

    For `assign` the node is the one that was chosen, for all other decisions the one that asked.
    """

    decision: str
    answer: str
    reasons: dict[str, Any]


class Handed(Fact, frozen=True):
    """The node has claimed the task from another one. `why` is that of an Offer. `loads` are the loads of other nodes,
    as far as the thief knew them when it chose this one."""

    sender: NodeId
    why: int
    loads: tuple[tuple[NodeId, int], ...] = ()


class Sent(Fact, frozen=True):
    """A worker was given the task. `read_bytes` is the size of its inputs, `moved_bytes` of those that were made
    elsewhere."""

    slot: int
    attempt: int
    read_bytes: int
    moved_bytes: int


class RunFact(Fact, frozen=True):
    """A run came to its end, well or by raising something."""

    slot: int
    start_ns: int
    written_bytes: int
    is_good: bool


FactType = Decided | Handed | Sent | RunFact
