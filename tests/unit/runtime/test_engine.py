"""The engine from below: what its listener hears when something is wrong with the engine itself."""

import os
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from daws.client.cluster import Cluster
from daws.core.effects import RecallRun, StartRun, StartRuns, StopRun
from daws.core.events import EventType, NewStrategy, RunEnded, RunRecalled, RunsDone
from daws.data.files import ObjectFiles
from daws.data.local import LocalModule
from daws.data.session import SessionFolders as Folders
from daws.data.shipping import Shipment
from daws.data.tags import folder_of, rooted
from daws.model.errors import ClosedError, InternalError, TaskKilledError
from daws.model.task import INLINE_BYTES, Ready, TaskSpec
from daws.runs.watching import WatchedPlace
from daws.runtime.engine import Engine
from daws.runtime.here import NobodyElse, StoreHere
from daws.runtime.thread import ThreadCluster
from daws.store.memory import MemoryStore
from daws.strategy import format_strategy, parse_strategy
from daws.testing.build import object_at, ready
from daws.wire.crew import Crew
from daws.wire.worker import (
    Died,
    Ended,
    EndedTogether,
    ExecuteTogether,
    ObjectFile,
    Raised,
    Recalled,
    ReportType,
    Written,
)
from daws.workers.failures import failure_of
from tests.unit.runtime.jobs import die_half_way
from tests.unit.workers.jobs import hang_if_there


def test_a_node_that_stops_tells_everybody_who_waits():
    with Cluster(1) as cluster:
        session = cluster._open()
        blocked = threading.Event()

        def fail(effect: StartRun) -> None:
            blocked.wait(30)
            raise KeyError(6)

        assert isinstance(session.engine, ThreadCluster)
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


def test_a_tuned_node_waits_for_its_turn_while_every_worker_has_more_at_hand(tmp_path: Path):
    held = tmp_path / "held"

    def policy() -> int:
        return os.sched_getscheduler(thread.native_id or 0)

    def until(wanted: int) -> bool:
        deadline = time.monotonic() + 60
        while policy() != wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        return policy() == wanted

    with Cluster(2, tune=True) as cluster:
        cluster.gather([cluster.submit(hang_if_there, str(held)) for _ in range(20)])  # known to be short from now on
        engine = cluster._open().engine
        assert isinstance(engine, ThreadCluster) and engine._thread is not None
        thread = engine._thread
        assert policy() == os.SCHED_OTHER
        held.touch()
        futures = [cluster.submit(hang_if_there, str(held)) for _ in range(20)]
        assert until(os.SCHED_BATCH)
        held.unlink()
        cluster.gather(futures)
        assert until(os.SCHED_OTHER)


