"""Take the rules out, one by one: the fault seeds must notice each time.

    python -m tests.sim.mutants                    all of them, on all cores
    python -m tests.sim.mutants --only lender      those whose name contains this
    python -m tests.sim.mutants --record           write down which seeds noticed, for `make test`

`--record` first tries the seeds that are written down, and looks for others only where those have become too few: any
change of the core makes some seeds do other things. It can be interrupted; what was found until then is kept.

Each mutant is the package with one piece of text replaced, run in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from msgspec import Struct

from daws.sim.worlds import GROWN, LIVE_SESSIONS, SESSIONS, draw_scenario
from tests.sim.faults import Failure, how_to_replay, try_seed
from tests.sim.many import Ticker, run_all
from tests.sim.mutations import MUTANTS as OTHER_MUTANTS
from tests.sim.mutations import RULES, Mutant
from tests.sim.session_mutations import SESSION_MUTANTS

SEEDS = 600
KEPT = 3
"""So many seeds of each mutant are written down; one of them has to notice it."""
ENOUGH = 2
"""With so many that still notice it, nobody looks for more."""
MORE = 40
"""Once a seed has noticed a mutant, so many others are tried for the rest."""
TABLE = Path(__file__).with_name("mutant_seeds.json")
"""Which seeds noticed which mutant, the quickest first."""
MUTANTS = tuple(sorted((*OTHER_MUTANTS, *SESSION_MUTANTS), key=lambda one: one.rule))
OF_SESSIONS = ("core/session.py", "core/session_", "store/memory/sessions.py", "store/memory/reading.py")
"""Modules whose mutants are hunted by the seeds of sessions, if the mutants do not say where they show."""
SOURCE = Path(__file__).parents[2] / "src" / "daws"


class Catch(Struct, frozen=True):
    """A seed that noticed a mutant, what it saw, and how many seconds that took."""

    seed: int
    message: str
    took_s: float


class Hunt(Struct, frozen=True):
    """What became of a mutant: who noticed it, and how many seeds were tried; a message if it could not be hunted."""

    caught: tuple[Catch, ...] = ()
    tried: int = 0
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


class Hunter:
    """A process (`tests.sim.hunter`) that runs seeds against one mutant after the other."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.sim.hunter"],
            cwd=SOURCE.parents[1],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hunt(self, mutant: Mutant, seeds: Iterable[int], wanted: int = 1, more: int = MORE) -> Hunt:
        """Run seeds against a mutant until so many have failed, or too many did not after the first that did."""
        source = mutate(mutant, (SOURCE / mutant.module).read_text())
        return self._ask(
            {"module": mutant.module, "source": source, "seeds": list(seeds), "wanted": wanted, "more": more}
        )

    def _ask(self, request: dict[str, Any]) -> Hunt:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return Hunt(tuple(Catch(*one) for one in answer["caught"]), answer["tried"], answer.get("message", ""))

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def hunters(count: int) -> Iterator[SimpleQueue[Hunter]]:
    """Those who have nothing to do; whoever takes one out puts it back."""
    idle: SimpleQueue[Hunter] = SimpleQueue()
    for _ in range(count):
        idle.put(Hunter())
    try:
        yield idle
    finally:
        for _ in range(count):
            idle.get().close()


def hunt_soundly(hunter: Hunter, mutant: Mutant, seeds: Sequence[int], wanted: int = 1, more: int = MORE) -> Hunt:
    """As `Hunter.hunt`, but a seed that fails without the mutant as well has noticed nothing."""
    sound: tuple[Catch, ...] = ()
    tried = 0
    while True:
        found = hunter.hunt(mutant, seeds[tried:], wanted - len(sound), more)
        tried += found.tried
        fresh = tuple(one for one in found.caught if not fails_anyway(one.seed))
        sound += fresh
        if len(sound) >= wanted or len(fresh) == len(found.caught) or found.message:
            return Hunt(sound, tried, found.message)


