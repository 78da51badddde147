"""AIMES and Swift on batch queues: table II and figures 3 to 6 and 8 of the AIMES paper (2016), beside daws.

    python -m studies.aimes                 with waits fitted to what was published
    python -m studies.aimes --files DIR     with the recorded waits and runs themselves (github.com/radical-experiments/
                                            AIMES-Swift, commit 27445b1: the XDMoD exports, and aimes_swift_ttc.csv)

Prints *paper | daws* tables and leaves aimes.csv, aimes.png and aimes-equal.png in the folder `--out`.

Time to completion depends on queues more than on anything else, and two sorts of waits were published. XDMoD recorded
how long all jobs waited on Stampede and Gordon (`daws.sim.resources`); experiments 1 and 2 (Swift) met such waits. In
experiments 3 and 4 and the integrated ones (AIMES) pilots were active after minutes; those waits are fitted to the
published runs (`EXPERIENCED`). So the paper compares strategies that met different queues. The second part of this
study lets all of them meet the same.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from msgspec.structs import replace

from daws.model.errors import DawsError, UsageError
from daws.sim.pilots import simulate_pilots
from daws.sim.resources import KNOWN, Queue
from daws.sim.simulate import Settings
from daws.sim.waits import Waits
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

HOUR_S = 3600.0
COLUMNS = 3
TASKS_LEAST = 256
"""Every experiment has a bag of this size or smaller."""
FOUR = ("stampede", "gordon", "supermic", "comet")
FIVE = (*FOUR, "blue-waters")

# Of the 24 runs of experiment 3 with up to 256 tasks: where all ended within two rounds of 900 s, the second pilot had
# waited TTC - 900 s; where they did not, the first had waited TTC - 1800 s and the second 900 s more at least. A
# lognormal distribution that makes this most likely has these figures. Of SuperMIC and Comet is known only that in
# each of 12 runs of experiment 4 one of the four pilots came more than 900 s after the first: a guess that fits.
# These waits include what AIMES needs to start a pilot.
SHORT = Waits(median_s=245.0, sigma=1.0)
EXPERIENCED = {
    "stampede": SHORT,
    "gordon": SHORT,
    "supermic": Waits(median_s=1500.0, sigma=0.8),
    "comet": Waits(median_s=1500.0, sigma=0.8),
    "blue-waters": Waits(median_s=1500.0, sigma=0.8),
}


class Published(NamedTuple):
    """Table II, and the mean and deviation of the runs behind figures 3 to 6 and 8."""

    performance: float
    ttc_s: float
    deviation_s: float


class Experiment(NamedTuple):
    """What was run where; `ideal_s` is by number of tasks."""

    name: str
    figure: str
    strategy: str
    resources: tuple[str, ...]
    workload: str
    waits: str
    ideal_s: dict[int, float]
    paper: dict[int, Published]


class Measured(NamedTuple):
    """Of several runs: how near the ideal, and the times with their deviations."""

    performance: float
    ttc_s: float
    deviation_s: float
    tw_s: float
    tw_deviation_s: float
    pilots: float
    held_h: float


BAG_20 = "bot:tasks={tasks},length-ms=1200000,spread=constant"
BAG_15 = "bot:tasks={tasks},length-ms=900000,spread=constant"
EXPERIMENTS = (
    Experiment(
        *("1", "figure 3", "swift:pilots-each=20,spare-s=300", FOUR[:2], BAG_20, "recorded"),
        {8: 1200, 32: 1200, 256: 1200, 2048: 4800},
        {
            8: Published(0.22, 18_497, 12_521),
            32: Published(0.31, 13_048, 11_204),
            256: Published(0.19, 18_967, 17_459),
            2048: Published(0.07, 78_400, 35_740),
        },
    ),
    Experiment(
        # Walltimes were 75 to 255 minutes: three times the rounds of 20 minutes that 512 cores need, and 15 minutes.
        *("2", "figure 4", "swift:pilots-each=16,rounds={rounds},spare-s=900", FOUR[:2], BAG_20, "recorded"),
        {32: 1200, 128: 1200, 512: 1200, 1024: 2400, 2048: 4800},
        {
            32: Published(0.07, 22_559, 13_482),
            128: Published(0.04, 45_147, 25_825),
            512: Published(0.03, 43_496, 19_813),
            1024: Published(0.04, 68_993, 10_263),
            2048: Published(0.11, 61_463, 31_086),
        },
    ),
    Experiment(
        *("3", "figure 5", "aimes:pilots=2", FOUR[:2], BAG_15, "experienced"),
        dict.fromkeys((8, 32, 256, 2048), 900),
        {
            8: Published(0.62, 1526, 353),
            32: Published(0.77, 1195, 172),
            256: Published(0.61, 1539, 302),
            2048: Published(0.31, 3053, 785),
        },
    ),
    Experiment(
        *("4", "figure 6", "aimes:pilots=4", FOUR, BAG_15, "experienced"),
        dict.fromkeys((8, 32, 256, 2048), 900),
        {
            8: Published(0.46, 1940, 25),
            32: Published(0.47, 1922, 6),
            256: Published(0.46, 1972, 24),
            2048: Published(0.33, 2835, 722),
        },
    ),
    Experiment(
        *("integrated", "figure 8", "aimes:pilots=5", FIVE, "ensemble:simulations={tasks}", "experienced"),
        dict.fromkeys((256, 512, 1024, 2048), 870),
        {
            256: Published(0.17, 5112, 723),
            512: Published(0.12, 7067, 98),
            1024: Published(0.08, 10_366, 557),
            2048: Published(0.04, 23_564, 696),
        },
    ),
)
EQUAL = {
    "swift, experiment 1": "swift:pilots-each=20,spare-s=300",
    "early binding, 1 pilot": "aimes:bind=early,pilots=1",
    "early binding, 2 pilots": "aimes:bind=early,pilots=2",
    "late binding, 2 pilots": "aimes:pilots=2",
    "late binding, 3 pilots": "aimes:pilots=3",
    "late binding, 4 pilots": "aimes:pilots=4",
    "by prediction": "aimes:acquire=by-prediction",
}
EQUAL_TASKS = (8, 32, 256, 2048)
TITLES = {"recorded": "waits as XDMoD recorded them", "experienced": "short waits, as AIMES met them"}
# Okabe and Ito's colours, which can be told apart by those who see few; markers differ as well.
LOOKS = dict(
    zip(
        EQUAL,
        (
            ("#D55E00", "s"),
            ("#000000", "v"),
            ("#CC79A7", "D"),
            ("#56B4E9", "o"),
            ("#0072B2", "^"),
            ("#009E73", "P"),
            ("#E69F00", "X"),
        ),
        strict=True,
    )
)
PAPER_COLOUR, DAWS_COLOUR, WAIT_COLOUR, INK = "#E69F00", "#0072B2", "#56B4E9", "#333333"


# -- runs --------------------------------------------------------------------------------------------------------------


def queues_of(names: Sequence[str], waits: dict[str, Waits]) -> tuple[Queue, ...]:
    return tuple([replace(KNOWN[name], waits=waits[name]) for name in names])


def measure(
    strategy: str, workload: str, tasks: int, queues: tuple[Queue, ...], ideal_s: float, seeds: int
) -> Measured:
    """Several runs, each on another day."""
    chosen = parse_strategy(strategy.format(rounds=3 * ceil(tasks / 512)))
    graph = parse_workload(workload.format(tasks=tasks)).build(1, 1, 0)
    reports = [simulate_pilots(graph, queues, chosen, Settings(seed=seed))[0] for seed in range(seeds)]
    times_s, waits_s = [one.ttc_s for one in reports], [one.tw_s for one in reports]
    return Measured(
        performance=mean(min(1.0, ideal_s / ttc_s) for ttc_s in times_s),
        ttc_s=mean(times_s),
        deviation_s=stdev(times_s) if seeds > 1 else 0.0,
        tw_s=mean(waits_s),
        tw_deviation_s=stdev(waits_s) if seeds > 1 else 0.0,
        pilots=mean(one.active for one in reports),
        held_h=mean(one.held_core_s for one in reports) / HOUR_S,
    )


# -- recorded files ----------------------------------------------------------------------------------------------------


def recorded_waits(folder: Path) -> dict[str, Waits]:
    """As `fitted`, but each run draws one of the recorded days."""
    path = folder / "Wait_Hours__Per_Job__by_Resource_2015-12-01_to_2016-05-18_timeseries.csv"
    days: dict[str, list[float]] = {"gordon": [], "stampede": []}
    with path.open(newline="") as file:
        for row in csv.reader(file):
            if len(row) > 2 and row[0].count("/") == 2 and row[1] and row[2][:1].isdigit():
                days["gordon"].append(float(row[1]) * HOUR_S)
                days["stampede"].append(float(row[2]) * HOUR_S)
    if not days["gordon"]:
        raise UsageError(f"{path}: there are no days in it")
    return {
        name: replace(queue.waits, recorded=tuple(days.get(name, days["stampede"]))) for name, queue in KNOWN.items()
    }


def published_runs(folder: Path) -> dict[tuple[str, int], list[float]]:
    """The TTCs of the runs that table II is the mean of, by experiment and number of tasks."""
    found: dict[tuple[str, int], list[float]] = {}
    with (folder / "aimes_swift_ttc.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = {"swift_exp1": "1", "swift_exp2": "2", "aimes_2res": "3", "aimes_4res": "4", "integrated": "integrated"}
    seen = 0
    for row in rows:
        name = names[row["experiment"]]
        seen += name == "1"
        # Which runs the paper has is inferred: of experiment 1 the last four, of experiment 4 the first folder.
        if (name == "1" and seen <= 16) or (name == "4" and not row["source_folder"].endswith("1_v2")):
            continue
        found.setdefault((name, int(row["tasks"])), []).append(float(row["ttc_seconds"]))
    return found


def with_runs(experiments: Sequence[Experiment], runs: dict[tuple[str, int], list[float]]) -> list[Experiment]:
    """What the paper says, taken anew from its runs."""
    found = []
    for one in experiments:
        paper = {
            tasks: Published(mean(min(1, ideal_s / ttc_s) for ttc_s in times), mean(times), stdev(times))
            for tasks, ideal_s in one.ideal_s.items()
            if (times := runs.get((one.name, tasks)))
        }
        found.append(one._replace(paper=paper))
    return found


# -- what is shown -----------------------------------------------------------------------------------------------------

Row = tuple[Experiment, int, Measured]
EqualRow = tuple[str, str, int, Measured]


def table_two(rows: Sequence[Row]) -> str:
    lines = ["Table II: mean of ideal / TTC (paper | daws)", ""]
    heads = f"{'TTC paper, s':>17} | {'TTC daws, s':>17}   Tw daws, s"
    lines.append(f"{'experiment':12} {'tasks':>6} {'paper':>7} | {'daws':>6}   {heads}")
    for experiment, tasks, ours in rows:
        paper = experiment.paper[tasks]
        lines.append(
            f"{experiment.name:12} {tasks:6,} {paper.performance:7.0%} | {ours.performance:6.0%}"
            f"   {paper.ttc_s:8,.0f} ± {paper.deviation_s:6,.0f} | {ours.ttc_s:8,.0f} ± {ours.deviation_s:6,.0f}"
            f"   {ours.tw_s:6,.0f} ± {ours.tw_deviation_s:,.0f}"
        )
    return "\n".join(lines)


def equal_tables(rows: Sequence[EqualRow]) -> str:
    """What all strategies need, how long they wait for their first pilot, and what they hold."""
    tasks = list(dict.fromkeys(row[2] for row in rows))
    lines = ["The same bags of 15 minutes and the same queues for all, mean ± deviation"]
    parts: dict[str, Callable[[Measured], str]] = {
        "TTC in s": lambda ours: f"{ours.ttc_s:,.0f} ± {ours.deviation_s:,.0f}",
        "Tw in s": lambda ours: f"{ours.tw_s:,.0f} ± {ours.tw_deviation_s:,.0f}",
        "core hours held": lambda ours: f"{ours.held_h:,.0f}",
    }
    for title, cell in parts.items():
        lines += ["", f"{title:16} {'waits':12} {'tasks':>24} " + " ".join(f"{some:>17,}" for some in tasks)]
        for waits, name in dict.fromkeys(row[:2] for row in rows):
            cells = [cell(ours) for one, other, _, ours in rows if (one, other) == (waits, name)]
            lines.append(f"{'':16} {waits:12} {name:24} " + " ".join(f"{some:>17}" for some in cells))
    return "\n".join(lines)


def write_csv(path: Path, rows: Sequence[Row], equal: Sequence[EqualRow]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["part", "waits", "name", "tasks", *(f"paper_{field}" for field in Published._fields), *Measured._fields]
        )
        for experiment, tasks, ours in rows:
            paper = experiment.paper[tasks]
            writer.writerow(["table II", experiment.waits, experiment.name, tasks, *paper, *ours])
        for waits, name, tasks, ours in equal:
            writer.writerow(["equal", waits, name, tasks, "", "", "", *ours])


def draw_experiments(path: Path, rows: Sequence[Row]) -> None:
    """One panel per figure of the paper: bars for TTC, paper and daws, with the wait until the first pilot inside."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(experiment.name for experiment, _, _ in rows))
    lines = ceil(len(names) / COLUMNS)
    figure = Figure(figsize=(3.6 * COLUMNS, 3.0 * lines + 0.6), layout="constrained")
    panels = list(figure.subplots(lines, COLUMNS, sharey=True, squeeze=False).flat)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        mine = [row for row in rows if row[0].name == name]
        experiment = mine[0][0]
        for number, (_, tasks, ours) in enumerate(mine):
            paper = experiment.paper[tasks]
            bars: list[tuple[float, float, float, str, str]] = [
                (-0.2, paper.ttc_s, paper.deviation_s, PAPER_COLOUR, "TTC, paper"),
                (0.2, ours.ttc_s, ours.deviation_s, DAWS_COLOUR, "TTC, daws"),
            ]
            for shift, height, spread, colour, label in bars:
                axes.bar(number + shift, height, 0.36, color=colour, label=None if number else label)
                # On a logarithmic axis nothing is below zero.
                low = min(spread, 0.9 * height)
                axes.errorbar(number + shift, height, [[low], [spread]], color=INK, capsize=2, linewidth=0.8)
            waits = None if number else "Tw, daws (first pilot active)"
            axes.plot(number + 0.2, ours.tw_s, "v", color="white", markeredgecolor=INK, label=waits)
            ideal = experiment.ideal_s[tasks]
            best = None if number else "ideal"
            axes.plot([number - 0.42, number + 0.42], [ideal, ideal], "--", color=INK, label=best)
        axes.set_yscale("log")
        axes.set_ylim(40, 400_000)
        axes.set_xticks(range(len(mine)), [f"{tasks:,}" for _, tasks, _ in mine])
        axes.set_xlabel("simulations" if name == "integrated" else "tasks")
        what = name if name == "integrated" else f"experiment {name}"
        axes.set_title(f"{experiment.figure} ({what})", fontsize=10)
        _tidy(axes)
    for axes in panels[::COLUMNS]:
        axes.set_ylabel("seconds")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle("Time to completion, mean and deviation: paper and daws", fontsize=11)
    figure.savefig(path, dpi=150)


