"""Pictures of simulations: when their executors were busy. How pictures are drawn is in `daws.runs.picture`."""

from collections.abc import Sequence
from typing import Any

from daws.runs.picture import (
    BUSY_COLOUR,
    IDLE_COLOUR,
    INK,
    MEAN_COLOUR,
    Floats,
    Panel,
    busy_over_time,
    bytes_of,
    check_target,
    draw_panels,
    figure_of_panels,
    new_figure,
    panel_from,
    write_figure,
)
from daws.sim.kernel import Kernel
from daws.sim.simulate import Result

__all__ = [
    "BUSY_COLOUR",
    "IDLE_COLOUR",
    "INK",
    "MEAN_COLOUR",
    "Floats",
    "Panel",
    "busy_over_time",
    "bytes_of",
    "check_target",
    "draw_panels",
    "figure_of_panels",
    "figure_of_run",
    "new_figure",
    "panel_from",
    "panel_of",
    "write_figure",
]


def panel_of(result: Result, kernel: Kernel, title: str, until_s: float = 0.0) -> Panel:
    """A panel with the busy executors of a simulation until its end, or until the given time."""
    shares = result.cores_total, result.utilization, result.makespan_s
    return panel_from(title, kernel.starts, kernel.ends, *shares, until_s)


def figure_of_run(result: Result, starts_ns: Sequence[int], ends_ns: Sequence[int], title: str) -> Any:
    """Busy executors over time, of one simulation."""
    heading = f"{title} · {result.strategy} · efficiency {result.efficiency:.1%}"
    subtitle = f"{result.tasks:,} tasks on {result.nodes:,} nodes with {result.cores_total:,} executors"
    shares = result.cores_total, result.utilization, result.makespan_s
    panel = panel_from(subtitle, starts_ns, ends_ns, *shares)
    return figure_of_panels([panel], heading, columns=1, size=(8.0, 4.2))
