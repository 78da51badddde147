"""One process per (system, workload, repetition), in turns, so that other load hits all alike."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.peers.measure import busy_share, with_marker
from bench.peers.systems import system_named
from bench.peers.workloads import MARKER, Effort, Figures

ROOT = Path(__file__).parents[2]
LOOK_S = 0.2
LOOK_AGAIN_S = 0.01
PATIENCE_S = 30.0
"""A process may take long to die where memory is given back slowly; one that does not die at all holds nobody up."""
CALM_SHARE = 0.15
"""With more than this of the processors taken by others, figures are not to be trusted."""


class Run(Struct):
    """What one process found. `error` says in one line why there is nothing."""

    system: str
    workload: str
    repetition: int
    others_share: float  # of the processors, just before
    figures: Figures = {}
    error: str = ""


def why_not(name: str) -> str:
    """Why a system cannot be measured here, or nothing."""
    library = system_named(name).library
    return "" if find_spec(library) else f"not installed ({library})"


def version_of(name: str) -> str:
    package = system_named(name).package
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


def plan(systems: Sequence[str], workloads: Sequence[str], repeat: int) -> Iterator[tuple[str, str, int]]:
    """Systems take turns within a workload, each time beginning with another one."""
    for repetition in range(repeat):
        for workload in workloads:
            able = [name for name in systems if workload in system_named(name).does]
            first = repetition % len(able) if able else 0
            for name in able[first:] + able[:first]:
                yield name, workload, repetition


def run_all(
    systems: Sequence[str],
    workloads: Sequence[str],
    repeat: int,
    effort: Effort,
    limit_s: float,
    on_run: Callable[[Run], None],
) -> list[Run]:
    """Everything, whatever fails. A system that cannot do a workload once is not asked for it again.

    Ctrl-C ends it early, with what there is.
    """
    runs: list[Run] = []
    failed: set[tuple[str, str]] = set()
    try:
        for system, workload, repetition in plan(systems, workloads, repeat):
            if (system, workload) not in failed:
                runs.append(run_one(system, workload, repetition, effort, limit_s))
                on_run(runs[-1])
                if runs[-1].error:
                    failed.add((system, workload))
    except KeyboardInterrupt:
        print("interrupted: this is what was measured until now", file=sys.stderr)
    return runs


def run_one(
    system: str, workload: str, repetition: int, effort: Effort, limit_s: float, source: Path | None = None
) -> Run:
    """Run one in a process, a folder and a temporary folder of its own; nothing of it is left afterwards.

    `source` is a folder with the packages to measure, if these are not the installed ones.
    """
    run = Run(system, workload, repetition, busy_share(LOOK_S))
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as folder:
        figures, log = Path(folder, "figures.json"), Path(folder, "log")
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "bench.peers.one", system, workload, msgspec.json.encode(effort).decode()]
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [*command, str(figures)], cwd=folder, env=_environment(folder, mark, source), stdout=out, stderr=out
            )
        try:
            if code := process.wait(limit_s):
                run.error = _last_line(log) or f"ended with {code}"
        except subprocess.TimeoutExpired:
            run.error = f"not done within {limit_s:g} s"
        finally:
            process.kill()
            process.wait()
            _end_all(f"{MARKER}={mark}")
        if figures.exists():  # it measured, whatever happened when it was closed
            run.figures, run.error = msgspec.json.decode(figures.read_bytes(), type=Figures), ""
    return run


def _environment(folder: str, mark: str, source: Path | None) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return given | {
        MARKER: mark,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([str(source)] if source else [])]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "TMPDIR": folder,
        # Several systems set this for their workers; all shall have it.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _end_all(marker: str) -> None:
    """End all that bear the mark, and see them gone: a killed process takes a moment, and may have just forked."""
    until = time.monotonic() + PATIENCE_S
    while (pids := with_marker(marker)) and time.monotonic() < until:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_AGAIN_S)


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def machine() -> str:
    """What the figures were measured on, in one line."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{len(os.sched_getaffinity(0))} processors, Python {python}, {os.uname().sysname} {os.uname().release}"
