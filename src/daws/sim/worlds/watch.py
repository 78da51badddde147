"""Checkers for the runs of scenarios, beside those of all simulations."""

from collections.abc import Sequence

from daws.core import view
from daws.core.effects import EffectType, StartRun
from daws.core.events import EventType
from daws.core.node import NodeCore
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.checkers import Checker
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.worlds.graphs import MS
from daws.wire.store import AnswerType, Row


class KillerChecker(Checker):
    """A checker that lets some tasks kill the node that runs them: the kernel does not know what tasks do."""

    killers: tuple[int, ...] = ()
    kills = 0

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        super().on_start(node, effect, begin_ns)
        if effect.ready.spec.id in self.killers:
            half_ns = self.kernel.lengths[effect.ready.spec.id] // 2
            self.kernel.push(begin_ns + half_ns, FATE, lambda kernel: self._strike(kernel, node))

    def _strike(self, kernel: Kernel, node: NodeId) -> None:
        if kernel.kill(node):
            self.kills += 1
            kernel.faults.note("killed by a task")
            kernel.push(kernel.now_ns + 300 * MS, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK))


class NodesChecker(KillerChecker):
    """A checker for stores that forget: their answers prove nothing, so it checks nodes and their machines alone."""

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None: ...

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        self.objects.check_on_machine(node, effect.ready.spec)

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        if self.deep is not None and not view.is_restarting(core):
            self.deep(core)
            self.objects.check_belief(core, out)
