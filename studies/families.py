"""How the generated workflow families compare with the classic files: by kind of task, and as a whole at several sizes.

    daws study families                        its page, as of all studies
    python -m studies.families                 beside the figures of the classic files, which are kept here
    python -m studies.families --files DIR     beside the files themselves: CyberShake_1000.xml and so on

Prints two tables, *classic | generated*, and leaves families.csv and families.png in the folder `--out`. Generated is
the mean of several seeds. The files are those of the Pegasus workflow generator (Bharathi et al. 2008; Juve et al.
2013), with dependencies and sizes as `daws sim FILE` takes them. MolDyn and fMRI have no files; what the papers on
Falkon, Swift and MATRIX say of them is in the second table alone.
"""

import argparse
import csv
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daws.formats import read_workflow
from daws.model.errors import DawsError, UsageError
from daws.model.graph import Graph
from daws.workloads import parse_workload

from .shared.study import Asked, Claim, Report, Row, Study, Table

UNKNOWN = math.nan


class Figures(NamedTuple):
    """The figures of one kind of task: how many there are, and their means."""

    tasks: float
    length_s: float
    read_mb: float
    written_mb: float


class Totals(NamedTuple):
    """The figures of a whole workflow."""

    levels: float
    widest: float
    serial_s: float
    critical_s: float
    read_gb: float
    written_gb: float


FIGURE_NAMES = ("tasks", "length s", "read MB", "written MB")
TOTAL_NAMES = ("levels", "widest", "serial s", "critical s", "read GB", "written GB")
FAMILIES = {name.lower(): name for name in ("CyberShake", "Epigenomics", "Inspiral", "Montage", "Sipht")}
# Okabe and Ito's colours, which can be told apart by those who see few; markers differ as well.
LOOKS = {
    "cybershake": ("#0072B2", "o"),
    "epigenomics": ("#D55E00", "s"),
    "inspiral": ("#009E73", "^"),
    "montage": ("#CC79A7", "D"),
    "sipht": ("#56B4E9", "v"),
}

