"""Graphs live: every task runs once, after its parents, and nothing is held longer than it must be."""

from collections.abc import Iterator

import numpy as np
import pytest

from daws.client.cluster import Cluster
from daws.client.options import OUTPUTS_MAX
from daws.model.errors import ContextError, UsageError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.runs.timeline import Timeline
from daws.workflows.emulation import Emulation, check_room
from daws.workflows.submission import submission_order
from daws.workloads import parse_workload

MS = 1_000_000
SMALL = (
    "fan-in:tasks=40",
    "fan-out:tasks=40",
    "pipeline:tasks=40",
    "all-pairs:files=5",
    "random:tasks=60",
    "bot:tasks=9",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2, timeline=Timeline()) as one:
        yield one


def carried_out(cluster: Cluster, graph: Graph, **options: bool) -> Emulation:
    emulation = Emulation(cluster, graph, **options)
    emulation.prepare()
    emulation.start()
    emulation.wait(lambda: None)
    return emulation


@pytest.mark.parametrize("workload", SMALL)
def test_children_begin_when_their_parents_have_ended(cluster, workload):
    graph = parse_workload(workload).build(1, 2, 0).scaled(0.001, 0.001)
    emulation = carried_out(cluster, graph)
    start_ns, end_ns, node = emulation.columns()
    assert (emulation.failed, emulation.ended) == (None, graph.task_count)
    assert (start_ns >= 0).all() and (end_ns >= start_ns).all() and not node.any()
    child = np.repeat(np.arange(graph.task_count), np.diff(graph.parent_start))
    assert (end_ns[graph.parents] <= start_ns[child]).all()
    assert emulation._futures == {}


def test_tasks_are_handed_in_with_the_ranks_that_the_strategy_goes_by():
    graph = parse_workload("pipeline:tasks=6,size=3,length-ms=10").build(1, 2, 0)
    with Cluster(1, kind="threads", strategy="flds", timeline=Timeline()) as cluster:
        assert "rank" not in Emulation(cluster, graph)._options(0, 1)
    with Cluster(1, kind="threads", strategy="flds:order=critical-path", timeline=Timeline()) as cluster:
        emulation = Emulation(cluster, graph)
        ranks = [emulation._options(task, 1)["rank"] for task in range(graph.task_count)]
    assert ranks == (graph.planned_rank_ns() / 1e9).tolist() and len(set(ranks)) > 1


def test_real_bytes_are_written_and_read(cluster):
    builder = GraphBuilder()
    outside = builder.add_external(50_000)
    first = builder.add_task("make", 0, [outside], [100_000, 0, 300_000])
    builder.add_task("read", 0, [first.outputs[0], first.outputs[2], outside], [10])
    emulation = carried_out(cluster, builder.build())
    rows = {emulation.task_of[row[0]]: row for row in emulation.timeline.rows() if row[0] in emulation.task_of}
    assert 50_000 <= rows[0][7] < 51_000 and 400_000 <= rows[0][8] < 402_000
    assert 450_000 <= rows[1][7] < 452_000 and rows[1][8] < 1000


def test_objects_go_when_their_readers_are_done(cluster):
    graph = parse_workload("pipeline:tasks=40").build(1, 2, 0)
    sizes = np.full(graph.object_count, 100_000)
    carried_out(cluster, graph.changed(object_bytes=sizes, length_ns=np.zeros(graph.task_count, np.int64)))
    cluster.submit(abs, -1).result()  # whatever was let go of has been told by now
    cluster.submit(abs, -1).result()
    files = cluster._open().files
    assert sum(number in files for number in range(100_000)) < 20


def test_more_outputs_than_a_task_may_have_share_the_last(cluster):
    builder = GraphBuilder()
    first = builder.add_task("make", 0, [], [1] * (OUTPUTS_MAX + 10))
    builder.add_task("read", 0, [first.outputs[0], first.outputs[-1]], [])
    emulation = carried_out(cluster, builder.build())
    assert emulation.ended == 2


def test_wide_tasks_run_alone_and_too_wide_ones_are_refused(cluster):
    builder = GraphBuilder()
    for _ in range(3):
        builder.add_task("wide", MS, cores=2)
        builder.add_task("narrow", MS)
    emulation = carried_out(cluster, builder.build())
    start_ns, end_ns, _ = emulation.columns()
    for wide in (0, 2, 4):
        others = [task for task in range(6) if task != wide]
        assert all(end_ns[one] <= start_ns[wide] or end_ns[wide] <= start_ns[one] for one in others)
    builder.add_task("too wide", 0, cores=3)
    with pytest.raises(ContextError):
        carried_out(cluster, builder.build())
    assert carried_out(cluster, builder.build(), ignore_needs=True).ended == 7


def test_graphs_in_any_order_are_submitted_parents_first():
    graph = Graph(
        kinds=["a"],
        kind=[0, 0, 0],
        length_ns=[1, 1, 1],
        input_start=[0, 1, 1, 2],
        inputs=[2, 1],
        output_start=[0, 1, 2, 3],
        object_bytes=[1, 1, 1],
    )
    assert submission_order(graph).tolist() == [1, 2, 0]


@pytest.mark.parametrize("outside", [False, True])
def test_more_data_than_this_machine_can_hold_is_refused(outside):
    builder = GraphBuilder()
    sizes = (10**17, 0) if outside else (0, 10**17)
    first = builder.add_task("make", 0, [builder.add_external(sizes[0])], [10, sizes[1]])
    builder.add_task("read", 0, [first], [])
    with pytest.raises(UsageError, match="its objects take at least 100,000,000"):
        check_room(builder.build())
    check_room(builder.build().scaled(data=1e-15))
    check_room(GraphBuilder().build())


def test_an_empty_graph_is_over_at_once(cluster):
    assert carried_out(cluster, GraphBuilder().build()).ended == 0
