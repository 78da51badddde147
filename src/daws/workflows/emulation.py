"""A graph as emulated tasks: real objects, recorded times."""

from collections.abc import Callable
from typing import Any

from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.options import OUTPUTS_MAX
from daws.client.waiting import wait
from daws.model.graph import Graph
from daws.runs.summary import Summary, summarise
from daws.workflows.emulated import Emulated
from daws.workflows.submission import Submission

OUTSIDE = "input from outside"


class Emulation(Submission):
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
            (one, self.cluster.call(outside, ((), 0, (self._sizes[one],))))
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


def emulate(cluster: Cluster, graph: Graph, spin: bool = False) -> Summary:
    """Run a graph to its end and say how it went; raises what a task raised. The cluster must have a timeline."""
    emulation = Emulation(cluster, graph, spin)
    emulation.prepare()
    emulation.start()
    emulation.wait(lambda: None)
    if emulation.failed is not None:
        raise emulation.failed[1]
    start_ns, end_ns, _ = emulation.columns()
    return summarise(graph, start_ns, end_ns, 1, cluster.workers, cluster.strategy.name)
