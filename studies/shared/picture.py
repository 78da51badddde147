"""Pictures of studies, in the style of `daws compare`."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from daws.cli.table import significant
from daws.compare.picture import BOUND_COLOUR, COLOURS, DASHES, HANDLE, MARKERS
from daws.sim.plot import IDLE_COLOUR, INK, new_figure

PAPER_COLOUR = BOUND_COLOUR


class Line(NamedTuple):
    """A line of daws, or of the paper. A line of the paper is grey, and dotted where `number` is None."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    number: int | None
    is_dotted: bool = False


def figure_of(title: str, columns: int, size: tuple[float, float] = (9.6, 4.4)) -> tuple[Any, Any]:
    """A figure with this number of pictures in a row."""
    figure = new_figure(size)
    heading(figure, title)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def heading(figure: Any, title: str) -> None:
    figure.suptitle(title, fontsize=12, color=INK, fontweight="bold")


def draw_lines(axes: Any, lines: Iterable[Line]) -> None:
    for line in lines:
        number = line.number or 0
        axes.plot(
            line.x,
            line.y,
            color=PAPER_COLOUR if line.number is None else COLOURS[number % len(COLOURS)],
            marker="x" if line.number is None else MARKERS[number % len(MARKERS)],
            linestyle=":" if line.is_dotted or line.number is None else DASHES[number % len(DASHES)],
            linewidth=1.5,
            markersize=5,
            label=line.label,
        )


def draw_bars(axes: Any, labels: Sequence[str], paper: Sequence[float | None], daws: Sequence[float]) -> None:
    """Pairs of bars, with their numbers above them."""
    for offset, name, values, colour in ((-0.2, "paper", paper, IDLE_COLOUR), (0.2, "daws", daws, COLOURS[0])):
        places = [place + offset for place, value in enumerate(values) if value is not None]
        heights = [value for value in values if value is not None]
        edge = {"edgecolor": INK, "linewidth": 0.6}
        bars = axes.bar(places, heights, width=0.4, color=colour, label=name, **edge)
        axes.bar_label(bars, fmt=significant, fontsize=7, color=INK, padding=3, rotation=90)
    axes.margins(y=0.16)
    axes.set_xticks(range(len(labels)), labels)


def finish(axes: Any, x_label: str, y_label: str, ticks: Sequence[float] = (), log_x: bool = False) -> None:
    """Add names, units and a grid. A logarithmic axis has its ticks where something was measured."""
    if log_x:
        axes.set_xscale("log", base=2)
    if ticks:
        axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks], minor=False)
        axes.minorticks_off()
    axes.set_xlabel(x_label, fontsize=10, color=INK)
    axes.set_ylabel(y_label, fontsize=10, color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(True, color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    handles, labels = axes.get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 9, "labelcolor": INK, "handlelength": HANDLE}
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, **style)
