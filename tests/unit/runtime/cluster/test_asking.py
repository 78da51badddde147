"""Tools say why they get no answer, and send nobody after a cure that is none."""

import socket
import threading
from pathlib import Path

import pytest

from daws.model.errors import UnavailableError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import words
from daws.runtime.cluster.asking import ask


def test_only_who_finds_nobody_is_told_to_start_a_node(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as door:
        init_cluster(tmp_path / "lab", ClusterConfig(name="lab", port=door.getsockname()[1]))
        rude = threading.Thread(target=lambda: door.accept()[0].close())
        rude.start()
        with pytest.raises(UnavailableError, match="closed the connection") as hung_up:
            ask(tmp_path / "lab", words.AskMembers())
        rude.join()
    assert "daws node" not in str(hung_up.value)
    with pytest.raises(UnavailableError, match="Connection refused; 'daws node' starts it"):
        ask(tmp_path / "lab", words.AskMembers())
