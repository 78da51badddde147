"""`daws.bound`: how fast a graph could be at best; the result prints, plots and becomes a frame."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from daws.bounds import Bound, Recursion, recursion
from daws.bounds import bound as bound_of
from daws.formats import Workflow
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.predict.asked import Asked, check_seed, stated
from daws.predict.frames import frame_of
from daws.predict.simulation import asked_of
from daws.predict.source import Source, source_of, title_of
from daws.predict.tables import Row, bound_rows, grid, html_grid
from daws.sim.cluster import SimulatedCluster
from daws.sim.estimates import EXACT
from daws.sim.plot import BUSY_COLOUR, IDLE_COLOUR, check_target, new_figure, write_figure
from daws.sim.simulate import Settings, check_runnable
from daws.store.memory import MemoryStore

BYTES_PER_MB = 1e6


class Matrix(Struct, frozen=True, kw_only=True):
    """Numbers for the recursion of MATRIX that replace those of the graph and the costs."""

    per_core: float | None = None
    mean_length_ms: float | None = None
    bandwidth_mbps: float | None = None
    task_bytes: int | None = None

    def check(self, spelled: Callable[[str], str]) -> None:
        for option in ("per_core", "mean_length_ms", "bandwidth_mbps"):
            value = getattr(self, option)
            if value is not None and not value > 0:
                raise UsageError(f"{stated(spelled(option), f'{value:g}')}: a number above 0 is needed")
        if self.task_bytes is not None and self.task_bytes < 0:
            raise UsageError(f"{stated(spelled('task_bytes'), self.task_bytes)}: a number from 0 on is needed")


class Limits(Struct, frozen=True, kw_only=True, eq=False):
    """The lower bounds on a makespan that `daws.bound` returns.

    `bound_s` is the time that no schedule can beat, and `bound_by` the part of the bound that is largest. `parts` has
    all parts in seconds, `recursion` the estimate that MATRIX published (which is not a bound). `print` shows a table,
    `plot("parts.png")` draws it, and `frame()` has a row for each part.
    """

    workload: str
    profile: str
    seed: int
    tasks: int
    nodes: int
    cores: int  # of each node; 0 where nodes differ
    cores_total: int
    bound: Bound
    recursion: Recursion
    notes: tuple[str, ...] = ()

    @property
    def bound_s(self) -> float:
        """The time in seconds that no schedule can beat."""
        return self.bound.seconds

    @property
    def bound_by(self) -> str:
        """The name of the largest part of the bound."""
        return self.bound.binding.name

    @property
    def parts(self) -> dict[str, float]:
        """All parts of the bound in seconds, by name."""
        return {part.name: part.seconds for part in self.bound.parts}

    @property
    def heading(self) -> str:
        cores = f"{self.cores} cores each" if self.cores else "unlike nodes"
        return (
            f"{self.workload}: {self.tasks:,} tasks\n{self.nodes:,} nodes, {self.cores_total:,} cores ({cores}); "
            f"costs {self.profile}, seed {self.seed}\n"
        ) + (f"notes: {'; '.join(self.notes)}\n" if self.notes else "")

    def _rows(self) -> list[Row]:
        return bound_rows(self.tasks, self.bound, self.recursion)

    def __str__(self) -> str:
        return f"{self.heading}\n{grid(self._rows(), right=(2,), indent='  ')}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_grid(self.heading.strip(), self._rows(), right=(2,))

    def report(self) -> dict[str, object]:
        """The dict that `daws bound --json` prints."""
        names = ("workload", "profile", "seed", "tasks", "nodes")
        return {
            **{name: getattr(self, name) for name in names},
            "cores": self.cores or None,
            "cores_total": self.cores_total,
            "bound_s": self.bound_s,
            "bound_by": self.bound_by,
            "parts_s": self.parts,
            "recursion_s": self.recursion.seconds,
            "recursion": asdict(self.recursion),
        }

    def columns(self) -> dict[str, Any]:
        """The parts of the bound: their names, their seconds, their meaning, and whether they bind."""
        parts = self.bound.parts
        return {
            "part": [part.name for part in parts],
            "seconds": [part.seconds for part in parts],
            "binds": [part is self.bound.binding for part in parts],
            "meaning": [part.meaning for part in parts],
        }

    def frame(self) -> Any:
        """The columns as a pandas frame, a row for each part."""
        return frame_of(self.columns(), "part")

    to_pandas = frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """All parts as bars: written to a file (.png, .svg or .pdf), or else a matplotlib figure."""
        target = None if path is None else check_target(Path(path))
        parts = self.bound.parts[::-1]
        figure = new_figure((8.0, 0.4 * len(parts) + 1.2))
        axes = figure.subplots()
        colours = [BUSY_COLOUR if part is self.bound.binding else IDLE_COLOUR for part in parts]
        axes.barh([part.name for part in parts], [part.seconds for part in parts], color=colours)
        axes.set_xlabel("seconds that no schedule can beat")
        axes.set_title(self.workload.replace("$", r"\$"), loc="left", fontsize=10)
        if target is None:
            return figure
        write_figure(figure, target)
        return None


def bound(
    what: object,
    nodes: int | None = None,
    cores: int | None = None,
    seed: int = 0,
    *,
    memory_gb: float | None = None,
    groups: str | Sequence[str] = (),
    profile: str = "measured",
    contexts: str | Sequence[str] = (),
    task_memory_gb: str | Sequence[str] = (),
    time_scale: float = 1.0,
    data_scale: float = 1.0,
    per_core: float | None = None,
    mean_length_ms: float | None = None,
    bandwidth_mbps: float | None = None,
    **settings: float,
) -> Limits:
    """Compute lower bounds on the makespan that hold for every schedule, and say which of them is largest.

    `what` and the options of the cluster are as for `daws.simulate`. `per_core`, `mean_length_ms` and `bandwidth_mbps`
    are for the recursion of MATRIX, which is shown beside the bounds.
    """
    check_seed(seed)
    matrix = Matrix(per_core=per_core, mean_length_ms=mean_length_ms, bandwidth_mbps=bandwidth_mbps)
    asked = asked_of(
        nodes, cores, memory_gb, groups, profile, "simple", EXACT, contexts, task_memory_gb, time_scale, data_scale,
        settings, bound.__annotations__,
    )  # fmt: skip
    matrix.check(asked.spelled)
    source = source_of(what)
    cluster = asked.cluster()
    graph = asked.graph(source, cluster, seed)
    return bound_graph(graph, cluster, asked.settings(seed), asked, source, title_of(what, source), matrix)


def bound_graph(
    graph: Graph,
    cluster: SimulatedCluster,
    settings: Settings,
    asked: Asked,
    source: Source,
    title: str,
    matrix: Matrix,
    progress: Callable[[int], None] | None = None,
) -> Limits:
    """The limits of a graph that is ready to run."""
    graph.check()
    if _may_not_run(graph, cluster):
        check_runnable(graph, MemoryStore(1, 1).join(cluster.infos()))
    costs = settings.costs
    found = bound_of(graph, cluster.groups, costs)
    published = recursion(
        graph,
        cluster.core_count,
        costs.net_bytes_per_s if matrix.bandwidth_mbps is None else matrix.bandwidth_mbps * BYTES_PER_MB,
        matrix.per_core,
        None if matrix.mean_length_ms is None else matrix.mean_length_ms / 1e3,
        costs.task_bytes if matrix.task_bytes is None else matrix.task_bytes,
        progress,
    )
    return Limits(
        workload=title,
        profile=asked.profile,
        seed=settings.seed,
        tasks=graph.task_count,
        nodes=cluster.node_count,
        cores=cluster.cores_per_node,
        cores_total=cluster.core_count,
        bound=found,
        recursion=published,
        notes=source.notes if isinstance(source, Workflow) else (),
    )


def _may_not_run(graph: Graph, cluster: SimulatedCluster) -> bool:
    """Is it worth looking at every single task? Plain tasks run on plain executors."""
    plain = all(one.context is None for group in cluster.groups for one in group.executors)
    return not plain or len(graph.contexts) > 1 or graph.memory_bytes is not None or bool((graph.cores > 1).any())
