"""`daws sim`: read what was asked, run it, show what came of it."""

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from daws.cli.knobs import KNOBS, read_settings
from daws.cli.messages import complain, one_line, shown
from daws.cli.parser import CORES, NODES
from daws.cli.source import graph_for, named, read_source
from daws.cli.table import result_table
from daws.client.progress import Progress
from daws.formats import Execution, Machine, Workflow, check_target, write_wfformat
from daws.model.context import Context, parse_context
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import BYTES_PER_GB, MEMORY_GB_MAX, Cluster, cluster_of, joined, memory_of, parse_group
from daws.sim.estimates import NONE, parse_estimates, with_estimates
from daws.sim.plot import check_target as check_picture
from daws.sim.plot import draw_run
from daws.sim.profiles import profile
from daws.sim.runlog import RunLog
from daws.sim.simulate import Result, Settings, simulate
from daws.strategy import parse_strategy

SEED_MAX = 2**63 - 1
NUMBER = re.compile(r"\d{1,12}\.?\d{0,9}|\.\d{1,9}", re.ASCII)


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    if not 0 <= arguments.seed <= SEED_MAX:
        raise UsageError(f"--seed {arguments.seed}: a seed is between 0 and {SEED_MAX}")
    target = None if arguments.plot is None else check_picture(Path(arguments.plot))
    if arguments.export is not None:
        check_target(arguments.export)
    strategy = parse_strategy(arguments.strategy)
    estimates = parse_estimates(arguments.estimates)
    source = read_source(arguments.workload)
    given = read_settings(arguments.settings)
    cluster = read_cluster(arguments, given["cluster"])
    settings = Settings(
        costs=msgspec.structs.replace(profile(arguments.profile), **given["costs"]),
        seed=arguments.seed,
        check=arguments.check,
        **given["settings"],  # type: ignore[arg-type]
    )
    graph = graph_for(source, cluster, arguments.seed).scaled(arguments.time_scale, arguments.data_scale)
    graph = with_memory(with_contexts(graph, arguments.context), arguments.task_memory_gb)
    graph = with_estimates(graph, estimates, arguments.seed)
    logs: list[RunLog] = []
    prepare = None if arguments.export is None else lambda kernel: logs.append(RunLog(kernel))
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        result, kernel = simulate(graph, cluster, strategy, settings, progress, prepare)
    title = arguments.workload if isinstance(source, Workflow) else str(source)
    notes = source.notes if isinstance(source, Workflow) else ()
    _show(result, arguments, title, notes)
    told = not (arguments.json or arguments.quiet)
    if target is not None:
        draw_run(result, kernel, target, title=title)
        if told:
            print(f"\nbusy executors over time: {target}")
    if arguments.export is not None:
        write_wfformat(arguments.export, named(source, graph), execution_of(logs[0], cluster))
        if told:
            print(f"\nthe run as WfFormat: {arguments.export}")
    if result.failed:
        task, (_, error) = next(iter(kernel.client.ended.items()))
        complain(f"error: {result.failed:,} tasks failed, first task {task}: {one_line(error)}")
        return 1
    return 0


def read_cluster(arguments: argparse.Namespace, given: dict[str, int | float]) -> Cluster:
    """The cluster of `--group`, or else of `--nodes`, `--cores` and `--memory-gb`."""
    if not arguments.group:
        nodes = NODES if arguments.nodes is None else arguments.nodes
        cores = CORES if arguments.cores is None else arguments.cores
        memory_bytes = 0 if arguments.memory_gb is None else memory_of(arguments.memory_gb)
        return cluster_of(nodes, cores, memory_bytes=memory_bytes, **given)  # type: ignore[arg-type]
    for option in ("nodes", "cores", "memory_gb"):
        if getattr(arguments, option) is not None:
            raise UsageError(f"give either --group or --{option.replace('_', '-')}, not both")
    for key in (knob.key for knob in KNOBS.values() if knob.target == "cluster" and knob.field in given):
        raise UsageError(
            f"--set {key} goes with --nodes; a --group says its own speed and cluster, as in 4x8:speed=0.5"
        )
    return joined([parse_group(text) for text in arguments.group])


