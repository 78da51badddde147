"""Tasks that do the worst that tasks can do, beside very many that do not: each ends as its user would expect."""

import os
import random
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.gathering import gather
from daws.client.waiting import as_completed
from daws.model.errors import TaskKilledError, TaskTimeoutError, UnpicklableError
from daws.runtime.blame import STEPS_MAX
from daws.workers.errors import RemoteError
from tests.unit.client import trouble_jobs as jobs
from tests.unit.workers.crew import gone, is_alive
from tests.unit.workers.test_vanishing import descendants

ONE_BY_ONE = 20_000
BY_MAP = 80_000
LARGE_BYTES = 1_000_000_000 if os.environ.get("DAWS_BIG") else 200_000_000
LONG_S = 120


class Troubles:
    """What is wrong with tasks, and how each of them has to end."""

    def __init__(self, cluster: Cluster) -> None:
        submit = cluster.submit
        self.raising = submit(jobs.raises, 7)
        self.exiting = submit(jobs.exits)
        self.polite = submit(jobs.exits_politely)
        self.killed = submit(jobs.is_killed)
        self.crashing = submit(jobs.crashes)
        self.endless = cluster.options(timeout=0.1).submit(jobs.runs_forever)
        self.unpicklable = submit(jobs.returns_a_generator)
        self.printing = submit(jobs.prints, "so much to say", 200_000)
        self.large = submit(jobs.returns_much, LARGE_BYTES)
        self.total = submit(jobs.total, self.large)
        self.forking = submit(jobs.forks)
        self.forgetful = submit(jobs.forks_and_forgets)
        self.daemon = submit(jobs.forks_a_daemon)

    def check(self) -> None:
        raised = self.raising.exception(LONG_S)
        assert type(raised) is LookupError and raised.args == ("nothing is known of 7",)
        assert "in raises" in str(raised.__cause__)
        expect(self.exiting, TaskKilledError, "its worker exited with code 3", "attempt 4", "on my way out")
        expect(self.polite, RemoteError, "SystemExit: that was all")
        expect(self.killed, TaskKilledError, "its worker was killed by SIGKILL", "attempt 4", "famous last words")
        expect(self.crashing, TaskKilledError, "its worker was killed by SIGSEGV", "attempt 4")
        expect(self.endless, TaskTimeoutError, "longer than its time limit of 0.1 s on node 0 and was stopped")
        expect(self.unpicklable, UnpicklableError, "the result cannot be pickled", "generator")
        assert self.printing.result(LONG_S) == 200_000
        assert self.total.result(LONG_S) == LARGE_BYTES // 8 * 7
        large = self.large.result()
        assert large.nbytes == LARGE_BYTES and large[-1] == 7 and not large.flags.owndata
        assert self.forking.result(LONG_S) == 5
        assert self.forgetful.result(LONG_S) > 0, "what the child returned is nobody's"
        assert self.daemon.result(LONG_S) > 0


def expect(future: Future[Any], kind: type[BaseException], *said: str) -> None:
    error = future.exception(LONG_S)
    assert type(error) is kind, repr(error)
    names_task = [f"task {future.task}"] if issubclass(kind, TaskKilledError) else []
    for text in [*names_task, *said]:
        assert text in str(error), str(error)


