"""`python -m bench.peers`: daws, the floor and the peers with the same workloads, in turns."""

import argparse
import signal
import sys
from pathlib import Path

import msgspec

from bench.peers.report import Report, as_markdown, as_text, value
from bench.peers.runner import Run, machine, run_all, version_of, why_not
from bench.peers.systems import HOMES
from bench.peers.workloads import FULL, QUICK, WORKLOADS

LIMIT_S = 180.0


def names(text: str, known: dict[str, object], what: str, parser: argparse.ArgumentParser) -> list[str]:
    """Names separated by commas, in the order in which they are known."""
    asked = [one.strip() for one in text.split(",") if one.strip()]
    for one in asked:
        if one not in known:
            parser.error(f"no {what} {one!r}; there are {', '.join(known)}")
    return [one for one in known if one in asked] if asked else list(known)


def show(run: Run) -> None:
    found = f"failed: {run.error}" if run.error else value(run.workload, run.figures["value"])
    others = f"others {run.others_share:.0%}"
    print(f"{run.repetition + 1}  {run.workload:11} {run.system:14} {found:24} {others}", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Report:
    systems = names(options.systems, dict(HOMES), "system", parser)
    workloads = names(options.only, dict(WORKLOADS), "workload", parser)
    if options.repeat < 1:
        parser.error("--repeat: give at least 1")
    missing = {name: why for name in systems if (why := why_not(name))}
    for name, why in missing.items():
        print(f"{name}: {why}", file=sys.stderr)
    there = [name for name in systems if name not in missing]
    effort = QUICK if options.quick else FULL
    runs = run_all(there, workloads, options.repeat, effort, options.limit, show)
    return Report(machine(), options.quick, options.repeat, {one: version_of(one) for one in there}, missing, runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--only", metavar="NAMES", default="", help=f"some of the workloads: {','.join(WORKLOADS)}")
    parser.add_argument("--systems", metavar="NAMES", default="", help=f"some of the systems: {','.join(HOMES)}")
    parser.add_argument("--repeat", metavar="N", type=int, default=3, help="repetitions (3)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether everything works")
    parser.add_argument("--limit", metavar="S", type=float, default=LIMIT_S, help=f"seconds for one run ({LIMIT_S:g})")
    parser.add_argument(
        "--out", metavar="FOLDER", default="out/peers", help="for figures.json, figures.png, figures.md"
    )
    parser.add_argument("--markdown", action="store_true", help="print tables for a page instead of text")
    parser.add_argument("--read", metavar="FILE", help="show the figures.json of an earlier run; measure nothing")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing of the current run is left
    if options.read:
        try:
            report = msgspec.json.decode(Path(options.read).read_bytes(), type=Report)
        except (OSError, msgspec.DecodeError) as error:
            parser.error(f"--read {options.read}: {error}")
    else:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        report = measure(options, parser)
        write(report, folder)
    print(as_markdown(report) if options.markdown else as_text(report))


def write(report: Report, folder: Path) -> None:
    (folder / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    (folder / "figures.md").write_text(as_markdown(report))
    try:
        from bench.peers.plot import draw

        draw(report, folder / "figures.png")
    except ImportError:
        print("no picture: matplotlib is not installed", file=sys.stderr)
    print(f"written: {folder}/figures.json, .md, .png", file=sys.stderr)


if __name__ == "__main__":
    main()
