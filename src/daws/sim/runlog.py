"""When and where each task ran, for those who want to write a simulated run down.

The kernel only counts starts and ends, so this listens where checkers listen, and passes everything on to the one that
was there before.
"""

from array import array
from collections.abc import Sequence
from typing import Any

from daws.core.effects import EffectType, StartRun
from daws.core.events import EventType, RunEnded
from daws.core.node import NodeCore
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.kernel import Kernel
from daws.wire.store import AnswerType, Row


class RunLog:
    """The run of each task that ended first, by task: start, end, index of the node; -1 where none has ended."""

    def __init__(self, kernel: Kernel) -> None:
        count = kernel.graph.task_count
        self.start_ns = array("q", [-1]) * count
        self.end_ns = array("q", [-1]) * count
        self.node = array("q", [-1]) * count
        self._begun: dict[tuple[NodeId, int], int] = {}
        self._inner: Any = kernel.checker
        kernel.checker = self

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        self._begun[node, effect.run] = begin_ns
        if self._inner is not None:
            self._inner.on_start(node, effect, begin_ns)

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        for event in batch:
            if type(event) is RunEnded:
                begin_ns = self._begun.pop((core.node, event.run), -1)
                # A task that was created while the graph ran has no place here.
                if begin_ns >= 0 and not event.error and event.task < len(self.end_ns) and self.end_ns[event.task] < 0:
                    self.start_ns[event.task], self.end_ns[event.task] = begin_ns, now_ns
                    self.node[event.task] = core.node & NODE_INDEX_MASK
        if self._inner is not None:
            self._inner.on_step(core, now_ns, batch, out)

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None:
        if self._inner is not None:
            self._inner.on_store(caller, rows, answers, now_ns)

    def on_row(self, row: Row, answer: AnswerType) -> None:
        if self._inner is not None:
            self._inner.on_row(row, answer)

    def on_death(self, node: NodeId) -> None:
        if self._inner is not None:
            self._inner.on_death(node)

    def finish(self) -> None:
        if self._inner is not None:
            self._inner.finish()
