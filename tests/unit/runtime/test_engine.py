"""The engine from below: what its listener hears when something is wrong with the engine itself."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from daws.client.cluster import Cluster
from daws.core.effects import RecallRun, StartRun, StopRun
from daws.core.events import EventType, RunEnded, RunRecalled
from daws.data.files import ObjectFiles
from daws.data.session import Session as Folders
from daws.model.errors import ClosedError, InternalError, TaskKilledError
from daws.model.task import INLINE_BYTES, Ready, TaskSpec
from daws.runtime.engine import Crew, Engine
from daws.runtime.here import NobodyElse, StoreHere
from daws.runtime.thread import NodeThread
from daws.store.memory import MemoryStore
from daws.strategy import parse_strategy
from daws.testing.build import object_at, ready
from daws.wire.worker import Died, Ended, ObjectFile, Raised, Recalled, ReportType, Written
from daws.workers.failures import failure_of
from tests.unit.runtime.jobs import die_half_way


def test_a_node_that_stops_tells_everybody_who_waits():
    with Cluster(1) as cluster:
        session = cluster._open()
        blocked = threading.Event()

        def fail(effect: StartRun) -> None:
            blocked.wait(30)
            raise KeyError(6)

        assert isinstance(session.engine, NodeThread)
        session.engine.node._start_run = fail  # type: ignore[method-assign]
        future = cluster.submit(abs, -1)
        blocked.set()
        error = future.exception(30)
        assert isinstance(error, InternalError) and "KeyError: 6" in str(error)
        try:
            cluster.submit(abs, -1)
        except ClosedError as refused:
            assert "the node has stopped" in str(refused)
        else:
            raise AssertionError("nobody would ever run it")


class Hands:
    """Instead of workers: what they are told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def learn(self, function: int, pickled: bytes) -> None:
        self.told.append((function, pickled))

    def execute(self, slot: int, order: Any) -> None:
        self.told.append(order.run)

    def kill(self, slot: int, run: int) -> None:
        pass

    def flush(self) -> None:
        pass


def test_a_run_that_comes_before_its_function_waits_for_it(tmp_path: Path):
    nobody: Any = None
    files = ObjectFiles(None, tmp_path)
    engine = Engine(0, Crew(4), parse_strategy("mlb"), files, nobody, NobodyElse(0), nobody)
    hands: Any = Hands()
    engine.pool = hands
    for run in (1, 2, 3, 4):
        engine._start_run(StartRun(run, 0, Ready(TaskSpec(run, kind=7), 0, 0)))
    assert hands.told == []
    events: list[EventType] = []
    engine._perform(RecallRun(2, 2), 0, events)
    engine._perform(StopRun(3, 3), 0, events)
    assert events == [RunRecalled(2, 2)], "it never left"
    engine.learn(7, b"seven")
    assert hands.told == [(7, b"seven"), 1, 4]


# -- files -------------------------------------------------------------------------------------------------------------


def engine_with(files: ObjectFiles, kind: str = "processes") -> Engine:
    nobody: Any = None
    store = StoreHere(MemoryStore(), nobody)
    engine = Engine(0, Crew(4, kind), parse_strategy("mlb"), files, store, NobodyElse(0), nobody)
    hands: Any = Hands()
    engine.pool = hands
    engine._step = lambda events: None  # type: ignore[method-assign]
    engine.learn(7, b"seven")
    return engine


ENDS: list[ReportType] = [
    Ended(1, 1, (b"x",)),
    Raised(1, 1, failure_of(ValueError())),
    Died(1, -9, why="stopped"),
    Recalled(1),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_what_a_run_may_open_is_neither_spilled_nor_dropped_until_the_run_is_over(end: ReportType):
    with Folders() as folders:
        files = ObjectFiles(*folders.node_folders(0), limit_bytes=1_000_000)
        engine = engine_with(files)
        files.put(5, b"x" * 100_000)
        files.put(6, b"x" * 100_000)
        engine._start_run(StartRun(1, 0, ready(1, object_at(5, 0), kind=7)))
        files.limit_bytes = 1  # between the order and the moment when the worker opens the file
        files.make_room()
        assert os.path.islink(files.path(6)) and not os.path.islink(files.path(5))
        files.drop(5)
        assert len(files.value(5)) == 100_000
        engine._on_reports([end])
        assert 5 not in files and not engine.reading


def test_a_run_that_is_stopped_holds_nothing():
    with Folders() as folders:
        files = ObjectFiles(*folders.node_folders(0), limit_bytes=1_000_000)
        engine = engine_with(files)
        files.put(5, b"x" * 100_000)
        engine._start_run(StartRun(1, 0, ready(1, object_at(5, 0), kind=7)))
        engine._perform(StopRun(1, 1), 0, [])
        files.drop(5)
        assert 5 not in files
        path = f"{files.segments.folders_new[0]}/1-1"
        Path(path).write_bytes(b"too late")
        engine._on_reports([Ended(1, 1, (Written(path, 8),))])
        assert not os.path.exists(path)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_threads_are_given_what_has_no_file_and_processes_a_file(kind: str):
    with Folders() as folders:
        files = ObjectFiles(*folders.node_folders(0), limit_bytes=1_000_000)
        engine = engine_with(files, kind)
        files.hold(5, b"x" * 10_000)
        given = engine._input(1, object_at(5, 0))
        assert isinstance(given, ObjectFile)
        if kind == "threads":
            assert given.held is files.held(5) and not engine.reading
        else:
            assert Path(given.path).read_bytes() == b"x" * 10_000 and not given.held and engine.reading == {1: [5]}


def test_results_that_came_without_files_are_objects_of_the_node():
    with Folders() as folders:
        files = ObjectFiles(*folders.node_folders(0), limit_bytes=1_000_000)
        engine = engine_with(files, "threads")
        happened: list[EventType] = []
        engine._step = happened.extend  # type: ignore[method-assign, assignment]
        small, large = b"x" * INLINE_BYTES, b"x" * (INLINE_BYTES + 1)
        engine.runs[1] = 0, TaskSpec(1, outputs=(5, 6))
        engine._on_reports([Ended(1, 1, (small, large))])
        engine.runs[2] = 0, TaskSpec(2, outputs=(7,))
        engine._on_reports([Ended(2, 1, (large,))])
        first, second = happened
        assert isinstance(first, RunEnded) and first.sizes == (len(small), len(large)) and first.values == (small, b"")
        assert isinstance(second, RunEnded) and second.sizes == (len(large),) and second.values == (b"",)
        assert 5 not in files and files.held(6) == files.held(7) == large


def test_what_threads_make_and_read_needs_no_files():
    with Cluster(1, kind="threads") as cluster:
        engine = cluster._open().engine
        assert isinstance(engine, NodeThread)
        made = cluster.submit(bytes, 20_000)
        assert cluster.submit(len, made).result() == 20_000
        segments = engine.node.files.segments
        assert os.listdir(f"{segments.home}/objects") == [] or not segments.has_memory
        assert made.result() == bytes(20_000)


def test_what_a_worker_wrote_before_it_was_killed_goes_with_it():
    with Cluster(1) as cluster:
        engine = cluster._open().engine
        assert isinstance(engine, NodeThread)
        first, second = cluster.call(die_half_way, outputs=2)
        assert isinstance(first.exception(), TaskKilledError) and isinstance(second.exception(), TaskKilledError)
        assert cluster.submit(abs, -1).result() == 1  # the engine's thread has gone on
        assert [os.listdir(folder) for folder in engine.node.files.segments.folders_new] == [[], []]
