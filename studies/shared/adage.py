"""The common code of the studies of ADAGE: its cluster, the systems that it compares, and their simulations.

All systems get the same nodes, costs and graphs, and the whole graph at once from one client. They differ in their
strategies alone.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import geometric_mean, mean, stdev
from typing import Any

import numpy as np
from msgspec import Struct

from daws.bounds import bound
from daws.compare.jobs import run_each
from daws.compare.picture import COLOURS, DASHES, MARKERS
from daws.model.cluster import ExecutorClass
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.model.states import FAILED
from daws.predict.source import graph_for, read_source
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.estimates import with_estimates
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.plot import INK, new_figure
from daws.sim.profiles import profile
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.strategy.rng import hash_u64

from .runs import RunsProgress
from .study import Asked

PAPER = "ADAGE (2021)"
FAMILIES = {
    "sipht": "Sipht",
    "epigenomics": "Epigenomics",
    "inspiral": "Inspiral",
    "cybershake": "CyberShake",
    "montage": "Montage",
}
"""The workflow families, in the order of the paper's figure 3."""
GIVE = "period-ms=1000,period-max-ms=120000"
"""The periods at which ADAGE's published code tries to give tasks."""
POLL = "poll-max-ms=1000"
"""The longest period at which MATRIX's published code tries to steal."""
ADAGE = f"adage:{GIVE}"
SINGLE = f"adage:{GIVE},replicate=never"
MATRIX, ALBATROSS = f"flds:{POLL}", f"albatross:{POLL}"
PUBLISHED = {ADAGE: "ADAGE", MATRIX: "MATRIX", ALBATROSS: "Albatross"}
SYSTEMS = PUBLISHED | {"heft": "HEFT", "random": "random"}
TASKS = 1000
NODES = 16
"""The number of nodes where only one size is studied: large enough to spread tasks, small enough that every core has
several of them.
"""
SEEDS = 3
SPEED = 2.0
"""2,000 MIPS. WorkflowSim takes the recorded lengths as those of 1,000 MIPS."""
BYTES_PER_S = 1.25e8
HEARTBEAT_S = 125.0
"""The paper's interval of heartbeats, which is the lease of every run. It decides how soon a dead node is noticed, and
nothing else.
"""
SLOWED_TO = 0.25
GIVEN_UP = "was running on"
"""The beginning of the store's message when it gives a task up. Tasks that need that task get the same message."""
CLUSTER = (
    "Nodes have four cores at twice the recorded speed (2,000 MIPS) and a link of 1 Gbit/s in each direction, as in "
    "the paper, and otherwise the costs of the profile `measured`. Leases are the paper's heartbeat of 125 s in every "
    "run; with leases of 10 s, or as long as the run, makespans are the same. Files lie on the nodes: inputs of the "
    "workflow spread evenly, all others where they were made."
)
FAIR = (
    "Every system gets the same cluster, the same costs, and the whole graph at once. ADAGE tries to give every second "
    "to every two minutes and MATRIX (its policy FLDS) tries to steal every millisecond to every second, as their "
    "published codes do. HEFT and random placement stand beside them. Means of three seeds; ± is the standard "
    "deviation."
)


class Case(Struct, frozen=True):
    """One simulation.

    `crashed` nodes die one after the other. `slowed` nodes are slow, and strategies do not know it. `error` is the
    largest error of estimates, as a share of the true length.
    """

    workload: str
    strategy: str
    nodes: int
    seed: int = 0
    cores: int = 4
    has_shared_files: bool = False
    crashed: int = 0
    slowed: int = 0
    error: float = 0.0

    def __str__(self) -> str:
        return f"{self.workload} with {self.strategy} on {self.nodes} nodes"


