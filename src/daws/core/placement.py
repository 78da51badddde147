"""Ready tasks: where one goes when this node becomes its owner, and tasks that leave for another node.

Moving is claiming: a task that was offered stays in `lent` until its receiver says that it has claimed it. After a
while this node claims the task back from itself, so that a late claim fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.executors import start
from daws.core.objects import are_small, missing_inputs, pin
from daws.core.places import holds
from daws.core.queues import ReadyQueue, dedicated_queue, own_queues, shared_queue
from daws.core.transfer import know_until, push
from daws.model.task import AGAIN, Ready
from daws.strategy.decisions import DEDICATED, SHARED
from daws.wire.messages import PUSH

if TYPE_CHECKING:
    from daws.core.node import NodeCore

NOWHERE = -3
"""No member can run this task: it waits beside the queues until one joins."""


def enqueue(core: NodeCore, ready: Ready, dedicated: bool) -> None:
    if core.objects.pressed and core.step_forward(ready):
        return
    if core.plain and (dedicated or ready.inputs or ready.mode or ready.spec.needs is not None):
        core.end_plain()
    queues = own_queues(core)
    queues.note_waiting(core.now_ns)
    queue = dedicated_queue(core) if dedicated else shared_queue(core)
    queue.push(core.strategy.order.key(core, ready), queues.next_sequence(), ready)
    core.schedule_soon()


def accept(core: NodeCore, ready: Ready, alone: bool = False) -> None:
    """This node has become the owner of a ready task: let the strategy say where it belongs.

    A task that came `alone` may start at once; of several, `order` says which are the first.
    """
    if core.transfer.given_up and ready.move <= core.transfer.given_up.get(ready.spec.id, -1):
        return  # said before it went back to waiting, or the first of two answers, which comes last
    if ready.mode & AGAIN or (core.keeping is not None and core.keeping.doubts):
        if holds(core, ready.spec.id, ready.attempt, ready.move):
            return  # not heard for the first time
        if ready.attempt:
            core.call_off(ready.spec.id, ready.attempt - 1)  # the store has forgotten that it was ours: it is over
        if ready.mode & AGAIN:
            note_taken(core, ready)
        ready = Ready(ready.spec, ready.attempt, ready.move, ready.inputs, ready.mode & ~AGAIN)
    _settle(core, ready, core.strategy.place.choose(core, ready, core.rng), alone)


def note_taken(core: NodeCore, ready: Ready) -> None:
    """Remember a task that this node was told of twice: the other answer may come when the task has long ended."""
    know_until(core, ready)


def accept_all(core: NodeCore, tasks: tuple[Ready, ...]) -> None:
    """Many tasks at once, from a client or when their parent has ended: those that run anywhere take a short way."""
    if core.objects.pressed or (core.keeping is not None and core.keeping.doubts):
        for ready in tasks:
            accept(core, ready)
        core.schedule_soon()
        return
    place, order = core.strategy.place, core.strategy.order
    choose, key = place.choose, order.key
    rng, takes_plain = core.rng, core.takes_plain
    shared, queues = shared_queue(core), core.queues
    queues.note_waiting(core.now_ns)
    unlabelled = shared.labelled is None  # else those that came before and have a context would have to wait
    neutral = unlabelled and plain_is_neutral(core)
    light = neutral and core.tuning.threshold > 0 and _small_is_neutral(core)
    plain: list[Ready] = []
    for ready in tasks:
        spec = ready.spec
        if neutral and not (ready.mode or spec.priority or spec.rank) and spec.needs is None and takes_plain:
            if not ready.inputs:
                plain.append(ready)
                continue
            if light and are_small(ready.inputs):
                plain.append(ready)
                core.end_plain()
                continue
        if ready.mode:
            accept(core, ready)
            continue
        choice = choose(core, ready, rng)
        if choice >= 0 or not takes_plain or spec.needs is not None:
            _settle(core, ready, choice, False)
            continue
        rank = key(core, ready)
        if choice == SHARED and unlabelled and not rank and (not ready.inputs or are_small(ready.inputs)):
            plain.append(ready)
            if ready.inputs:
                core.end_plain()
        else:
            queue = shared if choice == SHARED else dedicated_queue(core)
            queue.push(rank, queues.next_sequence(), ready)
            core.end_plain()
    if plain:
        shared.push_plain(plain)
    core.schedule_soon()


def plain_is_neutral(core: NodeCore) -> bool:
    """Need the strategy not be asked about tasks that are like all others?"""
    traits = core.strategy.traits
    return traits.place.plain_is_neutral and traits.order.plain_is_neutral


def _small_is_neutral(core: NodeCore) -> bool:
    """Need the strategy not be asked about such tasks that read only objects inside records?"""
    traits = core.strategy.traits
    return traits.place.small_is_neutral and traits.order.small_is_neutral


def accept_plain(core: NodeCore, tasks: list[Ready], alike: int | None) -> None:
    """Many new tasks that read nothing, need nothing and are as urgent as any other; `alike` is their kind, if all are
    of one."""
    shared = core.queues.shared
    if (
        core.objects.pressed
        or (core.keeping is not None and core.keeping.doubts)
        or not core.takes_plain
        or shared.labelled is not None
        or not plain_is_neutral(core)
    ):
        accept_all(core, tuple(tasks))
        return
    own_queues(core).note_waiting(core.now_ns)
    shared_queue(core).push_plain(tasks, alike)
    core.schedule_soon()


def _settle(core: NodeCore, ready: Ready, choice: int, alone: bool) -> None:
    """Carry out what the strategy chose."""
    if choice < 0 and not (core.takes_plain if ready.spec.needs is None else can_run_here(core, ready)):
        choice = _elsewhere(core, ready)
        if choice == NOWHERE:
            own_queues(core).strand(ready)
            return
    if choice == SHARED:
        if not (alone and start_at_once(core, ready)):
            enqueue(core, ready, False)
    elif choice == DEDICATED or choice == core.node:
        if not (alone and start_at_once(core, ready)):
            enqueue(core, ready, True)
    elif choice in core.membership.leavers:
        _settle(core, ready, SHARED, alone)
    else:
        push(core, choice, PUSH, ready)


def start_at_once(core: NodeCore, ready: Ready) -> bool:
    """A task that finds an idle executor and empty queues need not stand in one: the scheduling pass would take it out
    again. False if it is not as simple as that."""
    if (
        not core.executors.plain_free
        or core.queues.shared.count
        or core.queues.dedicated.count
        or core.fetching.staged
        or core.executors.resumable
        or core.objects.pressed
        or ready.mode
        or ready.spec.needs is not None
        or core.executors.groups[0].context is not None
        or core.queues.doomed
        or core.now_ns >= core.membership.leased_until_ns
    ):
        return False
    if ready.inputs:
        if missing_inputs(core, ready):
            return False
        if core.objects.copies:
            pin(core, ready)
    core.end_plain()
    start(core, ready, core.executors.take_free())
    return True


def _elsewhere(core: NodeCore, ready: Ready) -> int:
    """A node that can run what this one cannot; which one follows from the task alone."""
    capable = core.members.capable(ready.spec.needs)
    if core.membership.leavers:
        capable = tuple([node for node in capable if node not in core.membership.leavers])
    return capable[(ready.spec.id * 0x9E3779B1 >> 8) % len(capable)] if capable else NOWHERE


def can_run_here(core: NodeCore, ready: Ready) -> bool:
    return core.takes_plain if ready.spec.needs is None else core.info.can_run(ready.spec.needs)


def place_stranded(core: NodeCore) -> None:
    """The members have changed: perhaps one of them can run what nobody could."""
    for ready in core.queues.take_stranded():
        _settle(core, ready, core.strategy.place.choose(core, ready, core.rng), False)


def next_queue(core: NodeCore) -> ReadyQueue:
    """Where the next task is taken from: what is dedicated to this node comes first, unless the order counts across."""
    dedicated, shared = core.queues.dedicated, core.queues.shared
    if not dedicated.count:
        return shared
    if core.one_line and shared.count and shared.first_key() < dedicated.first_key():
        return shared
    return dedicated
