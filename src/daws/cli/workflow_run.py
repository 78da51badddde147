"""The work of `daws run` for a recorded workflow or a workload."""

import argparse
import os
import platform
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daws.cli.asked import check_seed
from daws.cli.messages import EXIT_FAILED, EXIT_INTERRUPTED, complain, one_line, shown
from daws.cli.run import carry_out
from daws.cli.run_output import STDOUT, draw_live, live_table, report, write_json
from daws.cli.table import grid
from daws.cli.targets import check_apart, check_writable
from daws.client.cluster import NODES_MAX, Cluster
from daws.client.starting import WORKERS_MAX, check_files, default_nodes, default_workers
from daws.formats import Execution, RecordedMachine, Workflow, write_wfformat
from daws.model.errors import CommandError, UsageError, WorkflowError, WorkloadError
from daws.model.graph import Graph
from daws.predict.source import named, read_source
from daws.runs.summary import summarise
from daws.runs.timeline import Timeline
from daws.runs.trace import write_trace
from daws.workflows.emulation import OUTSIDE, Emulation, check_room
from daws.workflows.execution import CommandPlan, CommandRun, check_commands
from daws.workflows.records import Mode, alone_in
from daws.workflows.submission import GraphSubmission
from daws.workloads import Workload

FAILURES_SHOWN = 10


def run_source(arguments: argparse.Namespace, nodes: int, workers: int, lacks: str) -> int:
    """Run a workflow file or a workload; `lacks` says what the strategy cannot do live."""
    check_targets(arguments)
    source = _source(arguments.what)
    workflow = named(source, graph_for(source, nodes, workers, arguments))
    check_execute(arguments)
    if arguments.execute:
        check_commands(workflow, arguments.folder, arguments.what)
        if arguments.dry_run:
            return tell_plan(arguments, workflow)
    else:
        check_room(workflow.graph)
    with alone_in(arguments.folder) if arguments.execute else nullcontext():
        with warnings.catch_warnings():
            if lacks:
                complain(lacks)
                warnings.simplefilter("ignore", UserWarning)  # the same once more
            cluster = Cluster(workers, nodes=nodes, strategy=arguments.strategy, timeline=Timeline())
        return run_workflow(arguments, workflow, cluster, source.notes if isinstance(source, Workflow) else ())


def _source(what: str) -> Workload | Workflow:
    """The workload or workflow to run. The name of a script without its .py is refused with the whole name."""
    try:
        return read_source(what)
    except (WorkloadError, WorkflowError):
        if os.path.isfile(f"{what}.py") and not os.path.exists(what):
            raise UsageError(f"there is no workload {shown(what)}; did you mean {what}.py?") from None
        raise


def cluster_size(arguments: argparse.Namespace) -> tuple[int, int]:
    """The number of nodes, and the number of workers of each."""
    nodes: int = default_nodes() if arguments.nodes is None else arguments.nodes
    if not 1 <= nodes <= NODES_MAX:
        raise UsageError(f"--nodes {nodes}: give a number from 1 to {NODES_MAX}")
    workers: int = default_workers(nodes) if arguments.workers is None else arguments.workers
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--workers {workers}: give a number from 1 to {WORKERS_MAX}")
    return nodes, workers


def check_execute(arguments: argparse.Namespace) -> None:
    """Refuse options of commands without `--execute`, and options that contradict each other."""
    for option in ("keep_going", "dry_run", "rerun", "mtime", "timeout", "retries"):
        if getattr(arguments, option) and not arguments.execute:
            raise UsageError(f"--{option.replace('_', '-')} needs --execute")
    if arguments.rerun and arguments.mtime:
        raise UsageError("--rerun runs all commands, so --mtime has no effect; give one of them")


def mode_of(arguments: argparse.Namespace) -> Mode:
    return "rerun" if arguments.rerun else "mtime" if arguments.mtime else "content"


