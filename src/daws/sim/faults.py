"""Faults by seed: crashes and restarts, messages that get lost, doubled or late, nodes that are cut off or slow.

Everything follows from one number. Until `horizon_ns` the world is hostile; after that it heals, and whatever was
promised must come true: that is the liveness phase. The last living node is never killed.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daws.model.task import CLIENT, NODE_INDEX_MASK, NodeId
from daws.sim.machine import FATE, STORE
from daws.strategy.rng import SplitMix64

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

MS = 1_000_000


class FaultPlan(Struct, frozen=True):
    """How hostile the world is. Probabilities are per message, counts are for the whole run."""

    horizon_ns: int = 4_000 * MS
    loss: float = 0.0
    duplication: float = 0.0
    delay: float = 0.0
    delay_ns_max: int = 300 * MS
    crashes: int = 0
    crashes_at_store: int = 0  # right after a call of the victim took effect, before it hears of it
    partitions: int = 0
    slow_nodes: int = 0
    cancels: int = 0
    restart_ns_max: int = 2_500 * MS


def draw_plan(rng: SplitMix64) -> FaultPlan:
    """A mixture of faults: usually several kinds at once, sometimes none."""

    def sometimes(probability: float) -> bool:
        return rng.unit() < probability

    return FaultPlan(
        horizon_ns=(1_000 + rng.below(4_000)) * MS,
        loss=0.15 * rng.unit() if sometimes(0.5) else 0.0,
        duplication=0.3 * rng.unit() if sometimes(0.5) else 0.0,
        delay=0.5 * rng.unit() if sometimes(0.5) else 0.0,
        delay_ns_max=(1 + rng.below(800)) * MS,
        crashes=rng.below(4) if sometimes(0.6) else 0,
        crashes_at_store=rng.below(4) if sometimes(0.5) else 0,
        partitions=rng.below(3) if sometimes(0.4) else 0,
        slow_nodes=rng.below(2) if sometimes(0.3) else 0,
        cancels=rng.below(3) if sometimes(0.2) else 0,
    )


class Faults:
    """Stands between the nodes, the store and the client, and meddles."""

    def __init__(self, kernel: "Kernel", plan: FaultPlan, seed: int) -> None:
        self.plan = plan
        self.rng = SplitMix64(seed * 7919 + 17)
        self.cut: dict[int, set[int]] = {}  # partition -> indices of the nodes that are alone with each other
        self.cut_from_store: set[int] = set()
        self.client_cut_from_store = False
        self.client_cut_from_nodes = False
        self.crash_countdown: list[int] = []
        self.injected: dict[str, int] = {}
        self._schedule(kernel)

    def _schedule(self, kernel: "Kernel") -> None:
        plan, rng = self.plan, self.rng
        for _ in range(plan.crashes):
            kernel.push(rng.below(plan.horizon_ns), FATE, self.crash)
        served = 0
        for _ in range(plan.crashes_at_store):
            served += 1 + rng.below(60)
            self.crash_countdown.append(served)
        for number in range(plan.partitions):
            begin_ns = rng.below(plan.horizon_ns)
            kernel.push(begin_ns, FATE, lambda kernel, number=number: self._cut_off(kernel, number))
            kernel.push(
                min(plan.horizon_ns, begin_ns + rng.below(2_500 * MS)),
                FATE,
                lambda kernel, number=number: self._heal(number),
            )
        for _ in range(plan.slow_nodes):
            kernel.push(rng.below(plan.horizon_ns), FATE, self._slow_down)
        if plan.slow_nodes:
            kernel.push(plan.horizon_ns, FATE, self._speed_up)
        for _ in range(plan.cancels):
            kernel.push(rng.below(plan.horizon_ns), FATE, self._cancel)

    def note(self, kind: str) -> None:
        self.injected[kind] = self.injected.get(kind, 0) + 1

    # -- messages ------------------------------------------------------------------------------------------------------

    def send(self, kernel: "Kernel", sender: NodeId, to: int, at_ns: int, event: Any) -> None:
        """Deliver, or not, or twice, or later."""
        plan = self.plan
        if self.is_cut(sender, to):
            self.note("cut")
            return
        if kernel.now_ns < plan.horizon_ns:
            rng = self.rng
            if plan.loss and rng.unit() < plan.loss:
                self.note("lost")
                return
            if plan.duplication and rng.unit() < plan.duplication:
                self.note("doubled")
                kernel.push(at_ns + rng.below(plan.delay_ns_max), to, event)
            if plan.delay and rng.unit() < plan.delay:
                self.note("late")
                at_ns += rng.below(plan.delay_ns_max)
        kernel.push(at_ns, to, event)

    def is_cut(self, one: int, other: int) -> bool:
        if one == CLIENT or other == CLIENT:
            return self.client_cut_from_store if STORE in (one, other) else self.client_cut_from_nodes
        if not self.cut and not self.cut_from_store:
            return False
        if one == STORE or other == STORE:
            node = other if one == STORE else one
            return node >= 0 and (node & NODE_INDEX_MASK) in self.cut_from_store
        first, second = one & NODE_INDEX_MASK, other & NODE_INDEX_MASK
        return any((first in island) != (second in island) for island in self.cut.values())

    def served(self, kernel: "Kernel", caller: NodeId) -> None:
        """A call of this node took effect: a good moment for it to die."""
        if self.crash_countdown and caller >= 0 and kernel.now_ns < self.plan.horizon_ns:
            self.crash_countdown = [count - 1 for count in self.crash_countdown]
            if self.crash_countdown[0] <= 0:
                self.crash_countdown.pop(0)
                if self.kill(kernel, caller):
                    self.note("crashed at the store")

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _living(self, kernel: "Kernel") -> list[NodeId]:
        return sorted(kernel.seats)

    def crash(self, kernel: "Kernel") -> None:
        living = self._living(kernel)
        if living and self.kill(kernel, living[self.rng.below(len(living))]):
            self.note("crashed")

    def kill(self, kernel: "Kernel", node: NodeId) -> bool:
        if len(kernel.seats) < 2 or not kernel.kill(node):
            return False
        index = node & NODE_INDEX_MASK
        kernel.push(kernel.now_ns + self.rng.below(self.plan.restart_ns_max), FATE, lambda kernel: kernel.revive(index))
        return True

    def left(self, kernel: "Kernel", node: NodeId) -> None:
        """A node has left in good order; it does not come back unless somebody starts it again."""

    def _cut_off(self, kernel: "Kernel", number: int) -> None:
        indices = [node & NODE_INDEX_MASK for node in self._living(kernel)]
        island = {index for index in indices if self.rng.below(2)}
        self.cut[number] = island
        if self.rng.below(2):
            self.cut_from_store |= island
        self.note("partitioned")

    def _heal(self, number: int) -> None:
        self.cut_from_store -= self.cut.pop(number, set())

    def _slow_down(self, kernel: "Kernel") -> None:
        machine = kernel.machines[self.rng.below(len(kernel.machines))]
        machine.speed = 0.1 + 0.4 * self.rng.unit()
        self.note("slowed")

    def _speed_up(self, kernel: "Kernel") -> None:
        """Give all machines their usual speed again. Runs that have begun still take the time that was set at their
        start."""
        for machine in kernel.machines:
            machine.speed = machine.info.speed

    def _cancel(self, kernel: "Kernel") -> None:
        self.cancel(kernel, self.rng.below(kernel.graph.task_count))

    def cancel(self, kernel: "Kernel", task: int) -> None:
        kernel.cancel((task,))
        self.note("cancelled")
