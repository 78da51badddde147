"""A log of a run on pilots: which tasks have ended, and when objects were on their way."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from daws.core.effects import EffectType, FetchObjects
from daws.core.events import EventType, ObjectsFetched
from daws.core.node import NodeCore
from daws.model.task import NodeId
from daws.sim.kernel import Kernel
from daws.sim.runlog import RunLog


class PilotLog(RunLog):
    """A log of runs that also counts them, and measures the time in which at least one object was on its way."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._kernel = kernel
        self.staging_ns = 0
        self._fetching: dict[tuple[NodeId, int], None] = {}
        self._since_ns = 0

    @property
    def done_count(self) -> int:
        return len(self.end_ns) - int(self.undone().sum())

    def undone(self) -> npt.NDArray[np.bool_]:
        """A mask over the tasks: true where no run of the task has ended yet."""
        return np.frombuffer(self.end_ns, np.int64) < 0 if len(self.end_ns) else np.zeros(0, np.bool_)

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        for event in batch:
            if type(event) is ObjectsFetched:
                for one in (*event.fetched, *event.failed):
                    self._end(core.node, one.object, now_ns)
        for effect in out:
            if type(effect) is FetchObjects:
                for one in effect.wanted:
                    self._begin(core.node, one.object, now_ns)
        super().on_step(core, now_ns, batch, out)

    def on_death(self, node: NodeId) -> None:
        for _, object_ in [key for key in self._fetching if key[0] == node]:
            self._end(node, object_, self._kernel.now_ns)
        super().on_death(node)

    def _begin(self, node: NodeId, object_: int, now_ns: int) -> None:
        if not self._fetching:
            self._since_ns = now_ns
        self._fetching[node, object_] = None

    def _end(self, node: NodeId, object_: int, now_ns: int) -> None:
        if self._fetching.pop((node, object_), 0) is None and not self._fetching:
            self.staging_ns += now_ns - self._since_ns
