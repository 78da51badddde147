"""Large arguments do not pile up without bound."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daws.client import brake as module
from daws.client.brake import Brake
from daws.client.cluster import Cluster
from daws.model.errors import ClosedError


def test_what_is_over_the_limit_waits_for_what_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    brake = Brake(100)
    brake.add(1, 90, True)
    waiting = threading.Thread(target=brake.add, args=(2, 90, True))
    waiting.start()
    assert brake.pending_bytes == 90
    brake.remove(1)
    waiting.join(60)
    assert not waiting.is_alive() and brake.pending_bytes == 90 and brake.sizes == {2: 90}


def test_nobody_waits_alone_or_for_long_or_on_the_thread_that_ends_tasks(monkeypatch: pytest.MonkeyPatch):
    brake = Brake(100)
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    assert not brake.add(1, 1000, True)  # nothing could ever make room for it
    assert brake.add(2, 90, True)
    assert not brake.add(3, 90, False)
    monkeypatch.setattr(module, "WAIT_S_MAX", 0.001)
    assert not brake.add(4, 90, True)
    assert brake.pending_bytes == 90
    brake.remove(1)
    brake.remove(2)
    assert brake.pending_bytes == 0


def test_who_is_slowed_down_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr(module, "WAIT_S_MAX", 0.001)
    brake = Brake(100)
    for task in range(10):
        brake.add(task, 90, True)
    [said] = [record.getMessage() for record in caplog.records]
    assert "submit() waits" in said and "put()" in said and "memory_bytes=" in said and "\n" not in said


def first(data: list[int], gate: str) -> int:
    while gate and not os.path.exists(gate):
        time.sleep(0.001)
    return data[0]


@pytest.mark.parametrize("kind", [{}, {"kind": "threads"}, {"nodes": 2}])
def test_pending_arguments_never_take_more_than_they_may(
    kind: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(module, "WAIT_S_MAX", 0.001)
    gate = tmp_path / "gate"
    with Cluster(2, memory_bytes=1_000_000, **kind) as cluster:
        brake = cluster._open().brake
        futures = []
        for one in range(100):  # none of them ends before all are submitted
            futures.append(cluster.submit(first, [one, *range(10_000)], str(gate)))
            assert brake.pending_bytes <= brake.limit_bytes == 500_000
        gate.touch()
        assert cluster.gather(futures) == [*range(100)]
        assert brake.pending_bytes == 0 and not brake.sizes
    assert len([one for one in caplog.records if "submit() waits" in one.getMessage()]) == 1


def test_who_waits_when_all_is_over_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    brake = Brake(100)
    brake.add(1, 90, True)
    waiting = threading.Thread(target=brake.add, args=(2, 90, True))
    waiting.start()
    brake.release()
    waiting.join(60)
    assert not waiting.is_alive()


def test_ctrl_c_while_submit_waits_for_room_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    array = np.zeros(400_000)
    with Cluster(1) as cluster:
        session = cluster._open()
        with monkeypatch.context() as patch:
            patch.setattr(session.brake, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                cluster.submit(size, bytes(array))
            with pytest.raises(KeyboardInterrupt):
                cluster.options(outputs=2).submit(size, bytes(array))
        assert not len(session.large) and not session.large._reading and not session.outputs
        assert cluster.submit(size, bytes(array)).result() == array.nbytes


def size(data: bytes) -> int:
    return len(data)


def fail(data: bytes) -> None:
    raise ValueError


def test_a_flood_of_arguments_passes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    with Cluster(2, memory_bytes=4_000_000) as cluster:
        brake = cluster._open().brake
        most = 0
        futures = []
        for _ in range(100):
            futures.append(cluster.submit(size, bytes(300_000)))
            most = max(most, brake.pending_bytes)
        assert cluster.gather(futures) == [300_000] * 100
        assert cluster.submit(fail, bytes(300_000)).exception() is not None
        assert most <= brake.limit_bytes and brake.pending_bytes == 0
        assert sum(cluster.map(size, [bytes(300_000)] * 20, chunk=1)) == 6_000_000
    with pytest.raises(ClosedError):
        cluster.submit(size, bytes(300_000))


def test_callbacks_may_submit_without_waiting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAIT_S_MAX", 600)
    with Cluster(1, memory_bytes=400_000) as cluster:
        made = []
        done = threading.Event()

        def more(_: object) -> None:
            made.extend([cluster.submit(size, bytes(300_000)) for _ in range(3)])
            done.set()

        cluster.submit(abs, -1).add_done_callback(more)
        assert done.wait(60)
        assert cluster.gather(made) == [300_000] * 3
