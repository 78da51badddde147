"""What each kind of cluster has: a cluster in this process, nodes of its own, and nodes that were there before."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import daws
from daws.client.cluster import Cluster
from daws.formats import read_workflow
from daws.runs.timeline import Timeline
from daws.wire.notes import RunFact, Sent
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines
from tests.valkey import LocalServer

KINDS = ("thread", "nodes", "embedded", "valkey")
Open = Callable[..., Cluster]


@pytest.fixture(scope="module", params=KINDS)
def open_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Open a cluster of one kind, with options that all kinds have."""
    if request.param == "thread":
        yield lambda **options: Cluster(2, **options)
    elif request.param == "nodes":
        yield lambda **options: Cluster(1, nodes=2, **options)
    else:
        folder = tmp_path_factory.mktemp(request.param)
        with ExitStack() as stack:
            url = "embedded"
            if request.param == "valkey":
                server = LocalServer(folder / "server")
                stack.callback(server.kill)
                url = server.url
            machines = stack.enter_context(Machines(folder, store=url))
            for _ in range(2):
                machines.node(1, "processes")
            machines.wait_for(2)
            yield lambda **options: daws.connect(machines.folder, timeout=DEADLINE_S, **options)


def outer(count: int) -> int:
    cluster = daws.current()
    return sum(cluster.gather([cluster.submit(inner, number) for number in range(count)]))


def inner(number: int) -> int:
    print(f"inner {number}")
    return number


def wrong() -> None:
    raise ValueError("no luck")


def test_a_timeline_has_each_task_once_with_its_node(open_cluster: Open):
    timeline = Timeline()
    with open_cluster(timeline=timeline) as cluster:
        nodes = {node.node for node in cluster.nodes()}
        futures = [cluster.submit(pow, 2, number) for number in range(40)]
        nested = cluster.submit(outer, 3)
        assert cluster.gather(futures) == [2**number for number in range(40)] and nested.result() == 3
        ours = {future.task for future in (*futures, nested)}
    ran = list(timeline.task)
    assert len(ran) == len(set(ran)) == 44 and ours <= set(ran)
    assert set(timeline.node) <= nodes and all(timeline.is_good)
    assert all(start < end for start, end in zip(timeline.start_ns, timeline.end_ns, strict=True))
    assert {timeline.name_of(kind) for kind in timeline.kind} >= {"pow", "outer"}


def test_a_session_hears_of_its_own_tasks_only(open_cluster: Open):
    first, second = Timeline(), Timeline()
    with open_cluster(timeline=first) as one, open_cluster(timeline=second) as two, open_cluster() as three:
        some = [[cluster.submit(abs, -number) for number in range(20)] for cluster in (one, two, three)]
        for cluster, futures in zip((one, two, three), some, strict=True):
            assert cluster.gather(futures) == list(range(20))
    for timeline, futures in ((first, some[0]), (second, some[1])):
        assert sorted(timeline.task) == [future.task for future in futures]


def test_a_trace_and_a_graph_are_written_when_it_is_closed(open_cluster: Open, tmp_path: Path):
    with open_cluster(trace=tmp_path / "trace.json", export=tmp_path / "graph.json") as cluster:
        made = cluster.submit(bytes, 100_000)
        assert cluster.submit(len, made).result() == 100_000
    events = json.loads((tmp_path / "trace.json").read_text())
    names = [event["name"] for event in events["traceEvents"] if event["ph"] == "X"]
    assert len(names) == 2
    graph = read_workflow(tmp_path / "graph.json").graph
    assert len(graph.length_ns) == 2 and graph.edge_count == 1


def test_a_future_says_where_its_task_ran_and_why(open_cluster: Open):
    with open_cluster(explain=True) as cluster:
        made = cluster.submit(bytes, 100_000)
        read = cluster.submit(len, made)
        bad = cluster.submit(wrong)
        assert read.result() == 100_000 and isinstance(bad.exception(), ValueError)
        why = read.explain()
        assert why.node in {node.node for node in cluster.nodes()} and why.worker is not None
        assert why.facts is not None and "place" in why.reasons
        assert [type(fact) for fact in why.facts if isinstance(fact, Sent | RunFact)] == [Sent, RunFact]
        assert why.ran_s is not None and why.waited_s is not None and 0 <= why.waited_s < DEADLINE_S
        assert "raised after" in str(bad.explain())
    with open_cluster() as cluster:
        future = cluster.submit(abs, -1)
        assert future.result() == 1 and future.explain().facts is None


def test_results_are_reused(open_cluster: Open, tmp_path: Path):
    for reused in (0, 5):
        with open_cluster(memo=tmp_path / "memo") as cluster:
            calls = [cluster.options(memo=True).submit(pow, 2, number) for number in range(5)]
            assert cluster.gather(calls) == [1, 2, 4, 8, 16]
            assert cluster.memo.reused == reused


def test_a_strategy_that_changes_is_used(open_cluster: Open):
    with open_cluster(explain=True) as cluster:
        before = cluster.strategy
        first = cluster.submit(abs, -1)
        assert first.result() == 1
        try:
            cluster.use_strategy("flds")
            second = cluster.submit(abs, -2)
            assert second.result() == 2
            assert "place=planned" in str(first.explain()) and "place=daws" in str(second.explain())
        finally:
            cluster.use_strategy(before)


def test_what_nested_tasks_print_arrives_and_counters_count(open_cluster: Open, capfd: Any):
    with open_cluster() as cluster:
        before = sum([one.done for one in cluster.counters()])
        assert cluster.submit(outer, 3).result() == 3
        assert sum([one.done for one in cluster.counters()]) >= before + 4
    lines = capfd.readouterr().out.splitlines()
    assert sorted(line for line in lines if line.startswith("inner")) == ["inner 0", "inner 1", "inner 2"]
