"""Traces are what Perfetto and chrome://tracing take: the shape of the events, and that they are true."""

import json
from itertools import pairwise

import pytest

from daws.client.cluster import Cluster
from daws.model.errors import UsageError
from daws.runs.timeline import Timeline
from daws.runs.trace import COUNTER_STEPS_MAX, check_trace_target, running_steps, write_trace
from daws.wire.notes import News

MS = 1_000_000


def timeline_of(*runs: tuple[int, int, int]) -> Timeline:
    """Runs as (slot, start, end), in ms; the task is the position."""
    timeline = Timeline()
    for task, (slot, start, end) in enumerate(runs):
        timeline.add(News(0, ((task, 0, 0, slot, start * MS, end * MS, 1, 0, 0, 1),), 0, 0))
    return timeline


def events_of(path):
    found = json.loads(path.read_text())
    assert found["displayTimeUnit"] == "ms"
    return found["traceEvents"]


def test_events_have_the_shape_that_viewers_want(tmp_path):
    timeline = timeline_of((0, 1000, 1010), (1, 1005, 1020))
    timeline.learn(0, "work")
    write_trace(tmp_path / "trace.json", timeline)
    events = events_of(tmp_path / "trace.json")
    tracks = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert tracks == {(0, 0): "worker 0", (0, 1): "worker 1"}
    slices = [one for one in events if one["ph"] == "X"]
    assert [(one["name"], one["tid"], one["ts"], one["dur"], one["args"]["task"]) for one in slices] == [
        ("work", 0, 0.0, 10_000.0, "0"),
        ("work", 1, 5_000.0, 15_000.0, "1"),
    ]
    counters = [(one["ts"], one["args"]["running"]) for one in events if one["ph"] == "C"]
    assert counters == [(0.0, 1), (5_000.0, 2), (10_000.0, 1), (20_000.0, 0)]
    assert all(isinstance(one["pid"], int) and one["ph"] in "MXC" for one in events)


def test_tasks_may_be_named_by_somebody_else(tmp_path):
    write_trace(tmp_path / "trace.json", timeline_of((0, 0, 1)), lambda number: ("mProject", f"ID{number}"))
    (one,) = [one for one in events_of(tmp_path / "trace.json") if one["ph"] == "X"]
    assert (one["name"], one["args"]["task"]) == ("mProject", "ID0")


def test_nothing_ran_is_a_trace_too(tmp_path):
    write_trace(tmp_path / "trace.json", Timeline())
    assert events_of(tmp_path / "trace.json") == []


def test_counters_of_many_runs_are_thinned_and_end_at_zero():
    timeline = timeline_of(*((0, at, at + 1) for at in range(0, 40_000, 2)))
    steps = list(running_steps(timeline, 0))
    assert len(steps) <= COUNTER_STEPS_MAX + 2
    assert steps[-1][1] == 0


def test_a_cluster_writes_its_own_trace(tmp_path):
    with Cluster(1, trace=tmp_path / "trace.json") as cluster:
        first = cluster.submit(abs, -3)
        assert cluster.submit(divmod, first, 2).result() == (1, 1)
        assert list(cluster.map(abs, [-1, -2])) == [1, 2]
    slices = [one for one in events_of(tmp_path / "trace.json") if one["ph"] == "X"]
    assert [one["name"] for one in slices][:2] == ["abs", "divmod"]
    assert {one["name"] for one in slices} == {"abs", "divmod"}
    assert all(before["ts"] + before["dur"] <= after["ts"] for before, after in pairwise(slices))


@pytest.mark.parametrize("name", ["", "missing/trace.json", "."])
def test_a_trace_that_could_not_be_written_is_refused_at_once(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="trace"):
        check_trace_target(name)
