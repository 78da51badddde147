"""One chaos run of `daws.Cluster(nodes=N)`: its processes are beaten by the program that has started them.

python -m tests.chaos --store private --seeds 50
python -m tests.chaos.private SEED TASKS LENGTH_S NODES BLOWS RUNS ANSWERS     the program itself

The cluster lives as long as its client, so no client is killed here, and nothing goes over a network.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import daws
from tests.chaos.work import answers_of, digest_of, graph_of, work

KINDS = ("kill-node", "kill-worker", "pause-node", "kill-store", "pause-store")
PAUSES_S = (0.2, 0.6, 1.5)
DEATHS_MAX = 6
"""More deaths within a minute, and the cluster takes itself for broken."""
LOOK_S = 0.02


class Beater(threading.Thread):
    """Deals blows when so many tasks have run."""

    def __init__(self, cluster: Any, seed: int, tasks: int, count: int, runs: Path) -> None:
        super().__init__(daemon=True)
        self.dealt: dict[str, int] = {}
        self._cluster = cluster
        self._random = Random(f"private {seed}")
        first = seed * count
        kinds = [KINDS[(first + number) % len(KINDS)] for number in range(count)]
        self._blows = sorted((self._random.uniform(0.05, 0.85) * tasks, kind) for kind in kinds)
        self._runs = runs
        self._is_over = threading.Event()
        self._deaths = 0
        self._failed: Exception | None = None

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        if self._failed is not None:
            raise self._failed

    def run(self) -> None:
        try:
            self._beat()
        except Exception as error:
            self._failed = error

    def _beat(self) -> None:
        for at, kind in self._blows:
            while self._runs.read_bytes().count(b"\n") < at:
                if self._is_over.wait(LOOK_S):
                    return
            if self._deal(kind):
                self.dealt[kind] = self.dealt.get(kind, 0) + 1

    def _deal(self, kind: str) -> bool:
        verb, _, whom = kind.partition("-")
        whose = "the store" if whom == "store" else "node "
        pids = self._cluster._open().engine.pids
        chosen = [pid for name, pid in pids.items() if pid and name.startswith(whose)]
        if whom == "worker":
            chosen = [child for pid in chosen for child in workers_of(pid)]
        if not chosen or (verb == "kill" and whom != "worker" and self._deaths >= DEATHS_MAX):
            return False
        pid = self._random.choice(sorted(chosen))
        with suppress(ProcessLookupError):
            if verb == "kill":
                self._deaths += whom != "worker"
                os.kill(pid, signal.SIGKILL)
                return True
            os.kill(pid, signal.SIGSTOP)
            try:
                self._is_over.wait(self._random.choice(PAUSES_S))
            finally:
                os.kill(pid, signal.SIGCONT)
            return True
        return False


def workers_of(node: int) -> list[int]:
    """The workers of a node: the children of the fork server that it has started."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                below[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    return [pid for pid, parent in below.items() if below.get(parent) == node]


def main() -> None:
    seed, tasks, length_s, nodes, blows = (float(one) for one in sys.argv[1:6])
    runs, answers = Path(sys.argv[6]), Path(sys.argv[7])
    steps = graph_of(int(seed), int(tasks), length_s)
    with daws.Cluster(2 * int(nodes), nodes=int(nodes)) as cluster:
        beater = Beater(cluster, int(seed), int(tasks), int(blows), runs)
        beater.start()
        futures: list[Any] = []
        for step in steps:
            made = (step.number, step.size_bytes, step.length_s)
            read = [futures[one] for one in step.parents]
            futures.append(cluster.options(retries=2).submit(work, int(seed), made, str(runs), *read))
        digests = [digest_of(future.result()) for future in futures]
        beater.stop()
    answers.write_text(json.dumps({"answers": digests, "blows": beater.dealt}))


def run_private(seed: int, setup: Any, folder: Path | None, seen: Any) -> None:
    """One seed in a process of its own. `seen` is told how it went; raises what is wrong."""
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as temporary:
        place = folder or Path(temporary)
        runs, answers, scratch = place / "runs", place / "answers", place / "tmp"
        runs.touch()
        scratch.mkdir(exist_ok=True)
        given = [seed, setup.tasks, setup.length_s, setup.hosts, setup.blows, runs, answers]
        environment = {**os.environ, "TMPDIR": str(scratch)}
        began_s = time.monotonic()
        with open(place / "client.log", "wb") as log:
            command = [sys.executable, "-m", "tests.chaos.private", *map(str, given)]
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=setup.limit_s)
        seen.worked_s = time.monotonic() - began_s
        said = (place / "client.log").read_text(errors="replace").strip().splitlines()
        assert not done.returncode, f"the program failed: {said[-1] if said else done.returncode}"
        found = json.loads(answers.read_text())
        seen.blows, seen.runs = found["blows"], runs.read_bytes().count(b"\n")
        wanted = answers_of(seed, graph_of(seed, setup.tasks, setup.length_s))
        wrong = [number for number, pair in enumerate(zip(wanted, found["answers"], strict=True)) if pair[0] != pair[1]]
        assert not wrong, f"wrong results of tasks {wrong[:5]}"
        left = [str(path) for path in scratch.iterdir()]
        assert not left, f"left on the disk: {left[:3]}"


if __name__ == "__main__":
    main()
