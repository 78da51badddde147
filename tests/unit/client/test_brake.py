"""Large arguments do not pile up without bound."""

import threading

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
    brake.add(1, 1000, True)  # nothing could ever make room for it
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    brake.add(2, 1000, False)
    monkeypatch.setattr(module, "WAIT_S_MAX", 0.001)
    brake.add(3, 1000, True)
    assert brake.pending_bytes == 3000


def test_who_waits_when_all_is_over_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAIT_S_MAX", 60)
    brake = Brake(100)
    brake.add(1, 90, True)
    waiting = threading.Thread(target=brake.add, args=(2, 90, True))
    waiting.start()
    brake.release()
    waiting.join(60)
    assert not waiting.is_alive()


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
