"""Objects of a node that leaves: what others have yet to read is taken in by a node that stays.

Whoever leaves names its objects to somebody, who fetches them, adds itself to their places in the store, and says so;
then the leaver need not wait for their readers any more. Any of these words may get lost: on the next ticks they are
said again, perhaps to another node. Readers that know of the old place alone ask for a remake when it is gone, and are
told of the new one instead.
"""

from collections.abc import Sequence

from daws.core.calls import answers, ask
from daws.core.effects import DropObject, FetchObjects, Send
from daws.core.events import ObjectsFetched
from daws.core.node import EMPTY, NodeCore, handles
from daws.core.places import places
from daws.core.staging import own_objects
from daws.model.task import NodeId
from daws.wire.messages import Entrust, Entrusted
from daws.wire.store import OK, AddPlace, AnswerType

PINS = ("staging", "staged", "running", "suspended")
"""Where tasks are that read their inputs."""
TASKS_MAX = 256
"""So many tasks' objects are on their way from a leaver at a time."""


class Ward:
    """The objects of one task that this node is asked to take in."""

    __slots__ = ("attempt", "missing", "objects", "readers", "sender", "unplaced")

    def __init__(
        self, sender: NodeId, attempt: int, objects: tuple[tuple[int, int], ...], readers: tuple[int, ...]
    ) -> None:
        self.sender = sender
        self.attempt = attempt
        self.objects = dict(objects)
        self.readers = readers
        self.missing: set[int] = set()
        self.unplaced = len(objects)  # so many of them the store has not heard of


# -- who leaves --------------------------------------------------------------------------------------------------------


def entrust(core: NodeCore, takers: Sequence[NodeId]) -> None:
    """Ask others to take in what was made here and was not read yet."""
    told = core.leaving.entrusted
    late_ns = core.now_ns - 2 * core.config.tick_ns
    offers: dict[NodeId, list[tuple[int, int, tuple[tuple[int, int], ...], tuple[int, ...]]]] = {}
    for task in [task for task in told if task not in core.made]:
        del told[task]
    under_way = sum(since_ns > late_ns for since_ns in told.values())
    for number, (task, (readers, _, objects)) in enumerate(core.made.items()):
        if under_way >= TASKS_MAX:
            break
        if told.get(task, late_ns) > late_ns:
            continue
        under_way += 1
        told[task] = core.now_ns
        taker = takers[number % len(takers)]
        sized = tuple([(object_, core.objects[object_]) for object_ in objects if object_ in core.objects])
        attempt = (core.attempts or EMPTY).get(task, 0)
        offers.setdefault(taker, []).append((task, attempt, sized, tuple(sorted(readers))))
    for taker, tasks in offers.items():
        core.out.append(Send(taker, Entrust(core.node, tuple(tasks))))


@handles(Entrusted)
def on_entrusted(core: NodeCore, message: Entrusted) -> None:
    """They are in good hands: this node need not wait for their readers. Some may be about to fetch them from here, so
    they stay until it has left."""
    if core.leaving is None:
        return
    for task in message.tasks:
        if task in core.made:
            del core.made[task]
            if core.attempts:
                core.attempts.pop(task, None)


# -- who stays ---------------------------------------------------------------------------------------------------------


@handles(Entrust)
def on_entrust(core: NodeCore, message: Entrust) -> None:
    if core.leaving is not None:
        return  # the sender asks somebody else when it hears of that, or nothing for long
    for task, attempt, objects, readers in message.tasks:
        if task in core.made:
            core.out.append(Send(message.sender, Entrusted(core.node, (task,))))
        elif task not in core.wards:
            _take_in(core, task, Ward(message.sender, attempt, objects, readers))


def _take_in(core: NodeCore, task: int, ward: Ward) -> None:
    if core.wards is EMPTY:
        core.wards = {}
        core.coming = {}
    core.wards[task] = ward
    for object_, size_bytes in ward.objects.items():
        if object_ in core.objects:
            _own(core, object_, size_bytes)
        else:
            ward.missing.add(object_)
            core.coming[object_] = task
    if ward.missing:
        wanted = [(object_, ward.objects[object_], ward.sender) for object_ in sorted(ward.missing)]
        core.out.append(FetchObjects(tuple(wanted)))
    else:
        _place(core, task, ward)


def _own(core: NodeCore, object_: int, size_bytes: int) -> None:
    """From now on it is no copy that may go."""
    if core.copies and object_ in core.copies:
        del core.copies[object_]
        core.fresh.discard(object_)
        core.copied_bytes -= core.objects[object_]
    own_objects(core)[object_] = size_bytes


def wards_fetched(core: NodeCore, event: ObjectsFetched) -> None:
    """Before anybody else looks at what came."""
    for object_, size_bytes, _ in event.fetched:
        task = core.coming.pop(object_, None)
        ward = core.wards.get(task) if task is not None else None
        if ward is None:
            continue
        _own(core, object_, size_bytes)
        ward.missing.discard(object_)
        if not ward.missing:
            _place(core, task, ward)  # type: ignore[arg-type]
    for object_, _, source in event.failed:
        task = core.coming.get(object_)
        if task is not None and core.wards[task].sender == source:
            _drop(core, task)


def _place(core: NodeCore, task: int, ward: Ward) -> None:
    for object_ in ward.objects:
        ask(core, task, AddPlace(task, object_, core.node))


@answers(AddPlace)
def on_add_place_answer(core: NodeCore, row: AddPlace, answer: AnswerType) -> None:
    ward = core.wards.get(row.task)
    if ward is None:
        return
    if answer != OK:
        _drop(core, row.task)  # nobody needs them any more
    else:
        ward.unplaced -= 1
        if ward.unplaced:
            return
        del core.wards[row.task]
        if core.made is EMPTY:
            core.made = {}
        core.made[row.task] = (set(ward.readers), core.now_ns, tuple(ward.objects))
        if ward.attempt:
            if core.attempts is None:
                core.attempts = {}
            core.attempts[row.task] = ward.attempt
    core.out.append(Send(ward.sender, Entrusted(core.node, (row.task,))))


def _drop(core: NodeCore, task: int) -> None:
    """They are not ours after all. What tasks here read is a copy (again)."""
    ward = core.wards.pop(task)
    for object_ in ward.objects:
        core.coming.pop(object_, None)
        if object_ not in core.objects:
            continue
        readers = sum([object_ in ready.spec.inputs for name, ready in places(core) if name in PINS])
        if readers:
            assert core.copies is not None
            core.copies[object_] = readers
            core.copied_bytes += core.objects[object_]
        else:
            del core.objects[object_]
            core.out.append(DropObject(object_))
