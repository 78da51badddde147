"""What a command runs: a workload that is made from a text, or a workflow that is read from a file."""

import os
from dataclasses import replace
from pathlib import Path

from daws.cli.messages import shown
from daws.formats import Workflow, read_workflow, workflow_of
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import Cluster
from daws.workloads import KINDS, Workload, parse_workload

SUFFIXES = (".json", ".xml", ".dax", ".gz")


def read_source(text: str) -> Workload | Workflow:
    """A workload if its kind is known, else a file if it looks like one."""
    if text.partition(":")[0].strip() not in KINDS and _is_file_name(text):
        return read_workflow(text)
    return parse_workload(text)


def _is_file_name(text: str) -> bool:
    return os.sep in text or text.lower().endswith(SUFFIXES) or ("\0" not in text and Path(text).is_file())


def graph_for(source: Workload | Workflow, cluster: Cluster, seed: int) -> Graph:
    """The graph that will run on a cluster; UsageError if a task of a file needs more cores than any node has.

    What a file says of memory counts where nodes have a limit. Elsewhere tasks that ask for nothing are simpler.
    """
    if isinstance(source, Workload):
        # Workloads count executors and care for nothing else, so nodes of several sizes are one large node to them.
        return source.build(1, cluster.core_count, seed)
    most = max(executors.count for group in cluster.groups for executors in group.executors)
    task = int(source.graph.cores.argmax())
    wanted = int(source.graph.cores[task])
    if wanted > most:
        raise UsageError(
            f"task {shown(source.task_ids[task])} needs {wanted} cores, but no node has more than {most} alike; "
            f"give --cores {wanted}"
        )
    if any(group.memory_bytes for group in cluster.groups):
        return source.graph.changed(memory_bytes=source.memory_bytes)
    return source.graph


def named(source: Workload | Workflow, graph: Graph) -> Workflow:
    """The graph that ran, with the names of its source."""
    return workflow_of(graph, str(source)) if isinstance(source, Workload) else replace(source, graph=graph)