class Found(Struct, frozen=True):
    """The result of a simulation, and the bound, which no schedule could beat.

    `ends_s` is when runs ended, in order. `given_up` counts the failed tasks that were running on too many nodes when
    these died. `lost` counts tasks that failed neither for that reason nor because they need such a task. (A simulation
    in which a task never ends is an error.)
    """

    case: Case
    tasks: int
    makespan_s: float
    bound_s: float
    bytes_moved: int
    failed: int
    given_up: int
    lost: int
    ends_s: tuple[float, ...]

    @property
    def over_bound(self) -> float:
        """The makespan divided by the bound."""
        return self.makespan_s / self.bound_s


def run_case(case: Case) -> Found:
    costs = profile("measured").changed(net_bytes_per_s=BYTES_PER_S)
    cluster = SimulatedCluster((NodeGroup(case.nodes, (ExecutorClass(case.cores),), SPEED),))
    graph = graph_for(read_source(case.workload), cluster, case.seed)
    if case.has_shared_files:
        graph = on_shared_files(graph)
    if case.error:
        graph = with_estimates(graph, case.error, case.seed)
    bound_s = bound(graph, cluster.groups, costs).seconds
    settings = Settings(costs=costs, seed=case.seed, lease_s=HEARTBEAT_S)
    result, kernel = simulate(
        graph, cluster, parse_strategy(case.strategy), settings, prepare=partial(break_nodes, case, bound_s)
    )
    errors = {task: error for task, (state, error) in kernel.client.ended.items() if state == FAILED}
    return Found(
        case,
        result.tasks,
        result.makespan_s,
        bound_s,
        result.bytes_moved,
        result.failed,
        sum(error.startswith(f"task {task} {GIVEN_UP}") for task, error in errors.items()),
        sum(GIVEN_UP not in error for error in errors.values()),
        tuple(np.sort(np.asarray(kernel.ends) / 1e9).tolist()),
    )


def on_shared_files(graph: Graph) -> Graph:
    """The same graph on a shared file system: every task reads all its inputs at the speed of a link, on any node.

    This is the file system of WorkflowSim, which knows no contention. Writing costs nothing there.
    """
    reading_ns = graph.task_input_bytes * (1e9 * SPEED / BYTES_PER_S)
    return graph.changed(
        length_ns=graph.length_ns + reading_ns.astype(np.int64), object_bytes=np.zeros_like(graph.object_bytes)
    )


def break_nodes(case: Case, bound_s: float, kernel: Kernel) -> None:
    """Let nodes crash or be slow. The seed chooses the nodes; crashes are spread over the shortest possible time of the
    run.
    """
    order = np.argsort(hash_u64(np.arange(case.nodes), case.seed + 2), kind="stable").tolist()
    for number, node in enumerate(order[: case.crashed]):
        at_ns = int(1e9 * bound_s * (number + 0.5) / case.crashed)
        kernel.push(at_ns, FATE, lambda kernel, node=node: kernel.kill(node))
    for node in order[: case.slowed]:
        kernel.machines[node].speed *= SLOWED_TO


_known: dict[Case, Found] = {}


def run_cases(cases: Iterable[Case], asked: Asked) -> dict[Case, Found]:
    """Run each case once, even if several studies ask for it; the largest cases come first."""
    wanted = list(dict.fromkeys(cases))
    missing = sorted((case for case in wanted if case not in _known), key=lambda case: (-case.nodes, str(case)))
    progress = RunsProgress(len(missing), asked.quiet)
    with progress, closing(run_each(run_case, missing, asked.jobs)) as done:
        for found in done:
            _known[found.case] = found
            progress.tick()
    return {case: _known[case] for case in wanted}


# -- what is asked for -------------------------------------------------------------------------------------------------


def families_of(asked: Asked) -> dict[str, str]:
    return {family: FAMILIES[family] for family in ("sipht", "montage")} if asked.quick else FAMILIES


def nodes_of(asked: Asked) -> int:
    return 4 if asked.quick else NODES


