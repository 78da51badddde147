"""Objects on this node: those that were made here, and copies of those that were made elsewhere.

An object that was made here stays until every task that reads it has finished (`made`); its readers elsewhere say so in
`Releases`. Those messages may get lost: if a release does not come for long, the store is asked (`audit`). A fetched
object is a copy: it stays while tasks here read it, and after that as long as `cache` wants it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.effects import DropObject, Send
from daws.core.empty import shared_part
from daws.core.events import ObjectsLost, ObjectsPut
from daws.core.handlers import handles
from daws.core.store_calls import ask
from daws.model.task import FIRST_SPAWNED_ID, INLINE_BYTES, Input, NodeId, Ready
from daws.wire.messages import Releases
from daws.wire.store import ALL_READ, HELD, Inspect, Release

if TYPE_CHECKING:
    from daws.core.node import NodeCore

AUDIT_ROWS_MAX = 256
AUDITS = 4
"""The number of audits in the time after which an object is audited."""
RELEASES_MIN = 16
RELEASE_TICKS = 4
"""Fewer releases than that for one place wait for so many ticks."""
FEW_READERS = 8
"""Up to so many readers, a tuple is smaller and quicker than a set."""


class Made(Struct, frozen=True, gc=False):
    """The objects that a task has made here, the readers that have yet to finish, and since when this node waits for
    them."""

    readers: set[int] | tuple[int, ...]
    since_ns: int
    objects: tuple[int, ...]


class NodeObjects:
    """The objects of one node, and who still needs them."""

    __slots__ = (
        *("attempts", "audit_at_ns", "cache_hits", "copied_bytes", "copies", "finishing", "freed", "fresh", "lacked"),
        *("local_hits", "made", "moved_bytes", "pressed", "read_bytes", "release_ticks", "releases", "sizes", "strays"),
    )

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # in bytes, of all that is here
        self.made: dict[int, Made] = {}  # by task that ran here
        self.attempts: dict[int, int] = {}  # which attempt made what is in `made`, where it was not the first
        self.strays: set[int] = set()  # objects that were made here by tasks planned for other nodes
        self.copies: dict[int, int] = {}  # fetched objects and how many tasks here still read them
        self.fresh: set[int] = set()  # copies that no task has read yet
        self.copied_bytes = 0
        self.finishing: dict[int, Ready] = {}  # tasks with inputs whose commit is on its way
        self.releases: dict[NodeId, list[tuple[int, int]]] = {}
        self.release_ticks = 0
        self.freed: list[int] = []  # tasks to be released in the store
        self.audit_at_ns = 0
        self.lacked: dict[int, int] = {}  # how often a task found an object damaged here
        self.pressed = False  # there is too little room for objects
        self.read_bytes = 0
        self.moved_bytes = 0
        self.local_hits = 0
        self.cache_hits = 0


NO_OBJECTS = shared_part(NodeObjects())
"""Shared by all nodes that have never had an object. `own_objects` creates a node's own."""


def own_objects(core: NodeCore) -> NodeObjects:
    """The objects of this node, to change something."""
    if core.objects is NO_OBJECTS:
        core.objects = NodeObjects()
    return core.objects


def set_pressed(core: NodeCore, pressed: bool) -> None:
    """There is too little room for objects, or enough again."""
    own_objects(core).pressed = pressed


def add_object(core: NodeCore, object_: int, size_bytes: int) -> None:
    """An object is here from now on."""
    objects = core.objects
    if objects is NO_OBJECTS:
        objects = own_objects(core)
    objects.sizes[object_] = size_bytes


def add_stray(core: NodeCore, objects: Iterable[int]) -> None:
    """Note objects that were made here by a task that was planned for another node."""
    own_objects(core).strays.update(objects)


@handles(ObjectsPut)
def on_objects_put(core: NodeCore, event: ObjectsPut) -> None:
    own_objects(core).sizes.update(event.objects)


@handles(ObjectsLost)
def on_objects_lost(core: NodeCore, event: ObjectsLost) -> None:
    """Files of objects are damaged or gone: as if this node had never had them."""
    for object_ in event.objects:
        _forget(core, object_)


def count_damage(core: NodeCore, task: int, most: int) -> int:
    """How often this task has found an object damaged here; after so many times the count begins anew."""
    lacked = own_objects(core).lacked
    count = lacked[task] = lacked.get(task, 0) + 1
    if count >= most:
        del lacked[task]
    return count


