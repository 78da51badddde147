"""`daws run`: a recorded workflow, a workload or a script on the cores of this machine."""

import argparse
import os
import platform
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daws.cli.asked import check_seed
from daws.cli.command import EXIT_FAILED, EXIT_INTERRUPTED
from daws.cli.live import LiveProgress
from daws.cli.messages import complain, one_line, shown
from daws.cli.parser import is_script
from daws.cli.run_output import STDOUT, check_json_target, draw_live, live_table, write_json
from daws.cli.script import run_script
from daws.cli.source import named, read_source
from daws.cli.targets import check_apart
from daws.client.cluster import NODES_MAX, WORKERS_MAX, Cluster
from daws.client.defaults import default_nodes, default_workers
from daws.formats import Execution, Machine, Workflow, check_target, write_wfformat
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.runs.summary import summarise
from daws.runs.timeline import Timeline
from daws.runs.trace import check_trace_target, write_trace
from daws.sim.plot import check_target as check_picture
from daws.strategy import parse_strategy
from daws.workflows.emulation import OUTSIDE, Emulation, check_room
from daws.workflows.execution import CommandRun, check_commands
from daws.workflows.submission import Submission
from daws.workloads import Workload


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    parse_strategy(arguments.strategy)
    nodes, workers = cluster_size(arguments)
    if is_script(arguments.what):
        return run_script(arguments)
    check_targets(arguments)
    source = read_source(arguments.what)
    workflow = named(source, graph_for(source, nodes, workers, arguments))
    if arguments.execute:
        check_commands(workflow, arguments.folder, arguments.what)
    else:
        check_room(workflow.graph)
    cluster = Cluster(workers, nodes=nodes, strategy=arguments.strategy, timeline=Timeline())
    return run_workflow(arguments, workflow, cluster, source.notes if isinstance(source, Workflow) else ())


def cluster_size(arguments: argparse.Namespace) -> tuple[int, int]:
    """Nodes, and workers of each."""
    nodes: int = default_nodes() if arguments.nodes is None else arguments.nodes
    if not 1 <= nodes <= NODES_MAX:
        raise UsageError(f"--nodes {nodes}: give a number from 1 to {NODES_MAX}")
    workers: int = default_workers(nodes) if arguments.workers is None else arguments.workers
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--workers {workers}: give a number from 1 to {WORKERS_MAX}")
    return nodes, workers


def check_targets(arguments: argparse.Namespace) -> None:
    """Refuse what could not be written at the end."""
    check_seed(arguments.seed)
    if arguments.plot is not None:
        check_picture(Path(arguments.plot))
    if arguments.export is not None:
        check_target(arguments.export)
    if arguments.trace is not None:
        check_trace_target(arguments.trace)
    if arguments.json is not None:
        check_json_target(arguments.json)
    written = {f"--{option}": getattr(arguments, option) for option in ("plot", "export", "trace", "json")}
    check_apart(arguments.what, written if arguments.json != STDOUT else {**written, "--json": None})


def graph_for(source: Workload | Workflow, nodes: int, workers: int, arguments: argparse.Namespace) -> Graph:
    """The graph to run, at its scale; UsageError if a task needs more cores than a node has."""
    if isinstance(source, Workload):
        graph = source.build(nodes, workers, arguments.seed)
    else:
        graph = source.graph
    task = int(graph.cores.argmax()) if graph.task_count else 0
    if graph.task_count and graph.cores[task] > workers and not arguments.ignore_needs:
        name = source.task_ids[task] if isinstance(source, Workflow) else graph.name_of(task)
        raise UsageError(
            f"task {shown(name)} needs {graph.cores[task]} cores, but a node has {workers} workers; "
            f"give --workers {graph.cores[task]}, or --ignore-needs to run each task on one"
        )
    if arguments.ignore_needs:
        graph = graph.changed(cores=None, context=None, contexts=(None,))
    graph = graph.scaled(arguments.time_scale, arguments.data_scale)
    graph.check()
    return graph


def run_workflow(arguments: argparse.Namespace, workflow: Workflow, cluster: Cluster, notes: tuple[str, ...]) -> int:
    """Carry it out, then tell about it. The cluster is closed in any case."""
    try:
        if arguments.execute:
            submission: Submission = CommandRun(cluster, workflow, arguments.folder)
        else:
            submission = Emulation(cluster, workflow.graph, arguments.spin)
        is_whole = carry_out(submission, arguments.quiet)
    finally:
        cluster.close()
    if not is_whole:
        left = workflow.graph.task_count - submission.ended
        complain(f"interrupted: {left:,} of {workflow.graph.task_count:,} tasks had not ended")
        return EXIT_INTERRUPTED
    if submission.failed is not None:
        task, error = submission.failed
        complain(f"error: task {workflow.task_ids[task]} failed: {one_line(f'{type(error).__name__}: {error}')}")
        return EXIT_FAILED
    tell(arguments, workflow, submission, notes)
    return 0


def carry_out(submission: Submission, quiet: bool = False) -> bool:
    """Until all tasks have ended or one has failed; False if the user did not want to wait for that."""
    try:
        progress = LiveProgress(submission, quiet)
        with progress:
            submission.prepare()
            submission.start(progress.tick)
            submission.wait(progress.tick)
        return True
    except KeyboardInterrupt:
        return False


def tell(arguments: argparse.Namespace, workflow: Workflow, submission: Submission, notes: tuple[str, ...]) -> None:
    """The table, and the files that were asked for."""
    graph, cluster = submission.result(), submission.cluster
    workflow = replace(workflow, graph=graph)
    start_ns, end_ns, node = submission.columns()
    moved_bytes = submission.timeline.moved_bytes
    summary = summarise(graph, start_ns, end_ns, cluster.nodes, cluster.workers, cluster.strategy.name, moved_bytes)
    shows_table = not arguments.quiet and arguments.json != "-"
    if shows_table:
        print(live_table(arguments, summary, notes))
    if arguments.json is not None:
        write_json(arguments, summary, notes)
    files = {}
    if arguments.trace is not None:
        write_trace(arguments.trace, submission.timeline, lambda number: name_of(workflow, submission, number))
        files["trace, for ui.perfetto.dev"] = arguments.trace
    if arguments.plot is not None:
        draw_live(summary, start_ns, end_ns, graph.cores, Path(arguments.plot), arguments.what)
        files["busy workers over time"] = arguments.plot
    if arguments.export is not None:
        begun_at = datetime.now(UTC) - timedelta(microseconds=(time.monotonic_ns() - submission.begun_ns) // 1000)
        name, workers = platform.node() or "localhost", cluster.workers // cluster.nodes
        names = [name] if cluster.nodes == 1 else [f"{name}-{number}" for number in range(cluster.nodes)]
        machines = [Machine(one, workers, memory_bytes()) for one in names]
        write_wfformat(arguments.export, workflow, Execution(start_ns, end_ns, node, machines, begun_at))
        files["the run as WfFormat"] = arguments.export
    if shows_table:
        for what, path in files.items():
            print(f"\n{what}: {path}")


def name_of(workflow: Workflow, submission: Submission, number: int) -> tuple[str, str]:
    """Kind and id of a task that the cluster knows by its number; what was made for the workflow has no id."""
    task = submission.task_of.get(number)
    if task is None:
        return OUTSIDE, str(number)
    return workflow.graph.kinds[workflow.graph.kind[task]], workflow.task_ids[task]


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
