"""Many chaos runs, one after the other, and what they have covered: see `tests.chaos.harness`."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from tests.chaos.harness import Setup, run_seed
from tests.chaos.plan import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real clusters, beaten by seed.")
    parser.add_argument("--seeds", type=int, default=50, help="how many runs (default: 50)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--tasks", type=int, default=2000, help="of each run (default: 2000)")
    parser.add_argument("--blows", type=int, default=12, help="of each run (default: 12)")
    parser.add_argument("--network", choices=("auto", "namespaces", "loopback"), default="auto", help="default: auto")
    parser.add_argument(
        "--store", choices=("embedded", "valkey", "private"), default="embedded", help="private: Cluster(nodes=4)"
    )
    parser.add_argument("--keep", type=Path, help="a folder for logs, with --seed")
    given = parser.parse_args()
    setup = replace(Setup(), tasks=given.tasks, blows=given.blows, network=given.network, store=given.store)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    blows: Counter[str] = Counter()
    wrong = 0
    for seed in seeds:
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
        seen = run_seed(seed, setup, given.keep)
        blows.update(seen.blows)
        wrong += bool(seen.message)
        dealt = ", ".join(f"{kind} {count}" for kind, count in sorted(seen.blows.items()))
        times = f"{seen.took_s:.1f} s ({seen.worked_s:.1f} until all was done)"
        print(f"seed {seed}: {seen.message or 'fine'}; {times}, {seen.runs:,} runs; {dealt}", flush=True)
        if seen.message:
            chosen = f"--store {given.store} --seed {seed} --tasks {given.tasks} --blows {given.blows}"
            print(f"    again: python -m tests.chaos {chosen} --keep FOLDER")
    dealt_at = f"{sum(blows.values())} blows that hit queued or running work"
    print(f"{len(seeds) - wrong} of {len(seeds)} runs without loss on the {given.store} store; {dealt_at}:")
    for kind, what in KINDS.items():
        print(f"  {blows[kind]:4}  {kind:16} {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
