"""The work of `daws compare`: make the runs that are missing, then show all of them side by side."""

import argparse
import csv
import io
import os
import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from daws import __version__
from daws.cli.asked import read_graph, read_world, title_of
from daws.cli.messages import EXIT_INTERRUPTED, complain
from daws.cli.options import CORES
from daws.cli.table import as_json, grid, seconds, share, size
from daws.cli.targets import check_apart, check_writable, write_text
from daws.compare.cases import Case, CaseResult, cases_of, read_sizes, split_strategies
from daws.compare.jobs import run_cases
from daws.compare.page import page_of
from daws.compare.picture import draw_comparison
from daws.compare.results import Results, default_path
from daws.compare.summary import Cell, cells_of, seconds_left
from daws.formats import Workflow
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.predict.source import read_source
from daws.runs.progress import Progress, bar, clock
from daws.sim.cluster import SimulatedCluster
from daws.sim.plot import bytes_of, new_figure, write_figure
from daws.sim.plot import check_target as check_picture
from daws.sim.simulate import Settings, check_runnable
from daws.store.memory import MemoryStore
from daws.workloads import Workload

STRATEGIES = "daws,random"
JOBS_MAX = 1024
SAME = ("workload", "estimates", "time_scale", "data_scale", "context", "task_memory_gb")
"""The options that all runs of a comparison must share, together with those of nodes and costs."""
WORLD = ("cores", "memory_gb", "profile", "network", "settings")


