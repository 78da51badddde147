"""One workload on a live cluster, and what the simulator says of the same graph, strategy and nodes."""

import time
from typing import Any

from msgspec import Struct

import daws
from bench.scale.ground import Ground
from daws.bound.provable import *  # noqa
from daws.model.graph import Graph
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workflows.emulation import Emulation


class Live(Emulation):
    def __init__(self, cluster, graph):
        cluster.timeline = Timeline()
        super().__init__(cluster, graph)

    def _untold(self) -> bool:
        return False


def run(ground: Ground, graph: Graph, strategy: str) -> dict[str, Any]:
    with daws.connect(ground.cluster, timeout=30) as cluster:
        cluster.use_strategy(strategy)
        cluster.gather([cluster.submit(abs, one) for one in range(4 * ground.nodes)])
        live = Live(cluster, graph)
        live.prepare()
        before = ground.used()
        began_s = time.monotonic()
        live.start()
        submitted_s = time.monotonic() - began_s
        live.wait(lambda: None)
        took_s = time.monotonic() - began_s
        after = ground.used()
        counters = cluster.counters()
    if live.failed is not None:
        raise live.failed[1]
    tasks = graph.task_count
    counts = after.counts - before.counts
    ideal_s = graph.total_length_ns / 1e9 / (ground.nodes * ground.executors)
    result, _ = simulate(graph, cluster_of(ground.nodes, ground.executors), parse_strategy(strategy), Settings())
    us = 1e6 / tasks
    return {
        "tasks": tasks,
        "makespan_s": took_s,
        "submitted_s": submitted_s,
        "efficiency": ideal_s / took_s,
        "simulated_s": result.makespan_s,
        "off": result.makespan_s / took_s - 1,
        "node_us": (after.nodes_s - before.nodes_s) * us,
        "store_us": (after.store_s - before.store_s) * us,
        "client_us": (after.client_s - before.client_s) * us,
        "machine": (after.machine_s - before.machine_s) / (after.at_s - before.at_s),
        "frames": counts.frames / tasks,
        "messages": counts.messages / tasks,
        "calls": counts.calls / tasks,
        "rows": counts.rows / tasks,
        "sim_messages": result.messages / tasks,
        "sim_calls": result.store_calls / tasks,
        "sim_rows": result.store_records / tasks,
        "expiries": ground.expiries(),
        "steals": sum(one.stolen for one in counters),
    }