def workload_of(asked: Asked, family: str) -> str:
    """A workload of about 1,000 tasks: the largest file if there are files."""
    if asked.files is not None:
        return list(files_of(asked.files, family).values())[-1]
    return f"{family}:tasks={60 if asked.quick else TASKS}"


def files_of(folder: Path, family: str) -> dict[int, str]:
    """The files of a family by the number in their names, which is about their number of tasks."""
    name = FAMILIES[family]
    numbers = {path: path.stem.rpartition("_")[2] for path in folder.rglob(f"{name}_*.xml")}
    found = sorted((int(number), str(path)) for path, number in numbers.items() if number.isdecimal())
    if not found:
        raise UsageError(f"there are no classic files of {name} in {folder}: {name}_*.xml")
    return dict(found)


# -- what came of it ---------------------------------------------------------------------------------------------------


class Runs:
    """The runs of a study by family, strategy and further settings: one for each seed."""

    def __init__(self, cases: dict[tuple[Any, ...], list[Case]], asked: Asked) -> None:
        found = run_cases((case for some in cases.values() for case in some), asked)
        self._found = {key: [found[case] for case in some] for key, some in cases.items()}

    def of(self, *key: Any) -> list[Found]:
        return self._found[key]

    def times(self, *key: Any) -> list[float]:
        return [one.makespan_s for one in self._found[key]]

    def mean_s(self, *key: Any) -> float:
        return mean(self.times(*key))

    def over_bound(self, keys: Iterable[tuple[Any, ...]]) -> float:
        """The makespans divided by the provable bounds: the geometric mean of all."""
        return geometric_mean([one.over_bound for key in keys for one in self._found[key]])


def cases_of(asked: Asked, workload: str, strategy: str, nodes: int, **others: Any) -> list[Case]:
    """One case for each seed."""
    return [Case(workload, strategy, nodes, seed, **others) for seed in range(1 if asked.quick else SEEDS)]


def deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def spread(values: Sequence[float]) -> str:
    """The standard deviation in percent of the mean, as a key of a row."""
    return "one seed" if len(values) == 1 else f"± {100 * deviation(values) / mean(values):.1f} %"


def percent(part: float, whole: float) -> float:
    return 100 * part / whole


def join(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"


# -- pictures ----------------------------------------------------------------------------------------------------------


def panels_of(title: str, rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    figure = new_figure(size)
    figure.suptitle(title, fontsize=12, color=INK, fontweight="bold")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def draw_spread(axes: Any, label: str, x: Sequence[float], each: Sequence[Sequence[float]], number: int) -> None:
    """A line through means, with the standard deviation at each point."""
    axes.errorbar(
        x,
        [mean(values) for values in each],
        [deviation(values) for values in each],
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=DASHES[number % len(DASHES)],
        linewidth=1.5,
        markersize=5,
        capsize=2,
        elinewidth=0.8,
        label=label,
    )


def log_y(axes: Any, low: float, high: float) -> None:
    """A logarithmic axis with ticks at 1, 2 and 5 times powers of ten."""
    axes.set_yscale("log")
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    axes.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.set_ylim(0.85 * low, 1.15 * high)


def draw_groups(
    axes: Any, groups: Sequence[str], series: dict[str, Sequence[Sequence[float]]], form: Callable[[float], str]
) -> None:
    """Bars side by side for each group, one for each series, with their numbers above them."""
    width = 0.84 / len(series)
    for number, (label, each) in enumerate(series.items()):
        places = [place + (number - (len(series) - 1) / 2) * width for place in range(len(groups))]
        heights = [mean(values) for values in each]
        bars = axes.bar(
            places,
            heights,
            width * 0.94,
            yerr=[deviation(values) for values in each],
            color=COLOURS[number % len(COLOURS)],
            error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 2},
            label=label,
        )
        axes.bar_label(bars, [form(height) for height in heights], fontsize=7, color=INK, padding=2)
    axes.set_xticks(range(len(groups)), groups)
