"""The output of a live run: a table, JSON, a picture."""

import argparse
from pathlib import Path

import msgspec
import numpy as np

from daws.cli.messages import number_of
from daws.cli.table import as_json, grid, seconds, share, significant, size
from daws.cli.targets import write_text
from daws.model.columns import Int16s, Int64s
from daws.runs.picture import draw_panels, panel_from
from daws.runs.summary import Summary

STDOUT = "-"


def live_table(arguments: argparse.Namespace, summary: Summary, notes: tuple[str, ...]) -> str:
    """A table of the tasks that ran, and of the numbers of the run in groups."""
    tasks = max(1, summary.tasks)
    rows = [
        ("run", "makespan", seconds(summary.makespan_s), "from the first submission to the last end"),
        ("", "throughput", f"{significant(summary.throughput)} /s", "tasks per second"),
        ("", "efficiency", share(summary.efficiency), "the time it would take if nothing ever waited / makespan"),
        ("", "utilization", share(summary.utilization), "of the workers' time was spent running tasks"),
        ("bound", "work", seconds(summary.work_s), "all tasks, shared by all workers"),
        ("", "critical path", seconds(summary.critical_path_s), "the longest way through the graph"),
        ("", "in all", seconds(summary.bound_s), "no schedule is shorter"),
        ("", "share", share(summary.bound_share), "of the makespan no schedule could have saved"),
        ("data", "read", size(summary.bytes_read), f"{size(summary.bytes_read / tasks)} per task"),
        ("", "written", size(summary.bytes_written), f"{size(summary.bytes_written / tasks)} per task"),
        ("", "moved", size(summary.bytes_moved), "between nodes"),
    ]
    head = (
        f"{arguments.what} with {summary.strategy}: "
        f"{number_of(summary.tasks, 'task')}, {number_of(summary.edges, 'edge')}\n"
        f"{what_ran(arguments)} on {where(summary)} of this machine\n"
        + (f"notes: {'; '.join(notes)}\n" if notes else "")
    )
    return f"{head}\n{grid(rows, right=(2,), indent='  ')}"


def where(summary: Summary) -> str:
    workers = f"{summary.cores_total:,} workers"
    return workers if summary.nodes == 1 else f"{summary.nodes:,} nodes with {workers}"


def what_ran(arguments: argparse.Namespace) -> str:
    if arguments.execute:
        return "its commands"
    scales = [
        f"{what} × {factor:g}"
        for what, factor in (("times", arguments.time_scale), ("sizes", arguments.data_scale))
        if factor != 1
    ]
    return f"emulated ({', '.join(['spinning' if arguments.spin else 'sleeping', *scales])})"


def report(arguments: argparse.Namespace, summary: Summary, notes: tuple[str, ...]) -> dict[str, object]:
    """The request and the numbers of its run, for JSON."""
    asked = {
        "workload": arguments.what,
        "seed": arguments.seed,
        "time_scale": arguments.time_scale,
        "data_scale": arguments.data_scale,
        "mode": "execute" if arguments.execute else "spin" if arguments.spin else "sleep",
    }
    return {**asked, **msgspec.structs.asdict(summary), "notes": notes}


def write_json(target: str, document: object) -> None:
    """Write one JSON document to a file, or to standard output."""
    if target == STDOUT:
        print(as_json(document))
    else:
        write_text("--json", target, as_json(document) + "\n")


def draw_live(summary: Summary, start_ns: Int64s, end_ns: Int64s, cores: Int16s, path: Path, title: str) -> None:
    """Draw busy workers over time. A task of several cores counts as that many workers."""
    ran = end_ns >= 0
    starts, ends = (np.repeat(column[ran], cores[ran]).tolist() for column in (start_ns, end_ns))
    workers = summary.cores_total
    subtitle = f"{summary.tasks:,} tasks on {where(summary)}"
    panel = panel_from(subtitle, starts, ends, workers, summary.utilization, summary.makespan_s)
    heading = f"{title} · {summary.strategy} · efficiency {summary.efficiency:.1%}"
    draw_panels([panel], path, heading=heading, columns=1, size=(8.0, 4.2), time_label="time in s")
