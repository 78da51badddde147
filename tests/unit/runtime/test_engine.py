"""The engine from below: what its listener hears when something is wrong with the engine itself."""

import threading
from pathlib import Path
from typing import Any

from daws.client.cluster import Cluster
from daws.core.effects import RecallRun, StartRun, StopRun
from daws.core.events import EventType, RunRecalled
from daws.data.files import ObjectFiles
from daws.model.errors import ClosedError, InternalError
from daws.model.task import Ready, TaskSpec
from daws.runtime.engine import Crew, Engine
from daws.runtime.here import NobodyElse
from daws.runtime.thread import NodeThread
from daws.strategy import parse_strategy


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
