"""`daws.simulate`: run a graph on a simulated cluster; the result prints, plots and becomes a frame."""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

from daws.bounds import Bound, Recursion, bound, recursion
from daws.formats import Execution, RecordedMachine, Workflow, write_wfformat
from daws.model.graph import Graph
from daws.predict.asked import Asked, check_seed
from daws.predict.frames import frame_of
from daws.predict.source import Source, named, source_of, title_of
from daws.predict.tables import Row, grid, html_grid, result_rows
from daws.runs.progress import Progress
from daws.sim.cluster import SimulatedCluster
from daws.sim.estimates import EXACT
from daws.sim.knobs import fields_of
from daws.sim.plot import check_target, figure_of_run, write_figure
from daws.sim.profiles import Costs
from daws.sim.runlog import RunLog
from daws.sim.simulate import Result, Settings
from daws.sim.simulate import simulate as run_kernel
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy

NS_PER_S = 1e9
SHORT = ("run", "bound", "data")
"""The groups of a result that are shown unless all are wanted."""


class Simulation(Result, frozen=True, kw_only=True, eq=False, dict=True):
    """The result of a simulated run. Its numbers are attributes: `makespan_s`, `efficiency`, `bytes_moved` …

    `print` shows a short table, and `table()` has all rows. `plot("busy.png")` draws busy executors over time, and
    `frame()` has a row for each task.
    """

    workload: str
    profile: str
    estimates: str
    graph: Graph
    cluster: SimulatedCluster
    costs: Costs
    source: Source
    notes: tuple[str, ...] = ()
    error: str = ""  # of the first task that failed
    runs: RunLog | None = None
    starts_ns: Sequence[int] = ()
    ends_ns: Sequence[int] = ()

    # -- what no schedule can beat -------------------------------------------------------------------------------------

    @cached_property
    def bound(self) -> Bound:
        """The lower bounds on the makespan."""
        return bound(self.graph, self.cluster.groups, self.costs)

    @cached_property
    def recursion(self) -> Recursion:
        """The estimate that MATRIX published, which is not a bound."""
        costs = self.costs
        return recursion(self.graph, self.cluster.core_count, costs.net_bytes_per_s, task_bytes=costs.task_bytes)

    @property
    def bound_s(self) -> float:
        """The makespan in seconds that no schedule can beat."""
        return self.bound.seconds

    @property
    def bound_share(self) -> float:
        """The share of the makespan that no schedule could have saved."""
        return self.bound.share_of(self.makespan_s)

    # -- as text -------------------------------------------------------------------------------------------------------

    @property
    def heading(self) -> str:
        """The workload, the strategy and the cluster, in one line."""
        cores = f"{self.cores} cores each" if self.cores else "unlike nodes"
        said = "" if self.estimates == EXACT else f"estimates {self.estimates}, "
        return (
            f"{self.workload} with {self.strategy}: {self.tasks:,} tasks, {self.edges:,} edges\n"
            f"{self.nodes:,} nodes, {self.cores_total:,} cores ({cores}); "
            f"costs {self.profile}, {said}seed {self.seed}\n"
        ) + (f"notes: {'; '.join(self.notes)}\n" if self.notes else "")

    def _rows(self, only: Sequence[str] = ()) -> list[Row]:
        return result_rows(self, self.bound, self.recursion, only)

    def table(self) -> str:
        """The full table, as `daws sim` prints it."""
        return f"{self.heading}\n{grid(self._rows(), right=(2,), indent='  ')}"

    def __str__(self) -> str:
        return f"{self.heading}\n{grid(self._rows(SHORT), right=(2,), indent='  ')}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_grid(self.heading.strip(), self._rows(SHORT), right=(2,))

    def report(self) -> dict[str, object]:
        """The dict that `daws sim --json` prints. `cores` are those of each node (None where nodes differ)."""
        fields = {name: getattr(self, name) for name in Result.__struct_fields__}
        if not fields["digest"]:
            del fields["digest"]
        best = {
            "bound_s": self.bound.seconds,
            "bound_by": self.bound.binding.name,
            "bound_share": self.bound_share,
            "recursion_s": self.recursion.seconds,
        }
        said = {"workload": self.workload, "profile": self.profile, "estimates": self.estimates}
        notes = {"notes": self.notes} if self.notes else {}
        return {**said, **fields, **best, "cores": self.cores or None, **notes}

    # -- as something else ---------------------------------------------------------------------------------------------

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Busy executors over time: written to a file (.png, .svg or .pdf), or else a matplotlib figure."""
        target = None if path is None else check_target(Path(path))
        figure = figure_of_run(self, self.starts_ns, self.ends_ns, self.workload)
        if target is None:
            return figure
        write_figure(figure, target)
        return None

    def columns(self) -> dict[str, Any]:
        """The columns of a frame with one row per task: when its last parent had ended (`ready_s`), when and where it
        ran, and the bytes that it read and made.

        Times are in simulated seconds; NaN, and node -1, for tasks that did not end.
        """
        runs = self._recorded()
        graph = self.graph
        ended_s = _seconds(runs.end_ns)
        return {
            "task": np.arange(graph.task_count),
            "name": list(named(self.source, graph).task_ids),
            "kind": [graph.kinds[kind] for kind in graph.kind.tolist()],
            "node": np.array(runs.node, np.int64),
            "ready_s": _ready(graph, ended_s),
            "started_s": _seconds(runs.start_ns),
            "ended_s": ended_s,
            "cores": graph.cores.copy(),
            "read_bytes": graph.task_input_bytes.copy(),
            "written_bytes": _written_bytes(graph),
        }

    def frame(self) -> Any:
        """The columns as a pandas frame, a row for each task."""
        return frame_of(self.columns(), "task")

    to_pandas = frame

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the run as WfFormat 1.5, as if it had begun just now."""
        runs = self._recorded()
        infos = self.cluster.infos()
        machines = [
            RecordedMachine(f"node-{number}", info.cores, info.memory_bytes) for number, info in enumerate(infos)
        ]
        execution = Execution(runs.start_ns, runs.end_ns, runs.node, machines, datetime.now(UTC))
        write_wfformat(os.fspath(path), named(self.source, self.graph), execution)

    def _recorded(self) -> RunLog:
        assert self.runs is not None, "only commands that do not show single tasks leave them out"
        return self.runs


