"""A timeline as Chrome trace events, the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per node, in it one track per executor with a slice for each run, and one counter of tasks that run.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from daws.model.errors import UnavailableError, UsageError
from daws.runs.timeline import Timeline

NS_PER_US = 1000
COUNTER_STEPS_MAX = 5000
"""A counter of a long run says its value this often at most, as a picture has no more points."""


def check_trace_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a file that could not be written later."""
    target = Path(path)
    if not target.name or target.is_dir():
        raise UsageError(f"trace {str(target)!r}: expected the name of a file")
    if not target.parent.is_dir():
        raise UsageError(f"trace {str(target)!r}: there is no folder {str(target.parent)!r}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UsageError(f"trace {str(target)!r}: cannot be written")
    return target


def write_trace(
    path: str | os.PathLike[str], timeline: Timeline, name_of: Callable[[int], tuple[str, str]] | None = None
) -> None:
    """Write a file. `name_of` says the kind and the id of a task; left out, they are its function and its number."""
    encode = msgspec.json.Encoder().encode
    try:
        with open(path, "wb") as file:
            file.write(b'{"displayTimeUnit":"ms","traceEvents":[')
            for number, event in enumerate(trace_events(timeline, name_of)):
                file.write((b",\n" if number else b"\n") + encode(event))
            file.write(b"\n]}\n")
    except OSError as error:
        raise UnavailableError(f"trace {os.fspath(path)!r}: cannot be written: {error.strerror}", retry=True) from error


def trace_events(
    timeline: Timeline, name_of: Callable[[int], tuple[str, str]] | None = None
) -> Iterator[dict[str, Any]]:
    origin_ns = min(timeline.start_ns[: timeline.count], default=0)
    for node in sorted(set(timeline.node)):
        yield {"ph": "M", "name": "process_name", "pid": node, "args": {"name": f"node {node}"}}
    for node, slot in sorted(set(zip(timeline.node, timeline.slot, strict=False))):
        yield {"ph": "M", "name": "thread_name", "pid": node, "tid": slot, "args": {"name": f"worker {slot}"}}
    for task, kind, node, slot, start_ns, end_ns, cores, read, written, is_good in timeline.rows():
        name, task_id = (timeline.name_of(kind), str(task)) if name_of is None else name_of(task)
        about: dict[str, Any] = {"task": task_id, "read_bytes": read, "written_bytes": written}
        if cores > 1:
            about["cores"] = cores
        if not is_good:
            about["raised"] = True
        yield {
            "ph": "X",
            "cat": "task",
            "name": name,
            "pid": node,
            "tid": slot,
            "ts": (start_ns - origin_ns) / NS_PER_US,
            "dur": (end_ns - start_ns) / NS_PER_US,
            "args": about,
        }
    for node in sorted(set(timeline.node)):
        for at_ns, running in running_steps(timeline, node):
            yield {
                "ph": "C",
                "name": "running tasks",
                "pid": node,
                "ts": (at_ns - origin_ns) / NS_PER_US,
                "args": {"running": running},
            }


def running_steps(timeline: Timeline, node: int) -> Iterator[tuple[int, int]]:
    """The number of runs of a node under way, from moment to moment; changes that follow closely are merged."""
    changes: list[tuple[int, int]] = []
    for _, _, where, _, start_ns, end_ns, *_ in timeline.rows():
        if where == node:
            changes += ((start_ns, 1), (end_ns, -1))
    changes.sort()
    least_ns = (changes[-1][0] - changes[0][0]) // COUNTER_STEPS_MAX if changes else 0
    running = 0
    told_ns = None
    for index, (at_ns, change) in enumerate(changes):
        running += change
        is_last = index + 1 == len(changes)
        if is_last or (changes[index + 1][0] > at_ns and (told_ns is None or at_ns - told_ns >= least_ns)):
            told_ns = at_ns
            yield at_ns, running
