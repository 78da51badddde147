"""`python -m bench.versions BEFORE`: this version of daws beside another one, in turns.

BEFORE is a git revision, or a folder with a checkout. The workloads are those of `bench.peers`, and the benchmark's own
code is this version's for both, so both are asked the same. Each run is a process of its own. The ratio is taken within
each repetition, because a slow moment of the machine hits both; above 1 this version is better.
"""

import argparse
import io
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.__main__ import LIMIT_S, names, show
from bench.peers.report import value
from bench.peers.runner import ROOT, Run, run_one
from bench.peers.workloads import FULL, QUICK, WORKLOADS, Effort

REPEAT = 5
SYSTEMS = ("daws", "daws-nodes", "daws-threads")
LEFT_OUT = frozenset({"million"})
"""A ratio by itself, which takes long."""


@contextmanager
def source_of(before: str) -> Iterator[Path]:
    """The `src` folder of a checkout, or of a revision that is unpacked for this."""
    if (Path(before) / "src" / "daws").is_dir():
        yield (Path(before) / "src").resolve()
        return
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", before, "src"], capture_output=True)
    if packed.returncode:
        sys.exit(f"{before}: neither a folder with src/daws nor a revision: {packed.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="daws-before-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
        yield Path(folder, "src")


def measure(
    before: Path, workloads: Sequence[str], repeat: int, effort: Effort, system: str = SYSTEMS[0]
) -> dict[str, list[tuple[Run, Run]]]:
    """By workload, a pair for each repetition: before, now. Who comes first changes."""
    sources = (before, ROOT / "src")
    found: dict[str, list[tuple[Run, Run]]] = {name: [] for name in workloads}
    for repetition in range(repeat):
        for workload in workloads:
            pair: dict[Path, Run] = {}
            for source in sources if repetition % 2 else reversed(sources):
                pair[source] = run_one(system, workload, repetition, effort, LIMIT_S, source)
                show(pair[source])
            found[workload].append((pair[before], pair[sources[1]]))
    return found


def ratios_of(workload: str, pairs: Sequence[tuple[Run, Run]]) -> list[float]:
    """How many times better this version is, by repetition."""
    both = [(old.figures["value"], new.figures["value"]) for old, new in pairs if old.figures and new.figures]
    higher = WORKLOADS[workload].higher_is_better
    return [new / old if higher else old / new for old, new in both]


def row(workload: str, pairs: Sequence[tuple[Run, Run]]) -> str:
    ratios = ratios_of(workload, pairs)
    if not ratios:
        return f"{workload:12} failed: {next(run.error for pair in pairs for run in pair if run.error)}"
    medians = [
        statistics.median([run.figures["value"] for run in side if run.figures]) for side in zip(*pairs, strict=True)
    ]
    shown = [value(workload, one) for one in medians]
    spread = f"{statistics.median(ratios):.3f}  ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"{workload:12} {shown[0]:>14} {shown[1]:>14}   {spread}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.versions", description=__doc__)
    parser.add_argument("before", metavar="BEFORE", help="a git revision, or the folder of a checkout")
    parser.add_argument("--only", metavar="NAMES", default="", help=f"some of the workloads: {','.join(WORKLOADS)}")
    parser.add_argument("--system", choices=SYSTEMS, default=SYSTEMS[0], help=f"the cluster ({SYSTEMS[0]})")
    parser.add_argument("--repeat", metavar="N", type=int, default=REPEAT, help=f"repetitions ({REPEAT})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether everything works")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workloads = names(options.only, dict(WORKLOADS), "workload", parser)
    if not options.only:
        workloads = [name for name in workloads if name not in LEFT_OUT]
    with source_of(options.before) as before:
        found = measure(before, workloads, options.repeat, QUICK if options.quick else FULL, options.system)
    print(f"{'workload':12} {'before':>14} {'now':>14}   now / before")
    for workload, pairs in found.items():
        print(row(workload, pairs))


if __name__ == "__main__":
    main()