@cache
def fails_anyway(seed: int) -> bool:
    found = try_seed(seed)
    if isinstance(found, Failure):
        print(f"seed {seed} FAILS WITHOUT A MUTANT: {found.message}; {how_to_replay(seed)}", file=sys.stderr)
    return isinstance(found, Failure)


@cache
def _kind(seed: int) -> str:
    return draw_scenario(seed).kind


def in_order(mutant: Mutant, count: int, without: Sequence[int] = ()) -> list[int]:
    """The first seeds, those before all others in whose scenarios this mutant is known to show."""
    kinds = " ".join(mutant.where)
    if "grown" in mutant.where:
        first = GROWN
    elif "live session" in kinds:
        first = LIVE_SESSIONS
    else:
        of_sessions = "session" in kinds if kinds else mutant.module.startswith(OF_SESSIONS)
        first = SESSIONS if of_sessions else 0
    seeds = [seed for seed in range(first, first + count) if seed not in without]
    return sorted(seeds, key=lambda seed: _kind(seed) not in mutant.where) if mutant.where else seeds


def known_seeds() -> dict[str, list[int]]:
    table: dict[str, list[int]] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    return table


def write_known(table: dict[str, list[int]]) -> None:
    lines = [f" {json.dumps(one.name)}: {table[one.name]}" for one in MUTANTS if table.get(one.name)]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def refresh(hunter: Hunter, mutant: Mutant, known: Sequence[int], count: int) -> Hunt:
    """Which of the known seeds still notice a mutant; if they are too few, others that do."""
    kept = hunt_soundly(hunter, mutant, known, len(known), len(known)) if known else Hunt()
    if len(kept.caught) >= ENOUGH or kept.message:
        return kept
    others = in_order(mutant, count, known)
    if kept.caught:
        others = others[:MORE]
    found = hunt_soundly(hunter, mutant, others, KEPT - len(kept.caught))
    quickest = sorted(kept.caught + found.caught, key=lambda one: (round(one.took_s), one.seed))
    return Hunt(tuple(quickest), kept.tried + found.tried, found.message)


def describe(mutant: Mutant, seen: Hunt) -> str:
    if seen.caught:
        seeds = " ".join(str(one.seed) for one in seen.caught)
        fate = f"seed {seeds} ({seen.tried} tried): {seen.caught[0].message}"
    else:
        fate = seen.message.splitlines()[0] if seen.message else f"SURVIVES {seen.tried} seeds"
    return f"{mutant.rule:>2} {mutant.name:<58} {fate}"[:200]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.mutants", description="Let the fault seeds hunt mutants."
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"at most for each mutant (default: {SEEDS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--rule", type=int, choices=list(RULES), help="those of this rule")
    parser.add_argument("--record", action="store_true", help=f"bring {TABLE.name} up to date")
    given = parser.parse_args(argv)
    wanted = [one for one in MUTANTS if given.only in one.name and given.rule in (None, one.rule)]
    table = known_seeds()
    began_s = time.monotonic()
    alive = 0
    ticker = Ticker(len(wanted), "mutants")
    with hunters(given.jobs) as idle, ThreadPoolExecutor(given.jobs) as pool:

        def pursue(mutant: Mutant) -> Hunt:
            hunter = idle.get()
            try:
                if given.record:
                    return refresh(hunter, mutant, table.get(mutant.name, []), given.seeds)
                return hunt_soundly(hunter, mutant, in_order(mutant, given.seeds))
            except StaleMutant as error:
                return Hunt(message=str(error))
            finally:
                idle.put(hunter)

        for mutant, seen in run_all(pool, pursue, wanted, ticker):
            ticker.clear()
            print(describe(mutant, seen), flush=True)
            alive += not seen.caught
            if given.record:
                table[mutant.name] = [one.seed for one in seen.caught]
                write_known(table)
    print(f"{len(wanted) - alive} of {len(wanted)} mutants caught in {time.monotonic() - began_s:.0f} s")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
