"""More objects than there is room for, with real workers."""

import os
import threading
from typing import Any

import pytest

from daws.client.cluster import Cluster
from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.data.session import SessionFolders as Folders
from daws.model.errors import NoSpaceError
from daws.runtime import spilling
from daws.runtime.engine import Engine
from daws.runtime.spilling import Spiller
from daws.runtime.thread import ThreadCluster
from tests.unit.runtime.jobs import blob, first, slow_blob

MB = 1_000_000
LIMIT = 8 * MB


def node_of(cluster: Cluster) -> Engine:
    engine = cluster._open().engine
    assert isinstance(engine, ThreadCluster)
    return engine.node


@pytest.mark.parametrize("form", [{}, {"node": "process"}, {"kind": "threads"}], ids=str)
def test_more_results_than_memory(form: dict[str, Any]):
    with Cluster(2, memory_bytes=LIMIT, **form) as cluster:
        futures = [cluster.submit(blob, number, MB) for number in range(60)]
        assert [future.result()[0] for future in futures] == list(range(60))


def test_what_is_held_is_spilled_and_stays_readable():
    with Cluster(2, memory_bytes=LIMIT) as cluster:
        futures = [cluster.submit(blob, number, MB) for number in range(40)]
        firsts = [cluster.submit(first, future) for future in futures]
        assert cluster.gather(firsts) == list(range(40))
        thread = node_of(cluster)._spiller._thread
        if thread is not None:
            thread.join()
        files = node_of(cluster).files
        assert files.used_bytes <= files.limit_bytes and files.spilled_bytes >= 40 * MB - LIMIT
        del futures, firsts


def test_what_was_made_is_read_before_more_is_made():
    """All makers come before all readers: without back-pressure all objects would be there at once."""
    with Cluster(2, memory_bytes=LIMIT, strategy="mlb") as cluster:
        files = node_of(cluster).files
        most = 0
        adopt = files.adopt

        def counted(object_id: int, path: str, size_bytes: int, is_raw: bool = False) -> None:
            nonlocal most
            adopt(object_id, path, size_bytes, is_raw)
            most = max(most, files.used_bytes + files.spilled_bytes)

        files.adopt = counted  # type: ignore[method-assign]
        makers = [cluster.submit(slow_blob, number, MB) for number in range(60)]
        firsts = [cluster.submit(first, maker) for maker in makers]
        del makers
        assert cluster.gather(firsts) == list(range(60))
        assert most < 30 * MB


def test_where_nothing_can_be_spilled_tasks_still_come_to_an_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ObjectFiles, "make_room", lambda *_, **__: 0)
    with Cluster(2, memory_bytes=LIMIT) as cluster:
        futures = [cluster.submit(blob, number, MB) for number in range(30)]
        assert [future.result()[0] for future in futures] == list(range(30))
        assert node_of(cluster).files.is_high
        del futures
        assert cluster.submit(blob, 7, MB).result()[0] == 7


def test_the_thread_ends_when_there_is_room_and_comes_back_when_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spilling, "AGAIN_S", 0.001)
    with Folders() as folders:
        files = ObjectFiles(*folders.node_folders(0), limit_bytes=1000)
        spiller = Spiller(files)
        calm = threading.Event()

        def crossed() -> None:
            spiller.look()
            if not files.is_high:
                calm.set()

        files.on_pressure = crossed
        for number in range(5):
            calm.clear()
            files.adopt(number, files.segments.write(Packed([bytes(900)], []), number), 900)
            assert calm.wait(30)
            assert os.path.islink(files.path(number))
        with_pin = threading.Event()
        files.on_pressure = with_pin.set
        files.adopt(78, files.segments.write(Packed([bytes(900)], []), 78), 900)
        files.pin(78)
        spiller.look()
        spiller.close()  # though nothing can be spilled
        assert with_pin.is_set() and not os.path.islink(files.path(78))


def test_a_result_for_which_there_is_no_room_is_an_error_of_its_task():
    with Cluster(1) as cluster:
        future = cluster.submit(blob_with_little_room)
        error = future.exception()
        assert isinstance(error, NoSpaceError)
        assert f"task {future.task}" in str(error) and "1,000,0" in str(error)
        assert cluster.submit(first, b"a").result() == 97


def blob_with_little_room() -> bytes:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    return blob(1, MB)
