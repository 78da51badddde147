"""The options of a prediction: cluster, costs and graph, as `daws.simulate`, `daws.bound` and the commands of the same
names take them."""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from daws.formats.values import shown
from daws.model.context import Context, parse_context
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.predict.source import Source, graph_for
from daws.sim.cluster import BYTES_PER_GB, MEMORY_GB_MAX, SimulatedCluster, cluster_of, joined, memory_of, parse_group
from daws.sim.estimates import EXACT, parse_estimates, with_estimates
from daws.sim.knobs import KNOBS, Fields
from daws.sim.profiles import profile
from daws.sim.simulate import Settings

SEED_MAX = 2**63 - 1
NODES, CORES = 64, 2
NUMBER = re.compile(r"\d{1,12}\.?\d{0,9}|\.\d{1,9}", re.ASCII)


def in_python(name: str) -> str:
    """How an option is written in a call."""
    return f"{name}="


class Asked(Struct, frozen=True, kw_only=True):
    """Everything about a prediction but the workload, the strategy and the seed.

    `set` has the numbers that were set, by what they belong to. `context` and `task_memory_gb` are texts of the form
    `[KIND=]VALUE`. `spelled` says how the caller writes the name of an option, for messages.
    """

    nodes: int | None = None
    cores: int | None = None
    memory_gb: float | None = None
    group: Sequence[str] = ()
    profile: str = "measured"
    network: str = "simple"
    set: Mapping[str, Fields]
    context: Sequence[str] = ()
    task_memory_gb: Sequence[str] = ()
    time_scale: float = 1.0
    data_scale: float = 1.0
    estimates: str = EXACT
    spelled: Callable[[str], str] = in_python
    spelled_setting: Callable[[str], str] = lambda key: f"{key.replace('-', '_')}="

    def cluster(self) -> SimulatedCluster:
        """The cluster of groups, or else of equal nodes."""
        given = self.set["cluster"]
        if not self.group:
            nodes = NODES if self.nodes is None else self.nodes
            cores = CORES if self.cores is None else self.cores
            memory_bytes = 0 if self.memory_gb is None else memory_of(self.memory_gb)
            return cluster_of(nodes, cores, memory_bytes=memory_bytes, **given)  # type: ignore[arg-type]
        for option in ("nodes", "cores", "memory_gb"):
            if getattr(self, option) is not None:
                raise UsageError(f"give either {self.spelled('group')} or {self.spelled(option)}, not both")
        for key in self._set_about_nodes():
            raise UsageError(
                f"{self.spelled_setting(key)} goes with {self.spelled('nodes')}; "
                f"a group says its own speed and cluster, as in 4x8:speed=0.5"
            )
        return joined([parse_group(text) for text in self.group])

    def settings(self, seed: int, check: bool = False) -> Settings:
        """The settings of a simulation."""
        costs = msgspec.structs.replace(profile(self.profile), **self.set["costs"])
        given = self.set["settings"]
        return Settings(costs=costs, seed=seed, check=check, network=self.network, **given)  # type: ignore[arg-type]

    def settings_alone(self, seed: int, check: bool) -> Settings:
        """The same, where the nodes are described elsewhere."""
        for key in self._set_about_nodes():
            raise UsageError(f"{self.spelled_setting(key)} goes with {self.spelled('nodes')}")
        return self.settings(seed, check)

    def _set_about_nodes(self) -> list[str]:
        return [knob.key for knob in KNOBS.values() if knob.target == "cluster" and knob.field in self.set["cluster"]]

    def graph(self, source: Source, cluster: SimulatedCluster, seed: int) -> Graph:
        """The graph of a source at its scale, with the needs of its tasks and the estimates of their lengths."""
        estimates = parse_estimates(self.estimates)
        graph = graph_for(source, cluster, seed, self.spelled("cores")).scaled(self.time_scale, self.data_scale)
        graph = with_contexts(graph, self.context, self.spelled("context"))
        graph = with_memory(graph, self.task_memory_gb, self.spelled("task_memory_gb"))
        return with_estimates(graph, estimates, seed)


def check_seed(seed: object, option: str = "seed=") -> None:
    if not isinstance(seed, int) or not 0 <= seed <= SEED_MAX:
        raise UsageError(f"{stated(option, seed)}: a seed is between 0 and {SEED_MAX}")


def stated(option: str, value: object) -> str:
    """An option with its value: `seed=-1`, or `--seed -1`."""
    return f"{option}{value}" if option.endswith("=") else f"{option} {value}"


def by_kind(graph: Graph, option: str, texts: Sequence[str]) -> dict[str, str]:
    """The values of texts `[KIND=]VALUE`, by kind of task; an empty kind stands for all of them."""
    found: dict[str, str] = {}
    for text in texts:
        kind, equals, value = text.partition("=") if "=" in text else ("", "", text)
        if equals and kind not in graph.kinds:
            kinds = ", ".join(graph.kinds)
            raise UsageError(f"{stated(option, shown(text))}: there are no tasks of kind {shown(kind)}; kinds: {kinds}")
        if kind in found:
            raise UsageError(f"{stated(option, shown(text))}: given twice for {kind or 'all tasks'}")
        found[kind] = value
    return found


def with_memory(graph: Graph, texts: Sequence[str], option: str) -> Graph:
    """The graph with the memory that its tasks declare. The values of a workflow file stay where none are given."""
    wanted: dict[str, int] = {}
    for kind, text in by_kind(graph, option, texts).items():
        if not NUMBER.fullmatch(text.strip()) or float(text) > MEMORY_GB_MAX:
            raise UsageError(f"{stated(option, shown(text))}: expected a number of GB up to {MEMORY_GB_MAX:.0f}")
        wanted[kind] = round(float(text) * BYTES_PER_GB)
    if not wanted:
        return graph
    given = np.array([wanted.get(kind, wanted.get("", -1)) for kind in graph.kinds], np.int64)[graph.kind]
    said = np.zeros(graph.task_count, np.int64) if graph.memory_bytes is None else graph.memory_bytes
    return graph.changed(memory_bytes=np.where(given < 0, said, given))


def with_contexts(graph: Graph, texts: Sequence[str], option: str) -> Graph:
    """The graph with what its tasks ask for: `CONTEXT` holds for all of them, `KIND=CONTEXT` for those of a kind."""
    if not texts:
        return graph
    wanted: dict[str, Context | None] = {}
    for kind, context in by_kind(graph, option, texts).items():
        if not context.strip():
            text = f"{kind}={context}" if kind else context
            raise UsageError(f"{stated(option, shown(text))}: expected a context, or 'any' for none in particular")
        wanted[kind] = parse_context(context)
    contexts = tuple(wanted.get(kind, wanted.get("")) for kind in graph.kinds)
    return graph.changed(
        contexts=(None, *contexts),  # by kind, after no context at all
        context=np.where(np.array([one is None for one in contexts])[graph.kind], 0, graph.kind + 1),
    )
