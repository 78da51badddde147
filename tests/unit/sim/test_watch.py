"""Simulations that come to rest without an end say what is missing."""

import pytest

from daws.model.context import parse_context
from daws.model.errors import InternalError, UsageError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.sim.cluster import cluster_of, joined, parse_group
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.simulate import simulate
from daws.strategy import parse_strategy

MS = 1_000_000


def gpu_tasks(count: int = 50) -> Graph:
    builder = GraphBuilder()
    for _ in range(count):
        builder.add_task("render", 50 * MS, context=parse_context("gpu"))
    return builder.build()


def leaving(*indices: int, back_at_ns: int = 0):
    def prepare(kernel: Kernel) -> None:
        for index in indices:
            kernel.push(100 * MS, FATE, lambda kernel, index=index: kernel.leave(index))
            if back_at_ns:
                kernel.push(back_at_ns, FATE, lambda kernel, index=index: kernel.revive(index))

    return prepare


GPU_LAST = joined([parse_group("3x2"), parse_group("1x2[gpu]")])


def test_what_nobody_offers_any_more_is_named():
    lines = r"^nothing could start for 3000 simulated seconds with \d+ tasks left: "
    missing = r"task \d+ \(render\) needs 1 core\(s\) with context 'gpu', which none of the 3 nodes left offers$"
    with pytest.raises(UsageError, match=lines + missing):
        simulate(gpu_tasks(), GPU_LAST, parse_strategy("daws"), prepare=leaving(3))


def test_all_nodes_have_left():
    with pytest.raises(UsageError, match=r"^all nodes have left, and \d+ tasks have not ended: no node is left"):
        simulate(gpu_tasks(), GPU_LAST, parse_strategy("daws"), prepare=leaving(0, 1, 2, 3))


def test_who_comes_back_late_is_waited_for():
    late_ns = 10_000 * 1000 * MS
    result, _ = simulate(gpu_tasks(), GPU_LAST, parse_strategy("daws"), prepare=leaving(3, back_at_ns=late_ns))
    assert result.makespan_s > 10_000 and not result.failed


def test_tasks_that_nobody_starts_are_a_bug():
    def lose(kernel: Kernel) -> None:
        kernel.push(10 * MS, FATE, forget)

    def forget(kernel: Kernel) -> None:
        for machine in kernel.seats.values():
            machine.core.queues.shared.fifo = None
            machine.core.queues.shared.count = 0

    graph = GraphBuilder()
    for _ in range(20):
        graph.add_task("t", 50 * MS)
    with pytest.raises(InternalError, match=r"^nothing could start .* tasks left: task \d+ is ready at node 0$"):
        simulate(graph.build(), cluster_of(1, 2), parse_strategy("daws"), prepare=lose)
