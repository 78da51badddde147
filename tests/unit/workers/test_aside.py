"""Workers that are left to runs which wait in them, while others take the orders of their slots."""

import asyncio
import errno
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import cloudpickle
import pytest

from daws.workers import link, pool
from tests.unit.workers import jobs
from tests.unit.workers.crew import DEADLINE_S, Crew, gone
from tests.unit.workers.test_nest import end, result, until_it_waits


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path, slots=1) as made:
        yield made


def waiting(crew: Crew) -> int:
    """A run that waits for a task of its own."""
    run = crew.give(jobs.wait_for, 1)
    until_it_waits(crew, run)
    return run


def test_a_worker_that_cannot_be_hired_leaves_nothing_behind(crew: Crew, monkeypatch: pytest.MonkeyPatch):
    """Each try left a file, and counted as a worker from then on."""

    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    parent, before, workers = waiting(crew), sorted(crew.folder.iterdir()), len(crew.pool._by_number)
    for module, name in ((link, "socketpair"), (os, "ftruncate")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, refuse)
            crew.pool.set_aside(0, parent)
    assert sorted(crew.folder.iterdir()) == before and len(crew.pool._by_number) == workers
    assert crew.call(jobs.pid) == crew.pool.pids[0], "they share a worker instead"
    end(crew, parent, 0)
    assert result(crew, parent) == [0]


def test_a_worker_that_was_set_aside_ends_with_the_last_that_waits_in_it(crew: Crew):
    first, second = waiting(crew), waiting(crew)
    (alone,) = crew.pool.pids
    crew.pool.set_aside(0, first)
    other = crew.call(jobs.pid)
    assert other != alone and "2 runs" in repr(crew.pool)
    end(crew, first, 0)
    assert result(crew, first) == [0]
    end(crew, second, 0)
    assert result(crew, second) == [0] and gone([alone])
    assert crew.call(jobs.pid) == other


def test_a_worker_that_was_set_aside_ends_though_its_tear_down_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "END_S", 0.05)
    hangs, is_gone = tmp_path / "hangs", asyncio.Event()
    hangs.touch()
    teardown = cloudpickle.dumps(partial(jobs.hang_if_there, str(hangs)))
    with Crew(tmp_path, slots=1, teardown=teardown, gone=lambda pid: is_gone.set()) as crew:
        parent, pids = waiting(crew), crew.pool.pids
        crew.pool.set_aside(0, parent)
        end(crew, parent, 0)
        assert result(crew, parent) == [0]
        crew.loop.run_until_complete(asyncio.wait_for(is_gone.wait(), DEADLINE_S))
        assert gone(pids) and crew.call(jobs.add, 1) == 1
        hangs.unlink()


def test_who_was_set_aside_sets_no_other_aside(crew: Crew):
    first = waiting(crew)
    crew.pool.set_aside(0, first)
    second = waiting(crew)
    pids = crew.pool.pids
    crew.pool.set_aside(0, first)  # it waits once more
    assert crew.pool.pids == pids
    crew.pool.set_aside(0, second)
    assert crew.pool.pids != pids


def test_too_many_share_a_worker(crew: Crew, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "ASIDE_MAX", 1)
    crew.pool.set_aside(0, waiting(crew))
    there = crew.call(jobs.pid)
    crew.pool.set_aside(0, waiting(crew))
    assert crew.call(jobs.pid) == there