def draw_equal(path: Path, rows: Sequence[EqualRow]) -> None:
    """All strategies on the same waits."""
    from matplotlib.figure import Figure

    waits = list(dict.fromkeys(row[0] for row in rows))
    figure = Figure(figsize=(5.2 * len(waits), 4.4), layout="constrained")
    for axes, one in zip(figure.subplots(1, len(waits)), waits, strict=True):
        for number, (name, (colour, marker)) in enumerate(LOOKS.items()):
            mine = [row for row in rows if row[:2] == (one, name)]
            # Side by side, so that error bars can be told apart.
            tasks = [row[2] * 1.07 ** (number - len(LOOKS) / 2) for row in mine]
            ttc = [row[3].ttc_s for row in mine]
            spread = [row[3].deviation_s for row in mine]
            below = [min(some, 0.9 * height) for some, height in zip(spread, ttc, strict=True)]
            axes.errorbar(
                *(tasks, ttc, [below, spread]),
                color=colour,
                marker=marker,
                capsize=2,
                linewidth=1.2,
                elinewidth=0.6,
                label=name,
            )
        axes.axhline(900, linestyle="--", color=INK, linewidth=0.8, label="ideal")
        axes.set(xscale="log", yscale="log", xlabel="tasks of 15 minutes", ylabel="time to completion in s")
        axes.set_xticks(EQUAL_TASKS, [f"{tasks:,}" for tasks in EQUAL_TASKS])
        axes.minorticks_off()
        axes.set_title(TITLES[one], fontsize=10)
        _tidy(axes)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle("The same bags and the same queues for every strategy: mean and deviation", fontsize=11)
    figure.savefig(path, dpi=150)


