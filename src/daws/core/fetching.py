"""Fetching: what a task reads is brought here before it runs. It holds no executor meanwhile.

If a place does not have an object, the next place is asked. If no member has it, the node asks the store who is a
member, and then gives the object up (`remake`). A task whose inputs are all here is staged: it stands beside the queues
and is the next to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.effects import DropObject, FetchObjects
from daws.core.empty import shared_part
from daws.core.events import ObjectsFetched
from daws.core.handlers import handles
from daws.core.objects import add_copy, evict, pin, unpin
from daws.core.store_calls import ask_shard
from daws.model.task import CLIENT, Input, NodeId, ObjectTransfer, Ready
from daws.wire.store import MEMBERSHIP_SHARD, Watch

if TYPE_CHECKING:
    from daws.core.node import NodeCore

FETCH_AHEAD_NS = 1_000_000_000
"""A node that had to fetch something looks ahead in its queue for so long; where all is local, looking is in vain."""


class Lacking(Struct, frozen=True, gc=False):
    """A task that waits for objects that it reads and that are not here yet."""

    ready: Ready
    lacks: set[int]


class Fetching:
    """Tasks beside the queues, and the objects that are on their way to them."""

    __slots__ = ("ahead_until_ns", "coming", "doubted", "doubted_since", "hungry", "staged", "tried", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[int, Lacking] = {}  # by task
        self.coming: dict[int, list[int]] = {}  # objects on their way here, and the tasks that they are for
        self.tried: dict[int, tuple[NodeId, ...]] = {}  # by object that is fetched: places that did not have it
        self.staged: list[Ready] = []  # tasks that have all they read
        self.hungry: Ready | None = None  # one of those that are staged: memory is kept for it
        self.ahead_until_ns = 0  # until then the next tasks' inputs are fetched while executors are busy
        self.doubted: list[int] | None = None  # objects that no known member has, while the store says who is a member
        self.doubted_since: tuple[int, ...] = ()  # ... and those that came up since it was asked


NO_FETCHING = shared_part(Fetching())
"""Shared by all nodes that have never fetched anything. `own_fetching` creates a node's own."""


def own_fetching(core: NodeCore) -> Fetching:
    """The `Fetching` of this node, to change something."""
    if core.fetching is NO_FETCHING:
        core.fetching = Fetching()
    return core.fetching


# -- tasks that are staged ---------------------------------------------------------------------------------------------


def add_staged(core: NodeCore, ready: Ready, at: int | None = None) -> None:
    """All that this task reads is here: it is the next to start, behind those that came before (or at this index)."""
    core.close_lane()
    staged = own_fetching(core).staged
    staged.insert(len(staged) if at is None else at, ready)


def put_back(core: NodeCore, ready: Ready) -> None:
    """This task was to start, and cannot yet: it comes before all others."""
    add_staged(core, ready, 0)


def take_staged(core: NodeCore, index: int) -> Ready:
    """This task leaves: it starts, or goes elsewhere."""
    return core.fetching.staged.pop(index)


def sort_staged(core: NodeCore) -> None:
    """Sort the staged tasks in the order that the strategy wants. Without this they stay in the order in which they
    came."""
    key = core.strategy.order.key
    core.fetching.staged.sort(key=lambda ready: key(core, ready))


def keep_memory_for(core: NodeCore, ready: Ready | None) -> None:
    """Memory that falls free is kept for this task, which is staged."""
    if core.fetching.hungry is not ready:
        own_fetching(core).hungry = ready


def unstage(core: NodeCore, task: int, attempt: int) -> bool:
    """Forget a task that waits for its inputs or has just got them, up to this attempt. True if it was there."""
    fetching = core.fetching
    found = False
    if task in fetching.waiting and fetching.waiting[task].ready.attempt <= attempt:
        unpin(core, fetching.waiting.pop(task).ready)
        found = True
    for ready in fetching.staged:
        if ready.spec.id == task and ready.attempt <= attempt:
            unpin(core, ready)
            fetching.staged.remove(ready)
            return True
    return found


def unstage_all(core: NodeCore) -> list[Ready]:
    """Take out all tasks that wait for their inputs or have just got them."""
    fetching = own_fetching(core)
    tasks = [*(one.ready for one in fetching.waiting.values()), *fetching.staged]
    fetching.waiting.clear()
    fetching.staged.clear()
    for ready in tasks:
        unpin(core, ready)
    return tasks


# -- objects that are fetched ------------------------------------------------------------------------------------------


def stage(core: NodeCore, ready: Ready, missing: Sequence[Input]) -> None:
    """Fetch what is missing; the task waits beside the queues meanwhile and holds no executor."""
    core.close_lane()
    task = ready.spec.id
    fetching = own_fetching(core)
    fetching.ahead_until_ns = core.now_ns + FETCH_AHEAD_NS
    fetching.waiting[task] = Lacking(ready, {one.object for one in missing})
    if core.objects.copies:
        pin(core, ready)
    coming, tried, members, node = fetching.coming, fetching.tried, core.members, core.node
    wanted: list[ObjectTransfer] = []
    gone: list[int] = []
    for one in missing:
        object_, places = one.object, one.places
        waiting = coming.get(object_)
        if waiting is not None:
            waiting.append(task)
            continue
        coming[object_] = [task]
        place: NodeId | None = places[0] if places else None
        if tried or place == node or place not in members:  # unusual
            place = _next_place(core, one)
            if place is None:
                gone.append(object_)
                continue
        wanted.append(ObjectTransfer(object_, one.size_bytes, place))  # type: ignore[arg-type]
    if wanted:
        core.out.append(FetchObjects(tuple(wanted)))
    if gone:
        _doubt(core, gone)