# The classic files of about 1,000 tasks, kind by kind.
CLASSIC: dict[str, dict[str, Figures]] = {
    "cybershake": {
        "ExtractSGT": Figures(4, 126.12, 40001.4, 535.134),
        "SeismogramSynthesis": Figures(497, 43.65, 538.723, 0.024),
        "ZipSeis": Figures(1, 9.38, 0, 2.139),
        "PeakValCalcOkaya": Figures(497, 1.08, 0.024, 0.000216),
        "ZipPSA": Figures(1, 3.81, 0, 0.011),
    },
    "epigenomics": {
        "fastqSplit": Figures(7, 54.53, 369.205, 384.551),
        "filterContams": Figures(245, 1.45, 10.987, 10.987),
        "sol2sanger": Figures(245, 0.39, 5.505, 4.425),
        "fastq2bfq": Figures(245, 0.67, 4.425, 1.052),
        "map": Figures(245, 15704, 5305.66, 1.143),
        "mapMerge": Figures(8, 35.31, 66.839, 63.356),
        "maqindex": Figures(1, 0.21, 240.228, 4.291),
        "pileup": Figures(1, 6034.5, 5308.9, 9.442),
    },
    "inspiral": {
        "TmpltBank": Figures(229, 18.14, 40.51, 0.988),
        "Inspiral": Figures(480, 462.6, 43.41, 0.311),
        "Thinca": Figures(40, 5.35, 3.906, 0.036),
        "TrigBank": Figures(251, 5.12, 0.035, 0.013),
    },
    "montage": {
        "mProjectPP": Figures(166, 13.58, 4.222, 8.326),
        "mDiffFit": Figures(662, 10.59, 16.615, 0.289),
        "mConcatFit": Figures(1, 52.96, 0.31, 0.139),
        "mBgModel": Figures(1, 89.12, 0.167, 0.009),
        "mBackground": Figures(166, 10.74, 8.334, 8.322),
        "mImgTbl": Figures(1, 65.91, 1381.53, 0.067),
        "mAdd": Figures(1, 99.53, 0.068, 609.539),
        "mShrink": Figures(1, 22.25, 609.539, 12.196),
        "mJPEG": Figures(1, 2.52, 12.196, 1.423),
    },
    "sipht": {
        "Patser": Figures(584, 1.28, 2.917, 0.092),
        "Findterm": Figures(32, 1215.59, 3.338, 38.263),
        "RNAMotif": Figures(32, 33.99, 2.763, 1.112),
        "Transterm": Figures(32, 56.63, 3.126, 0.452),
        "Blast": Figures(32, 2508.64, 258.421, 7.137),
        "Patser_concate": Figures(32, 0.08, 1.673, 1.639),
        "SRNA": Figures(32, 355.85, 64.247, 6.677),
        "FFN_Parse": Figures(32, 1.62, 4.716, 0.712),
        "Blast_candidate": Figures(32, 5.06, 1.435, 0.015),
        "Blast_QRNA": Figures(32, 1428.87, 258.444, 3.331),
        "Blast_paralogues": Figures(32, 5.12, 1.263, 0.741),
        "Blast_synteny": Figures(32, 33, 3.395, 1.091),
        "SRNA_annotate": Figures(32, 1.6, 4.268, 1.498),
    },
}
# All classic files.
WHOLE: dict[tuple[str, int], Totals] = {
    ("cybershake", 30): Totals(4, 14, 761, 222, 87.8, 1.17),
    ("cybershake", 50): Totals(4, 23, 1525, 243, 170, 1.95),
    ("cybershake", 100): Totals(4, 46, 3216, 263, 339, 3.62),
    ("cybershake", 1000): Totals(4, 498, 22752, 255, 428, 2.15),
    ("epigenomics", 24): Totals(8, 5, 17720, 5581, 8.91, 1.2),
    ("epigenomics", 47): Totals(9, 10, 41402, 7728, 16, 1.67),
    ("epigenomics", 100): Totals(8, 24, 403400, 29873, 133, 0.643),
    ("epigenomics", 997): Totals(9, 245, 3854791, 34044, 1313, 7.53),
    ("inspiral", 30): Totals(6, 7, 6617, 1335, 0.897, 0.0116),
    ("inspiral", 50): Totals(6, 12, 11762, 1411, 1.54, 0.0192),
    ("inspiral", 100): Totals(6, 24, 21024, 1333, 2.99, 0.0379),
    ("inspiral", 1000): Totals(6, 251, 227703, 1413, 30.3, 0.38),
    ("montage", 25): Totals(9, 9, 228, 47, 0.341, 0.181),
    ("montage", 50): Totals(9, 28, 509, 56, 0.725, 0.285),
    ("montage", 100): Totals(9, 62, 1079, 71, 1.47, 0.427),
    ("montage", 1000): Totals(9, 662, 11379, 368, 15.1, 3.58),
    ("sipht", 29): Totals(5, 21, 5546, 4409, 0.808, 0.0629),
    ("sipht", 58): Totals(5, 42, 11669, 4640, 1.75, 0.113),
    ("sipht", 97): Totals(5, 73, 17380, 4475, 2.71, 0.175),
    ("sipht", 968): Totals(5, 712, 181419, 5067, 21.1, 2.06),
}
# What the papers on Falkon, Swift and MATRIX say of the families that have no files.
PAPERS: dict[tuple[str, int], Totals] = {
    ("moldyn", 20497): Totals(8, UNKNOWN, 867 * 3600, UNKNOWN, UNKNOWN, UNKNOWN),
    ("fmri", 180): Totals(12, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
}

ByKind = dict[str, Figures]
Whole = dict[tuple[str, int], Totals]


# -- measuring ---------------------------------------------------------------------------------------------------------


def figures_of(graph: Graph) -> ByKind:
    """The figures by kind, in the order in which kinds appear level by level."""
    made = graph.external_start
    written = np.bincount(graph.producer[:made], graph.object_bytes[:made], minlength=graph.task_count)
    tasks = np.bincount(graph.kind, minlength=len(graph.kinds))
    means = [
        np.bincount(graph.kind, column, minlength=len(graph.kinds)) / tasks / unit
        for column, unit in ((graph.length_ns, 1e9), (graph.task_input_bytes, 1e6), (written, 1e6))
    ]
    first_level = [int(graph.levels()[graph.kind == kind].min()) for kind in range(len(graph.kinds))]
    # The classic files of Epigenomics have the name of a chromosome in every kind.
    return {
        graph.kinds[kind].removesuffix("_chr21"): Figures(float(tasks[kind]), *(float(mean[kind]) for mean in means))
        for kind in np.argsort(first_level, kind="stable").tolist()
    }


def totals_of(graph: Graph) -> Totals:
    widths = np.bincount(graph.levels())
    seconds = (graph.total_length_ns / 1e9, graph.critical_path_ns() / 1e9)
    return Totals(len(widths), int(widths.max()), *seconds, graph.input_bytes / 1e9, graph.output_bytes / 1e9)


def mean_of(each: Sequence[Any]) -> Any:
    """The mean of several tuples of numbers, place by place."""
    return type(each[0])(*(float(value) for value in np.mean(each, axis=0)))


def generated(family: str, tasks: int, seeds: int) -> tuple[ByKind, Totals]:
    graphs = [parse_workload(f"{family}:tasks={tasks}").build(1, 1, seed) for seed in range(seeds)]
    kinds = [figures_of(graph) for graph in graphs]
    return {kind: mean_of([one[kind] for one in kinds]) for kind in kinds[0]}, mean_of([*map(totals_of, graphs)])


def classic_in(folder: Path) -> tuple[dict[str, ByKind], Whole]:
    """The figures of the classic files in a folder, in the form of the constants above. The largest file of each family
    counts by kind.
    """
    by_kind: dict[str, ByKind] = {}
    whole: Whole = {}
    for family, name in FAMILIES.items():
        paths = [path for path in folder.rglob(f"{name}_*.xml") if re.fullmatch(r"\d+", path.stem.rpartition("_")[2])]
        for path in sorted(paths, key=lambda path: int(path.stem.rpartition("_")[2])):
            graph = read_workflow(path).graph
            by_kind[family] = figures_of(graph)
            whole[family, graph.task_count] = totals_of(graph)
    if not whole:
        wanted = ", ".join(f"{name}_*.xml" for name in FAMILIES.values())
        raise UsageError(f"there are no classic files in {folder}: {wanted}")
    return by_kind, whole


# -- showing -----------------------------------------------------------------------------------------------------------


def shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def print_table(title: str, first: Sequence[str], names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Rows are texts for the first columns, then classic and generated figures."""
    cells = [[*first, *names]]
    for *texts, classic, ours in rows:
        pairs = (f"{shown(one)} | {shown(other)}" for one, other in zip(classic, ours, strict=True))
        cells.append([*map(str, texts), *pairs])
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    print(f"{title}\n")
    for row in cells:
        left = [cell.ljust(width) for cell, width in zip(row[: len(first)], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(row[len(first) :], widths[len(first) :], strict=True)]
        print("  " + "  ".join([*left, *right]))
    print()


def write_csv(path: Path, kinds: Sequence[tuple[Any, ...]], whole: Sequence[tuple[Any, ...]]) -> None:
    """One figure in each row, so that both tables fit."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["family", "tasks", "kind", "figure", "classic", "generated"])
        for family, tasks, kind, classic, ours in kinds:
            for name, one, other in zip(FIGURE_NAMES, classic, ours, strict=True):
                writer.writerow([family, tasks, kind, name, one, other])
        for family, tasks, classic, ours in whole:
            for name, one, other in zip(TOTAL_NAMES, classic, ours, strict=True):
                writer.writerow([family, tasks, "all", name, "" if math.isnan(one) else one, other])


def draw(path: Path, kinds: Sequence[tuple[Any, ...]]) -> None:
    picture_of(kinds).savefig(path, dpi=150)


def picture_of(kinds: Sequence[tuple[Any, ...]]) -> Any:
    """One panel for each figure: a kind of task is a point, and where classic and generated agree it is on the line."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("the plot needs matplotlib: install daws[plot]") from None
    figure = Figure(figsize=(9, 8.4), layout="constrained")
    labels = ("tasks of a kind", "mean length of a kind (s)", "read by a task (MB)", "written by a task (MB)")
    for number, label in enumerate(labels):
        axes = figure.add_subplot(2, 2, number + 1)
        # What is nothing in one of them has no place on such an axis.
        points = [
            (family, classic[number], ours[number])
            for family, _, _, classic, ours in kinds
            if min(classic[number], ours[number]) > 0
        ]
        ends = [min(min(point[1:]) for point in points) / 2, max(max(point[1:]) for point in points) * 2]
        axes.plot(ends, ends, color="#333333", linewidth=0.8, label="equal")
        low, high = ([end * factor for end in ends] for factor in (1 / 1.25, 1.25))
        axes.fill_between(ends, low, high, color="#DDE3E8", label="within 25 %")
        for family, (colour, marker) in LOOKS.items():
            mine = [point for point in points if point[0] == family]
            axes.scatter(
                [point[1] for point in mine],
                [point[2] for point in mine],
                s=36,
                color=colour,
                marker=marker,
                edgecolors="white",
                linewidths=0.5,
                label=FAMILIES[family],
                zorder=3,
            )
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        axes.set(xlabel=f"{label}, classic", ylabel=f"{label}, generated")
        axes.set_aspect("equal")
        axes.grid(color="#DDE3E8", linewidth=0.5)
    axes.legend(*figure.axes[0].get_legend_handles_labels(), loc="lower right", fontsize=8)
    figure.suptitle("Generated workflow families beside the classic files of about 1,000 tasks")
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m studies.families", description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=Path, metavar="DIR", help="folder with the classic files")
    parser.add_argument("--out", type=Path, metavar="DIR", default=Path("out/studies"), help="where CSV and plot go")
    parser.add_argument("--seeds", type=int, default=5, help="generated graphs to take the mean of (default: 5)")
    given = parser.parse_args(argv)
    if given.seeds < 1:
        parser.error("--seeds must be at least 1")
    try:
        by_kind, whole = classic_in(given.files) if given.files else (CLASSIC, WHOLE)
        kinds, totals = compare(by_kind, whole | PAPERS, given.seeds)
        given.out.mkdir(parents=True, exist_ok=True)
        print_table("By kind of task (classic | generated)", ("family", "tasks", "kind"), FIGURE_NAMES, kinds)
        print_table("As a whole (classic | generated)", ("family", "tasks"), TOTAL_NAMES, totals)
        write_csv(given.out / "families.csv", kinds, totals)
        draw(given.out / "families.png", kinds)
    except (DawsError, OSError) as error:
        print(f"families: {error}", file=sys.stderr)
        return 1
    print(f"wrote {given.out / 'families.csv'} and {given.out / 'families.png'}")
    return 0


def compare(
    by_kind: dict[str, ByKind], whole: Whole, seeds: int
) -> tuple[list[tuple[str, int, str, Figures, Figures]], list[tuple[str, int, Totals, Totals]]]:
    """Rows of both tables: classic and generated, at the sizes that the classic ones have."""
    kinds, totals = [], []
    for (family, tasks), classic in whole.items():
        ours, ours_whole = generated(family, tasks, seeds)
        totals.append((family, tasks, classic, ours_whole))
        if family in by_kind and tasks == max(size for name, size in whole if name == family):
            for kind, figures in by_kind[family].items():
                kinds.append((family, tasks, kind, figures, ours[kind]))
    return kinds, totals


# -- as a study --------------------------------------------------------------------------------------------------------

UNITS = dict(zip(TOTAL_NAMES, ("levels", "tasks", "s", "s", "GB", "GB"), strict=True))
OF_KINDS = {
    "tasks": ("Tasks by kind", "tasks"),
    "length s": ("Mean length by kind of task", "s"),
    "read MB": ("Read by a task, mean by kind", "MB"),
    "written MB": ("Written by a task, mean by kind", "MB"),
}
CLOSE_PERCENT = 25.0


def run(asked: Asked) -> Report:
    """The report of this study. It has the largest workflow of each family; the tables of `main` have all sizes."""
    by_kind, whole = classic_in(asked.files) if asked.files else (CLASSIC, WHOLE)
    largest = {family: max(tasks for name, tasks in whole if name == family) for family in by_kind}
    chosen = {(family, tasks): whole[family, tasks] for family, tasks in largest.items()}
    kinds, totals = compare(by_kind, chosen, 1 if asked.quick else 5)
    tables = [
        Table(
            f"Whole workflows: {name}",
            ("family", "tasks"),
            UNITS[name],
            [Row((FAMILIES[family], str(tasks)), one[place], ours[place]) for family, tasks, one, ours in totals],
            "classic",
            "generated",
        )
        for place, name in enumerate(TOTAL_NAMES)
    ]
    of_kinds = {
        name: [Row((FAMILIES[family], kind), one[place], ours[place]) for family, _, kind, one, ours in kinds]
        for place, name in enumerate(FIGURE_NAMES)
    }
    tables += [
        Table(title, ("family", "kind"), unit, of_kinds[name], "classic", "generated")
        for name, (title, unit) in OF_KINDS.items()
    ]
    rows = {name: table.rows for name, table in zip(TOTAL_NAMES, tables, strict=False)}
    levels, serial = rows["levels"], rows["serial s"]
    farthest = max(serial, key=lambda row: abs(row.percent or 0.0))
    lengths, many = of_kinds["length s"], len(kinds)
    near = {name: sum(abs(row.percent or 0.0) <= CLOSE_PERCENT for row in some) for name, some in of_kinds.items()}
    claims = [
        Claim(
            "Generated workflows have the levels of the classic ones",
            all(row.paper == row.daws for row in levels),
            ", ".join(f"{row.keys[0]} {row.daws:g}" for row in levels),
        ),
        Claim(
            "Their tasks together take as long, within 10 %",
            not any(row.is_notable for row in serial),
            f"{farthest.keys[0]} is farthest off, by {farthest.percent:+.1f} %",
        ),
        Claim(
            "Nine of ten kinds of tasks have the same mean length, within 25 %",
            near["length s"] >= 0.9 * many,
            f"{near['length s']} of {len(lengths)}",
        ),
        Claim(
            "Nine of ten kinds of tasks read and write as much, within 25 %",
            min(near["read MB"], near["written MB"]) >= 0.9 * many,
            f"{near['read MB']} of {many} read as much, {near['written MB']} write as much",
        ),
    ]
    return Report(tables, claims, WHY, picture_of(kinds))


WHY = (
    "A classic file is one draw from its generator, with a few tasks of many kinds: means over four or seven tasks, "
    "and the longest way through the graph, are a matter of chance. Generated numbers are means over five seeds. So it "
    "is with all kinds of which there is one (ZipPSA, maqindex, pileup, mConcatFit, mImgTbl, mAdd, mJPEG), and with "
    "Epigenomics, where what seven lanes read decides what their 245 chunks hold: a seventh less here.",
    "**CyberShake** reads and writes more here because of the number of extractions, not because of their sizes. One "
    "task in 123 is one, as in the published generator: 8 of 1,000 tasks, where the classic file has 4. Those of 30, "
    "50 and 100 tasks have 2, 4 and 8. Its zips read what they pack; the classic files declare nothing.",
    "**Sipht.** In the classic file of 1,000 tasks the files of all genomes bear the same names, so each size was "
    "drawn once for all of them. What Patser, Findterm, RNAMotif and Transterm read is mostly the genome, 2.7 MB there "
    "and 5.4 to 6.9 MB in the three smaller files; here each has its own, of 5.2 MB on average. With what Blast and "
    "Blast_QRNA write (7.1 and 3.3 MB there, 3.2 to 5.3 and 3.6 to 4.5 MB in the smaller files) it is the same.",
)

STUDY = Study(
    "families",
    "Workflow families beside the classic files",
    "Juve et al. (2013), Bharathi et al. (2008)",
    "How generated workflows compare with the files that everybody uses.",
    "Generated workflows of about 1,000 tasks beside the classic files; `python -m studies.families` prints all sizes.",
    run,
    takes_files=True,
)


if __name__ == "__main__":
    sys.exit(main())
