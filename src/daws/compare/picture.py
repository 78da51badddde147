"""A comparison as a picture: makespans, and how much of them no schedule could have saved."""

from collections.abc import Sequence
from typing import Any

from daws.compare.summary import Cell
from daws.sim.plot import INK, new_figure

# Okabe and Ito's colours can be told apart by all readers; with markers and dashes, in grey as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
HANDLE = 3.2
"""The length of lines in legends: dashes can be told apart without their colours."""
BOUND_COLOUR = "#777777"
LEGEND_COLUMNS_MAX = 4
LINEAR_MAX = 8.0
"""Makespans that differ by no more than this are drawn on a linear axis."""
SPREAD = 1.15
"""Lines lie beside each other rather than on top, so that all error bars can be seen."""


def draw_comparison(cells: Sequence[Cell], title: str, seeds: int) -> Any:
    """A figure with both; error bars are standard deviations over the seeds."""
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    rows = -(-(len(strategies) + 1) // LEGEND_COLUMNS_MAX)
    figure = new_figure((9.6, 4.2 + 0.22 * rows))
    figure.suptitle(title.replace("$", r"\$"), fontsize=12, color=INK, fontweight="bold")
    times, shares = figure.subplots(1, 2)
    for number, strategy in enumerate(strategies):
        own = [cell for cell in cells if cell.strategy == strategy]
        nudge = SPREAD ** ((number + 0.5) / len(strategies) - 0.5)
        at = [cell.nodes * nudge for cell in own]
        style = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": DASHES[number % len(DASHES)],
            "linewidth": 1.5,
            "markersize": 5,
            "capsize": 3,
            "label": strategy.replace("$", r"\$"),
        }
        times.errorbar(at, [cell.makespan_s for cell in own], [cell.makespan_spread_s for cell in own], **style)
        percent = [100 * cell.bound_share for cell in own]
        shares.errorbar(at, percent, [100 * cell.bound_share_spread for cell in own], **style)
    least = {cell.nodes: cell.bound_s for cell in cells}
    label = "no schedule below"
    line = {"color": BOUND_COLOUR, "linewidth": 2.2, "linestyle": ":", "label": label, "zorder": 1}
    times.plot(list(least), list(least.values()), marker="_", **line)
    shares.axhline(100, **line)
    _finish(times, list(least), "makespan in s")
    _scale(times, [cell.makespan_s for cell in cells])
    _finish(shares, list(least), "share of the makespan that no schedule\ncould have saved, in %")
    shares.set_ylim(0, 105)
    handles, labels = (found[1:] + found[:1] for found in times.get_legend_handles_labels())  # the bound comes last
    spread = f"error bars: standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(LEGEND_COLUMNS_MAX, len(handles)),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        title=spread,
        title_fontsize=8,
        handlelength=HANDLE,
    )
    return figure


def _scale(axes: Any, makespans_s: Sequence[float]) -> None:
    """Scale the axis: from 0 on, or logarithmically if the shortest time would else be invisible."""
    if max(makespans_s) <= LINEAR_MAX * min(makespans_s):
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter("")


def _finish(axes: Any, sizes: list[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.minorticks_off()
    axes.set_xlabel("nodes", fontsize=10, color=INK)
    axes.set_ylabel(label, fontsize=10, color=INK)
    axes.tick_params(labelsize=9, colors=INK)
    axes.grid(True, color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
