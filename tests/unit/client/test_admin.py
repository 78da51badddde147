"""Nodes and sessions from Python: listed, drained and ended, on each kind of cluster."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import daws
from daws.client import connect as connecting
from daws.client.admin import NodeDescription, SessionDescription
from daws.model.errors import ClosedError, ContextError, UsageError
from tests.unit.runtime.cluster.machines import Machines, until, wait_for_file
from tests.valkey import LocalServer


@pytest.fixture(scope="module", params=["embedded", "valkey"])
def machines(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("admin")
    with ExitStack() as stack:
        url = "embedded"
        if request.param == "valkey":
            server = LocalServer(folder / "server")
            stack.callback(server.kill)
            url = server.url
        machines = stack.enter_context(Machines(folder, store=url))
        for _ in range(2):
            machines.node()
        machines.wait_for(2)
        yield machines


@pytest.mark.parametrize(
    ("described", "workers"),
    [({"workers": 2}, [2]), ({"workers": 1, "kind": "threads"}, [1]), ({"workers": 1, "nodes": 2}, [1, 1])],
    ids=str,
)
def test_a_cluster_of_ones_own_has_nodes_and_one_session(described, workers):
    with daws.Cluster(**described) as cluster:
        assert [node.node for node in cluster.nodes()] == list(range(len(workers)))
        assert [node.workers for node in cluster.nodes()] == workers
        assert cluster.gather([cluster.submit(abs, -1) for _ in range(3)]) == [1, 1, 1]
        (session,) = cluster.sessions()
        assert (session.name, session.kept, session.attached, session.waiting) == ("", False, True, 0)
        assert 0 <= time.time() - session.since < 600
        with pytest.raises(UsageError, match=r"drain\(0\): nodes of daws.Cluster stay until it is closed"):
            cluster.drain(0)
        with pytest.raises(UsageError, match=r"close\(\) it instead"):
            cluster.end("any")
    for method in (cluster.nodes, cluster.sessions, lambda: cluster.drain(0), lambda: cluster.end("")):
        with pytest.raises(ClosedError):
            method()


def test_workers_for_a_context_are_counted():
    with daws.Cluster(1, devices={"gpu": 2}) as cluster:
        (node,) = cluster.nodes()
        assert (node.workers, node.contexts, node.offer) == (3, {"gpu": 2}, "1 + 2 gpu")
        assert str(node).endswith("1 + 2 gpu executors")
    with daws.Cluster(1, kind="threads") as cluster:
        assert str(cluster.nodes()[0]).endswith(" 1 executor")


def test_descriptions_print_as_rows():
    node = NodeDescription(7, "[::1]:900", 3, {"gpu": 3})
    assert str(node).split() == ["7", "[::1]:900", "3", "gpu", "executors"] and node.host == "::1"
    assert NodeDescription(0, "", 0, {}).offer == "0"
    session = SessionDescription("mine", True, False, 0.0, 1000, 2, 3)
    assert str(session).startswith("mine ") and str(session).endswith("kept    1,000 to end, 2 done, 3 failed")


def test_a_connected_cluster_takes_sizes_as_text_and_names_the_cure_for_needs(machines: Machines):
    with daws.connect(machines.folder, memory_bytes="2 GB", timeout=60) as cluster:
        assert cluster._open().files.limit_bytes == 2_000_000_000
        with pytest.raises(ContextError, match=r"or start a larger node \('daws node --executors 4000'\)"):
            cluster.options(cores=4000).submit(abs, -1)
        with pytest.raises(ContextError, match="'daws node --context gpu=1' starts a node that has one"):
            cluster.options(context="gpu").submit(abs, -1)


def test_results_of_a_connected_cluster_can_be_asked_for_after_the_block(machines: Machines, monkeypatch):
    with machines.connect() as cluster:
        futures = [cluster.submit(bytes, 10_000 + number) for number in range(4)]
    assert [len(future.result()) for future in futures] == [10_000, 10_001, 10_002, 10_003]
    monkeypatch.setattr(connecting, "FETCHED_BYTES", 10_100)
    with machines.connect() as cluster:
        futures = [cluster.submit(bytes, 10_000)]
        daws.wait(futures)
        futures.append(cluster.submit(bytes, 10_000))
        engine: Any = cluster._open().engine
    assert len(futures[1].result()) == 10_000  # the last is what people want most
    with pytest.raises(ClosedError, match="not asked for before its cluster was closed"):
        futures[0].result()
    assert all(source._sock is None for source in engine._objects._sources.values()), "nobody would close it"


def test_nodes_of_a_connected_cluster_are_listed_also_beside_a_loop(machines: Machines):
    with machines.connect() as cluster:
        nodes = cluster.nodes()
        assert len(nodes) == 2 and all(node.workers for node in nodes)
        assert {node.host for node in nodes} == {"127.0.0.1"}

        async def inside() -> list[NodeDescription]:
            return cluster.nodes()

        assert asyncio.run(inside()) == nodes

        async def wrong() -> None:
            cluster.drain(4711)

        with pytest.raises(UsageError, match="there is no node 4711"):
            asyncio.run(wrong())
    with pytest.raises(ClosedError):
        cluster.nodes()


def test_sessions_are_listed_and_ended(machines: Machines, tmp_path):
    with machines.connect(session="kept", keep=True) as kept:
        kept.submit(abs, -1).result()
        kept.submit(wait_for_file, str(tmp_path / "never"))
        until(lambda: machines_sessions(kept)["kept"].waiting == 1)
        assert machines_sessions(kept)["kept"].attached
        kept.detach()
    with machines.connect(session="other") as other:
        until(lambda: not machines_sessions(other)["kept"].attached)
        session = machines_sessions(other)["kept"]
        assert (session.kept, session.waiting, session.done, session.failed) == (True, 1, 1, 0)
        assert set(machines_sessions(other)) == {"kept", "other"}
        other.end(session)
        until(lambda: set(machines_sessions(other)) == {"other"})
        with pytest.raises(UsageError, match="there is no session 'nobody'"):
            other.end("nobody")
        for wrong in ("", 3):
            with pytest.raises(UsageError, match="give the name of a session"):
                other.end(wrong)  # type: ignore[arg-type]


def machines_sessions(cluster) -> dict[str, SessionDescription]:
    return {one.name: one for one in cluster.sessions()}


def test_a_node_is_drained_and_leaves(machines: Machines):
    with machines.connect() as cluster:
        for wrong in ("0", True, None):
            with pytest.raises(UsageError, match="give the number of a node"):
                cluster.drain(wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="within=-1: give a number of seconds"):
            cluster.drain(0, within=-1)
        first, second = cluster.nodes()
        cluster.drain(first, within=30)
        until(lambda: cluster.nodes() == [second])
        assert cluster.submit(abs, -3).result() == 3