def _tidy(axes: Any) -> None:
    axes.grid(axis="y", color="#DDE3E8", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m studies.aimes", description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=Path, metavar="DIR", help="folder with the recorded waits and runs")
    parser.add_argument("--out", type=Path, metavar="DIR", default=Path("out/studies"), help="where CSV and plots go")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each sort, on other days each (default: 10)")
    parser.add_argument("--tasks-max", type=int, default=2048, metavar="N", help="leave out larger bags")
    given = parser.parse_args(argv)
    if given.seeds < 1:
        parser.error("--seeds must be at least 1")
    if given.tasks_max < TASKS_LEAST:
        parser.error(f"--tasks-max must be at least {TASKS_LEAST}")
    try:
        fitted = {name: queue.waits for name, queue in KNOWN.items()}
        waits = {"recorded": recorded_waits(given.files) if given.files else fitted, "experienced": EXPERIENCED}
        experiments = with_runs(EXPERIMENTS, published_runs(given.files)) if given.files else EXPERIMENTS
        given.out.mkdir(parents=True, exist_ok=True)
        rows: list[Row] = []
        for one in experiments:
            queues = queues_of(one.resources, waits[one.waits])
            for tasks, ideal_s in one.ideal_s.items():
                if tasks <= given.tasks_max:
                    ours = measure(one.strategy, one.workload, tasks, queues, ideal_s, given.seeds)
                    rows.append((one, tasks, ours))
        print(table_two(rows), "\n")
        equal: list[EqualRow] = [
            (name, label, tasks, measure(strategy, BAG_15, tasks, queues_of(FOUR, some), 900, given.seeds))
            for name, some in waits.items()
            for label, strategy in EQUAL.items()
            for tasks in EQUAL_TASKS
            if tasks <= given.tasks_max
        ]
        print(equal_tables(equal), "\n")
        write_csv(given.out / "aimes.csv", rows, equal)
        draw_experiments(given.out / "aimes.png", rows)
        draw_equal(given.out / "aimes-equal.png", equal)
    except (DawsError, OSError) as error:
        print(f"aimes: {error}", file=sys.stderr)
        return 1
    print(f"wrote aimes.csv, aimes.png and aimes-equal.png to {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
