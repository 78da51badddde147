"""One chaos run from a seed: a graph with known answers goes through a cluster that is beaten meanwhile.

python -m tests.chaos --seeds 50                 50 runs of 2,000 tasks
python -m tests.chaos --seed 17 --keep FOLDER    one of them again, with its logs
"""

import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tests.chaos.commits import committed
from tests.chaos.plan import KINDS, NEEDS_DISKS, NEEDS_LINKS, NEEDS_REPLICAS, Blow, blows_of
from tests.chaos.private import run_private
from tests.chaos.work import answers_of, graph_of
from tests.chaos.world import World, wait_until

START_S = 60.0
REPLICA_S = 10.0
SHARDS = (1, 5)
"""Of a store on a server, in turns."""


class Setup(Struct, frozen=True):
    """How large a run is, and what it has to do with."""

    tasks: int = 2000
    length_s: float = 0.01
    hosts: int = 4
    blows: int = 12
    lease_s: float = 2.0
    limit_s: float = 240.0
    network: str = "auto"
    store: str = "embedded"


class Seen(Struct):
    """How a run went. `blows` counts those that hit something, by kind; `message` is empty if all was well."""

    seed: int
    took_s: float = 0.0
    worked_s: float = 0.0  # until the client had all results
    runs: int = 0
    blows: dict[str, int] = {}
    message: str = ""


def run_seed(seed: int, setup: Setup, folder: Path | None = None) -> Seen:
    seen = Seen(seed)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as temporary:
        try:
            if setup.store == "private":
                run_private(seed, setup, folder, seen)
            else:
                Run(seed, setup, folder or Path(temporary), seen).carry_out()
        except Exception as error:
            seen.message = f"{type(error).__name__}: {error}"
    seen.took_s = time.monotonic() - began_s
    return seen


