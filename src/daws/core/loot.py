"""The tasks that a thief gets: part of the shared queue, by the owner's order, the thief's wish, or the thief's
objects."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from daws.core.fetching import take_staged
from daws.core.objects import unpin
from daws.core.peers import cached_bytes, most_cached_bytes, note_handed
from daws.core.reserve import expected_ns
from daws.model.context import Context, Wish, matches
from daws.model.task import INLINE_BYTES, REPLICA, Needs, NodeId, Ready
from daws.strategy.decisions import SHARED

if TYPE_CHECKING:
    from daws.core.node import NodeCore

STUCK_RUNS = 2
"""The number of mean run times after the last task came to empty queues by which staged tasks should have started."""

Contexts = tuple[Context | None, ...] | None


def loot_for(
    core: NodeCore, thief: NodeId, contexts: Contexts, wish: Wish | None, most: dict[int, int] | None = None
) -> list[Ready]:
    """Tasks that leave the shared queue for this thief, whose idle executors have these contexts (None: plain ones).

    A caller that serves several thieves in a row passes the same `most` each time: by task, the bytes at its best node.
    """
    if not core.queues.shared.count:
        return _staged(core, contexts)
    if _settles(core):
        return []
    loot = _chosen(core, thief, contexts, wish, most)
    return _without_copies(core, loot) if core.replicas.count else loot


def staged_count(core: NodeCore) -> int:
    """How many tasks have all that they read and wait for an executor, if that takes longer than tasks usually do and
    the strategy lets them go."""
    if (
        not (core.one_line and core.fetching.staged)
        or core.now_ns - core.queues.waiting_since_ns < STUCK_RUNS * core.lengths.mean_run_ns
    ):
        return 0
    return len(core.fetching.staged)


def _staged(core: NodeCore, contexts: Contexts) -> list[Ready]:
    """The last of those tasks, if it is quick to move: what runs here now may run for long."""
    if not staged_count(core) or not (contexts is None or any(matches(None, one) for one in contexts)):
        return []
    ready = core.fetching.staged[-1]
    if ready.mode or ready.spec.needs is not None or core.strategy.place.choose(core, ready, core.rng) != SHARED:
        return []
    take_staged(core, -1)
    unpin(core, ready)
    return [ready]


def _settles(core: NodeCore) -> bool:
    """Planned tasks have only just come, so others have yet to get theirs: who is idle now need not be so for long."""
    share = core.strategy.traits.balance.settle
    head = core.queues.shared.peek() if share else None
    if head is None or not head.spec.planned:
        return False
    return core.now_ns - core.queues.waiting_since_ns < share * expected_ns(core, head.spec)


def _without_copies(core: NodeCore, loot: list[Ready]) -> list[Ready]:
    """Put copies of other nodes' tasks back into the queue: this node may not hand them on."""
    for ready in loot:
        if ready.mode & REPLICA:
            core.queues.shared.push(core.strategy.order.key(core, ready), core.queues.next_sequence(), ready)
    return [ready for ready in loot if not ready.mode & REPLICA]


def _chosen(
    core: NodeCore, thief: NodeId, contexts: Contexts, wish: Wish | None, most: dict[int, int] | None
) -> list[Ready]:
    shared, balance = core.queues.shared, core.strategy.balance
    amount = balance.amount(core, shared.count)
    if core.peers.holders is not None:
        return _by_index(core, thief, contexts, amount, {} if most is None else most)
    if wish is not None:
        return _wished(core, thief, contexts, amount, wish)
    keeps = contexts is None and balance.from_head and core.strategy.traits.order.finishes
    loot = (_beginnings(core, amount) if keeps else []) or shared.cut(amount, balance.from_head, contexts)
    return loot if shared.plain else _within_reach(core, thief, contexts, amount, loot)


def _beginnings(core: NodeCore, amount: int) -> list[Ready]:
    """Where no ranks are known: tasks that begin something new rather than those that go on with what was begun here,
    which come first in the queue. None, if there are not both."""
    shared = core.queues.shared
    fifo, heap = shared.fifo, shared.heap
    if not fifo or not heap or shared.labelled is not None:
        return []
    head = heap[0][2].spec
    if head.rank or head.priority or heap[0][0] >= 0:
        return []
    return shared.cut_oldest(min(amount, len(fifo)))


def _wished(core: NodeCore, thief: NodeId, contexts: Contexts, amount: int, wish: Wish) -> list[Ready]:
    """The tasks that the thief wishes for, among those that it can run. (A search through the whole queue.)"""
    info = core.members.info(thief)
    able = info.can_run if info is not None else _asks_nothing
    return core.queues.shared.select(amount, core.strategy.balance.from_head, contexts, wish, able)


def _asks_nothing(needs: Needs | None) -> bool:
    return needs is None


def _within_reach(core: NodeCore, thief: NodeId, contexts: Contexts, amount: int, loot: list[Ready]) -> list[Ready]:
    """Tasks that need more cores or memory than the thief has stay here; only if those are all, it pays to search."""
    info, own = core.members.info(thief), core.info
    if info is not None and info.executors == own.executors and info.memory_bytes == own.memory_bytes:
        return loot  # whatever is shared here could run here
    able = info.can_run if info is not None else _asks_nothing
    within = [ready for ready in loot if ready.spec.needs is None or able(ready.spec.needs)]
    if len(within) == len(loot):
        return loot
    for ready in loot:
        if ready.spec.needs is not None and not able(ready.spec.needs):
            core.queues.shared.push(core.strategy.order.key(core, ready), core.queues.next_sequence(), ready)
    return within or _wished(core, thief, contexts, amount, Wish())


def _by_index(core: NodeCore, thief: NodeId, contexts: Contexts, amount: int, most: dict[int, int]) -> list[Ready]:
    """The tasks of which the thief has most, among the first of the queue that it can run."""
    info = core.members.info(thief)
    able = info.can_run if info is not None else _asks_nothing
    traits = core.strategy.traits.balance
    window, waits_for_best = traits.window, traits.waits_for_best

    def worth(ready: Ready) -> float:
        """Infinite if it has all that is to be had, negative if another has more and is to be waited for."""
        total = sum([one.size_bytes for one in ready.inputs if one.size_bytes > INLINE_BYTES])
        cached = cached_bytes(core, thief, ready) if total else 0
        if cached == total:
            return inf
        if waits_for_best:
            task = ready.spec.id
            if task not in most:
                most[task] = most_cached_bytes(core, ready)
            if cached < most[task]:
                return -1.0
        return float(cached)

    loot: list[Ready] = []
    while len(loot) < amount:
        ready = core.queues.shared.take_best(window, contexts, able, worth)
        if ready is None:
            break
        note_handed(core, thief, ready)
        loot.append(ready)
    return loot
