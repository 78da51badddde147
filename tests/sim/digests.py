"""Digests of 500 recorded seeds: a step that claims to change nothing leaves every one of them as it is.

python -m tests.sim.digests              compare with what is recorded
python -m tests.sim.digests --record     record anew, in a commit that changes behaviour on purpose and says so

A digest covers every effect of every node, in order. Half of the seeds are stock seeds, in the other half graphs grow.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from daws.sim.worlds import GROWN, run_scenario
from tests.sim.many import Ticker, processes, run_all

SEEDS = (*range(250), *range(GROWN, GROWN + 250))
RECORDED = Path(__file__).with_name("digests.json")
SHOWN_MAX = 10


def digest_of(seed: int) -> str:
    return run_scenario(seed).digest


def recorded() -> dict[int, str]:
    return {int(seed): digest for seed, digest in json.loads(RECORDED.read_text()).items()}


def how_to_record(seed: int) -> str:
    return (
        f"seed {seed} runs differently now; if that is meant, say so in the commit and run "
        "'python -m tests.sim.digests --record'"
    )


def digests(seeds: Sequence[int], jobs: int) -> dict[int, str]:
    with processes(jobs) as pool:
        return dict(run_all(pool, digest_of, seeds, Ticker(len(seeds), "seeds")))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.digests", description="Compare digests of seeds.")
    parser.add_argument("--record", action="store_true", help="write what this version does to digests.json")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    given = parser.parse_args(argv)
    found = digests(SEEDS, given.jobs)
    if given.record:
        RECORDED.write_text(json.dumps({str(seed): found[seed] for seed in SEEDS}, indent=0) + "\n")
        print(f"recorded {len(found)} seeds")
        return 0
    before = recorded()
    differing = [seed for seed in SEEDS if before.get(seed) != found[seed]]
    print(f"{len(SEEDS) - len(differing)} of {len(SEEDS)} seeds as recorded")
    if differing:
        shown = " ".join(map(str, differing[:SHOWN_MAX]))
        print(f"different: {shown}{' …' if len(differing) > SHOWN_MAX else ''}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
