"""Workers with devices of their own, for tasks that ask for them."""

import os
from collections.abc import Mapping
from typing import Any

import pytest

from daws.client.cluster import Cluster
from daws.model.errors import ContextError, UsageError


def device() -> str | None:
    return os.environ.get("CUDA_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_tasks_that_ask_for_a_device_find_its_number_and_others_none():
    with Cluster(1, devices={"gpu": 2, "tpu": 1}) as cluster:
        pairs = [cluster.options(context="gpu", cores=2).submit(device) for _ in range(2)]
        single = [cluster.options(context="gpu").submit(device) for _ in range(4)]
        plain = [cluster.submit(device) for _ in range(4)]
        other = cluster.options(context="tpu").submit(device)
        assert cluster.gather(pairs) == ["0,1"] * 2
        assert set(cluster.gather(single)) <= {"0", "1"}
        assert cluster.gather(plain) == [None] * 4 and other.result() == "0"
        with pytest.raises(ContextError, match="1 worker without a context, 2 with gpu, 1 with tpu"):
            cluster.options(context="fpga").submit(device)
        assert cluster.workers == 1


def test_devices_that_were_chosen_outside_are_given_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    with Cluster(1, devices={"gpu": 2}) as cluster:
        assert cluster.options(context="gpu", cores=2).submit(device).result() == "5,7"
        assert cluster.submit(device).result() == "5,7"


def test_nodes_of_one_machine_share_no_device():
    with Cluster(1, nodes=2, devices={"gpu": 1}) as cluster:
        seen = {cluster.options(context="gpu").submit(device).result() for _ in range(20)}
        assert seen and seen <= {"0", "1"}


WRONG: list[Mapping[Any, Any]] = [{"gpu": 0}, {"gpu": "2"}, {"": 1}, {"any": 1}, {"a|b": 1}, {3: 1}]


@pytest.mark.parametrize("devices", WRONG, ids=str)
def test_what_makes_no_sense_is_refused(devices: Mapping[Any, Any]):
    with pytest.raises(UsageError, match="devices"):
        Cluster(1, devices=devices)


def test_threads_have_no_devices():
    with pytest.raises(UsageError, match="threads share"):
        Cluster(1, kind="threads", devices={"gpu": 1})
