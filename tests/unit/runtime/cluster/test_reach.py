"""How the processes of a cluster reach each other."""

from pathlib import Path

import pytest

from daws.model.errors import ClusterError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster.reach import Reach


def test_the_store_is_on_the_first_host(tmp_path: Path):
    init_cluster(tmp_path / "v4", ClusterConfig(name="lab", hosts=("127.0.0.2", "127.0.0.3"), port=7))
    assert Reach(tmp_path / "v4", "client").store_address == "127.0.0.2:7"
    init_cluster(tmp_path / "v6", ClusterConfig(name="lab", hosts=("::1",), port=7, lease_s=2.5))
    reach = Reach(tmp_path / "v6", "node")
    assert reach.store_address == "[::1]:7"
    assert reach.lease_ns == 2_500_000_000


def test_another_store_is_not_passed_over_in_silence(tmp_path: Path):
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab", store="redis://127.0.0.1:6379"))
    with pytest.raises(ClusterError, match="so far"):
        Reach(tmp_path / "lab", "node")