def missing_inputs(core: NodeCore, ready: Ready) -> Sequence[Input]:
    objects, inputs = core.objects.sizes, ready.inputs
    if len(inputs) == 1:  # most tasks of most graphs
        return inputs if inputs[0].object not in objects and inputs[0].size_bytes > INLINE_BYTES else ()
    return [one for one in inputs if one.object not in objects and one.size_bytes > INLINE_BYTES]


def are_small(inputs: tuple[Input, ...]) -> bool:
    """Do all of these travel inside records? Then there is nothing to fetch, to pin or to let go of."""
    for one in inputs:  # noqa: SIM110 (a generator would cost more than the question)
        if one.size_bytes > INLINE_BYTES:
            return False
    return True


def large_objects(outputs: tuple[Input, ...]) -> tuple[int, ...]:
    """The outputs that do not travel inside records."""
    if len(outputs) == 1:
        return (outputs[0].object,) if outputs[0].size_bytes > INLINE_BYTES else ()
    return tuple([one.object for one in outputs if one.size_bytes > INLINE_BYTES])


# -- copies ------------------------------------------------------------------------------------------------------------


def add_copy(core: NodeCore, object_: int, size_bytes: int, readers: int) -> bool:
    """An object was fetched for so many readers. False if it was made here meanwhile."""
    objects = own_objects(core)
    objects.moved_bytes += size_bytes
    if object_ in objects.sizes:
        return False
    objects.sizes[object_] = size_bytes
    objects.copies[object_] = readers
    objects.fresh.add(object_)
    objects.copied_bytes += size_bytes
    return True


def copies_bytes_max(core: NodeCore) -> int:
    """The room that copies may take."""
    return min(core.config.memory_bytes, core.strategy.traits.cache.limit_bytes)


def evict(core: NodeCore) -> None:
    """Drop the oldest copies that nobody here reads, until what is left fits: those that came first, or those that were
    not read for the longest time."""
    objects, most = core.objects, copies_bytes_max(core)
    if objects.copied_bytes > most:
        for object_, readers in list(objects.copies.items()):
            if objects.copied_bytes <= most:
                return
            if not readers:
                _drop_copy(core, object_)


def _drop_copy(core: NodeCore, object_: int) -> None:
    objects = core.objects
    del objects.copies[object_]
    objects.fresh.discard(object_)
    objects.copied_bytes -= objects.sizes.pop(object_)
    core.out.append(DropObject(object_))


def pin(core: NodeCore, ready: Ready) -> None:
    """A task left the queues: copies that it reads stay until it has ended."""
    copies = core.objects.copies
    if copies:
        for one in ready.inputs:
            if one.object in copies:
                copies[one.object] += 1


def pin_copy(core: NodeCore, object_: int) -> None:
    """A copy stays until the other objects of its task are here as well."""
    if object_ in core.objects.copies:
        core.objects.copies[object_] += 1


def unpin(core: NodeCore, ready: Ready) -> None:
    """A task has ended here, or will not run here after all."""
    copies = core.objects.copies
    if not copies:
        return
    for one in ready.inputs:
        readers = copies.get(one.object)
        if readers is None:
            continue
        copies[one.object] = readers = max(0, readers - 1)
        if not readers and not core.strategy.cache.keeps(core, one.size_bytes):
            _drop_copy(core, one.object)


def unpin_copy(core: NodeCore, object_: int) -> None:
    """A copy that was kept for others goes, unless a task reads it."""
    copies = core.objects.copies
    if object_ in copies:
        copies[object_] -= 1
        if not copies[object_]:
            _drop_copy(core, object_)


def own_copies(core: NodeCore, objects: Iterable[int]) -> None:
    """Let copies count as made here from now on."""
    here = core.objects
    for one in objects:
        if here.copies.pop(one, None) is not None:
            here.fresh.discard(one)
            here.copied_bytes -= here.sizes[one]


