"""The figures as a picture: one small panel per workload, one bar per system, thin lines from the worst to the best."""

import math
from io import BytesIO
from pathlib import Path
from typing import Any

from bench.peers.report import Report, value
from bench.peers.summary import US, Row, summarise
from bench.peers.systems import system_named
from bench.peers.workloads import WORKLOADS

COLUMNS = 3
COLOURS = {"ours": "#0072B2", "floor": "#999999", "peer": "#E69F00", "threads": "#CCBB99"}
INK = "#333333"


def draw(report: Report, path: Path) -> None:
    """Write a picture; the ending of its name says of which kind."""
    from matplotlib.figure import Figure

    rows = [row for row in summarise(report.runs) if row.systems]
    if not rows:
        return
    lines = math.ceil(len(rows) / COLUMNS)
    figure = Figure(figsize=(4.6 * COLUMNS, 2.5 * lines + 0.8), layout="constrained")
    figure.suptitle("daws beside its peers" + (" (quick run)" if report.quick else ""), color=INK, fontweight="bold")
    for index, axes in enumerate(figure.subplots(lines, COLUMNS, squeeze=False).flat):
        if index < len(rows):
            _panel(axes, rows[index])
        else:
            axes.set_axis_off()
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=110)
    path.write_bytes(buffer.getvalue())


def _panel(axes: Any, row: Row) -> None:
    from matplotlib.ticker import MaxNLocator

    workload = WORKLOADS[row.workload]
    names = sorted(row.systems, key=lambda name: row.systems[name].median, reverse=not workload.higher_is_better)
    medians = [max(row.systems[name].median, 1e-9) for name in names]
    places = range(len(names))
    axes.barh(places, medians, color=[COLOURS[_kind(name)] for name in names], height=0.7)
    for place, name in enumerate(names):
        spread = row.systems[name]
        axes.plot([spread.low, spread.high], [place, place], color=INK, linewidth=1)
        axes.text(
            1.02,
            place,
            value(row.workload, spread.median),
            transform=axes.get_yaxis_transform(),
            fontsize=7,
            va="center",
        )
    axes.set_yticks(places, names, fontsize=7)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == US else "normal")
    if workload.unit == "%":
        axes.set_xlim(0.0, 1.0)
    elif max(medians) > 20 * min(medians):
        axes.set_xscale("log")
        axes.set_xlim(left=min(medians) / 3)  # or else the shortest bar would have no length
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda x, _: value(row.workload, x))
    axes.tick_params(axis="x", labelsize=7, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    better = "more is better" if workload.higher_is_better else "less is better"
    axes.set_title(f"{workload.title} ({better})", fontsize=8.5, color=INK, loc="left")


def _kind(name: str) -> str:
    system = system_named(name)
    if name == US:
        return "ours"
    if system.one_process:
        return "threads"
    return "peer" if system.is_peer else "floor"
