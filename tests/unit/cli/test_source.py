"""`daws sim FILE`: workflow files from the shell."""

import json

import pytest

from daws.cli import main
from daws.formats import Workflow, read_workflow
from daws.predict.source import read_source
from daws.workloads import Workload
from tests.unit.formats.samples import DIAMOND

CLUSTER = ["--nodes", "2", "--cores", "4"]


@pytest.fixture
def diamond(tmp_path):
    path = tmp_path / "diamond.xml"
    path.write_text(DIAMOND)
    return path


def test_kinds_are_workloads_even_where_a_file_has_that_name(tmp_path, monkeypatch, diamond):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot").write_text(DIAMOND)
    (tmp_path / "plain").write_text(DIAMOND)
    assert isinstance(read_source("bot"), Workload)
    assert isinstance(read_source("bot:tasks=3"), Workload)
    for name in ("plain", "./bot", "diamond.xml", str(diamond)):
        assert isinstance(read_source(name), Workflow), name


def test_a_file_runs_and_its_notes_are_told(capsys, diamond):
    assert main(["sim", str(diamond), *CLUSTER]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{diamond} with daws: 4 tasks, 4 edges\n2 nodes, 8 cores (4 cores each)")
    assert "\nnotes: 1 edge without data\n" in out
    assert err == ""


def test_json_has_the_notes_too(capsys, diamond):
    assert main(["sim", str(diamond), *CLUSTER, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["workload"], found["tasks"], found["notes"]) == (str(diamond), 4, ["1 edge without data"])
    assert main(["sim", "bot:tasks=3", "--json"]) == 0
    assert "notes" not in json.loads(capsys.readouterr().out)


def test_scales_multiply(capsys, diamond):
    def makespan(*more: str) -> float:
        assert main(["sim", str(diamond), *CLUSTER, "--json", *more]) == 0
        value: float = json.loads(capsys.readouterr().out)["makespan_s"]
        return value

    assert 6.5 <= makespan() < 7.0
    assert 0.65 <= makespan("--time-scale", "0.1") < 1.0
    moving = ("--strategy", "mlb")  # whoever plans moves little, however large it is
    assert makespan("--data-scale", "1e9", *moving) > 2 * makespan(*moving)


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["no/such.json"], ["no/such.json: cannot be read: No such file"]),
        (["such.dax"], ["such.dax: cannot be read"]),
        (["bat"], ["there is no workload 'bat'"]),
        (["/etc/passwd"], ["/etc/passwd: neither DAX nor WfFormat"]),
        (["DIAMOND"], ["task 'c' needs 4 cores, but no node has more than 2 alike; give --cores 4"]),
        (["DIAMOND", *CLUSTER, "--time-scale", "-1"], ["--time-scale: '-1' is less than 0"]),
        (["DIAMOND", *CLUSTER, "--data-scale", "nan"], ["--data-scale: 'nan' is not a number"]),
        (["DIAMOND", *CLUSTER, "--data-scale", "much"], ["--data-scale", "'much'"]),
        (["DIAMOND", *CLUSTER, "--export", "no/such/folder.json"], ["there is no folder"]),
        (["DIAMOND", *CLUSTER, "--export", ""], ["expected the name of a file"]),
        (["DIAMOND", *CLUSTER, "--export", "DIAMOND"], ["--export", "this is the file of the workload already"]),
        (["bot", "--plot", "a.svg", "--export", "./a.svg"], ["--export './a.svg': this is the file of --plot already"]),
        (["bot", "--export", "a", "--export", "b"], ["--export is given twice"]),
    ],
)
def test_nonsense_is_refused_in_one_line(capsys, diamond, argv, parts):
    try:
        code: object = main(["sim", *(str(diamond) if one == "DIAMOND" else one for one in argv)])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("daws: error: ") and err.count("\n") == 1
    assert [part for part in parts if part not in err] == []


def test_the_run_can_be_written_and_read_again(capsys, tmp_path, diamond):
    target = tmp_path / "run.json"
    assert main(["sim", str(diamond), *CLUSTER, "--check", "--export", str(target)]) == 0
    assert f"the run as WfFormat: {target}" in capsys.readouterr().out
    first, second = read_workflow(diamond), read_workflow(target)
    assert second.graph == first.graph
    assert 6.5 <= second.makespan_s < 7.0
    runs = json.loads(target.read_bytes())["workflow"]["execution"]
    assert {one["nodeName"] for one in runs["machines"]} == {"node-0", "node-1"}
    assert all(one["machines"] for one in runs["tasks"])


def test_generated_graphs_can_be_written(capsys, tmp_path):
    target = tmp_path / "run.json.gz"
    assert main(["sim", "fan-out:tasks=50", "--nodes", "2", "--quiet", "--export", str(target)]) == 0
    assert capsys.readouterr().out == ""
    found = read_workflow(target)
    assert (found.name, found.graph.task_count, found.graph.edge_count) == ("fan-out:tasks=50", 50, 49)
