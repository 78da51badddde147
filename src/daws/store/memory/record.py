"""The record of a task, and questions that a record can answer.

Memory per task decides how large a graph can be, so the rare fields are kept apart.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import FINAL, READY
from daws.model.task import REMAKE, SUSPECT, Input, NodeId, Ready, TaskSpec
from daws.wire.store import CANCELLED, DONE, FAILED, small_output

MANY_EDGES = 8
"""The number of edges above which a set is worth its memory."""
STILLBORN = -1
"""The kind of a task that was cancelled before it was created."""
FINAL_CODE = {STATE_DONE: DONE, STATE_FAILED: FAILED, STATE_CANCELLED: CANCELLED}
"""The answer about a task that has ended, by its state."""


class Rare:
    """Fields that few tasks ever need."""

    __slots__ = (
        "announced",
        "cause",
        "error",
        "failure",
        "history",
        "holders",
        "losses",
        "lost",
        "need",
        "remaking",
        "replicas",
        "spawned",
        "suspended_on",
        "waiters",
        "watchers",
    )

    def __init__(self) -> None:
        self.announced = False
        self.cause = -1  # the task because of which it failed or was cancelled
        self.error = ""
        self.failure = b""  # what its last run raised, as it travels
        self.history: list[tuple[int, int, NodeId]] = []
        self.holders: set[int] = set()
        self.losses = 0
        self.lost: tuple[Input, ...] = ()  # inputs that it waits for, because they have to be made again
        self.need = 0  # only answers to this need may remove edges; 0 before anything was lost
        self.remaking = False
        self.replicas: tuple[NodeId, ...] = ()
        self.spawned: dict[int, tuple[int, ...]] = {}  # attempt -> tasks
        self.suspended_on: tuple[int, ...] = ()
        self.waiters: tuple[tuple[int, int], ...] = ()  # the tasks that asked for the last remake, and for which need
        self.watchers: tuple[int, ...] = ()  # suspended until this task has ended


class Record(Struct, gc=False, array_like=True):
    """The state of a task.

    While the task waits, `edges` holds its unfinished parents (a tuple, or a set when there are many). Once it is
    ready, `edges` holds the mark of the call that made it so: the parent, or the inverted reason of a claim. The mark
    lets that call be repeated.
    """

    spec: TaskSpec
    state: int
    owner: NodeId
    children: Sequence[int] = ()  # a list when there are many: each new one would copy a tuple
    edges: tuple[int, ...] | set[int] | int | None = None
    inputs: tuple[Input, ...] = ()  # while it waits for many parents it is a list, for the same reason
    made: tuple[Input, ...] | bytes = ()  # bytes: the value of its only object, whose number is the task's
    move: int = 0
    attempt: int = 0
    freed: bool = False  # no task needed its objects any more; a later reader has them remade
    held: bool = False  # by the client, which may hold everything; other holders are rare
    rare: Rare | None = None

    @property
    def outputs(self) -> tuple[Input, ...]:
        made = self.made
        if made.__class__ is bytes:
            self.made = made = small_output(self.spec.id, self.owner, made)
        return made  # type: ignore[return-value]

    @outputs.setter
    def outputs(self, made: tuple[Input, ...]) -> None:
        self.made = made

    def more(self) -> Rare:
        if self.rare is None:
            self.rare = Rare()
        return self.rare


def add_child(record: Record, child: int) -> None:
    """Add a child. Children are kept in the order of their numbers, which is mostly the order in which they come."""
    children: Any = record.children
    if children.__class__ is list:
        if child > children[-1]:
            children.append(child)
        else:
            insort(children, child)
    elif len(children) < MANY_EDGES:
        more = (*children, child)
        record.children = more if not children or child > children[-1] else tuple(sorted(more))
    else:
        record.children = sorted((*children, child))


def has_child(record: Record, child: int) -> bool:
    """Whether a task is a child of this one. A parent may have a hundred thousand children."""
    children = record.children
    if children.__class__ is tuple or len(children) <= MANY_EDGES:  # children that a client has given are in any order
        return child in children
    at = bisect_left(children, child)
    return at < len(children) and children[at] == child


def add_inputs(record: Record, inputs: tuple[Input, ...]) -> None:
    """Add the outputs of one parent, for a task with very many parents."""
    known: Any = record.inputs
    if known.__class__ is list:
        known.extend(inputs)
    else:
        record.inputs = [*known, *inputs]  # type: ignore[assignment]


def is_held(record: Record) -> bool:
    return record.held or (record.rare is not None and bool(record.rare.holders))


def has_ended(record: Record) -> bool:
    """Whether a task has ended. While its objects are made again, it has: that is no second end."""
    return record.state in FINAL or (record.rare is not None and record.rare.remaking)


def is_unclaimed(record: Record) -> bool:
    """Whether this is a remake that no node runs. The node that asked for it may be dead, so it cannot be relied on."""
    return record.state == READY and record.owner == -1


def read_by(spec: TaskSpec, inputs: Sequence[Input]) -> tuple[Input, ...]:
    """The objects that a task reads, among those that its parents made."""
    wanted = spec.inputs if len(spec.inputs) <= MANY_EDGES else set(spec.inputs)
    return tuple([one for one in inputs if one.object in wanted])


def ready_of(record: Record, mode: int = 0) -> Ready:
    """A ready task in the form that its owner receives."""
    rare = record.rare
    if rare is not None:
        mode |= (REMAKE if rare.remaking else 0) | (SUSPECT if rare.losses else 0)
    return Ready(record.spec, record.attempt, record.move, tuple(record.inputs), mode)


def without_places(outputs: tuple[Input, ...]) -> tuple[Input, ...]:
    return tuple(Input(one.object, one.size_bytes, one.producer, (), one.value) for one in outputs)


def runners_of(record: Record) -> tuple[NodeId, ...]:
    """The nodes that may be running a task: its owner, and those that run copies."""
    owner = () if record.owner == -1 else (record.owner,)
    return owner if record.rare is None else (*owner, *record.rare.replicas)


def audience(record: Record) -> tuple[int, ...]:
    """The tasks to tell that a task is done: its children, and suspended tasks that wait for its end."""
    return tuple(record.children) if record.rare is None else (*record.children, *record.rare.watchers)


def all_spawned(rare: Rare) -> tuple[int, ...]:
    """The tasks that the attempts so far have spawned; none once an attempt was committed."""
    return tuple(task for tasks in rare.spawned.values() for task in tasks)


def note(record: Record, now_ns: int) -> None:
    """Add the current state of a record to its history."""
    record.more().history.append((record.state, now_ns, record.owner))
