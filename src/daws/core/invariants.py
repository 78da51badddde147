"""Invariants: statements that hold for a node after any step. Checkers and property tests call `check`; nothing else
does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from daws.core.config import Phase
from daws.core.executors import Group
from daws.core.memory import memory_used
from daws.core.places import places
from daws.core.plain import is_clear
from daws.core.queues import ReadyQueue, is_doomed
from daws.core.view import counts
from daws.model.errors import InternalError
from daws.model.task import INLINE_BYTES, REPLICA

if TYPE_CHECKING:
    from daws.core.node import NodeCore

WAITING = frozenset(("dedicated", "shared", "staging", "staged"))
"""Places of tasks that are ready and do not run yet."""


def check(core: NodeCore) -> None:
    """Raise InternalError, with what is known about the node, unless everything fits together."""
    if core.phase == Phase.RESTARTING:
        return  # whatever it says is not heard any more
    wrong = [
        *_tasks(core),
        *_queue("dedicated", core.queues.dedicated),
        *_queue("shared", core.queues.shared),
        *_executors(core),
        *_lane(core),
        *_memory(core),
        *_objects(core),
        *_staging(core),
        *_intents(core),
        *_growing(core),
        *_leaving(core),
        *_step(core),
    ]
    if wrong:
        story = [*wrong[1:], repr(core), *(f"task {ready.spec.id} is {name}: {ready}" for name, ready in places(core))]
        raise InternalError(f"node {core.node} at {core.now_ns} ns: {wrong[0]}", story[:50])


def _tasks(core: NodeCore) -> list[str]:
    wrong: list[str] = []
    known: dict[int, tuple[str, int]] = {}
    for name, ready in places(core):
        task = ready.spec.id
        called_off = core.queues.doomed is not None and is_doomed(core, ready)
        if (ready.mode & REPLICA or called_off) and name in ("dedicated", "shared"):
            continue  # may stand beside the task itself until it comes up
        if task in known:
            wrong.append(f"task {task} is both {known[task][0]} and {name}")
        known[task] = (name, ready.move)
    for task, lent in core.transfer.lent.items():
        ready = lent.ready
        if task in known and known[task][1] <= ready.move and not ready.mode & REPLICA:
            wrong.append(f"task {task} is both {known[task][0]} and lent to {lent.to} with move {ready.move}")
        if lent.since_ns > core.now_ns:
            wrong.append(f"task {task} was lent at {lent.since_ns}, which is yet to come")
    for task, run in core.executors.running.items():
        if run.ready.spec.id != task:
            wrong.append(f"the run of task {run.ready.spec.id} stands under {task}")
    return wrong


def _queue(name: str, queue: ReadyQueue) -> list[str]:
    count = len(queue.all())
    return [f"the {name} queue counts {queue.count} tasks and has {count}"] if count != queue.count else []


def _executors(core: NodeCore) -> list[str]:
    wrong: list[str] = []
    used: Counter[int] = Counter()
    for run in core.executors.running.values():
        if not run.suspended:
            used.update((run.slot, *run.more_slots))
        elif run.more_slots:
            wrong.append(f"task {run.ready.spec.id} is suspended and keeps executors {list(run.more_slots)}")
    free: Counter[int] = Counter()
    first = 0
    for group in core.executors.groups:
        free.update(group.free)
        wrong += _foreign(group, first)
        first += group.count
    for slot in range(core.cores):
        sent = core.executors.inflight.get(slot, 1) if core.executors.inflight else 1
        if free[slot] > 1 or (free[slot] and used[slot]):
            wrong.append(f"executor {slot} is {free[slot]} times free and has {used[slot]} runs")
        elif not free[slot] and used[slot] != sent:
            wrong.append(f"executor {slot} is not free, was sent {sent} runs and has {used[slot]}")
    ahead = sum(sent - 1 for sent in (core.executors.inflight or {}).values())
    if ahead != core.executors.ahead or any(sent < 2 for sent in (core.executors.inflight or {}).values()):
        wrong.append(f"{core.executors.ahead} runs were sent ahead, by executor {core.executors.inflight}")
    return wrong


def _lane(core: NodeCore) -> list[str]:
    return (
        ["the lane is open, and not only the shared queue decides what runs"] if core.lane_open > is_clear(core) else []
    )


def _memory(core: NodeCore) -> list[str]:
    used, limit = memory_used(core), core.info.memory_bytes
    return [f"tasks that need {used} bytes of memory run together, there are {limit}"] if 0 < limit < used else []


def _foreign(group: Group, first: int) -> list[str]:
    own = range(first, first + group.count)
    return [f"executor {slot} is free in a group that has {own}" for slot in group.free if slot not in own]


def _objects(core: NodeCore) -> list[str]:
    here = core.objects
    wrong = [f"object {one} is a copy and not here" for one in here.copies if one not in here.sizes]
    size_bytes = sum(here.sizes.get(one, 0) for one in here.copies)
    if size_bytes != here.copied_bytes:
        wrong.append(f"copies have {size_bytes} bytes, counted as {here.copied_bytes}")
    readers: Counter[int] = Counter()
    for name, ready in places(core):
        if name in ("staging", "staged", "running", "suspended"):
            readers.update({one.object for one in ready.inputs})
    for one, count in here.copies.items():
        if count != readers[one]:
            wrong.append(f"object {one} is pinned by {count} tasks and read by {readers[one]}")
    wrong += [f"object {one} is fresh and no copy" for one in here.fresh if one not in here.copies]
    wrong += [f"object {one} has {size} bytes" for one, size in here.sizes.items() if size < 0]
    wrong += [f"task {task} keeps objects that nobody reads" for task, entry in here.made.items() if not entry.readers]
    return wrong


def _staging(core: NodeCore) -> list[str]:
    coming, tried = core.fetching.coming, core.fetching.tried
    wrong: list[str] = []
    for task, waiting in core.fetching.waiting.items():
        missing = waiting.lacks
        if not missing:
            wrong.append(f"task {task} is staging and has all it reads")
        wrong += [f"task {task} waits for object {one}, which nobody fetches" for one in missing if one not in coming]
        wrong += [
            f"task {task} waits for object {one} and will not be told"
            for one in missing
            if one in coming and task not in coming[one]
        ]
    wrong += [f"places were tried for object {one}, which nobody fetches" for one in tried if one not in coming]
    for ready in core.fetching.staged:
        large = {one.object for one in ready.inputs if one.size_bytes > INLINE_BYTES}
        missing = large - core.objects.sizes.keys()
        if missing:
            wrong.append(f"task {ready.spec.id} is staged without objects {sorted(missing)}")
    return wrong


def _intents(core: NodeCore) -> list[str]:
    wrong = [f"intent {one.key} waits for {one.left} answers" for one in core.outbox.telling.values() if one.left <= 0]
    waiting = Counter([number for number, _ in (*core.outbox.wakes, *core.outbox.stops)])
    for number, count in waiting.items():
        left = core.outbox.telling[number].left if number in core.outbox.telling else 0
        if count > left and (number or core.keeping is None):  # 0: what a store that forgot something brought to light
            wrong.append(f"{count} nodes are to be told for intent {number}, which waits for {left}")
    known = {(one.key, one.mark) for one in core.outbox.telling.values()}.union(*core.outbox.clearing.values())
    wrong += [
        f"the end under key {key} spreads, but nobody is told"
        for key, mark in core.outbox.spreading
        if (key, mark) not in known and core.keeping is None
    ]
    wrong += [f"shard {shard} is to be cleared of nothing" for shard, keys in core.outbox.clearing.items() if not keys]
    wrong += [f"order {batch} waits for {left} cancels" for batch, left in core.outbox.orders.items() if left <= 0]
    return wrong


def _growing(core: NodeCore) -> list[str]:
    if core.keeping is not None:
        return []  # those that are created and not safe yet count as well
    pending = Counter(seedling.run.number for (_, waits), seedling in core.spawning.growing.items() if not waits)
    pending.update(run.number for runs in core.spawning.brought.values() for run in runs)
    return [
        f"task {task} waits for {run.growing} tasks to be created, {pending[run.number]} are on their way"
        for task, run in core.executors.running.items()
        if run.growing != pending[run.number]
    ]


def _leaving(core: NodeCore) -> list[str]:
    """A node that leaves starts nothing, asks for nothing, and keeps only its runs and what nobody is there to take."""
    leavers = core.membership.leavers
    wrong = [f"node {node} is about to leave and is no member" for node in leavers if node not in core.members]
    if core.leaving is None:
        return wrong
    if core.membership.leased_until_ns:
        wrong.append(f"it leaves and may start tasks until {core.membership.leased_until_ns}")
    if core.search.probe is not None or core.search.stealing_since_ns >= 0:
        wrong.append("it leaves and looks for work, or for takers one by one")
    if core.leaving.said:
        if core.executors.running and not core.leaving.is_late:
            wrong.append(f"it has said farewell with {len(core.executors.running)} runs")
        return wrong  # what it hears from now on is none of its business
    waiting = [f"task {ready.spec.id} is {name}" for name, ready in places(core) if name in WAITING]
    if waiting:
        wrong.append(f"it leaves and keeps what could run elsewhere: {waiting[0]}")
    others = [node for node in core.members.nodes if node != core.node and node not in core.membership.leavers]
    if core.queues.stranded and others:
        wrong.append(f"it leaves and keeps {len(core.queues.stranded)} tasks that node {others[0]} could be given")
    return wrong


def _step(core: NodeCore) -> list[str]:
    wrong: list[str] = []
    store, search, transfer = core.store, core.search, core.transfer
    due = store.rows is not None and (store.urgent or core.now_ns >= store.held_until_ns)
    if due or transfer.offers or transfer.taken or core.dirty:
        wrong.append("the step ended with something left to do")
    if (core.phase == Phase.LEAVING) != (core.leaving is not None):
        wrong.append(f"it is in phase {core.phase} and {'leaves' if core.leaving else 'stays'}")
    if search.probe is not None and not (search.stealing_since_ns >= 0 and len(search.probe) < search.probe_count):
        wrong.append(f"{len(search.probe)} of {search.probe_count} asked nodes have said their load, nothing follows")
    wrong += [
        f"call {token} is numbered above {core.executors.token}"
        for token in store.calls
        if token > core.executors.token
    ]
    counted = counts(core)
    wrong += [f"{name} is {getattr(counted, name)}" for name in counted.__struct_fields__ if getattr(counted, name) < 0]
    return wrong
