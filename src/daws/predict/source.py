"""The input of a prediction: a workload that is made from a text, a workflow that is read from a file, or a graph."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from daws.formats import Workflow, read_workflow, workflow_of
from daws.formats.values import shown
from daws.graphs import TaskGraph
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import SimulatedCluster
from daws.workloads import KINDS, Workload, parse_workload

SUFFIXES = (".json", ".xml", ".dax", ".gz")
Source: TypeAlias = Workload | Workflow | Graph


def source_of(what: object) -> Source:
    """The argument as something that has a graph; UsageError if it is nothing of the kind."""
    if isinstance(what, str):
        return read_source(what)
    if isinstance(what, os.PathLike):
        return read_workflow(os.fspath(what))
    if isinstance(what, TaskGraph):
        return what.workflow()
    if isinstance(what, Source):
        return what
    raise UsageError(
        f"{shown(what)} is a {type(what).__name__}; give a daws.Graph, the name of a workflow file, "
        "or a workload as text ('daws workloads' lists them)"
    )


def title_of(what: object, source: Source) -> str:
    """How to call it."""
    if isinstance(source, Workload):
        return str(source)
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    return source.name if isinstance(source, Workflow) else "graph"


def read_source(text: str) -> Workload | Workflow:
    """A workload if its kind is known, else a file if it looks like one."""
    if text.partition(":")[0].strip() not in KINDS and _is_file_name(text):
        return read_workflow(text)
    return parse_workload(text)


def _is_file_name(text: str) -> bool:
    return os.sep in text or text.lower().endswith(SUFFIXES) or ("\0" not in text and Path(text).is_file())


def graph_for(source: Source, cluster: SimulatedCluster, seed: int, option: str = "--cores") -> Graph:
    """The graph that will run on a cluster; UsageError if a task of a file needs more cores than any node has.

    The memory that a file declares counts if nodes have a limit; without a limit, tasks without needs are simpler.
    `option` is the caller's name for the number of cores of a node.
    """
    if isinstance(source, Workload):
        # Workloads count executors and care for nothing else, so nodes of several sizes are one large node to them.
        return source.build(1, cluster.core_count, seed)
    if isinstance(source, Graph):
        return source  # a task that no node can run is refused later, when all else is known
    most = max(executors.count for group in cluster.groups for executors in group.executors)
    task = int(source.graph.cores.argmax()) if source.graph.task_count else 0
    wanted = int(source.graph.cores[task]) if source.graph.task_count else 0
    if wanted > most:
        cure = f"{option}{wanted}" if option.endswith("=") else f"{option} {wanted}"
        raise UsageError(
            f"task {shown(source.task_ids[task])} needs {wanted} cores, but no node has more than {most} alike; "
            f"give {cure}"
        )
    if any(group.memory_bytes for group in cluster.groups):
        return source.graph.changed(memory_bytes=source.memory_bytes)
    return source.graph


def named(source: Source, graph: Graph) -> Workflow:
    """The graph that ran, with the names of its source."""
    if isinstance(source, Workflow):
        return replace(source, graph=graph)
    return workflow_of(graph, str(source) if isinstance(source, Workload) else "graph")