def end_reading(core: NodeCore, ready: Ready) -> None:
    """A run has ended: note what it read and from where (for `adapt`, `explain` and the statistics), and unpin it."""
    objects = core.objects
    copies, fresh = objects.copies, objects.fresh
    read_bytes = 0
    for one in ready.inputs:
        object_, size_bytes = one.object, one.size_bytes
        if size_bytes <= INLINE_BYTES:
            continue
        read_bytes += size_bytes
        if object_ not in copies:
            objects.local_hits += 1
            continue
        if object_ in fresh:
            fresh.discard(object_)  # the first reader pays for the transfer, the next ones profit
        else:
            objects.cache_hits += 1
        if core.strategy.traits.cache.by_use:
            copies[object_] = copies.pop(object_)  # behind those that were not read for longer
        copies[object_] = readers = copies[object_] - 1
        if readers <= 0 and not core.strategy.cache.keeps(core, size_bytes):
            _drop_copy(core, object_)
    if read_bytes:
        objects.read_bytes += read_bytes


# -- objects that were made here ---------------------------------------------------------------------------------------


def begin_finishing(core: NodeCore, ready: Ready) -> None:
    """A task that read something has ended here; its commit is on its way."""
    objects = core.objects
    if objects is NO_OBJECTS:
        objects = own_objects(core)
    objects.finishing[ready.spec.id] = ready


def end_finishing(core: NodeCore, task: int) -> Ready | None:
    """The commit was answered."""
    finishing = core.objects.finishing
    return finishing.pop(task, None) if finishing else None


def keep_made(core: NodeCore, task: int, readers: tuple[int, ...], objects: tuple[int, ...], attempt: int) -> None:
    """Keep what a task has made here until these readers have finished."""
    here = own_objects(core)
    here.made[task] = Made(set(readers) if len(readers) > FEW_READERS else readers, core.now_ns, objects)
    if attempt:
        here.attempts[task] = attempt


def put_object(core: NodeCore, task: int, outputs: tuple[Input, ...]) -> None:
    """Objects from outside that the client has put here: as if they were made here, for the client."""
    objects = large_objects(outputs)
    if objects:
        here = own_objects(core)
        here.sizes.update([(one.object, one.size_bytes) for one in outputs if one.object in objects])
        here.made[task] = Made((HELD,), core.now_ns, objects)


def unhold(core: NodeCore, task: int, readers: Iterable[int]) -> None:
    """The client does not hold these objects any more: they wait for these readers alone."""
    made = core.objects.made[task]
    core.objects.made[task] = Made({*readers, HELD}, made.since_ns, made.objects)
    release_made(core, task, HELD)


def adopt_made(core: NodeCore, producer: int, attempt: int, readers: tuple[int, ...], objects: tuple[int, ...]) -> None:
    """Keep what another node has made, as if it was made here."""
    own_copies(core, objects)
    here = own_objects(core)
    known = here.made.get(producer)  # made or put here as well, or adopted before
    readers = readers if known is None else tuple(dict.fromkeys((*known.readers, *readers)))
    here.made[producer] = Made(readers, core.now_ns, objects)
    if attempt:
        here.attempts[producer] = attempt


def let_go_of_made(core: NodeCore, producer: int) -> None:
    """Another node has these objects from now on, or nobody needs them."""
    here = core.objects
    for object_ in here.made.pop(producer).objects:
        _drop(core, object_)
    here.attempts.pop(producer, None)


def release_inputs(core: NodeCore, ready: Ready) -> None:
    """A task is done for good: the places of what it read learn that it needs it no more."""
    task, node = ready.spec.id, core.node
    releases: dict[NodeId, list[tuple[int, int]]] | None = None
    for one in ready.inputs:
        producer = one.producer
        if one.size_bytes <= INLINE_BYTES or producer < 0:
            continue
        for place in one.places:  # one, unless it was put in from outside
            if place == node:
                release_made(core, producer, task)
                continue
            pair = (producer, task)
            if releases is None:
                releases = own_objects(core).releases
            pairs = releases.get(place)
            if pairs is None:
                releases[place] = [pair]
            elif pairs[-1] != pair:  # a task may read several objects of the same producer
                pairs.append(pair)


def send_releases(core: NodeCore) -> None:
    """Send releases, on each tick: to each place for which there are many, and now and then to all (they are not
    urgent)."""
    objects = core.objects
    objects.release_ticks += 1
    all_ = not objects.release_ticks % RELEASE_TICKS
    later: dict[NodeId, list[tuple[int, int]]] = {}
    for place, pairs in objects.releases.items():
        if not all_ and len(pairs) < RELEASES_MIN:
            later[place] = pairs
        elif place in core.members:
            core.out.append(Send(place, Releases(core.node, tuple(pairs))))
    objects.releases = later