class Hands:
    """Instead of workers: what they are told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def learn(self, function: int, pickled: bytes) -> None:
        self.told.append((function, pickled))

    def forget(self, functions: tuple[int, ...]) -> None:
        self.told.append(("forget", *functions))

    def execute(self, slot: int, order: Any) -> None:
        self.told.append(order.run)

    def execute_together(self, slot: int, order: Any) -> None:
        self.told.append(order)

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


def test_runs_fail_that_wait_for_a_function_which_is_gone_with_its_session(tmp_path: Path):
    engine = engine_with(ObjectFiles(None, tmp_path))
    hands: Any = engine.pool
    for run, kind in enumerate((5, 6, 5, 5)):
        engine._start_run(StartRun(run, 0, Ready(TaskSpec(run, kind), 0, 0)))
    del engine.runs[2]  # it was stopped
    ended = engine.functions.give_up([5, 9], engine.runs)
    error = "task {} needs function 5, which is gone with its session"
    assert ended == [RunEnded(run, run, 0, (), error.format(run)) for run in (0, 3)]
    hands.told.clear()
    engine.learn(5, b"code")
    engine.learn(6, b"code")
    assert hands.told == [(6, b"code"), 1]


def test_functions_that_are_over_are_let_go_of_unless_runs_have_them(tmp_path: Path):
    engine = engine_with(ObjectFiles(None, tmp_path))
    hands: Any = engine.pool
    wanted: list[int] = []
    engine.want = wanted.append
    for run, kind in enumerate((7, 8, 9)):
        engine.learn(kind, b"code")
        engine._start_run(StartRun(run, 0, Ready(TaskSpec(run, kind), 0, 0)))
    engine.learn(1 << 60, rooted(8, b"brought in by a run"))
    engine._start_run(StartRun(3, 0, Ready(TaskSpec(3, 10), 0, 0)))
    for run in (0, 1, 3):
        del engine.runs[run]
    hands.told.clear()
    engine.forget(lambda root: root in (8, 9))
    assert hands.told == [("forget", 8, 1 << 60)], "8 is over, with what its runs have brought in"
    assert set(engine.functions.known) == engine.functions.taught == {7, 9}, "a run still has 9"
    assert not engine.functions.held_back, "nobody waits for 10 any more"
    hands.told.clear()
    engine._start_run(StartRun(4, 0, Ready(TaskSpec(4, 8), 0, 0)))
    assert (hands.told, wanted) == ([], [10, 8]), "what was forgotten too early is asked for"
    engine.learn(8, b"code")
    assert hands.told == [(8, b"code"), 4]


def test_modules_go_with_the_last_function_that_needs_them(tmp_path: Path):
    engine = engine_with(ObjectFiles(None, tmp_path))
    shipment = Shipment([LocalModule("mine", "mine.py", False, b"ONE = 1")])
    scratch = str(engine.files.segments.scratch)
    for shipped, kind in ((100, 1), (200, 2)):  # two clients have the same
        engine.learn(shipped, shipment.packed)
        engine.learn(kind, shipment.tag(shipped) + b"code")
        engine._start_run(StartRun(kind, 0, Ready(TaskSpec(kind, kind), 0, 0)))
    engine.runs.clear()
    folder = Path(folder_of(shipment.tag(100), scratch))
    engine.forget(lambda root: root in (1, 100))
    assert (folder / "mine.py").exists()
    engine.forget(lambda root: root in (2, 200))
    assert not folder.exists()


def test_runs_that_start_together_are_told_as_columns_once_their_function_is_known(tmp_path: Path):
    engine = engine_with(ObjectFiles(None, tmp_path))
    hands: Any = engine.pool
    some = [Ready(TaskSpec(task, 7, outputs=(task,), payload=b"x"), 0, 0) for task in (10, 11)]
    engine._start_runs(StartRuns([1, 2], 3, some))
    engine._start_runs(StartRuns([3, 4], 2, some))
    other = [Ready(TaskSpec(20, 8, outputs=(20,)), 0, 0)]
    engine._start_runs(StartRuns([5], 0, other))
    assert hands.told == [(7, b"seven"), 1, 2, ExecuteTogether(7, [3, 4], [b"x"], [10, 11])]
    assert engine.runs == {
        1: (3, some[0].spec),
        2: (3, some[1].spec),
        3: (2, some[0].spec),
        4: (2, some[1].spec),
        5: (0, other[0].spec),
    }


def test_runs_that_end_together_are_one_event_unless_some_were_stopped(tmp_path: Path):
    engine = engine_with(ObjectFiles(None, tmp_path))
    told: list[EventType] = []
    engine._step = told.extend  # type: ignore[method-assign, assignment]
    specs = [TaskSpec(task, 7, outputs=(task,)) for task in range(10, 14)]
    engine.runs = {run: (0, spec) for run, spec in enumerate(specs)}
    engine._on_reports([EndedTogether([0, 1], [5, 6], [b"v"], [100, 200])])
    assert told == [RunsDone([10, 11], [0, 1], [5, 6], [b"v", b"v"])]
    told.clear()
    del engine.runs[2]
    engine._on_reports([EndedTogether([2, 3], [7, 8], [b"v", b"w"], [100, 200])])
    assert told == [RunEnded(13, 3, 8, (1,), values=(b"w",))]
    assert not engine.runs


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


def test_notes_are_taken_only_while_they_are_asked_for():
    with Folders() as folders:
        engine: Any = engine_with(ObjectFiles(*folders.node_folders(0)))
        given: list[Any] = []

        def step(events: list[Any]) -> None:
            given.extend(events)
            engine.core.step(0, events, [])

        engine._step = step
        engine.listener = Mock()
        bare = engine.core.strategy
        assert (engine.notes, engine.watch) == (None, None)
        engine.take_notes(True, False)
        notes = engine.notes
        assert notes is not None and (notes.watch, engine.watch, given) == (None, None, [])
        engine.take_notes(True, True)
        assert engine.notes is notes and notes.watch is engine.watch is not None
        assert isinstance(engine.core.strategy.place, WatchedPlace)
        engine.take_notes(True, True)
        assert given == [NewStrategy(format_strategy(bare))], "once"
        engine.take_notes(False, False)
        assert engine.notes is engine.watch is None and given == 2 * [NewStrategy(format_strategy(bare))]
        assert format_strategy(engine.core.strategy) == format_strategy(bare)
        assert type(engine.core.strategy.place) is type(bare.place)


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
        assert 5 not in files and not engine.inputs.pinned


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
        (given,) = engine.inputs.of(1, Ready(TaskSpec(1, 7, inputs=(5,)), 0, 0, (object_at(5, 0),)))
        assert isinstance(given, ObjectFile)
        if kind == "threads":
            assert given.held is files.held(5) and not engine.inputs.pinned
        else:
            assert Path(given.path).read_bytes() == b"x" * 10_000 and not given.held
            assert engine.inputs.pinned == {1: [5]}


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
        assert isinstance(engine, ThreadCluster)
        made = cluster.submit(bytes, 20_000)
        assert cluster.submit(len, made).result() == 20_000
        segments = engine.node.files.segments
        assert os.listdir(f"{segments.home}/objects") == [] or not segments.has_memory
        assert made.result() == bytes(20_000)


def test_what_a_worker_wrote_before_it_was_killed_goes_with_it():
    with Cluster(1) as cluster:
        engine = cluster._open().engine
        assert isinstance(engine, ThreadCluster)
        first, second = cluster.options(outputs=2).submit(die_half_way)
        assert isinstance(first.exception(), TaskKilledError) and isinstance(second.exception(), TaskKilledError)
        assert cluster.submit(abs, -1).result() == 1  # the engine's thread has gone on
        assert [os.listdir(folder) for folder in engine.node.files.segments.folders_new] == [[], []]
