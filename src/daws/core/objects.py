"""Objects: what a task reads is brought here before it runs, and nothing is kept that nobody needs.

An object that was made here stays until every task that reads it has finished (`made`); its readers elsewhere say so in
`Releases`. Those messages may get lost: what stays unreleased for long is looked up in the store (`audit`). An object
that was fetched is a copy: it stays while tasks here read it, and after that as long as `cache` wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daws.core.effects import DropObject, FetchObjects, Send
from daws.core.empty import EMPTY
from daws.core.events import ObjectsFetched, ObjectsPut
from daws.core.handlers import handles
from daws.core.handover import arrived, not_coming
from daws.core.remake import give_up_inputs
from daws.core.store_calls import ask, ask_shard
from daws.model.task import CLIENT, INLINE_BYTES, Input, NodeId, Ready, Transfer
from daws.wire.messages import Releases
from daws.wire.store import HELD, MEMBERSHIP_SHARD, Inspect, Release, Watch

if TYPE_CHECKING:
    from daws.core.node import NodeCore

AUDIT_ROWS_MAX = 256
RELEASES_MIN = 16
RELEASE_TICKS = 4
"""Fewer releases than that for one place wait for so many ticks."""
FETCH_AHEAD_NS = 1_000_000_000
"""Who had to fetch something looks ahead in its queue for so long; where all is local, looking would be in vain."""


def own_objects(core: NodeCore) -> dict[int, int]:
    """What is here, to add something to it."""
    if core.objects is EMPTY:
        core.objects = {}
    return core.objects


def missing_inputs(core: NodeCore, ready: Ready) -> Sequence[Input]:
    objects, inputs = core.objects, ready.inputs
    if len(inputs) == 1:  # most tasks of most graphs
        return inputs if inputs[0][0] not in objects and inputs[0][1] > INLINE_BYTES else ()
    return [one for one in inputs if one[0] not in objects and one[1] > INLINE_BYTES]


def are_small(inputs: tuple[Input, ...]) -> bool:
    """Do all of these travel inside records? Then there is nothing to fetch, to pin or to let go of."""
    for one in inputs:  # noqa: SIM110 (a generator would cost more than the question)
        if one[1] > INLINE_BYTES:
            return False
    return True


def stage(core: NodeCore, ready: Ready, missing: Sequence[Input]) -> None:
    """Fetch what is missing; the task waits beside the queues meanwhile and holds no executor."""
    task = ready.spec.id
    core.fetch_until_ns = core.now_ns + FETCH_AHEAD_NS
    if core.staging is None:
        core.staging = {}
    if core.fetching is None:
        core.fetching = {}
    core.staging[task] = (ready, {one[0] for one in missing})
    if core.copies:
        pin(core, ready)
    fetching, tried, members, node = core.fetching, core.tried, core.members, core.node
    wanted: list[Transfer] = []
    gone: list[int] = []
    for one in missing:
        object_, size_bytes, _, places, _ = one
        waiting = fetching.get(object_)
        if waiting is not None:
            waiting.append(task)
            continue
        fetching[object_] = [task]
        place: NodeId | None = places[0] if places else None
        if tried or place == node or place not in members:  # unusual
            place = _next_place(core, one)
            if place is None:
                gone.append(object_)
                continue
        wanted.append((object_, size_bytes, place))  # type: ignore[arg-type]
    if wanted:
        core.out.append(FetchObjects(tuple(wanted)))
    if gone:
        _doubt(core, gone)


def _next_place(core: NodeCore, wanted: Input) -> NodeId | None:
    """The first of its places that is alive and has not failed us yet; the client comes last."""
    tried = core.tried.get(wanted[0], ())
    for place in wanted[3]:
        if place not in tried and place != core.node and (place in core.members or place == CLIENT):
            return place
    return None


@handles(ObjectsPut)
def on_objects_put(core: NodeCore, event: ObjectsPut) -> None:
    own_objects(core).update(event.objects)


@handles(ObjectsFetched)
def on_objects_fetched(core: NodeCore, event: ObjectsFetched) -> None:
    fetching = core.fetching
    if fetching is None:
        return
    staging = core.staging or EMPTY
    tried, objects = core.tried, own_objects(core)
    copies = core.copies
    if copies is None:
        core.copies = copies = {}
        core.fresh = set()
    fresh = core.fresh
    moved_bytes = copied_bytes = 0
    for object_, size_bytes, _ in event.fetched:
        waiting = fetching.pop(object_, None)
        if waiting is None:
            continue
        readers = 0
        for task in waiting:
            entry = staging.get(task)
            if entry is None:
                continue
            lacks = entry[1]
            if object_ not in lacks:
                continue
            readers += 1
            lacks.remove(object_)
            if not lacks:
                del staging[task]
                if core.staged is None:
                    core.staged = []
                core.staged.append(entry[0])
                core.dirty = True
        if tried:
            tried.pop(object_, None)
        adopted = core.adopting is not None and object_ in core.adopting
        if not readers and not adopted:
            core.out.append(DropObject(object_))  # the tasks that wanted it were called off meanwhile
            continue
        moved_bytes += size_bytes
        if object_ not in objects:  # else it was made here meanwhile
            objects[object_] = size_bytes
            copies[object_] = readers + adopted
            fresh.add(object_)
            copied_bytes += size_bytes
        if adopted:
            arrived(core, object_)
    core.moved_bytes += moved_bytes
    if copied_bytes:
        core.copied_bytes += copied_bytes
        if core.copied_bytes > core.copies_bytes_max:
            _evict(core)
    for transfer in event.failed:
        _fetch_elsewhere(core, transfer)


def _fetch_elsewhere(core: NodeCore, failed: Transfer) -> None:
    """A place did not have an object: try the next one."""
    assert core.fetching is not None
    object_, size_bytes, source = failed
    waiting = core.fetching.get(object_)
    if waiting is None:
        return
    core.dirty = True
    if core.tried is EMPTY:
        core.tried = {}
    core.tried[object_] = (*core.tried.get(object_, ()), source)
    wanted = _input_of(core, waiting, object_)
    if wanted is None:
        del core.fetching[object_]
        del core.tried[object_]
        not_coming(core, object_)
        return
    place = _next_place(core, wanted)
    if place is None:
        _doubt(core, [object_])
    else:
        core.out.append(FetchObjects(((object_, size_bytes, place),)))


def _doubt(core: NodeCore, objects: list[int]) -> None:
    """No member that we know of can give us these. A place that is no member has died, or joined so lately that we have
    not heard of it: the store says which, before what it has is given up."""
    if core.doubted is not None:
        core.doubted_since += (*objects,)  # what is asked already may be answered as of before they came up
    elif any(_has_stranger(core, object_) for object_ in objects):
        core.doubted = objects
        ask_shard(core, MEMBERSHIP_SHARD, Watch(core.members.version))
    else:
        _lost(core, objects)


def _has_stranger(core: NodeCore, object_: int) -> bool:
    assert core.fetching is not None
    wanted = _input_of(core, core.fetching[object_], object_)
    known = (core.node, CLIENT)
    return wanted is not None and any(place not in core.members and place not in known for place in wanted[3])


def look_again(core: NodeCore) -> None:
    """Who the members are was just heard: fetch what was in doubt from those who are new to us, give up the rest."""
    objects, core.doubted = core.doubted or [], None
    since, core.doubted_since = core.doubted_since, ()
    lost: list[int] = []
    for object_ in objects:
        waiting = core.fetching.get(object_) if core.fetching is not None else None
        if waiting is None:
            continue
        wanted = _input_of(core, waiting, object_)
        place = _next_place(core, wanted) if wanted is not None else None
        if wanted is None or place is None:
            lost.append(object_)
        else:
            core.out.append(FetchObjects(((object_, wanted[1], place),)))
    _lost(core, lost)
    core.dirty = True  # executors may have been kept for tasks that do not come any more
    if since:
        _doubt(core, [*since])


def _evict(core: NodeCore) -> None:
    """Drop the oldest copies that nobody here reads, until what is left fits: those that came first, or those that were
    not read for the longest time."""
    assert core.copies is not None
    for object_, readers in list(core.copies.items()):
        if core.copied_bytes <= core.copies_bytes_max:
            return
        if not readers:
            _drop_copy(core, object_)


def _drop_copy(core: NodeCore, object_: int) -> None:
    assert core.copies is not None
    del core.copies[object_]
    core.fresh.discard(object_)
    core.copied_bytes -= core.objects.pop(object_)
    core.out.append(DropObject(object_))


def pin(core: NodeCore, ready: Ready) -> None:
    """A task left the queues: copies that it reads stay until it has ended."""
    copies = core.copies
    if copies:
        for one in ready.inputs:
            if one[0] in copies:
                copies[one[0]] += 1


def unpin(core: NodeCore, ready: Ready) -> None:
    """A task has ended here, or will not run here after all."""
    copies = core.copies
    if not copies:
        return
    for object_, size_bytes, _, _, _ in ready.inputs:
        readers = copies.get(object_)
        if readers is None:
            continue
        copies[object_] = readers = max(0, readers - 1)
        if not readers and not core.strategy.cache.keeps(core, size_bytes):
            _drop_copy(core, object_)


def end_reading(core: NodeCore, ready: Ready) -> None:
    """A run has ended: note what it read and from where (for `adapt`, `explain` and the statistics), and unpin it."""
    copies, fresh = core.copies or EMPTY, core.fresh
    read_bytes = 0
    for object_, size_bytes, _, _, _ in ready.inputs:
        if size_bytes <= INLINE_BYTES:
            continue
        read_bytes += size_bytes
        if object_ not in copies:
            core.local_hits += 1
            continue
        if object_ in fresh:
            fresh.discard(object_)  # the first reader pays for the transfer, the next ones profit
        else:
            core.cache_hits += 1
        if core.copies_by_use:
            copies[object_] = copies.pop(object_)  # behind those that were not read for longer
        copies[object_] = readers = copies[object_] - 1
        if readers <= 0 and not core.strategy.cache.keeps(core, size_bytes):
            _drop_copy(core, object_)
    core.read_bytes += read_bytes


def release_inputs(core: NodeCore, ready: Ready) -> None:
    """A task is done for good: the places of what it read learn that it needs it no more."""
    task, node, releases = ready.spec.id, core.node, core.releases
    for _, size_bytes, producer, places, _ in ready.inputs:
        if size_bytes > INLINE_BYTES and producer >= 0 and places:
            place = places[0]
            if place == node:
                release_made(core, producer, task)
                continue
            pair = (producer, task)
            if releases is None:
                core.releases = releases = {}
            pairs = releases.get(place)
            if pairs is None:
                releases[place] = [pair]
            elif pairs[-1] != pair:  # a task may read several objects of the same producer
                pairs.append(pair)


def send_releases(core: NodeCore) -> None:
    """On each tick: a message to each place for which there are many, and now and then to all (they are not urgent)."""
    core.release_ticks += 1
    if core.releases is None:
        return
    all_ = not core.release_ticks % RELEASE_TICKS
    later: dict[NodeId, list[tuple[int, int]]] = {}
    for place, pairs in core.releases.items():
        if not all_ and len(pairs) < RELEASES_MIN:
            later[place] = pairs
        elif place in core.members:
            core.out.append(Send(place, Releases(core.node, tuple(pairs))))
    core.releases = later or None


@handles(Releases)
def on_releases(core: NodeCore, message: Releases) -> None:
    for producer, child in message.pairs:
        release_made(core, producer, child)


def release_made(core: NodeCore, producer: int, child: int) -> None:
    entry = core.made.get(producer)
    if entry is None:
        return
    readers, since_ns, objects = entry
    if isinstance(readers, set):
        readers.discard(child)
        if readers:
            return
    elif readers != (child,):
        left = tuple([reader for reader in readers if reader != child])
        core.made[producer] = (left, since_ns, objects)
        return
    # Every task that reads these objects has finished: they may go, here and in the store.
    del core.made[producer]
    for object_ in objects:
        _drop(core, object_)
    if core.attempts and producer in core.attempts:
        ask(core, producer, Release(producer, -1, core.attempts.pop(producer)))
        return
    freed = core.freed
    if freed is None:
        core.freed = freed = []
    freed.append(producer)
    if len(freed) >= core.config.freed_batch:
        send_freed(core)


def send_freed(core: NodeCore) -> None:
    """Tell the store of all tasks whose objects have gone (those of first attempts). They only take up room there: that
    is not urgent."""
    for task in core.freed or ():
        ask(core, task, Release(task))
    core.freed = None


def drop_made(core: NodeCore, outputs: tuple[Input, ...]) -> None:
    """Objects of a run that did not win, or that nobody reads."""
    for one in outputs:
        _drop(core, one[0])


def _drop(core: NodeCore, object_: int) -> None:
    if core.strays:
        core.strays.discard(object_)
    if object_ in core.objects:
        del core.objects[object_]
        core.out.append(DropObject(object_))


def forget(core: NodeCore, object_: int) -> None:
    """An object that we had, or a copy of it, is lost; its file is gone already."""
    if core.strays:
        core.strays.discard(object_)
    size_bytes = core.objects.pop(object_, 0) if core.objects else 0
    if core.copies and object_ in core.copies:
        del core.copies[object_]
        core.fresh.discard(object_)
        core.copied_bytes -= size_bytes


def release_for(core: NodeCore, reader: int) -> None:
    """This reader has ended without telling us."""
    for producer in [producer for producer, entry in core.made.items() if reader in entry[0]]:
        release_made(core, producer, reader)


def audit(core: NodeCore, patience_ns: int) -> None:
    """Objects that wait for their readers for so long: a release may have been lost, so ask what became of them."""
    limit = core.now_ns - patience_ns
    children: dict[int, None] = {}  # a task that reads very much is among the readers of very many
    for producer, (pending, since_ns, objects) in core.made.items():
        if since_ns > limit or len(children) >= AUDIT_ROWS_MAX:
            continue
        core.made[producer] = (pending, core.now_ns, objects)
        children.update(dict.fromkeys(sorted(pending)[:AUDIT_ROWS_MAX]))
    children.pop(HELD, None)
    for child in children:
        ask(core, child, Inspect(child, brief=True))


def _input_of(core: NodeCore, tasks: list[int], object_: int) -> Input | None:
    """What those that still wait for an object know of it."""
    for task in tasks:
        entry = core.staging.get(task) if core.staging is not None else None
        for one in entry[0].inputs if entry is not None else ():
            if one[0] == object_:
                return one
    return None


def _lost(core: NodeCore, objects: list[int]) -> None:
    """Nobody can give us these objects: those who wait for them must have them made again."""
    assert core.fetching is not None
    tried = {object_: core.tried.pop(object_) if object_ in core.tried else () for object_ in objects}
    waiting = [task for object_ in objects for task in core.fetching.pop(object_)]
    for task in waiting:
        entry = core.staging.pop(task, None) if core.staging is not None else None
        if entry is not None:
            unpin(core, entry[0])
            give_up_inputs(core, entry[0], tried)
