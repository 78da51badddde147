"""The numbers of a summary, on graphs small enough to know them."""

import numpy as np

from daws.model.graph_builder import GraphBuilder
from daws.runs.summary import summarise

SECOND = 1_000_000_000


def test_two_tasks_in_a_row_on_two_workers():
    builder = GraphBuilder()
    outside = builder.add_external(5)
    first = builder.add_task("a", SECOND, [outside], [100, 20])
    builder.add_task("b", 3 * SECOND, [first], [7])
    start, end = np.array([0, 2 * SECOND]), np.array([SECOND, 5 * SECOND])
    found = summarise(builder.build(), start, end, nodes=1, cores_total=2, strategy="daws")
    assert (found.makespan_s, found.work_s, found.critical_path_s) == (5.0, 2.0, 4.0)
    assert (found.efficiency, found.utilization, found.bound_share) == (0.4, 0.4, 0.8)
    assert (found.bytes_read, found.bytes_written, found.bytes_moved) == (125, 127, 0)
    assert (found.tasks, found.edges, found.throughput) == (2, 1, 0.4)


def test_wide_tasks_count_with_all_their_cores():
    builder = GraphBuilder()
    builder.add_task("a", SECOND, cores=2)
    found = summarise(builder.build(), np.array([0]), np.array([SECOND]), nodes=1, cores_total=2, strategy="daws")
    assert (found.efficiency, found.utilization, found.bound_share) == (1.0, 1.0, 1.0)


def test_what_did_not_end_was_neither_read_nor_written():
    builder = GraphBuilder()
    first = builder.add_task("a", SECOND, [], [100])
    builder.add_task("b", SECOND, [first], [7])
    start, end = np.array([0, -1]), np.array([SECOND, -1])
    found = summarise(builder.build(), start, end, nodes=1, cores_total=1, strategy="daws")
    assert (found.bytes_read, found.bytes_written, found.makespan_s) == (0, 100, 1.0)


def test_an_empty_graph_has_no_makespan():
    nothing = np.array([], np.int64)
    found = summarise(GraphBuilder().build(), nothing, nothing, nodes=1, cores_total=1, strategy="daws")
    assert (found.makespan_s, found.efficiency, found.bound_share) == (0.0, 0.0, 0.0)
