"""Fault seeds: each is a small cluster, a graph, a strategy and a plan of crashes, losses, delays and partitions.

python -m tests.sim.faults                     1,000 seeds on all cores
python -m tests.sim.faults --seed 337 -v       one seed again, with all that can be known about it
python -m tests.sim.faults --all-ranges        of each range of the corpus (stock, grown, ...) the same number
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from daws.core.invariants import check
from daws.sim.worlds import RANGES, WorldOutcome, draw_scenario, run_scenario
from daws.sim.worlds.run import Deep
from daws.sim.worlds.scenario import AIMED
from tests.sim.many import Ticker, processes, run_all

DEEP_PERIOD = 10
"""Every so many seeds the inside of every node is looked at after every step, which takes several times as long."""
BATCH = 8
SHOWN_MAX = 10


class Failure(Struct, frozen=True):
    """A seed that went wrong, and what was wrong."""

    seed: int
    message: str


def deep_for(seed: int) -> Deep | None:
    return None if seed % DEEP_PERIOD else check


def try_seed(seed: int, deep: Deep | None = None) -> WorldOutcome | Failure:
    """Whatever a seed brings to light, from a violated rule to a bug in the code, is a failure of that seed."""
    try:
        return run_scenario(seed, deep or deep_for(seed))
    except Exception as error:
        return Failure(seed, f"{type(error).__name__}: {(str(error).splitlines() or ['?'])[0]}")


def try_seeds(seeds: Sequence[int]) -> list[WorldOutcome | Failure]:
    return [try_seed(seed) for seed in seeds]


def how_to_replay(seed: int) -> str:
    return f"python -m tests.sim.faults --seed {seed} --verbose"


def summary(outcomes: Iterable[WorldOutcome]) -> str:
    """What struck, and whom."""
    kinds: Counter[str] = Counter()
    strategies: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for one in outcomes:
        kinds[one.kind] += 1
        strategies[one.strategy] += 1
        faults.update(one.faults)
        ends.update({"tasks": one.tasks, "failed": one.failed, "cancelled": one.cancelled})
    parts = {"graphs": kinds, "strategies": strategies, "faults": faults, "ends": ends}
    return "\n".join(
        f"{name:<12}" + ", ".join(f"{key} {count:,}" for key, count in sorted(part.items()))
        for name, part in parts.items()
    )


def of_all_ranges(count: int) -> list[int]:
    """So many seeds, the same number from the beginning of each range of the corpus."""
    share = -(-count // len(RANGES))
    return [seed for one in RANGES for seed in range(one.first, one.first + share)][:count]


def run_many(seeds: Sequence[int], jobs: int) -> int:
    began_s = time.monotonic()
    outcomes: list[WorldOutcome] = []
    failures: list[Failure] = []
    batches = [seeds[low : low + BATCH] for low in range(0, len(seeds), BATCH)]
    ticker = Ticker(len(batches), f"batches of {BATCH} seeds")
    with processes(jobs) as pool:
        for _, found in run_all(pool, try_seeds, batches, ticker, lambda: f"{len(failures)} failed"):
            for one in found:
                if isinstance(one, Failure):
                    failures.append(one)
                else:
                    outcomes.append(one)
    print(summary(outcomes))
    passed_s = time.monotonic() - began_s
    print(f"{len(outcomes):,} of {len(seeds):,} seeds without violation in {passed_s:.0f} s")
    failures.sort(key=lambda one: one.seed)
    for one in failures[:SHOWN_MAX]:
        print(f"seed {one.seed}: {one.message}\n    again: {how_to_replay(one.seed)}")
    if len(failures) > SHOWN_MAX:
        print(f"… and {len(failures) - SHOWN_MAX} more: {' '.join(str(one.seed) for one in failures[SHOWN_MAX:])}")
    return 1 if failures else 0


def run_one(seed: int, verbose: bool) -> int:
    if verbose:
        scenario = draw_scenario(seed)
        groups = ", ".join(f"{group.count} x {group.cores} cores" for group in scenario.cluster.groups)
        print(f"seed {seed}: {scenario.kind} graph of {scenario.graph.task_count} tasks with {scenario.strategy.name}")
        print(f"cluster: {groups}; {scenario.shards} shards\nplan: {scenario.plan}")
        aimed = {name: getattr(scenario, name) for name in AIMED if getattr(scenario, name)}
        print(f"aimed: {aimed or 'nothing'}")
    try:
        outcome = run_scenario(seed, check if verbose else deep_for(seed))
    except Exception as error:
        if verbose:
            traceback.print_exc()
        else:
            print(f"{type(error).__name__}: {error}")
        return 1
    print(outcome if verbose else f"seed {seed}: no violation")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.faults", description="Run fault seeds.")
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--all-ranges", action="store_true", help="spread them over all ranges of the corpus")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seed", type=int, help="only this one, in this process")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --seed: look at every step, tell everything")
    given = parser.parse_args(argv)
    if given.seed is not None:
        return run_one(given.seed, given.verbose)
    if given.all_ranges:
        return run_many(of_all_ranges(given.seeds), given.jobs)
    return run_many(range(given.first, given.first + given.seeds), given.jobs)


if __name__ == "__main__":
    sys.exit(main())
