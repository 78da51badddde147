"""Pictures of runs, live and simulated. matplotlib, an optional extra, is imported by `runs.figure` alone.

A picture shows the executors over time: the light area is all of them, the dark area those that were running a task.
The light part is unused time.
"""

import math
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from daws.formats.execution import Execution
from daws.model.columns import Int16s
from daws.model.errors import UnavailableError, UsageError

SUFFIXES = (".png", ".svg", ".pdf")
BIN_COUNT = 800
HEADING_WIDTH = 80
SECOND_NS = 1_000_000_000

# Blue on light grey, with an orange line for the mean: distinguishable in grey, and for colour-blind readers.
BUSY_COLOUR = "#0072B2"
IDLE_COLOUR = "#DDE3E8"
MEAN_COLOUR = "#D55E00"
INK = "#333333"

Floats = npt.NDArray[np.float64]


class Panel(Struct, frozen=True):
    """The data of one picture: `busy[i]` executors on average between `edges_s[i]` and `edges_s[i + 1]`.

    The last edge is where the time axis ends, be it before or after the run's own end.
    """

    title: str
    edges_s: Floats
    busy: Floats
    executors: int
    busy_mean: float
    end_s: float


def busy_over_time(starts_ns: Sequence[int], ends_ns: Sequence[int], edges_ns: Floats) -> Floats:
    """The mean number of runs under way between each edge and the next; exact, whatever the number of edges."""
    return np.diff(_area_until(starts_ns, edges_ns) - _area_until(ends_ns, edges_ns)) / np.diff(edges_ns)


def _area_until(times_ns: Sequence[int], edges_ns: Floats) -> Floats:
    """The time passed since each of the earlier times, added up for each edge."""
    times = np.sort(np.asarray(times_ns, dtype=np.int64)).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(times)])
    before = np.searchsorted(times, edges_ns, side="right")
    area: Floats = before * edges_ns - sums[before]
    return area


def panel_from(
    title: str,
    starts_ns: Sequence[int],
    ends_ns: Sequence[int],
    executors: int,
    utilization: float,
    end_s: float,
    until_s: float = 0.0,
) -> Panel:
    """The picture of a run until its end, or else until the given time, from the times when executors began and ended
    to be busy."""
    edges_s = np.linspace(0.0, max(until_s or end_s, 1e-9), BIN_COUNT + 1)
    busy = busy_over_time(starts_ns, ends_ns, edges_s * SECOND_NS)
    return Panel(title, edges_s, busy, executors, utilization * executors, end_s)


def check_target(path: Path) -> Path:
    """Refuse a file that could not be written later, before any work is done; leaves all files as they are."""
    if not path.name:
        raise UsageError(f"plot: expected the name of a file that ends in {', '.join(SUFFIXES)}")
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"plot {str(path)!r}: the name must end in {', '.join(SUFFIXES)}")
    try:
        if not path.parent.is_dir():
            raise UsageError(f"plot {str(path)!r}: there is no folder {str(path.parent)!r}")
        _try_to_open(path)
    except OSError as error:
        raise UsageError(f"plot {str(path)!r}: cannot be written: {error.strerror}") from error
    _figure_class()
    return path


def _try_to_open(path: Path) -> None:
    """Permissions alone do not tell: root may do everything, but not in every file system."""
    if path.is_fifo():
        return  # a reader of the pipe would take our closing it for the end
    if path.exists():
        os.close(os.open(path, os.O_WRONLY))
        return
    real = os.path.realpath(path)  # of a link that leads nowhere yet
    made = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.close(made)
    finally:
        os.unlink(real)