class Run:
    def __init__(self, seed: int, setup: Setup, folder: Path, seen: Seen) -> None:
        self.seed = seed
        self.setup = setup
        self.folder = folder
        self.seen = seen
        self.random = random.Random(f"run {seed}")
        self.runs_file = folder / "runs"
        self.answers_file = folder / "answers"
        self.steps = graph_of(seed, setup.tasks, setup.length_s)
        self.client: subprocess.Popen[bytes] | None = None
        self.timers: list[threading.Timer] = []
        self.dealing = threading.Lock()  # blows end in threads of their own

    def carry_out(self) -> None:
        setup = self.setup
        began_s = time.monotonic()
        self.runs_file.touch()
        shards = SHARDS[self.seed % len(SHARDS)]
        with World(self.folder, setup.hosts, setup.lease_s, setup.network, setup.store, shards) as self.world:
            try:
                self.start_client()
                wait_until(self.runs, START_S, "a first task has run")
                until_s = time.monotonic() + setup.limit_s
                for blow in self.blows():
                    self.wait_for(blow.share, until_s)
                    if self.answers_file.exists():
                        break
                    self.deal(blow)
                self.wait_for(2.0, until_s)
            finally:
                for timer in self.timers:
                    timer.join()
            self.seen.worked_s = time.monotonic() - began_s
            self.check_answers()
            self.world.daws("sessions", "--cluster", str(self.world.cluster), "--end", "chaos")
            self.world.leave()
            self.check_commits()
            self.world.end_servers()
            wait_until(lambda: not self.world.marked(), START_S, "all processes have ended")
            told = self.world.secrets_told()
            assert not told, f"the password stands in {told}"
            left = self.world.disks.left_over()
            assert not left, f"left on the disks: {left[:3]}"
        self.seen.runs = self.runs()

    def blows(self) -> list[Blow]:
        world, setup = self.world, self.setup
        kinds = [
            kind
            for kind in KINDS
            if (world.hosts.can_cut or kind not in NEEDS_LINKS)
            and (world.disks.can_fill or kind not in NEEDS_DISKS)
            and (world.pair is not None or kind not in NEEDS_REPLICAS)
        ]
        return blows_of(self.seed, kinds, setup.hosts, setup.blows, setup.lease_s)

    # -- the client ----------------------------------------------------------------------------------------------------

    def start_client(self) -> None:
        setup = self.setup
        given = [self.world.cluster, "chaos", self.seed, setup.tasks, setup.length_s, self.runs_file, self.answers_file]
        self.client = self.world.start("client", ["tests.chaos.client", *map(str, given)])

    def runs(self) -> int:
        """How many runs of tasks have begun."""
        return self.runs_file.read_bytes().count(b"\n")

    def wait_for(self, share: float, until_s: float) -> None:
        """Until so many tasks have run, or all is over; a client that failed is an error."""
        wanted = share * self.setup.tasks
        while not self.answers_file.exists() and self.runs() < wanted:
            assert self.client is not None
            if self.client.poll() and not self.answers_file.exists():
                said = (self.folder / "client.log").read_text(errors="replace").strip().splitlines()
                raise AssertionError(f"the client failed: {said[-1] if said else self.client.returncode}")
            if time.monotonic() > until_s:
                raise TimeoutError(f"hangs: {self.runs()} runs of {self.setup.tasks} tasks, and no end")
            time.sleep(0.02)

    def check_answers(self) -> None:
        wrong = [
            number
            for number, (wanted, found) in enumerate(
                zip(answers_of(self.seed, self.steps), json.loads(self.answers_file.read_text()), strict=True)
            )
            if wanted != found
        ]
        assert not wrong, f"wrong results of tasks {wrong[:5]}"

    def check_commits(self) -> None:
        """Each task once: from the store's own files, or from the log on the server."""
        pair = self.world.pair
        counts = pair.committed("cluster") if pair is not None else committed(self.world.cluster / "state" / "store")
        twice = [task for task, count in counts.items() if count > 1]
        assert not twice, f"committed more than once: tasks {twice[:5]}"
        assert len(counts) >= self.setup.tasks, f"{len(counts)} commits of {self.setup.tasks} tasks"

    # -- blows ---------------------------------------------------------------------------------------------------------

    def deal(self, blow: Blow) -> None:
        with self.dealing:
            has_work = self.runs() < self.setup.tasks and not self.answers_file.exists()
            hit: bool = getattr(self, blow.kind.replace("-", "_"))(blow)
        if hit and has_work:  # something was queued or ran
            self.seen.blows[blow.kind] = self.seen.blows.get(blow.kind, 0) + 1

    def later(self, delay_s: float, what: Callable[[], object]) -> None:
        def do() -> None:
            with self.dealing:
                what()

        timer = threading.Timer(delay_s, do)
        self.timers.append(timer)
        timer.start()

    def kill_node(self, blow: Blow) -> bool:
        node = self.world.nodes[blow.host]
        if node.poll() is not None:
            return False
        for pid in self.world.pids_of(blow.host):
            kill(pid, signal.SIGKILL)
        node.wait()
        self.later(blow.lasts_s, lambda: self.restart_node(blow.host))
        return True

    def restart_node(self, host: int) -> None:
        if self.world.nodes[host].poll() is not None:
            self.world.start_node(host)

    def kill_worker(self, blow: Blow) -> bool:
        workers = self.world.workers_of(blow.host)
        if workers:
            kill(self.random.choice(workers), signal.SIGKILL)
        return bool(workers)

    def pause_node(self, blow: Blow) -> bool:
        pids = self.world.pids_of(blow.host)
        return self.pause(pids, blow.lasts_s) if self.world.nodes[blow.host].poll() is None else False

    def pause(self, pids: list[int], lasts_s: float) -> bool:
        for pid in pids:
            kill(pid, signal.SIGSTOP)

        def go_on() -> None:
            for pid in pids:
                kill(pid, signal.SIGCONT)

        self.later(lasts_s, go_on)
        return True

    def cut_node(self, blow: Blow) -> bool:
        self.world.hosts.cut(blow.host)
        self.later(blow.lasts_s, lambda: self.world.hosts.heal(blow.host))
        return True

    def slow_node(self, blow: Blow) -> bool:
        """Stopped for nine of ten moments."""
        pids = self.world.pids_of(blow.host)
        until_s = time.monotonic() + blow.lasts_s

        def slice_of_time() -> None:
            for pid in pids:
                kill(pid, signal.SIGSTOP)
            time.sleep(0.09)
            for pid in pids:
                kill(pid, signal.SIGCONT)
            if time.monotonic() < until_s:
                self.later(0.01, slice_of_time)

        slice_of_time()
        return True

    def fill_disk(self, blow: Blow) -> bool:
        self.world.disks.fill(blow.host)
        self.later(blow.lasts_s, lambda: self.world.disks.empty(blow.host))
        return True

    def kill_store(self, blow: Blow) -> bool:
        pair = self.world.pair
        if pair is not None:
            if not pair.is_up():
                return False
            pair.kill()
            self.later(0.3 * blow.lasts_s, pair.come_back)
            return True
        store = self.world.store
        assert store is not None
        if store.poll() is not None:
            return False  # it was hit a moment ago; of two that are started again, one would be left over
        store.kill()
        store.wait()
        self.later(0.3 * blow.lasts_s, self.world.start_store)
        return True

    def promote_replica(self, blow: Blow) -> bool:
        pair = self.world.pair
        assert pair is not None
        pair.come_back()
        pair.replace_replica()
        until_s = time.monotonic() + REPLICA_S
        while not pair.has_replica():
            if time.monotonic() > until_s:
                return False
            time.sleep(0.05)
        pair.promote_lagging(1.0)
        self.later(0.3 * blow.lasts_s, pair.replace_replica)
        return True

    def pause_store(self, blow: Blow) -> bool:
        store = self.world.pair.process if self.world.pair is not None else self.world.store
        assert store is not None
        return self.pause([store.pid], blow.lasts_s) if store.poll() is None else False

    def kill_client(self, blow: Blow) -> bool:
        assert self.client is not None
        if self.client.poll() is not None:
            return False
        for pid in self.world.marked():
            if getsid(pid) == self.client.pid:
                kill(pid, signal.SIGKILL)
        self.client.wait()
        self.start_client()
        return True

    def drain_node(self, blow: Blow) -> bool:
        node = self.world.nodes[blow.host]
        if node.poll() is not None:
            return False
        kill(node.pid, signal.SIGTERM)

        def come_back() -> None:
            if node.poll() is None:
                self.later(0.5, come_back)
            else:
                self.restart_node(blow.host)

        self.later(0.5, come_back)
        return True


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def getsid(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