def send_all_releases(core: NodeCore) -> None:
    """Send the releases for all places now."""
    releases = own_objects(core).releases
    for place, pairs in releases.items():
        if place in core.members:
            core.out.append(Send(place, Releases(core.node, tuple(pairs))))
    releases.clear()


@handles(Releases)
def on_releases(core: NodeCore, message: Releases) -> None:
    for producer, child in message.pairs:
        release_made(core, producer, child)


def release_made(core: NodeCore, producer: int, child: int) -> None:
    here = core.objects
    entry = here.made.get(producer)
    if entry is None:
        return
    readers = entry.readers
    if isinstance(readers, set):
        readers.discard(child)
        if readers:
            return
    elif readers != (child,):
        left = tuple([reader for reader in readers if reader != child])
        here.made[producer] = Made(left, entry.since_ns, entry.objects)
        return
    # Every task that reads these objects has finished: they may go, here and in the store.
    del here.made[producer]
    for object_ in entry.objects:
        _drop(core, object_)
    if here.attempts and producer in here.attempts:
        ask(core, producer, Release(producer, ALL_READ, here.attempts.pop(producer)))
        return
    here.freed.append(producer)
    if len(here.freed) >= core.config.freed_batch:
        send_freed(core)


def drop_held(core: NodeCore, task: int) -> None:
    """Drop objects of a task that the store has forgotten: nobody holds it, and nobody will read it. They were put on
    several nodes, or made again elsewhere, or their session has ended."""
    readers = core.objects.made[task].readers
    if HELD in readers:
        for reader in tuple(readers):
            release_made(core, task, reader)


def send_freed(core: NodeCore) -> None:
    """Tell the store of all tasks whose objects have gone (those of first attempts). They only take up room there: that
    is not urgent."""
    freed = core.objects.freed
    if freed:  # not a node that has never had an object
        for task in freed:
            ask(core, task, Release(task))
        freed.clear()


def drop_made(core: NodeCore, outputs: tuple[Input, ...]) -> None:
    """Objects of a run that did not win, or that nobody reads."""
    for one in outputs:
        _drop(core, one.object)


def _drop(core: NodeCore, object_: int) -> None:
    here = core.objects
    if here.strays:
        here.strays.discard(object_)
    if object_ in here.sizes:
        del here.sizes[object_]
        core.out.append(DropObject(object_))


def _forget(core: NodeCore, object_: int) -> None:
    """An object that we had, or a copy of it, is lost; its file is gone already."""
    here = own_objects(core)
    if here.strays:
        here.strays.discard(object_)
    size_bytes = here.sizes.pop(object_, 0)
    if object_ in here.copies:
        del here.copies[object_]
        here.fresh.discard(object_)
        here.copied_bytes -= size_bytes


def release_for(core: NodeCore, reader: int) -> None:
    """This reader has ended without telling us."""
    for producer in [producer for producer, entry in core.objects.made.items() if reader in entry.readers]:
        release_made(core, producer, reader)


def audit_in_time(core: NodeCore) -> None:
    """Look through all that was made here, if that is due; called on each tick."""
    here = core.objects
    if core.now_ns >= here.audit_at_ns:
        here.audit_at_ns = core.now_ns + core.config.audit_ns // AUDITS
        _audit(core, core.config.audit_ns)
    elif core.leaving is not None:
        # It waits for the readers, and who was to tell it may have been told of another place.
        _audit(core, 2 * core.config.tick_ns)


def _audit(core: NodeCore, timeout_ns: int) -> None:
    """Objects that wait for their readers for so long: a release may have been lost, so ask the store."""
    limit = core.now_ns - timeout_ns
    made = core.objects.made
    children: dict[int, None] = {}  # a task that reads very much is among the readers of very many
    for producer, entry in made.items():
        pending = entry.readers
        if entry.since_ns > limit or len(children) >= AUDIT_ROWS_MAX:
            continue
        made[producer] = Made(pending, core.now_ns, entry.objects)
        children.update(dict.fromkeys(sorted(pending)[:AUDIT_ROWS_MAX]))
        if HELD in pending and producer < FIRST_SPAWNED_ID:
            children[producer] = None  # its client may have let go of it, or its session may have ended
    children.pop(HELD, None)
    for child in children:
        ask(core, child, Inspect(child, brief=True))
