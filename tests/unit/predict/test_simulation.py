"""`daws.simulate` and `daws.bound`: the same numbers as the commands, as text, pictures and frames."""

import gc
import json
import sys
import types

import numpy as np
import pytest

import daws
from daws.cli import main
from daws.model.errors import ContextError, GraphError, StrategyError, UsageError, WorkloadError
from daws.workloads import parse_workload

WORK = "fan-in:per-core=5"


@pytest.fixture
def pandas(monkeypatch):
    """As much of pandas as is used, whether it is installed or not."""

    class DataFrame:
        def __init__(self, columns):
            assert len({len(column) for column in columns.values()}) == 1
            self.columns = columns

        def set_index(self, name):
            return self.columns.pop(name), self.columns

    fake = types.ModuleType("pandas")
    fake.DataFrame = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", fake)


def typed(capsys, *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_simulation_is_that_of_the_command(capsys):
    got = daws.simulate(
        WORK, nodes=4, cores=3, strategy="flds", seed=7, time_scale=2, estimates="20%", latency_us=70, clusters=2
    )
    said = typed(
        *(capsys, "sim", WORK, "--nodes", "4", "--cores", "3", "--strategy", "flds", "--seed", "7", "--time-scale"),
        *("2", "--estimates", "20%", "--set", "latency-us=70", "--set", "clusters=2"),
    )
    measured = {"wall_s", "peak_rss_mb"}
    found = json.loads(json.dumps(got.report()))
    assert {name: said[name] for name in said if name not in measured} == {
        name: found[name] for name in found if name not in measured
    }
    assert got.makespan_s == said["makespan_s"] and got.bound_share == said["bound_share"]


def test_a_bound_is_that_of_the_command(capsys):
    got = daws.bound(WORK, groups=["2x2", "1x4:speed=2"], seed=3, profile="simmatrix", per_core=5, mean_length_ms=2)
    said = typed(
        *(capsys, "bound", WORK, "--group", "2x2", "--group", "1x4:speed=2", "--seed", "3", "--profile", "simmatrix"),
        *("--per-core", "5", "--mean-length-ms", "2"),
    )
    assert json.loads(json.dumps(got.report())) == said
    assert got.bound_s == max(got.parts.values()) == got.parts[got.bound_by]


def test_results_print_as_tables(capsys):
    got = daws.simulate(WORK, nodes=2)
    assert str(got) == repr(got) and str(got).startswith("fan-in:per-core=5 with daws: 20 tasks")
    assert "makespan" in str(got) and "by " in str(got) and len(str(got).splitlines()) < 20
    assert len(got.table().splitlines()) > len(str(got).splitlines()) and "steals" in got.table()
    html = got._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") > 5 and "makespan" in html and "<script" not in html
    best = daws.bound(WORK, nodes=2)
    assert "no schedule below" in str(best) and best.bound_by in str(best) and "recursion" in best._repr_html_()


def test_names_of_graphs_cannot_break_out_of_the_page():
    graph = daws.Graph("<script>")
    graph.task("a", 1)
    assert "<script>" not in daws.simulate(graph)._repr_html_()


def test_results_are_drawn(tmp_path):
    for result, word in ((daws.simulate(WORK, nodes=2), "busy executors"), (daws.bound(WORK, nodes=2), "no schedule")):
        target = tmp_path / f"{type(result).__name__}.svg"
        assert result.plot(target) is None
        assert word in target.read_text()
        assert result.plot().axes
        assert result.plot()._repr_png_().startswith(b"\x89PNG")  # what notebooks show
        with pytest.raises(UsageError, match=r"must end in \.png"):
            result.plot("picture.gif")


def test_a_frame_has_a_row_for_each_task(pandas):
    graph = daws.Graph()
    first = graph.task("cut", 2, inputs=[graph.file("in", "1 kB")], output="10 MB")
    second = graph.task("sew", 1, inputs=first, cores=2)
    graph.task("tidy", 1, after=[first, second])
    index, columns = daws.simulate(graph, nodes=1).frame()
    assert list(index) == [0, 1, 2]
    assert columns["name"] == columns["kind"] == ["cut", "sew", "tidy"]
    assert list(columns["node"]) == [0, 0, 0] and list(columns["cores"]) == [1, 2, 1]
    assert list(columns["read_bytes"]) == [1000, 10_000_000, 0]
    assert list(columns["written_bytes"]) == [10_000_000, 0, 0]
    assert columns["ready_s"][0] == 0
    assert list(columns["ready_s"][1:]) == list(columns["ended_s"][:2])
    assert np.allclose(columns["ended_s"] - columns["started_s"], [2, 1, 1])
    names, parts = daws.bound(graph, nodes=1).to_pandas()
    assert len(names) == len(parts["seconds"]) and sum(parts["binds"]) == 1


def test_the_columns_of_a_large_graph_agree_with_each_other():
    columns = daws.simulate("montage:tasks=500", nodes=4).columns()
    assert (columns["started_s"] >= columns["ready_s"]).all() and (columns["ended_s"] > columns["started_s"]).all()
    assert set(columns["node"].tolist()) == {0, 1, 2, 3} and len(set(columns["name"])) == len(columns["name"])


def test_without_pandas_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        daws.simulate(WORK, nodes=1).frame()


def test_whatever_has_a_graph_can_be_given(tmp_path):
    graph = daws.Graph("mine")
    graph.task("join", 1, inputs=[graph.task(f"cut-{number}", 2, output="1 MB") for number in range(8)])
    path = tmp_path / "mine.json"
    graph.save(path)
    asked = {"nodes": 2, "strategy": "flds"}
    times = {
        daws.simulate(what, **asked).makespan_s  # type: ignore[arg-type]
        for what in (graph, str(path), path, graph.build(), graph.workflow())
    }
    assert len(times) == 1 and 5 < times.pop() < 5.1
    assert daws.simulate(parse_workload("bot:tasks=4"), nodes=1).tasks == 4
    assert daws.simulate(graph).workload == "mine" and daws.simulate(str(path)).workload == str(path)
    run = tmp_path / "run.json"
    daws.simulate(graph, nodes=2).export(run)
    assert daws.simulate(run).tasks == 9


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: daws.simulate(17), UsageError, "'17' is a int; give a daws.Graph"),
        (lambda: daws.simulate("nothing"), WorkloadError, "nothing"),
        (lambda: daws.simulate("./nothing.json"), UsageError, "nothing.json: cannot be read"),
        (lambda: daws.simulate(WORK, strategy="fastest"), StrategyError, "fastest"),
        (lambda: daws.simulate(WORK, seed=-1), UsageError, "seed=-1: a seed is between"),
        (lambda: daws.simulate(WORK, seed="a"), UsageError, "seed=a: a seed is between"),  # type: ignore[arg-type]
        (lambda: daws.simulate(WORK, nodes=0), UsageError, "nodes=0: a cluster has"),
        (lambda: daws.simulate(WORK, nodes=2, groups="2x2"), UsageError, "give either group= or nodes=, not both"),
        (lambda: daws.simulate(WORK, groups="2x2", slow=0.5), UsageError, "slow= goes with nodes="),
        (
            lambda: daws.simulate(WORK, latency=3),
            UsageError,
            "latency= is no setting",
        ),
        (lambda: daws.simulate(WORK, latency_us=-3), UsageError, "latency_us=-3: it must lie between 0 and"),
        (lambda: daws.simulate(WORK, shards=1.5), UsageError, "shards=1.5: expected a whole number"),
        (lambda: daws.simulate(WORK, shards="2"), UsageError, "shards='2' is not a number"),  # type: ignore[arg-type]
        (lambda: daws.simulate(WORK, profile="mine"), UsageError, "mine"),
        (lambda: daws.simulate(WORK, contexts="gpu"), ContextError, "which no executor offers"),
        (lambda: daws.simulate(WORK, contexts="x=gpu"), UsageError, "context='x=gpu': there are no tasks of kind 'x'"),
        (lambda: daws.simulate(WORK, time_scale=-1), GraphError, "cannot be multiplied by -1"),
        (lambda: daws.bound(WORK, per_core=0), UsageError, "per_core=0: a number above 0 is needed"),
        (lambda: daws.bound(WORK, contexts="gpu"), ContextError, "which no executor offers"),
    ],
)
def test_mistakes_are_named_in_a_line(call, kind, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as refused:
        call()
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_graph_that_asks_for_too_many_cores_is_refused_with_the_cure():
    graph = daws.Graph()
    graph.task("wide", 1, cores=4)
    with pytest.raises(UsageError, match=r"task 'wide' needs 4 cores.*give cores=4"):
        daws.simulate(graph)
    assert daws.simulate(graph, cores=4).makespan_s > 1


def test_the_function_stays_when_the_package_is_imported():
    import daws.bounds
    import daws.predict.limits

    assert daws.bound is daws.predict.limits.bound and daws.bounds.__name__ == "daws.bounds"


def test_the_garbage_collector_of_the_users_process_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    changed: list[str] = []
    for name in ("disable", "enable", "freeze", "unfreeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_, name=name: changed.append(name))
    daws.simulate("bot:tasks=20", nodes=2)
    assert not changed
