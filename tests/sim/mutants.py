"""Take the rules out, one by one: the fault seeds must notice each time.

    python -m tests.sim.mutants                    all of them, on all cores
    python -m tests.sim.mutants --only lender      those whose name contains this
    python -m tests.sim.mutants --record           also write down which seeds noticed, for `make test`

Each mutant is a copy of the package with one piece of text replaced, run in a process of its own.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import FrameType

from msgspec import Struct

import daws
from tests.sim.faults import Failure, try_seed
from tests.sim.many import Ticker, run_all
from tests.sim.mutations import MUTANTS, RULES, Mutant

SEEDS = 600
SEED_S_MAX = 60
TABLE = Path(__file__).with_name("mutant_seeds.json")
"""Which seeds noticed which mutant, the first ones."""
SOURCE = Path(__file__).parents[2] / "src" / "daws"


class Hunt(Struct, frozen=True):
    """What became of a mutant: the seed that noticed it (-1: none did), the how-manieth it was, and what it saw."""

    seed: int
    tried: int
    message: str = ""


class StaleMutant(Exception):
    """The text that a mutant replaces is not there any more."""


def mutate(mutant: Mutant, source: str) -> str:
    count = source.count(mutant.old)
    if count != mutant.count:
        raise StaleMutant(
            f"mutant {mutant.name!r}: {mutant.module} has the text that it replaces {count} times, not {mutant.count}; "
            f"look at what the code does now and write the mutant anew:\n{mutant.old}"
        )
    return source.replace(mutant.old, mutant.new)


def hunt(mutant: Mutant, seeds: Iterable[int]) -> Hunt:
    """Run seeds against a mutant until one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "daws")
        shutil.copytree(SOURCE, package)
        module = package / mutant.module
        module.write_text(mutate(mutant, module.read_text()))
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "tests.sim.mutants", "--hunt", folder, *map(str, seeds)]
        done = subprocess.run(
            command, cwd=SOURCE.parents[1], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        return Hunt(-2, 0, f"does not even start: {done.stderr.strip().splitlines()[-1]}")
    return Hunt(**json.loads(done.stdout))


def hunt_soundly(mutant: Mutant, seeds: Sequence[int]) -> Hunt:
    """As `hunt`, but a seed that fails without the mutant as well has noticed nothing."""
    tried = 0
    while True:
        found = hunt(mutant, seeds[tried:])
        tried += found.tried
        if found.seed < 0 or not fails_anyway(found.seed):
            return Hunt(found.seed, tried, found.message)


@cache
def fails_anyway(seed: int) -> bool:
    return isinstance(try_seed(seed), Failure)


def hunt_here(folder: str, seeds: Sequence[int]) -> int:
    """In the process of a mutant: say which of the seeds fails first."""
    assert daws.__file__.startswith(folder), daws.__file__
    signal.signal(signal.SIGALRM, _too_long)
    found = Hunt(-1, len(seeds))
    for tried, seed in enumerate(seeds, 1):
        signal.alarm(SEED_S_MAX)
        outcome = try_seed(seed)
        signal.alarm(0)
        if isinstance(outcome, Failure):
            found = Hunt(seed, tried, outcome.message)
            break
    print(json.dumps({"seed": found.seed, "tried": found.tried, "message": found.message}))
    return 0


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not done after {SEED_S_MAX} s")


def known_seeds() -> dict[str, list[int]]:
    table: dict[str, list[int]] = json.loads(TABLE.read_text())
    return table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.mutants", description="Let the fault seeds hunt mutants."
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"at most for each mutant (default: {SEEDS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--rule", type=int, choices=list(RULES), help="those of this rule")
    parser.add_argument("--record", action="store_true", help=f"write {TABLE.name} anew")
    parser.add_argument("--hunt", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.hunt:
        return hunt_here(given.hunt[0], [int(seed) for seed in given.hunt[1:]])
    wanted = [one for one in MUTANTS if given.only in one.name and given.rule in (None, one.rule)]
    began_s = time.monotonic()
    found: dict[str, Hunt] = {}
    ticker = Ticker(len(wanted), "mutants")
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, seen in run_all(pool, lambda mutant: hunt_soundly(mutant, range(given.seeds)), wanted, ticker):
            found[mutant.name] = seen
    for mutant in wanted:
        seen = found[mutant.name]
        fate = (
            f"seed {seen.seed:>3}: {seen.message}" if seen.seed >= 0 else seen.message or f"SURVIVES {seen.tried} seeds"
        )
        print(f"{mutant.rule:>2} {mutant.name:<58} {fate}"[:200])
    alive = [name for name, seen in found.items() if seen.seed < 0]
    print(f"{len(found) - len(alive)} of {len(found)} mutants caught in {time.monotonic() - began_s:.0f} s")
    if given.record:
        table = {**(known_seeds() if TABLE.exists() else {})}
        table |= {name: [seen.seed] for name, seen in found.items() if seen.seed >= 0}
        names = {one.name for one in MUTANTS}
        TABLE.write_text(json.dumps({key: table[key] for key in sorted(table) if key in names}, indent=1) + "\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
