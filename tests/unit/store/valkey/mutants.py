"""Mutants of the Valkey caller: each takes out a line that keeps the store right, and a test in memory must notice.

    python -m tests.unit.store.valkey.mutants               all of them: which test notices each?
    python -m tests.unit.store.valkey.mutants --only log    those whose name contains this

No server is needed: the caller is a value, and `tests.twin` compares it with the store in memory on fault seeds.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.sim.mutants import SOURCE, mutate
from tests.sim.mutations import Mutant

TESTS = (
    "tests/unit/store/valkey/test_caller.py",
    "tests/unit/store/valkey/test_safety.py",
    "tests/unit/store/valkey/test_told.py",
    "tests/sim/test_valkey.py",
)
LIMIT_S = 60
CALLER, ATTEMPT, VIEW = "store/valkey/caller.py", "store/valkey/attempt.py", "store/valkey/view.py"
SAFETY, TOLD = "store/valkey/safety.py", "store/valkey/told.py"

MUTANTS = (
    Mutant(
        "the cells of an ended session stay", 6, CALLER,
        "                yield from self._drop_retired((first.session, FUNCTIONS + first.session))\n",
        "                pass\n",
    ),
    Mutant(
        "each part of a session is searched for anew", 6, CALLER,
        "            keep_found(self._found, key, found)\n", "            pass\n",
    ),
    Mutant("an update is not counted", 11, CALLER, "                    self.position = commit.number\n", ""),
    Mutant(
        "a server that went back in time is believed", 11, CALLER,
        "            if outcome == DONE:\n", "            if outcome in (DONE, LOST):\n",
    ),
    Mutant(
        "the name stays after a loss", 11, CALLER,
        'has lost something."""\n        self._name = secrets.token_bytes(8)\n', 'has lost something."""\n',
    ),
    Mutant(
        "the count stays after a loss", 11, CALLER,
        "        self.position = 0\n        self._read", "        self._read",
    ),
    Mutant(
        "a rewritten log is read on", 10, CALLER,
        " and entries[:1] != [known]:\n", " and not entries:\n",
    ),
    Mutant("an entry of the log is read twice", 10, CALLER, "entries[min(start, 1) :]", "entries[0:]"),
    Mutant(
        "nobody hears that commits were dropped", 10, CALLER,
        "        return [wire.Log(start + len(rows), found, start - row.start)]\n",
        "        return [wire.Log(start + len(rows), found)]\n",
    ),
    Mutant(
        "a reader that missed commits takes their numbers for those that follow", 10, CALLER,
        "        start = max(row.start, first)\n",
        "        start = row.start\n",
    ),
    Mutant(
        "an old search for an estate is used after a strike", 4, CALLER,
        "                    self._estates.pop(first.dead, None)\n                yield",
        "                    pass\n                yield",
    ),
    Mutant(
        "what a node owns is looked up once", 4, CALLER,
        "                self._estates.pop(first.node, None)\n", "",
    ),
    Mutant(
        "an estate is searched on the first page alone", 4, CALLER,
        "                found[int(name)] = None\n            if cursor == b\"0\":\n",
        "                found[int(name)] = None\n            if cursor:\n",
    ),
    Mutant(
        "other shards keep an estate that was heard of", 4, CALLER,
        "                afterwards += [(shard, DropEstate(first.dead, first.node)) for shard in others]\n", "",
    ),
    Mutant(
        "marks are given out twice", 1, CALLER, "                    self._marks = attempt.here.marks\n", "",
    ),
    Mutant(
        "rows behind a lease are dropped", 1, CALLER,
        "            yield rows[number : number + 1]\n            start = number + 1\n",
        "            yield rows[number : number + 1]\n            start = number + 2\n",
    ),
    Mutant(
        "what was only read may change meanwhile", 2, VIEW,
        "                others.append(task)\n                kept.append(before)\n", "",
    ),
    Mutant(
        "intents are not read with their task", 1, VIEW,
        "                dict.__setitem__(self.outbox, task << 2 | verb, intent)\n", "                pass\n",
    ),
    Mutant(
        "members that nobody changed may be others by then", 4, ATTEMPT,
        "                change.others.append(name)\n                change.stamps.append(self.here.stamp(name))\n",
        "                pass\n",
    ),
    Mutant(
        "leases run out while the store is away", 4, ATTEMPT,
        "                leases[holder] = until_ns + outage.end_ns - outage.start_ns\n",
        "                pass\n",
    ),
    Mutant(
        "a parent in another shard never retires", 6, ATTEMPT,
        "                    todo.append((number, Tidy(task)))\n", "                    pass\n",
    ),
    Mutant("a struck node may strike", 4, ATTEMPT, "    if row.node not in shard.dead:\n", "    if True:\n"),
    Mutant(
        "an update is safe before all replicas have it", 11, SAFETY,
        "            if any(follower < offset for follower in replicas.followers):\n                return\n", "",
    ),
    Mutant(
        "an update is safe without the replicas that were asked for", 11, SAFETY,
        " or len(replicas.followers) < self._replicas_min", "",
    ),
    Mutant("an update is safe before disks had their time", 11, SAFETY, "now_s - since_s < SETTLE_S or ", ""),
    Mutant(
        "safety survives a loss", 11, SAFETY,
        "        self.safe = 0\n        self._waiting.clear()\n", "        pass\n",
    ),
    Mutant(
        "hearsay replaces what is known", 11, TOLD,
        "                if task.spec.id not in cache:\n", "                if True:\n",
    ),
    Mutant(
        "an end is believed of a task that was changed meanwhile", 3, TOLD,
        " and cell.stamp == seal[0] and", " and",
    ),
    Mutant(
        "an end that was moved has a seal", 3, TOLD,
        "    if record != _ended(record.spec, node, outputs):\n        return None\n", "",
    ),
)  # fmt: skip


def noticed_by(mutant: Mutant, tests: Sequence[str] = TESTS) -> str:
    """The first of these tests that fails with the mutant; empty if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "daws")
        shutil.copytree(SOURCE, package)
        module = package / mutant.module
        module.write_text(mutate(mutant, module.read_text()))
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        try:
            run = subprocess.run(
                command, cwd=SOURCE.parents[1], env=environment, capture_output=True, text=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return "it never ends"
    if run.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return found.group(1) if found else f"exit code {run.returncode}: {(run.stdout + run.stderr)[-200:]}"


def hunt(
    module: str,
    description: str | None,
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    argv: Sequence[str] | None = None,
) -> int:
    """The command of a module with mutants: print which of these tests notices each. 0 if all of them are caught."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    given = parser.parse_args(argv)
    wanted = [one for one in mutants if given.only in one.name]
    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(lambda one: noticed_by(one, tests), wanted))
    for mutant, test in zip(wanted, found, strict=True):
        print(f"{mutant.rule:>2} {mutant.name:<60} {test or 'SURVIVES'}")
    caught = sum(map(bool, found))
    print(f"{caught} of {len(wanted)} mutants caught")
    return 0 if caught == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(hunt("tests.unit.store.valkey.mutants", __doc__, MUTANTS, TESTS))