@pytest.mark.slow
def test_a_hundred_thousand_others_finish_beside_every_trouble(capfd: pytest.CaptureFixture[str]):
    before = set(descendants(os.getpid()))
    with Cluster(2) as cluster:
        folders = folders_of(cluster)
        early = [cluster.submit(jobs.same, x) for x in range(ONE_BY_ONE // 2)]
        troubles = Troubles(cluster)
        mapped = cluster.map(jobs.same, range(BY_MAP), chunk=100)
        late = [cluster.submit(jobs.same, x) for x in range(ONE_BY_ONE // 2)]
        troubles.check()
        assert gather(early) == gather(late) == list(range(ONE_BY_ONE // 2))
        assert list(mapped) == list(range(BY_MAP))
        daemon = troubles.daemon.result()
        family = [pid for pid in descendants(os.getpid()) if pid not in before]
    assert gone([*family, daemon], folders)
    printed = capfd.readouterr().out
    assert "so much to say 199999\n" in printed and len(printed) < 1_000_000
    assert "famous last words\n" in printed, "of a worker that has died"
    assert "bytes of output are left out" in printed


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_failure_spreads_through_any_graph_at_once(nodes: int):
    """There are 3 ** 60 ways through this one."""
    with Cluster(1, nodes=nodes) as cluster:
        layer = [root := cluster.submit(jobs.raises, 7)]
        for _ in range(60):
            layer = [cluster.submit(jobs.mix, number, *layer) for number in range(3)]
        for future in layer:
            expect(future, LookupError, "nothing is known of 7")
            (note,) = future.exception().__notes__  # type: ignore[union-attr]
            assert note.startswith(f"task {future.task} (mix) was not run: it needs task ")
            assert note.count("needs") == STEPS_MAX
            assert f"and these need task {root.task} (raises), which failed on node" in note
        assert cluster.submit(jobs.same, 1).result(LONG_S) == 1


def folders_of(cluster: Cluster) -> list[Path]:
    return [Path(folder) for folder in cluster._folders.all()]


# -- a graph under fire ------------------------------------------------------------------------------------------------

LAYERS, WIDTH, KILLS = 30, 12, 12
WAYS = (jobs.mix, jobs.mix, jobs.mix_slowly, jobs.mix_in_tasks)


class Graph:
    """Numbers in layers, each made of some of the layer before: by the functions that the tasks run, or by tasks."""

    def __init__(self, seed: int) -> None:
        chosen = random.Random(seed)
        self.rows = [
            [
                (chosen.choice(WAYS), chosen.randrange(1000), chosen.sample(range(WIDTH), 3), chosen.random() < 0.2)
                for _ in range(WIDTH)
            ]
            for _ in range(LAYERS)
        ]

    def answers(self) -> list[int]:
        """What comes out, computed here."""
        layer, found = [0] * WIDTH, []
        for row in self.rows:
            layer = [jobs.mix(salt, *[layer[one] for one in above]) for _, salt, above, _ in row]
            found += layer
        return found

    def submit(self, cluster: Cluster) -> list[Future[int]]:
        layer: list[Any] = [0] * WIDTH
        found: list[Future[int]] = []
        for row in self.rows:
            made = [cluster.submit(way, salt, *[layer[one] for one in above]) for way, salt, above, _ in row]
            found += made
            # Some take the long way, through a file.
            layer = [
                cluster.submit(jobs.gathered, cluster.submit(jobs.spread, one)) if is_large else one
                for one, (_, _, _, is_large) in zip(made, row, strict=True)
            ]
        return found


class Killer:
    """Kills workers, which have said in a folder who they are."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chosen = random.Random(seed)
        self.dead: list[int] = []

    def __call__(self) -> None:
        # Some end without our help: with a creator of tasks end those that others run for it.
        alive = [pid for pid in sorted(map(int, os.listdir(self.folder))) if is_alive(pid)]
        if alive:  # else all have yet to be replaced
            chosen = self.chosen.choice(alive)
            with suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGKILL)
                self.dead.append(chosen)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_lost_when_workers_are_killed(seed: int, nodes: int, tmp_path: Path):
    graph = Graph(seed)
    killer = Killer(tmp_path, seed)
    before = set(descendants(os.getpid()))
    with Cluster(2, nodes=nodes, setup=partial(jobs.note_worker, str(tmp_path))) as cluster:
        folders = folders_of(cluster)
        futures = graph.submit(cluster)
        # When so many tasks have ended: no clock, so that a slow machine is not under heavier fire. And not too close
        # to each other: a task that was hit four times fails.
        moments = set(killer.chosen.sample(range(0, len(futures) - WIDTH, 8), KILLS))
        for count, future in enumerate(as_completed(futures, LONG_S)):
            assert future.exception() is None, f"seed {seed}"
            if count in moments:
                killer()
        assert gather(futures) == graph.answers(), f"seed {seed}"
        family = [pid for pid in descendants(os.getpid()) if pid not in before]
    assert len(killer.dead) >= KILLS // 2
    assert gone([*family, *killer.dead], folders)