def draw_run_of(execution: Execution, cores: Int16s, tasks: int, workers: int, path: Path, title: str) -> None:
    """Busy workers over time, of a live run of which it is known when each task ran."""
    starts, ends = (np.repeat(np.asarray(column), cores).tolist() for column in (execution.start_ns, execution.end_ns))
    end_s = max(ends, default=0) / SECOND_NS
    utilization = (sum(ends) - sum(starts)) / SECOND_NS / max(end_s * workers, 1e-9)
    where = (
        f"{workers:,} workers"
        if len(execution.machines) == 1
        else f"{len(execution.machines):,} nodes with {workers:,} workers"
    )
    panel = panel_from(f"{tasks:,} tasks on {where}", starts, ends, workers, utilization, end_s)
    heading = f"{title} · utilization {utilization:.1%}"
    draw_panels([panel], path, heading=heading, columns=1, size=(8.0, 4.2), time_label="time in s")


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    heading: str,
    columns: int = 3,
    size: tuple[float, float] | None = None,
    time_label: str = "simulated time in s",
) -> None:
    """One small picture per panel, side by side on equal axes; written at once, so that no half file is left behind."""
    check_target(path)
    write_figure(figure_of_panels(panels, heading, columns, size, time_label), path)


def figure_of_panels(
    panels: Sequence[Panel],
    heading: str,
    columns: int = 3,
    size: tuple[float, float] | None = None,
    time_label: str = "simulated time in s",
) -> Any:
    """The same, not written anywhere."""
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(size or (3.6 * columns, 2.1 * rows + 0.9))
    figure.suptitle(_plain(fill(heading, HEADING_WIDTH)), fontsize=12, color=INK, fontweight="bold")
    grid = figure.subplots(rows, columns, sharex="row", squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index >= len(panels):
            axes.set_axis_off()
            continue
        _draw(axes, panels[index], index % columns == 0, time_label if index + columns >= len(panels) else "")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8, labelcolor=INK)
    return figure


def new_figure(size: tuple[float, float]) -> Any:
    """An empty figure of this size in inches; UsageError without matplotlib."""
    return _figure_class()(figsize=size, layout="constrained")


def bytes_of(figure: Any, suffix: str) -> bytes:
    """The contents of a file that ends in `.png`, `.svg` or `.pdf`."""
    buffer = BytesIO()
    # Without a date in it, the same run gives the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    figure.savefig(buffer, format=suffix[1:], dpi=130, metadata=metadata)
    return buffer.getvalue()


def write_figure(figure: Any, path: Path) -> None:
    _write(path, bytes_of(figure, path.suffix.lower()))


def _write(path: Path, data: bytes) -> None:
    existed = path.exists()
    try:
        path.write_bytes(data)
    except BaseException as error:  # an interrupt leaves no half file either
        if not existed:
            Path(os.path.realpath(path)).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UnavailableError(f"plot {str(path)!r}: cannot be written: {error.strerror}", retry=True) from error
        raise


def _draw(axes: Any, panel: Panel, is_first: bool, time_label: str) -> None:
    edges = panel.edges_s
    until_s = float(edges[-1])
    axes.stairs([panel.executors], [0.0, panel.end_s], fill=True, color=IDLE_COLOUR, label="all executors")
    axes.stairs(panel.busy, edges, fill=True, color=BUSY_COLOUR, label="busy executors")
    axes.hlines(
        panel.busy_mean,
        0.0,
        panel.end_s,
        color=MEAN_COLOUR,
        linewidth=1.4,
        linestyle="--",
        label="mean of the busy ones",
    )
    axes.set_title(_plain(panel.title), fontsize=10, color=INK, loc="left")
    if panel.end_s > until_s:
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2}
        text = f"goes on to {panel.end_s:.0f} s →"
        axes.text(0.97, 0.92, text, transform=axes.transAxes, fontsize=8, color=INK, ha="right", va="top", bbox=box)
    axes.set_xlim(0.0, until_s)
    axes.set_ylim(0.0, panel.executors * 1.03)
    axes.yaxis.get_major_locator().set_params(integer=True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    if is_first:
        axes.set_ylabel("executors", fontsize=9, color=INK)
    if time_label:
        axes.set_xlabel(time_label, fontsize=9, color=INK)


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _figure_class() -> Any:
    try:
        from daws.runs.figure import ShownFigure
    except ImportError as error:
        raise UsageError("plots need matplotlib, which is not installed: pip install 'daws[plot]'") from error
    return ShownFigure
