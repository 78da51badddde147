"""How the processes of a cluster reach each other."""

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from daws.model.errors import ClusterError, UnavailableError, UsageError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster.reach import Reach
from daws.runtime.objects import ObjectGiver
from tests.unit.runtime.cluster.machines import free_pair


def test_the_store_is_on_the_first_host(tmp_path: Path):
    init_cluster(tmp_path / "v4", ClusterConfig(name="lab", hosts=("127.0.0.2", "127.0.0.3"), port=7))
    assert Reach(tmp_path / "v4", "client").store_address == "127.0.0.2:7"
    init_cluster(tmp_path / "v6", ClusterConfig(name="lab", hosts=("::1",), port=7, lease_s=2.5))
    reach = Reach(tmp_path / "v6", "node")
    assert reach.store_address == "[::1]:7"
    assert reach.lease_ns == 2_500_000_000


def test_a_server_is_reached_by_its_addresses_of_which_nothing_secret_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    urls = "rediss://me:secret@10.0.0.1:6380/2, redis://:secret@10.0.0.2"
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab", store=urls, store_ca="ca.pem"))
    reach = Reach(tmp_path / "lab", "node")
    assert reach.store_where == "rediss://me:***@10.0.0.1:6380/2, redis://:***@10.0.0.2"
    address = reach.server_address()
    assert address.urls == ("rediss://me:secret@10.0.0.1:6380/2", "redis://:secret@10.0.0.2")
    assert (address.name, address.ca_file, address.password) == ("lab", str(tmp_path / "lab" / "ca.pem"), "")
    monkeypatch.setenv("DAWS_STORE_PASSWORD", "better")
    assert reach.server_address().password == "better"


def test_an_address_that_is_none_is_refused_in_a_line_that_keeps_its_secret(tmp_path: Path):
    with pytest.raises(ClusterError, match=r"store 'http://me:\*\*\*@10.0.0.1': expected"):
        ClusterConfig(name="lab", store="http://me:secret@10.0.0.1").check()
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab", store="redis://me:secret@10.0.0.1:7/much"))
    with pytest.raises(UsageError) as caught:
        Reach(tmp_path / "lab", "node")
    assert "secret" not in str(caught.value) and "10.0.0.1:7/much" in str(caught.value)


def test_keys_that_are_too_old_are_told_apart_from_those_of_others(tmp_path: Path):
    init_cluster(tmp_path / "old", ClusterConfig(name="lab"), days=-1)
    with pytest.raises(ClusterError, match=r"old: its keys were good until \d{4}-\d\d-\d\d; make a new folder by"):
        Reach(tmp_path / "old", "client")


def test_nodes_listen_on_the_ports_that_they_may_use(tmp_path: Path):
    first = free_pair()
    config = ClusterConfig(name="lab", node_ports=(first, first + 1))
    init_cluster(tmp_path / "lab", config)
    reach = Reach(tmp_path / "lab", "node")

    async def listen() -> None:
        door = await reach.serve("127.0.0.1:0", lambda link: None)
        streams = reach.serve_streams("127.0.0.1:0", ObjectGiver(Mock()), 0)
        try:
            assert [door.address, streams.address] == [*config.binds("127.0.0.1")]
            with pytest.raises(UnavailableError, match=f"no port from {first} to {first + 1} is free at 127.0.0.1"):
                await reach.serve("127.0.0.1:0", lambda link: None)
            with pytest.raises(UnavailableError, match=r"cannot listen at 127\.0\.0\.1"):
                await reach.serve(door.address, lambda link: None)
        finally:
            door.close()
            streams.close()

    asyncio.run(listen())


def test_a_node_takes_the_address_by_which_it_reaches_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("daws.runtime.cluster.reach.host_towards", lambda host: f"towards {host}")
    stores = {
        "embedded": "10.0.0.1",
        "redis://me:secret@10.0.0.2:7,redis://10.0.0.3": "10.0.0.2",
        "unix:///x": "127.0.0.1",
    }
    for number, (store, host) in enumerate(stores.items()):
        init_cluster(tmp_path / str(number), ClusterConfig(name="lab", store=store, hosts=("10.0.0.1",)))
        assert Reach(tmp_path / str(number), "node").host_for_others() == f"towards {host}"
