"""What a cluster writes about its run: the graph of its tasks, and a picture."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, FormatChecker

import daws
from daws.formats import Workflow, read_workflow
from daws.model.errors import UsageError
from daws.sim.cluster import cluster_of
from daws.sim.simulate import simulate
from daws.strategy import parse_strategy
from tests.unit.formats.schema import Document

KINDS: list[dict[str, Any]] = [
    {"workers": 2},
    {"workers": 2, "kind": "threads"},
    {"workers": 1, "nodes": 2},
    {"workers": 2, "node": "process"},
]


def joined(*texts: bytes) -> bytes:
    return b"".join(texts) + bytes(100)


def leaf(number: int) -> bytes:
    return bytes(number)


def spread(count: int) -> int:
    """A task with tasks of its own, twice one after the other."""
    cluster = daws.current()
    first = cluster.gather([cluster.submit(leaf, number) for number in range(count)])
    return sum(len(one) for one in first) + len(cluster.submit(leaf, count).result())


def wrong() -> None:
    raise ValueError


def program(cluster: Any) -> None:
    chain = cluster.submit(joined, cluster.put(bytes(100_000)))
    for _ in range(3):
        chain = cluster.submit(joined, chain)
    leaves = [cluster.submit(leaf, 1000 + number) for number in range(8)]
    while len(leaves) > 1:
        leaves = [cluster.submit(joined, *leaves[at : at + 2]) for at in range(0, len(leaves), 2)]
    assert cluster.submit(spread, 4).result() == 6 + 4
    assert len(list(cluster.map(leaf, range(50), chunk=10))) == 50
    assert isinstance(cluster.submit(wrong).exception(), ValueError)
    assert len(chain.result()) == 100_400 and len(leaves[0].result()) == 8028 + 700


def counts(workflow: Workflow) -> dict[str, int]:
    kinds = [workflow.graph.kinds[kind] for kind in workflow.graph.kind]
    return {kind: kinds.count(kind) for kind in kinds}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_graph_of_a_run_is_exported(tmp_path: Path, kind: dict[str, Any]):
    with daws.Cluster(export=tmp_path / "graph.json", **kind) as cluster:
        program(cluster)
    workflow = read_workflow(tmp_path / "graph.json")
    graph = workflow.graph
    found = counts(workflow)
    assert found["joined"] == 4 + 7 and found["leaf"] == 8 + 5 + 5 and found["wrong"] == 1
    assert found["spread"] == 3  # until it waits first, from there to its second wait, the rest
    assert graph.edge_count == 3 + 14 + 2 + 4 + 4 + 1 + 1
    assert (graph.length_ns > 0).all() and graph.external_bytes > 100_000
    assert 100_400 <= max(graph.object_bytes) < 101_000
    msgspec.json.decode((tmp_path / "graph.json").read_bytes(), type=Document)
    if "WFFORMAT_SCHEMA" in os.environ:
        official = json.loads(Path(os.environ["WFFORMAT_SCHEMA"]).read_text())
        checker = Draft202012Validator(official, format_checker=FormatChecker())
        written = json.loads((tmp_path / "graph.json").read_bytes())
        assert [error.message for error in checker.iter_errors(written)] == []


def nap(after: object = None) -> None:
    import time

    time.sleep(0.02)


def napping() -> None:
    cluster = daws.current()
    nap()
    cluster.gather([cluster.submit(nap) for _ in range(3)])
    nap()


def test_a_simulation_of_the_graph_takes_as_long_as_the_run(tmp_path: Path):
    """On one worker: nothing runs beside anything else, and everything is measured."""
    with daws.Cluster(1, export=tmp_path / "graph.json") as cluster:
        futures = [cluster.submit(nap)]
        for _ in range(4):
            futures.append(cluster.submit(nap, futures[-1]))
        cluster.gather([*futures, cluster.submit(napping)])
    workflow = read_workflow(tmp_path / "graph.json")
    total_s = workflow.graph.length_ns.sum() / 1e9
    result, _ = simulate(workflow.graph, cluster_of(1, 1), parse_strategy("daws"))
    assert total_s > 10 * 0.02
    assert total_s <= result.makespan_s < 1.05 * total_s
    assert total_s <= workflow.makespan_s * 1.001
    wide, _ = simulate(workflow.graph, cluster_of(4, 4), parse_strategy("daws"))
    assert wide.makespan_s < total_s  # the chain and the nested tasks run beside each other


def test_busy_workers_are_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib")
    with daws.Cluster(2, plot=tmp_path / "busy.svg", export=tmp_path / "graph.json.gz") as cluster:
        program(cluster)
    assert b"busy executors" in (tmp_path / "busy.svg").read_bytes()
    assert read_workflow(tmp_path / "graph.json.gz").graph.task_count > 30


def test_a_cluster_without_tasks_says_that_there_is_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING), daws.Cluster(1, export=tmp_path / "graph.json"):
        pass
    assert "no task ran" in caplog.text and not (tmp_path / "graph.json").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"export": "no/graph.json"}, "there is no folder"),
        ({"plot": "no/busy.png"}, "there is no folder"),
        ({"plot": "busy.txt"}, "must end in"),
        ({"trace": "no/trace.json"}, "there is no folder"),
    ],
)
def test_what_could_not_be_written_is_refused_first(tmp_path: Path, monkeypatch, given: dict[str, Any], message: str):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        daws.Cluster(1, **given)


def test_a_timeline_of_ones_own_is_told_too(tmp_path: Path):
    from daws.runs.timeline import Timeline

    timeline = Timeline()
    with daws.Cluster(1, timeline=timeline, export=tmp_path / "graph.json") as cluster:
        cluster.submit(leaf, 1).result()
    assert timeline.count == 1 and read_workflow(tmp_path / "graph.json").graph.task_count == 1
