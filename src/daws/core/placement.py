"""Ready tasks: where one goes when this node becomes its owner, and tasks that leave for another node.

Moving is claiming: a task that was offered stays in `lent` until its receiver says that it has claimed it. After a
while this node claims the task back from itself, so that a late claim fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.objects import are_small
from daws.core.places import holds
from daws.core.queues import dedicated_queue, own_queues, shared_queue
from daws.core.transfer import NO_MOVE, know_until, push
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
    queue = dedicated_queue(core) if dedicated else shared_queue(core)
    queues = core.queues
    queues.note_waiting(core.now_ns)
    key = core.strategy.order.key(core, ready)
    if dedicated and core.lane_open:
        core.close_lane()
    queue.push(key, queues.next_sequence(), ready, not dedicated and is_plain(core, ready))
    core.schedule_soon()


def is_plain(core: NodeCore, ready: Ready) -> bool:
    """Does this task need one executor of any kind, run for the usual reason, and read only objects that travel inside
    records? A task with a rank is not plain if the strategy keeps executors for critical tasks."""
    spec = ready.spec
    return not (
        ready.mode
        or spec.needs is not None
        or (spec.rank and core.patience)
        or (ready.inputs and not are_small(ready.inputs))
    )


def accept(core: NodeCore, ready: Ready) -> None:
    """Let the strategy say where a ready task belongs that this node has become the owner of."""
    if core.transfer.given_up and ready.move <= core.transfer.given_up.get(ready.spec.id, NO_MOVE):
        return  # said before it went back to waiting, or the first of two answers, which comes last
    if ready.mode & AGAIN or (core.keeping is not None and core.keeping.doubts):
        if holds(core, ready.spec.id, ready.attempt, ready.move):
            return  # not heard for the first time
        if ready.attempt:
            core.call_off(ready.spec.id, ready.attempt - 1)  # the store has forgotten that it was ours: it is over
        if ready.mode & AGAIN:
            note_taken(core, ready)
        ready = Ready(ready.spec, ready.attempt, ready.move, ready.inputs, ready.mode & ~AGAIN)
    _settle(core, ready, core.strategy.place.choose(core, ready, core.rng))


def note_taken(core: NodeCore, ready: Ready) -> None:
    """Remember a task that this node was told of twice: the other answer may come when the task has long ended."""
    know_until(core, ready)


def accept_told(core: NodeCore, tasks: tuple[Ready, ...]) -> None:
    """Accept tasks of which the store or a client tells, without those of which is told too late."""
    known = core.transfer.given_up
    if known:
        tasks = tuple([one for one in tasks if one.move > known.get(one.spec.id, NO_MOVE)])
    accept_all(core, tasks)


def accept_all(core: NodeCore, tasks: tuple[Ready, ...]) -> None:
    """Accept many tasks at once, from a client or because their parent has ended. The strategy is not asked about plain
    tasks if its answer is known."""
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
    dedicated, next_sequence = None, queues.next_sequence
    unlabelled = shared.labelled is None  # else those that came before and have a context would have to wait
    neutral = takes_plain and unlabelled and plain_is_neutral(core)
    light = neutral and core.tuning.threshold > 0 and _small_is_neutral(core)
    plain: list[Ready] = []
    for ready in tasks:
        spec = ready.spec
        is_plain = neutral and not (ready.mode or spec.priority or spec.rank) and spec.needs is None
        if is_plain and (not ready.inputs or (light and are_small(ready.inputs))):
            plain.append(ready)
            continue
        if ready.mode:
            accept(core, ready)
            continue
        choice = choose(core, ready, rng)
        if choice >= 0 or not takes_plain or spec.needs is not None:
            _settle(core, ready, choice)
            continue
        rank = key(core, ready)
        if choice == DEDICATED:
            if dedicated is None:
                core.close_lane()
                dedicated = dedicated_queue(core)
            dedicated.push(rank, next_sequence(), ready)
        elif unlabelled and not rank and are_small(ready.inputs):
            plain.append(ready)
        else:
            shared.push(rank, next_sequence(), ready)
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
    """Accept many new tasks that read nothing, need nothing and are as urgent as any other. `alike` is their kind, if
    all have the same."""
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


def _settle(core: NodeCore, ready: Ready, choice: int) -> None:
    """Carry out what the strategy chose."""
    if choice < 0 and not can_run_here(core, ready):
        choice = _elsewhere(core, ready)
        if choice == NOWHERE:
            own_queues(core).strand(ready)
            return
    if choice == SHARED:
        enqueue(core, ready, False)
    elif choice == DEDICATED or choice == core.node:
        enqueue(core, ready, True)
    elif choice in core.membership.leavers:
        _settle(core, ready, SHARED)  # this node may be unable to run it
    else:
        push(core, choice, PUSH, ready)


def _elsewhere(core: NodeCore, ready: Ready) -> int:
    """A node that can run a task that this node cannot run. The task alone decides which one."""
    capable = core.members.capable(ready.spec.needs)
    if core.membership.leavers:
        capable = tuple([node for node in capable if node not in core.membership.leavers])
    return capable[(ready.spec.id * 0x9E3779B1 >> 8) % len(capable)] if capable else NOWHERE


def can_run_here(core: NodeCore, ready: Ready) -> bool:
    return core.takes_plain if ready.spec.needs is None else core.info.can_run(ready.spec.needs)


def place_stranded(core: NodeCore) -> None:
    """Place again, after the members have changed, the tasks that no member could run."""
    for ready in core.queues.take_stranded():
        _settle(core, ready, core.strategy.place.choose(core, ready, core.rng))