def check_targets(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written at the end."""
    check_seed(arguments.seed)
    check_files(arguments.trace, arguments.export, arguments.plot)
    if arguments.json != STDOUT:
        check_writable("--json", arguments.json, ", or -")
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
    """Run a workflow, then print its result. The cluster is closed in any case."""
    try:
        if arguments.execute:
            submission: GraphSubmission = CommandRun(
                cluster,
                workflow,
                arguments.folder,
                keep_going=arguments.keep_going,
                mode=mode_of(arguments),
                timeout=arguments.timeout,
                retries=arguments.retries,
            )
        else:
            submission = Emulation(cluster, workflow.graph, arguments.spin)
        is_whole = carry_out(submission, arguments.quiet)
    finally:
        cluster.close(cancel=True)
    if not is_whole:
        left = workflow.graph.task_count - submission.ended
        hint = "; the same command goes on with these" if arguments.execute else ""
        complain(f"interrupted: {left:,} of {workflow.graph.task_count:,} tasks had not ended{hint}")
        return EXIT_INTERRUPTED
    if submission.failed is not None:
        tell_failures(workflow, submission)
        return EXIT_FAILED
    tell(arguments, workflow, submission, notes)
    return 0


def tell_failures(workflow: Workflow, submission: GraphSubmission) -> None:
    """Print the tasks that failed and their errors, and count the others."""
    assert submission.failed is not None
    causes = submission.causes if isinstance(submission, CommandRun) else []
    for task in causes[:FAILURES_SHOWN] or [submission.failed[0]]:
        error = submission.errors[task]
        what = str(error) if isinstance(error, CommandError) else f"{type(error).__name__}: {error}"
        complain(f"error: task {workflow.task_ids[task]} failed: {one_line(what)}")
    if isinstance(submission, CommandRun):
        left = workflow.graph.task_count - submission.ended - len(causes)
        more = f" ({len(causes) - FAILURES_SHOWN:,} more than are shown)" if len(causes) > FAILURES_SHOWN else ""
        not_run = f", {left:,} not run" if left else ""
        hint = "; --keep-going goes on with all that does not need what failed" if left else ""
        complain(f"{len(causes):,} failed{more}, {counted(submission)}{not_run}{'' if submission.keep_going else hint}")


def counted(submission: CommandRun) -> str:
    up_to_date = len(submission.earlier_ns)
    return f"{submission.ended - up_to_date:,} run, {up_to_date:,} up to date"


def tell_plan(arguments: argparse.Namespace, workflow: Workflow) -> int:
    """Say which commands would run, without running them."""
    reasons = CommandPlan(workflow, arguments.folder).reasons(mode_of(arguments))
    rows = [(workflow.task_ids[task], why) for task, why in enumerate(reasons) if why]
    up_to_date = len(reasons) - len(rows)
    if arguments.json is not None:
        would_run = [{"task": task, "reason": why} for task, why in rows]
        write_json(arguments.json, {"would_run": would_run, "commands_up_to_date": up_to_date})
    if arguments.json != STDOUT:
        if rows and not arguments.quiet:
            print(f"would run, and why:\n\n{grid(rows, indent='  ')}\n")
        print(f"{len(rows):,} to run, {up_to_date:,} up to date")
    return 0


def tell(
    arguments: argparse.Namespace, workflow: Workflow, submission: GraphSubmission, notes: tuple[str, ...]
) -> None:
    """Print the table, and write the files that the options name."""
    graph, cluster = submission.result(), submission.cluster
    workflow = replace(workflow, graph=graph)
    start_ns, end_ns, node = submission.columns()
    moved_bytes = submission.timeline.moved_bytes
    summary = summarise(graph, start_ns, end_ns, cluster._nodes, cluster.workers, cluster.strategy.name, moved_bytes)
    shows_table = not arguments.quiet and arguments.json != STDOUT
    if shows_table:
        print(live_table(arguments, summary, notes))
        if isinstance(submission, CommandRun):
            print(f"\n{counted(submission)}")
    if arguments.json is not None:
        counts = {}
        if isinstance(submission, CommandRun):
            up_to_date = len(submission.earlier_ns)
            counts = {"commands_run": submission.ended - up_to_date, "commands_up_to_date": up_to_date}
        write_json(arguments.json, report(arguments, summary, notes) | counts)
    files = {}
    if arguments.trace is not None:
        write_trace(arguments.trace, submission.timeline, lambda number: name_of(workflow, submission, number))
        files["trace, for ui.perfetto.dev"] = arguments.trace
    if arguments.plot is not None:
        draw_live(summary, start_ns, end_ns, graph.cores, Path(arguments.plot), arguments.what)
        files["busy workers over time"] = arguments.plot
    if arguments.export is not None:
        begun_at = datetime.now(UTC) - timedelta(microseconds=(time.monotonic_ns() - submission.begun_ns) // 1000)
        name, workers = platform.node() or "localhost", cluster.workers // cluster._nodes
        names = [name] if cluster._nodes == 1 else [f"{name}-{number}" for number in range(cluster._nodes)]
        machines = [RecordedMachine(one, workers, memory_bytes()) for one in names]
        earlier: frozenset[int] = frozenset()
        if isinstance(submission, CommandRun):
            earlier = frozenset(submission.earlier_ns)
            workflow = replace(workflow, graph=submission.measured())
        execution = Execution(start_ns, end_ns, node, machines, begun_at, earlier)
        write_wfformat(arguments.export, workflow, execution)
        files["the run as WfFormat"] = arguments.export
    if shows_table:
        for what, path in files.items():
            print(f"\n{what}: {path}")


def name_of(workflow: Workflow, submission: GraphSubmission, number: int) -> tuple[str, str]:
    """The kind and id of a task of the cluster, by its number. Tasks that daws added to the workflow have no id."""
    task = submission.task_of.get(number)
    if task is None:
        return OUTSIDE, str(number)
    return workflow.graph.kinds[workflow.graph.kind[task]], workflow.task_ids[task]


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
