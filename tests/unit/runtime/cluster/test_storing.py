"""Who starts the store of a cluster, and what becomes of it if that fails."""

import subprocess
from pathlib import Path

import pytest

from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.storing import StoreStarter
from tests.unit.runtime.cluster.machines import free_port


def test_a_store_that_cannot_be_started_is_a_line_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab"))
    starter = StoreStarter(Reach(tmp_path / "lab", "node"), 60.0)
    (tmp_path / "lab" / "store.log").mkdir()
    starter()
    (line,) = caplog.messages
    assert "the store could not be started" in line and "store.log" in line
    (tmp_path / "lab" / "store.log").rmdir()
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *what, **how: started.append(what))
    starter._started_at_s -= 3600.0
    starter()
    assert started


def test_a_store_that_ends_at_once_is_told_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab", port=free_port()))
    (tmp_path / "lab" / "state" / "store").mkdir(mode=0o700, parents=True)
    (tmp_path / "lab" / "state" / "store" / "thesis.txt").write_text("of somebody else")
    starter = StoreStarter(Reach(tmp_path / "lab", "node"), 60.0)
    for _ in range(3):
        starter()
        assert starter._process is not None and starter._process.wait(60) == 2
        starter._started_at_s -= 3600.0
    (line,) = caplog.messages
    assert "store.log says why" in line and "is no folder of a store (thesis.txt is in it)" in line
