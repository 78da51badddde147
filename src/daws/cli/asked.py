"""What was asked for: graph, cluster and costs, as `daws sim`, `daws bound` and `daws compare` take them."""

import argparse
import re

import msgspec
import numpy as np

from daws.cli.knobs import KNOBS, read_settings
from daws.cli.messages import shown
from daws.cli.parser import CORES, NODES
from daws.cli.source import graph_for
from daws.formats import Workflow
from daws.model.context import Context, parse_context
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import BYTES_PER_GB, MEMORY_GB_MAX, Cluster, cluster_of, joined, memory_of, parse_group
from daws.sim.estimates import parse_estimates, with_estimates
from daws.sim.profiles import profile
from daws.sim.simulate import Settings
from daws.workloads import Workload

SEED_MAX = 2**63 - 1
NUMBER = re.compile(r"\d{1,12}\.?\d{0,9}|\.\d{1,9}", re.ASCII)


def check_seed(seed: int) -> None:
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"--seed {seed}: a seed is between 0 and {SEED_MAX}")


def read_world(arguments: argparse.Namespace, seed: int, check: bool = False) -> tuple[Cluster, Settings]:
    """The cluster, and what is set about simulating it."""
    given = read_settings(arguments.settings)
    cluster = read_cluster(arguments, given["cluster"])
    return cluster, _settings(arguments, given, seed, check)


def read_settings_alone(arguments: argparse.Namespace, seed: int, check: bool) -> Settings:
    """What is set about a simulation whose nodes are described elsewhere."""
    given = read_settings(arguments.settings)
    for key in (knob.key for knob in KNOBS.values() if knob.target == "cluster" and knob.field in given["cluster"]):
        raise UsageError(f"--set {key} goes with --nodes")
    return _settings(arguments, given, seed, check)


def _settings(
    arguments: argparse.Namespace, given: dict[str, dict[str, int | float]], seed: int, check: bool
) -> Settings:
    costs = msgspec.structs.replace(profile(arguments.profile), **given["costs"])
    network = arguments.network
    return Settings(costs=costs, seed=seed, check=check, network=network, **given["settings"])  # type: ignore[arg-type]


def read_graph(arguments: argparse.Namespace, source: Workload | Workflow, cluster: Cluster, seed: int) -> Graph:
    """The graph of a source at its scale, with what its tasks ask for and what is said of their lengths."""
    estimates = parse_estimates(arguments.estimates)
    graph = graph_for(source, cluster, seed).scaled(arguments.time_scale, arguments.data_scale)
    graph = with_memory(with_contexts(graph, arguments.context), arguments.task_memory_gb)
    return with_estimates(graph, estimates, seed)


def title_of(arguments: argparse.Namespace, source: Workload | Workflow) -> str:
    return arguments.workload if isinstance(source, Workflow) else str(source)


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