def by_kind(graph: Graph, option: str, texts: list[str]) -> dict[str, str]:
    """What was typed as `[KIND=]VALUE`, by kind of task; an empty kind stands for all of them."""
    found: dict[str, str] = {}
    for text in texts:
        kind, equals, value = text.partition("=") if "=" in text else ("", "", text)
        if equals and kind not in graph.kinds:
            raise UsageError(
                f"{option} {shown(text)}: there are no tasks of kind {shown(kind)}; kinds: {', '.join(graph.kinds)}"
            )
        if kind in found:
            raise UsageError(f"{option} {shown(text)}: given twice for {kind or 'all tasks'}")
        found[kind] = value
    return found


def with_memory(graph: Graph, texts: list[str]) -> Graph:
    """The graph with the memory that its tasks declare; what a workflow file says stays where nothing is given."""
    wanted: dict[str, int] = {}
    for kind, text in by_kind(graph, "--task-memory-gb", texts).items():
        if not NUMBER.fullmatch(text.strip()) or float(text) > MEMORY_GB_MAX:
            raise UsageError(f"--task-memory-gb {shown(text)}: expected a number of GB up to {MEMORY_GB_MAX:.0f}")
        wanted[kind] = round(float(text) * BYTES_PER_GB)
    if not wanted:
        return graph
    given = np.array([wanted.get(kind, wanted.get("", -1)) for kind in graph.kinds], np.int64)[graph.kind]
    said = np.zeros(graph.task_count, np.int64) if graph.memory_bytes is None else graph.memory_bytes
    return graph.changed(memory_bytes=np.where(given < 0, said, given))


def with_contexts(graph: Graph, texts: list[str]) -> Graph:
    """The graph with what its tasks ask for: `CONTEXT` holds for all of them, `KIND=CONTEXT` for those of a kind."""
    if not texts:
        return graph
    wanted: dict[str, Context | None] = {}
    for kind, context in by_kind(graph, "--context", texts).items():
        if not context.strip():
            text = f"{kind}={context}" if kind else context
            raise UsageError(f"--context {shown(text)}: expected a context, or 'any' for none in particular")
        wanted[kind] = parse_context(context)
    contexts = tuple(wanted.get(kind, wanted.get("")) for kind in graph.kinds)
    return graph.changed(
        contexts=(None, *contexts),  # by kind, after no context at all
        context=np.where(np.array([one is None for one in contexts])[graph.kind], 0, graph.kind + 1),
    )


def execution_of(log: RunLog, cluster: Cluster) -> Execution:
    """A simulated run as if it had begun just now."""
    machines = [Machine(f"node-{number}", info.cores, info.memory_bytes) for number, info in enumerate(cluster.infos())]
    return Execution(log.start_ns, log.end_ns, log.node, machines, datetime.now(UTC))


def _show(result: Result, arguments: argparse.Namespace, workload: str, notes: tuple[str, ...]) -> None:
    if arguments.json:
        fields = report(result, workload, arguments.profile, arguments.estimates)
        print(msgspec.json.encode({**fields, "notes": notes} if notes else fields).decode())
    elif not arguments.quiet:
        cores = f"{result.cores} cores each" if result.cores else "unlike nodes"
        print(
            f"{workload} with {result.strategy}: {result.tasks:,} tasks, {result.edges:,} edges\n"
            f"{result.nodes:,} nodes, {result.cores_total:,} cores ({cores}); "
            f"costs {arguments.profile}, "
            + ("" if arguments.estimates == NONE else f"estimates {arguments.estimates}, ")
            + f"seed {result.seed}\n"
            + (f"notes: {'; '.join(notes)}\n" if notes else "")
        )
        print(result_table(result))


def report(result: Result, workload: str, profile_name: str, estimates: str) -> dict[str, object]:
    """What `--json` prints. `cores` are those of each node (null where nodes differ), `cores_total` all of them."""
    fields = msgspec.structs.asdict(result)
    if not fields["digest"]:
        del fields["digest"]
    said = {"workload": workload, "profile": profile_name, "estimates": estimates}
    return {**said, **fields, "cores": result.cores or None}