class World:
    """The options from which each process makes the graph and the cluster, as `daws sim` does."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.options = {name: getattr(arguments, name) for name in (*SAME, *WORLD, "group")}
        self.source: Workload | Workflow = read_source(arguments.workload)

    def __getstate__(self) -> dict[str, object]:
        return self.options

    def __setstate__(self, options: dict[str, object]) -> None:
        self.options = options
        self.source = read_source(str(options["workload"]))

    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]:
        arguments = argparse.Namespace(**self.options, nodes=nodes)
        cluster, settings = read_world(arguments, seed)
        return read_graph(arguments, self.source, cluster, seed), cluster, settings


def compare(arguments: argparse.Namespace) -> int:
    """Run the command. All options are checked before anything runs."""
    strategies = split_strategies(arguments.strategies or [STRATEGIES])
    cases = cases_of(strategies, read_sizes(arguments.sizes), arguments.seeds)
    jobs = len(os.sched_getaffinity(0)) if arguments.jobs is None else arguments.jobs
    if not 1 <= jobs <= JOBS_MAX:
        raise UsageError(f"--jobs {jobs}: give a number from 1 to {JOBS_MAX}")
    if arguments.plot is not None:
        check_picture(Path(arguments.plot))
    for option in ("csv", "html"):
        check_writable(f"--{option}", getattr(arguments, option))
    if arguments.html is not None:
        new_figure((1, 1))
    world = World(arguments)
    # Nodes are alike: what those of one cluster can run, those of all others can.
    graph, cluster, _ = world.make(cases[0].nodes, 0)
    check_runnable(graph, MemoryStore(1, 1).join(cluster.infos()))
    settings = settings_of(arguments, world)
    path = default_path(arguments.workload, settings) if arguments.results is None else Path(arguments.results)
    written = {f"--{option}": getattr(arguments, option) for option in ("plot", "csv", "html")}
    check_apart(arguments.workload, {"--results": path, **written})
    results = Results(path, settings)
    try:
        with results:
            carry_out(world, results, cases, jobs, arguments.quiet)
    except KeyboardInterrupt:
        left = len(cases) - sum(case in results.runs for case in cases)
        complain(f"interrupted: {left:,} of {len(cases):,} runs are left; the same command continues ({path})")
        return EXIT_INTERRUPTED
    tell(arguments, title_of(arguments, world.source), [results.runs[case] for case in cases], path)
    return 0


def settings_of(arguments: argparse.Namespace, world: World) -> dict[str, object]:
    """The settings that runs must have in common to be compared."""
    settings: dict[str, object] = {"version": __version__}
    settings |= {name.replace("_", "-"): getattr(arguments, name) for name in (*SAME, *WORLD)}
    settings["cores"] = CORES if arguments.cores is None else arguments.cores
    settings["set"] = sorted(arguments.settings)
    del settings["settings"]
    if isinstance(world.source, Workflow):
        settings["contents"] = blake2b(Path(arguments.workload).read_bytes(), digest_size=8).hexdigest()
    else:
        settings["workload"] = str(world.source)
    return settings


def carry_out(world: World, results: Results, cases: Sequence[Case], jobs: int, quiet: bool) -> None:
    """Run what is missing, and keep each run as soon as it is done."""
    todo = results.missing(cases)
    progress = CompareProgress(results, cases, min(jobs, max(1, len(todo))), quiet)
    with progress, closing(run_cases(world, todo, jobs)) as runs:
        for one in runs:
            results.add(one)
            progress.tick()


class CompareProgress(Progress):
    """A bar with the number of runs that are done, and the time that is left."""

    def __init__(self, results: Results, cases: Sequence[Case], jobs: int, quiet: bool) -> None:
        super().__init__(len(cases), quiet)
        self.results, self.cases, self.jobs = results, cases, jobs
        self.began_s = time.monotonic()

    def tick(self) -> None:
        todo = self.results.missing(self.cases)
        left_s = seconds_left(self.results.runs.values(), todo, self.jobs)
        self._draw(compare_line(self.total - len(todo), self.total, left_s))


def compare_line(done: int, total: int, left_s: float | None) -> str:
    return f"{bar(done / max(1, total))} {done:,} of {total:,} runs  " + (
        "…" if left_s is None else f"{clock(left_s)} left"
    )


def tell(arguments: argparse.Namespace, title: str, runs: Sequence[CaseResult], path: Path) -> None:
    """Print tables or JSON, and write the files that the options name."""
    cells = cells_of(runs)
    if arguments.json:
        print(as_json({"workload": title, "cells": cells, "runs": runs}))
    elif not arguments.quiet:
        seeds = f"{arguments.seeds} seeds" if arguments.seeds > 1 else "one seed"
        print(f"{title}: {len(runs):,} runs with {seeds}; costs {arguments.profile}\n\n{comparison_table(cells)}")
    files = {"runs": str(path)}
    if arguments.csv is not None:
        write_text("--csv", arguments.csv, csv_of(runs))
        files["runs as CSV"] = arguments.csv
    if arguments.plot is not None or arguments.html is not None:
        figure = draw_comparison(cells, title, arguments.seeds)
        if arguments.plot is not None:
            write_figure(figure, Path(arguments.plot))
            files["plot"] = arguments.plot
        if arguments.html is not None:
            heading, command = f"Strategies side by side: {title}", command_of(arguments)
            page = page_of(cells, heading, command, facts_of(arguments), bytes_of(figure, ".svg"))
            write_text("--html", arguments.html, page)
            files["page"] = arguments.html
    if not (arguments.json or arguments.quiet):
        print("\n" + "\n".join(f"{what}: {name}" for what, name in files.items()))


def comparison_table(cells: Sequence[Cell]) -> str:
    """A table of makespans with their spread, shares of the bound, and data held at once: a row per size, a column per
    strategy.
    """
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    by_place = {(cell.nodes, cell.strategy): cell for cell in cells}
    sizes = list(dict.fromkeys(cell.nodes for cell in cells))
    times = [("nodes", "no schedule below", *strategies)]
    shares = [("nodes", "", *strategies)]
    peaks = [("nodes", "", *strategies)]
    for nodes in sizes:
        row = [by_place[nodes, strategy] for strategy in strategies]
        times.append(
            (
                f"{nodes:,}",
                seconds(row[0].bound_s),
                *(f"{seconds(cell.makespan_s)} ± {seconds(cell.makespan_spread_s)}" for cell in row),
            )
        )
        shares.append(
            (
                f"{nodes:,}",
                "",
                *(f"{share(cell.bound_share)} ± {share(cell.bound_share_spread)}" for cell in row),
            )
        )
        peaks.append((f"{nodes:,}", "", *(size(cell.peak_bytes) for cell in row)))
    right = range(len(times[0]))
    holds = any(cell.peak_bytes for cell in cells)
    held = f"\n\nmost data held at once, mean\n{grid(peaks, right, '  ')}" if holds else ""
    return (
        f"makespan, mean ± standard deviation\n{grid(times, right, '  ')}\n\n"
        f"share of the makespan that no schedule could have saved\n{grid(shares, right, '  ')}"
        f"{held}"
    )


def facts_of(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The options of the comparison, as names and values for its page."""
    return [
        ("workload", arguments.workload),
        ("strategies", "; ".join(split_strategies(arguments.strategies or [STRATEGIES]))),
        ("nodes", arguments.sizes),
        ("seeds", str(arguments.seeds)),
        ("cores of each node", str(CORES if arguments.cores is None else arguments.cores)),
        ("costs", " ".join([arguments.profile, *arguments.settings])),
        ("estimates", arguments.estimates),
        ("daws", __version__),
    ]


def command_of(arguments: argparse.Namespace) -> str:
    """The command that gives the same runs again."""
    words = ["daws", "compare", arguments.workload, "--nodes", arguments.sizes, "--seeds", str(arguments.seeds)]
    for strategies in arguments.strategies or [STRATEGIES]:
        words += ["--strategy", strategies]
    for option, values in (("context", arguments.context), ("task-memory-gb", arguments.task_memory_gb)):
        words += [word for value in values for word in (f"--{option}", value)]
    words += ["--estimates", arguments.estimates, "--profile", arguments.profile]
    words += ["--time-scale", f"{arguments.time_scale:g}", "--data-scale", f"{arguments.data_scale:g}"]
    for option, value in (("cores", arguments.cores), ("memory-gb", arguments.memory_gb)):
        words += [] if value is None else [f"--{option}", f"{value:g}"]
    words += [word for setting in arguments.settings for word in ("--set", setting)]
    return shlex.join(words)


def csv_of(runs: Sequence[CaseResult]) -> str:
    buffer = io.StringIO()
    names = [*CaseResult.__struct_fields__, "bound_share"]
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([getattr(run, name) for name in names] for run in runs)
    return buffer.getvalue()
