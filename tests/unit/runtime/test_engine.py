"""The engine from below: what its listener hears when something is wrong with the engine itself."""

import threading

from daws.client.cluster import Cluster
from daws.core.effects import StartRun
from daws.model.errors import ClosedError, InternalError
from daws.runtime.thread import NodeThread


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
