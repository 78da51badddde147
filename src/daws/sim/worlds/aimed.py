"""Faults that wait for the worst moment.

A node dies just after it has sent something to the store that matters, and the store receives that much later, or right
after the node was declared dead. Or it dies while it takes over from another node, and some shards never hear of it.
"""

from collections.abc import Sequence
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import RunEnded
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.faults import Faults
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE, STORE
from daws.sim.worlds.graphs import MS
from daws.sim.worlds.scenario import Scenario
from daws.wire.store import (
    REMAKE_FOR,
    SATISFY,
    Claim,
    Clear,
    Finish,
    Row,
    Satisfy,
    Suspend,
    TakeOver,
    Unready,
    outbox_key,
)


class AimedFaults(Faults):
    """The faults of a scenario: those of its plan, and those that wait for their moment."""

    def __init__(self, kernel: Kernel, scenario: Scenario) -> None:
        super().__init__(kernel, scenario.plan, scenario.seed)
        # how often each of them is still to strike
        self.deaths_after_call = scenario.deaths_after_call
        self.deaths_in_takeover = scenario.deaths_in_takeover
        self.partial_takeovers = scenario.partial_takeovers
        self.late_clears = scenario.late_clears
        self.worker_deaths = scenario.worker_deaths
        self.returns = scenario.returns
        self.last_calls: dict[NodeId, Any] = {}  # the last call of a dead node, which comes after its takeover
        self.clears: dict[tuple[NodeId, int], Any] = {}  # node and outbox key -> the call that cleared the entry
        self.one_shard: dict[NodeId, int] = {}  # nodes that are about to die -> the only shard that they may take over

    # -- calls to the store --------------------------------------------------------------------------------------------

    def send(self, kernel: Kernel, sender: NodeId, to: int, at_ns: int, event: Any) -> None:
        if to != STORE or sender < 0 or not self._strikes(kernel, sender, at_ns, event):
            super().send(kernel, sender, to, at_ns, event)

    def _strikes(self, kernel: Kernel, sender: NodeId, at_ns: int, event: Any) -> bool:
        """Does one of the faults strike at this call, and has taken it away?"""
        call: CallStore = event[1]
        shard, rows = call.shard, call.rows
        if self.last_calls:
            for row in rows:
                if isinstance(row, TakeOver) and row.dead in self.last_calls:
                    self._deliver_last_call(kernel, row.dead, shard, at_ns, event)
                    return True
        if kernel.now_ns >= self.plan.horizon_ns:
            return False
        if self.worker_deaths:
            for row in rows:
                if isinstance(row, Suspend):
                    self._plan_worker_death(kernel, sender, row)
        if self.late_clears and self._repeats_clear(kernel, sender, at_ns, event):
            return True
        if self.deaths_after_call and self._is_weighty(kernel, rows):
            self.deaths_after_call -= 1
            self._die_after_call(kernel, sender, 0, at_ns, event)
            return True
        if not (self.deaths_in_takeover or self.partial_takeovers or self.one_shard):
            return False
        return any(isinstance(row, TakeOver) for row in rows) and self._strikes_takeover(kernel, sender, at_ns, event)

    def _strikes_takeover(self, kernel: Kernel, sender: NodeId, at_ns: int, event: Any) -> bool:
        if self.deaths_in_takeover and self.rng.below(3) == 0:
            self.deaths_in_takeover -= 1
            self._die_after_call(kernel, sender, self.rng.below(6) * MS, at_ns, event)
            return True
        if self.partial_takeovers and sender not in self.one_shard:
            self.partial_takeovers -= 1
            self._limit_takeover(kernel, sender)
        shard = event[1].shard
        return bool(self.one_shard.get(sender, shard) != shard)

    def _is_weighty(self, kernel: Kernel, rows: Sequence[Row]) -> bool:
        """Above all a row that makes a task ready; there are many more claims, and still more ends of runs."""
        if any(isinstance(row, Satisfy) and _is_last_edge(kernel, row) for row in rows):
            return self.rng.below(3) > 0
        if any(isinstance(row, Satisfy | Claim) for row in rows):
            return self.rng.below(12) == 0
        return any(isinstance(row, Finish) for row in rows) and self.rng.below(80) == 0

    def _repeats_clear(self, kernel: Kernel, sender: NodeId, at_ns: int, event: Any) -> bool:
        """Repeat an old clear of a node when the node writes an intent under the key that was cleared."""
        for row in event[1].rows:
            if isinstance(row, Clear):
                self.clears.update({(sender, key): event for key in row.keys})
            elif isinstance(row, Finish | Unready):
                key = outbox_key(row.task, SATISFY if isinstance(row, Finish) else REMAKE_FOR)
                if cleared := self.clears.pop((sender, key), None):
                    self.late_clears -= 1
                    self.note("echoed")
                    kernel.push(at_ns, STORE, event)
                    kernel.push(at_ns + 1, STORE, cleared)
                    kernel.push(at_ns + 2, FATE, lambda kernel: self.kill(kernel, sender))
                    return True
        return False

    def _die_after_call(self, kernel: Kernel, sender: NodeId, lives_ns: int, at_ns: int, event: Any) -> None:
        """The sender dies. Its call arrives after its takeover, or much later, or never."""
        self.note("last words")
        fate = self.rng.below(5)
        if fate < 2:
            self.last_calls[sender] = event
        elif fate < 4:
            kernel.push(at_ns + (900 + self.rng.below(1_200)) * MS, STORE, event)
        kernel.push(kernel.now_ns + lives_ns, FATE, lambda kernel: self.kill(kernel, sender))

    def _deliver_last_call(self, kernel: Kernel, dead: NodeId, shard: int, at_ns: int, event: Any) -> None:
        """The shard of the last call receives the takeover and then the call; other shards hear of the death later."""
        if self.last_calls[dead][1].shard == shard:
            kernel.push(at_ns, STORE, event)
            kernel.push(at_ns + 1, STORE, self.last_calls.pop(dead))
        else:
            kernel.push(at_ns + self.rng.below(200) * MS, STORE, event)

    def _limit_takeover(self, kernel: Kernel, node: NodeId) -> None:
        """The node lives long enough to take over one shard and to act on it, but not to ask the others again."""
        self.one_shard[node] = self.rng.below(kernel.store.shard_count)
        at_ns = kernel.now_ns + (1 + self.rng.below(20)) * MS
        kernel.push(at_ns, FATE, lambda kernel: self._end_takeover(kernel, node))

    def _end_takeover(self, kernel: Kernel, node: NodeId) -> None:
        del self.one_shard[node]
        if self.kill(kernel, node):
            self.note("crashed as an heir")

    # -- workers and nodes ---------------------------------------------------------------------------------------------

    def _plan_worker_death(self, kernel: Kernel, node: NodeId, row: Suspend) -> None:
        """Soon after a run has said that it waits; often before the store has heard for which tasks."""
        at_ns = kernel.now_ns + self.rng.below(2 if self.rng.below(2) else 40) * MS + self.rng.below(MS)
        kernel.push(at_ns, FATE, lambda kernel: self._kill_worker(kernel, node, row.task, row.attempt))

    def _kill_worker(self, kernel: Kernel, node: NodeId, task: int, attempt: int) -> None:
        for run, ready in kernel.runs.suspended.get(node, {}).items():
            if ready.spec.id == task and ready.attempt == attempt and self.worker_deaths:
                self.worker_deaths -= 1
                self.note("worker died")
                kernel.push(kernel.now_ns, node, RunEnded(task, run, 0, (), "its worker died", True, (), True))

    def tell_to_leave(self, kernel: Kernel, index: int, deadline_ns: int) -> None:
        if kernel.leave(index, deadline_ns):
            self.note("told to leave")

    def left(self, kernel: Kernel, node: NodeId) -> None:
        self.note("left")
        if self.returns:
            back_ns = kernel.now_ns + self.rng.below(self.plan.restart_ns_max)
            kernel.push(back_ns, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK))

    def cut_from_store_for_long(self, kernel: Kernel) -> None:
        living = self._living(kernel)
        index = living[self.rng.below(len(living))] & NODE_INDEX_MASK
        self.cut_from_store.add(index)
        self.note("exiled")
        until_ns = kernel.now_ns + (1_200 + self.rng.below(1_500)) * MS
        kernel.push(until_ns, FATE, lambda kernel: self.cut_from_store.discard(index))


def _is_last_edge(kernel: Kernel, row: Satisfy) -> bool:
    record = kernel.store.record(row.task)
    return record is not None and record.edges in ((row.parent,), {row.parent})