def _seconds(column_ns: Sequence[int]) -> Any:
    times = np.array(column_ns, np.float64) / NS_PER_S
    times[times < 0] = np.nan
    return times


def _ready(graph: Graph, ended_s: Any) -> Any:
    ready_s = np.zeros(graph.task_count)
    some = np.flatnonzero(np.diff(graph.parent_start))
    if len(some):
        ready_s[some] = np.maximum.reduceat(ended_s[graph.parents], graph.parent_start[some])
    return ready_s


def _written_bytes(graph: Graph) -> Any:
    upto = np.concatenate([[0], np.cumsum(graph.object_bytes)])
    return upto[graph.output_start[1:]] - upto[graph.output_start[:-1]]


def simulate(
    what: object,
    nodes: int | None = None,
    cores: int | None = None,
    strategy: str | Strategy = "daws",
    seed: int = 0,
    *,
    memory_gb: float | None = None,
    groups: str | Sequence[str] = (),
    profile: str = "measured",
    network: str = "simple",
    estimates: str = EXACT,
    contexts: str | Sequence[str] = (),
    task_memory_gb: str | Sequence[str] = (),
    time_scale: float = 1.0,
    data_scale: float = 1.0,
    check: bool = False,
    progress: bool = False,
    **settings: float,
) -> Simulation:
    """Run a graph, workflow file or workload on a simulated cluster, and return the result.

    `what` is a `daws.Graph`, the name of a workflow file (DAX or WfFormat), or a workload as text, such as
    "montage:tasks=500". It runs on `nodes` nodes (16 unless given) with `cores` cores each (2 unless given), or on
    `groups` of unlike nodes, as in ["16x8", "4x2[gpu]:speed=3"]. All options are those of `daws sim`; `settings` are
    those of `--set`, as in `latency_us=100`. `progress=True` shows a bar on terminals and in notebooks.
    """
    check_seed(seed)
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    asked = asked_of(
        nodes, cores, memory_gb, groups, profile, network, estimates, contexts, task_memory_gb, time_scale, data_scale,
        settings, simulate.__annotations__,
    )  # fmt: skip
    source = source_of(what)
    cluster = asked.cluster()
    graph = asked.graph(source, cluster, seed)
    title, asked_settings = title_of(what, source), asked.settings(seed, check)
    with Progress(graph.task_count, quiet=not progress) as bar:
        return simulate_graph(graph, cluster, chosen, asked_settings, asked, source, title, bar, owns_process=False)


def simulate_graph(
    graph: Graph,
    cluster: SimulatedCluster,
    strategy: Strategy,
    settings: Settings,
    asked: Asked,
    source: Source,
    title: str,
    progress: Callable[[int], None] | None = None,
    records: bool = True,
    owns_process: bool = True,
) -> Simulation:
    """Run a graph that is ready to run; if it `records`, it is known of each task when and where it ran. The garbage
    collector is turned off meanwhile if the process is one of ours."""
    logs: list[RunLog] = []
    prepare = (lambda kernel: logs.append(RunLog(kernel))) if records else None
    result, kernel = run_kernel(graph, cluster, strategy, settings, progress, prepare, owns_process=owns_process)
    error = ""
    if result.failed:
        task, (_, said) = next(iter(kernel.client.ended.items()))
        error = f"{result.failed:,} tasks failed, first task {task}: {said}"
    return Simulation(
        **asdict(result),
        workload=title,
        profile=asked.profile,
        estimates=asked.estimates,
        graph=graph,
        cluster=cluster,
        costs=settings.costs,
        source=source,
        notes=source.notes if isinstance(source, Workflow) else (),
        error=error,
        runs=logs[0] if logs else None,
        starts_ns=kernel.starts,
        ends_ns=kernel.ends,
    )


NODES = 16
"""The default of `daws.simulate` and `daws.bound`: few enough nodes to see what happens."""


def asked_of(
    nodes: int | None,
    cores: int | None,
    memory_gb: float | None,
    groups: str | Sequence[str],
    profile: str,
    network: str,
    estimates: str,
    contexts: str | Sequence[str],
    task_memory_gb: str | Sequence[str],
    time_scale: float,
    data_scale: float,
    settings: dict[str, float],
    arguments: Iterable[str],
) -> Asked:
    """The options of a call that has these arguments."""
    return Asked(
        nodes=NODES if nodes is None and not groups else nodes,
        cores=cores,
        memory_gb=memory_gb,
        group=listed(groups),
        profile=profile,
        network=network,
        set=fields_of(settings, arguments),
        context=listed(contexts),
        task_memory_gb=listed(task_memory_gb),
        time_scale=time_scale,
        data_scale=data_scale,
        estimates=estimates,
    )


def listed(texts: str | Sequence[str]) -> Sequence[str]:
    """One text is a list of one."""
    return (texts,) if isinstance(texts, str) else tuple(texts)
