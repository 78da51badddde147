"""A graph as emulated tasks: real objects, recorded times."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.options import OUTPUTS_MAX
from daws.client.waiting import wait
from daws.data.limits import default_limit_bytes, free_bytes
from daws.data.session import default_memory, default_scratch
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.runs.summary import Summary, summarise
from daws.workflows.emulated import Emulated
from daws.workflows.submission import GraphSubmission

OUTSIDE = "input from outside"


class Emulation(GraphSubmission):
    """Each task reads its inputs, takes its recorded time and writes its outputs. Scale the graph beforehand."""

    def __init__(self, cluster: Cluster, graph: Graph, spin: bool = False, ignore_needs: bool = False) -> None:
        super().__init__(cluster, graph, ignore_needs)
        self._kinds = [Emulated(kind, spin) for kind in graph.kinds]
        self._kind: list[int] = graph.kind.tolist()
        self._length_ns: list[int] = graph.length_ns.tolist()
        self._sizes: list[int] = graph.object_bytes.tolist()
        self._output_start: list[int] = graph.output_start.tolist()

    def prepare(self) -> None:
        """Make the objects that come from outside, where the cluster likes to have them."""
        outside = Emulated(OUTSIDE)
        made = [
            (one, self.cluster.submit(outside, (), 0, (self._sizes[one],)))
            for one in range(self.graph.external_start, self.graph.object_count)
            if self._readers[one]
        ]
        for future in wait([future for _, future in made]).done:
            if error := future.exception():
                raise error
        self._futures.update(made)

    def _call(self, task: int, inputs: list[Future[Any]]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        sizes = self._sizes[self._output_start[task] : self._output_start[task + 1]]
        if len(sizes) > OUTPUTS_MAX:  # the last one stands for the rest
            sizes[OUTPUTS_MAX - 1 :] = [sum(sizes[OUTPUTS_MAX - 1 :])]
        return self._kinds[self._kind[task]], (inputs, self._length_ns[task], tuple(sizes))


def check_room(graph: Graph) -> None:
    """Refuse a graph whose objects cannot be on this machine: those from outside, and what one task makes, at least."""
    until = np.append(0, np.cumsum(graph.object_bytes))
    made = until[graph.output_start[1:]] - until[graph.output_start[:-1]]
    wanted = graph.external_bytes + int(made.max(initial=0))
    memory, scratch = default_memory(), default_scratch()
    room = free_bytes(scratch) + (0 if memory is None else default_limit_bytes(memory, scratch))
    if wanted > room:
        raise UsageError(
            f"its objects take at least {wanted / 1e9:,.1f} GB, but there is room for {room / 1e9:,.1f} GB; "
            f"give a smaller --data-scale, or set TMPDIR to a folder with room"
        )


def emulate(cluster: Cluster, graph: Graph, spin: bool = False) -> Summary:
    """Run a graph to its end and say how it went; raises what a task raised. The cluster must have a timeline."""
    emulation = Emulation(cluster, graph, spin)
    emulation.prepare()
    emulation.start()
    emulation.wait(lambda: None)
    if emulation.failed is not None:
        raise emulation.failed[1]
    start_ns, end_ns, _ = emulation.columns()
    moved_bytes = emulation.timeline.moved_bytes
    return summarise(graph, start_ns, end_ns, cluster._nodes, cluster.workers, cluster.strategy.name, moved_bytes)
