"""Who starts the store of a cluster, and what becomes of it if that fails."""

import subprocess
from pathlib import Path

import pytest

from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.storing import StoreStarter


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