def fetch_for_keeping(core: NodeCore, wanted: Sequence[ObjectTransfer]) -> None:
    """Fetch objects that no task here reads yet, unless they are here or on their way."""
    coming = own_fetching(core).coming
    new = [one for one in wanted if one.object not in core.objects.sizes and one.object not in coming]
    coming.update([(one.object, []) for one in new])
    if new:
        core.out.append(FetchObjects(tuple(new)))


def _next_place(core: NodeCore, wanted: Input) -> NodeId | None:
    """The first of its places that is alive and has not failed us yet; the client comes last."""
    tried = core.fetching.tried.get(wanted.object, ())
    for place in wanted.places:
        if place not in tried and place != core.node and (place in core.members or place == CLIENT):
            return place
    return None


@handles(ObjectsFetched)
def on_objects_fetched(core: NodeCore, event: ObjectsFetched) -> None:
    fetching = own_fetching(core)
    tried, adoptions = fetching.tried, core.adoptions
    has_copied = False
    for transfer in event.fetched:
        object_ = transfer.object
        waiting = fetching.coming.pop(object_, None)
        if waiting is None:
            continue
        readers = _tell_readers(core, object_, waiting)
        if tried:
            tried.pop(object_, None)
        adopted = adoptions is not None and object_ in adoptions.of
        if not readers and not adopted:
            if object_ not in core.objects.sizes:  # else it was made here meanwhile, and the file is that object
                core.out.append(DropObject(object_))  # the tasks that wanted it were called off
            continue
        has_copied = add_copy(core, object_, transfer.size_bytes, readers + adopted) or has_copied
        if adoptions is not None and adopted:
            adoptions.arrived(core, object_)
    if has_copied:
        evict(core)
    for transfer in event.failed:
        _fetch_elsewhere(core, transfer)


def _tell_readers(core: NodeCore, object_: int, waiting: list[int]) -> int:
    """An object is here: how many tasks waited for it? Those that lack nothing else are staged."""
    fetching = core.fetching
    readers = 0
    for task in waiting:
        entry = fetching.waiting.get(task)
        if entry is None or object_ not in entry.lacks:
            continue
        readers += 1
        entry.lacks.remove(object_)
        if not entry.lacks:
            del fetching.waiting[task]
            fetching.staged.append(entry.ready)
            core.schedule_soon()
    return readers


def _fetch_elsewhere(core: NodeCore, failed: ObjectTransfer) -> None:
    """A place did not have an object: try the next one."""
    fetching = core.fetching
    object_ = failed.object
    waiting = fetching.coming.get(object_)
    if waiting is None:
        return
    core.schedule_soon()
    fetching.tried[object_] = (*fetching.tried.get(object_, ()), failed.source)
    wanted = _input_of(core, waiting, object_)
    if wanted is None:
        del fetching.coming[object_]
        del fetching.tried[object_]
        if core.adoptions is not None:
            core.adoptions.failed(core, object_)
        return
    place = _next_place(core, wanted)
    if place is None:
        _doubt(core, [object_])
    else:
        core.out.append(FetchObjects((ObjectTransfer(object_, failed.size_bytes, place),)))


def _doubt(core: NodeCore, objects: list[int]) -> None:
    """No known member has these. A place that is no member has died, or joined so lately that this node has not heard
    of it: the store says which, before what it has is given up."""
    fetching = core.fetching
    if fetching.doubted is not None:
        fetching.doubted_since += (*objects,)  # the answer to what is asked already may be older than these
    elif any(_has_stranger(core, object_) for object_ in objects):
        fetching.doubted = objects
        ask_shard(core, MEMBERSHIP_SHARD, Watch(core.members.version))
    else:
        _lost(core, objects)


def _has_stranger(core: NodeCore, object_: int) -> bool:
    wanted = _input_of(core, core.fetching.coming[object_], object_)
    known = (core.node, CLIENT)
    return wanted is not None and any(place not in core.members and place not in known for place in wanted.places)


def look_again(core: NodeCore) -> None:
    """The members are known again: fetch what was in doubt from those that are new, give up the rest."""
    fetching = own_fetching(core)
    objects, fetching.doubted = fetching.doubted or [], None
    since, fetching.doubted_since = fetching.doubted_since, ()
    lost: list[int] = []
    for object_ in objects:
        waiting = fetching.coming.get(object_)
        if waiting is None:
            continue
        wanted = _input_of(core, waiting, object_)
        place = _next_place(core, wanted) if wanted is not None else None
        if wanted is None or place is None:
            lost.append(object_)
        else:
            core.out.append(FetchObjects((ObjectTransfer(object_, wanted.size_bytes, place),)))
    _lost(core, lost)
    core.schedule_soon()  # executors may have been kept for tasks that do not come any more
    if since:
        _doubt(core, [*since])


def _input_of(core: NodeCore, tasks: list[int], object_: int) -> Input | None:
    """The description of an object, from a task that still waits for it."""
    for task in tasks:
        entry = core.fetching.waiting.get(task)
        for one in entry.ready.inputs if entry is not None else ():
            if one.object == object_:
                return one
    return None


def _lost(core: NodeCore, objects: list[int]) -> None:
    """No place has these objects: the tasks that wait for them must have them made again."""
    fetching = core.fetching
    tried = {object_: fetching.tried.pop(object_, ()) for object_ in objects}
    waiting = [task for object_ in objects for task in fetching.coming.pop(object_)]
    for task in waiting:
        entry = fetching.waiting.pop(task, None)
        if entry is not None:
            unpin(core, entry.ready)
            core.give_up_inputs(entry.ready, tried)
