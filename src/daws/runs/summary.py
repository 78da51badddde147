"""How a live run of a graph went, beside the best that could be had."""

import numpy as np
from msgspec import Struct

from daws.bounds import NO_COSTS, AlikeNodes, bound
from daws.model.cluster import ExecutorClass
from daws.model.columns import Int64s
from daws.model.graph import Graph

NS_PER_S = 1_000_000_000


class Summary(Struct, frozen=True):
    """The figures of a run. Times are in seconds. The run begins with its first submission and ends with its last task.

    `efficiency` is the time that all cores would need if nothing ever waited, divided by `makespan_s`. `utilization` is
    the share of the cores' time in which tasks ran. No schedule is shorter than `bound_s`, which is at least `work_s`
    (all work shared by all cores) and `critical_path_s`; `bound_share` is its share of `makespan_s`.
    """

    tasks: int
    edges: int
    nodes: int
    cores_total: int
    strategy: str
    makespan_s: float
    throughput: float
    efficiency: float
    utilization: float
    work_s: float
    critical_path_s: float
    bound_s: float
    bound_share: float
    bytes_read: int
    bytes_written: int
    bytes_moved: int


def summarise(
    graph: Graph, start_ns: Int64s, end_ns: Int64s, nodes: int, cores_total: int, strategy: str, bytes_moved: int = 0
) -> Summary:
    """The columns have the start and the end of each task in ns since the run began, -1 for tasks that did not end."""
    ran = end_ns >= 0
    makespan_s = int(end_ns.max(initial=0)) / NS_PER_S
    busy_s = float(((end_ns - start_ns) * graph.cores)[ran].sum()) / NS_PER_S
    work_s = graph.total_core_ns / cores_total / NS_PER_S
    # The cost of the engine itself is not known here, so it counts as nothing.
    best = bound(graph, [AlikeNodes(nodes, (ExecutorClass(cores_total // nodes),))], NO_COSTS)
    made = graph.producer >= 0
    made[made] = ran[graph.producer[made]]

    def part(value: float) -> float:
        return value / makespan_s if makespan_s else 0.0

    return Summary(
        tasks=graph.task_count,
        edges=graph.edge_count,
        nodes=nodes,
        cores_total=cores_total,
        strategy=strategy,
        makespan_s=makespan_s,
        throughput=part(int(np.count_nonzero(ran))),
        efficiency=part(work_s),
        utilization=part(busy_s / cores_total),
        work_s=work_s,
        critical_path_s=best.part("critical path"),
        bound_s=best.seconds,
        bound_share=best.share_of(makespan_s),
        bytes_read=int(graph.task_input_bytes[ran].sum()),
        bytes_written=int(graph.object_bytes[made].sum()),
        bytes_moved=bytes_moved,
    )
