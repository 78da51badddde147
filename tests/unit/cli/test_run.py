"""`daws run`: what it prints, writes and answers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from daws.cli import main
from daws.formats import read_workflow, workflow_of, write_wfformat
from daws.model.graph_builder import GraphBuilder
from daws.workloads import parse_workload

SMALL = ["run", "fan-out:tasks=20", "--workers", "2", "--time-scale", "0.001", "--data-scale", "0.001"]
WORKLOADS = Path(__file__).parents[4] / "shared" / "workloads"
SAMPLE = ("dax/Montage_25.xml", "dax/HEFT_paper.xml", "dax/floodplain.xml", "wfformat/blast-chameleon-medium-001.json")


def refusal(capsys, *argv):
    """The one line that a wrong command gets."""
    code: object
    try:
        code = main(argv)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("daws: error: ") and err.count("\n") == 1
    return err


def test_a_workload_runs_and_is_told_about(capsys):
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    assert "fan-out:tasks=20 with daws: 20 tasks, 19 edges" in out
    assert "on 2 workers" in out and "makespan" in out and "critical path" in out
    assert err == ""


def test_everything_that_can_be_written_is_written(tmp_path, capsys):
    names = {option: tmp_path / name for option, name in (("trace", "t.json"), ("plot", "p.png"), ("export", "e.json"))}
    options = [part for option, path in names.items() for part in (f"--{option}", str(path))]
    assert main([*SMALL, "--json", "-", *options, "--strategy", "mlb", "--spin"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["strategy"], found["mode"], found["cores_total"]) == (20, "mlb", "spin", 2)
    assert 0 < found["efficiency"] <= found["bound_share"] <= 1
    assert names["plot"].read_bytes().startswith(b"\x89PNG")
    slices = [one for one in json.loads(names["trace"].read_text())["traceEvents"] if one["ph"] == "X"]
    assert {one["args"]["task"] for one in slices} == set(read_workflow(str(names["export"])).task_ids)
    exported = json.loads(names["export"].read_text())["workflow"]["execution"]
    assert exported["makespanInSeconds"] == pytest.approx(found["makespan_s"])
    assert len(exported["machines"]) == 1 and all(one["executedAt"] for one in exported["tasks"])


def test_several_nodes_tell_of_all_their_runs(tmp_path, capsys):
    export = str(tmp_path / "e.json")
    argv = ["run", "fan-out:tasks=40", "--workers", "1", "--nodes", "2", "--time-scale", "0.1", "--data-scale", "0.01"]
    assert main([*argv, "--json", "-", "--strategy", "mlb", "--export", export]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["cores_total"], found["tasks"]) == (2, 2, 40)
    exported = json.loads(Path(export).read_text())["workflow"]["execution"]
    assert len(exported["machines"]) == 2 and len(exported["tasks"]) == 40
    assert {one["machines"][0] for one in exported["tasks"]} == {one["nodeName"] for one in exported["machines"]}


def test_json_goes_to_a_file_beside_the_table(tmp_path, capsys):
    assert main([*SMALL, "--json", str(tmp_path / "out.json")]) == 0
    assert "makespan" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["tasks"] == 20


def test_quiet_is_quiet(capsys):
    assert main([*SMALL, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_file_runs_with_its_names(tmp_path, capsys):
    graph = parse_workload("fan-in:tasks=9").build(1, 2, 0)
    write_wfformat(tmp_path / "flow.json", workflow_of(graph, "flow"))
    assert main(["run", str(tmp_path / "flow.json"), "--time-scale", "0", "--data-scale", "0"]) == 0
    assert "9 tasks" in capsys.readouterr().out


def test_commands_run_in_their_folder(tmp_path, capsys):
    assert main(["run", commands_file(tmp_path, "cp"), "--execute", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "b.txt").read_text() == "hello"
    assert "its commands on" in capsys.readouterr().out


def test_a_command_that_fails_is_named_and_exit_code_1(tmp_path, capsys):
    assert main(["run", commands_file(tmp_path, "false"), "--execute", "--folder", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 2
    assert err.startswith("daws: error: task copy_1 failed: `false a.txt b.txt` exited with code 1\n")
    assert err.endswith("daws: 1 failed, 0 run, 0 up to date\n")


def commands_file(folder: Path, program: str) -> str:
    (folder / "a.txt").write_text("hello")
    task = {"name": "copy", "id": "copy_1", "parents": [], "children": []}
    flow = {
        "name": "flow",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [{**task, "inputFiles": ["a.txt"], "outputFiles": ["b.txt"]}],
                "files": [{"id": "a.txt", "sizeInBytes": 5}, {"id": "b.txt", "sizeInBytes": 5}],
            },
            "execution": {
                "tasks": [
                    {
                        "id": "copy_1",
                        "runtimeInSeconds": 1,
                        "command": {"program": program, "arguments": ["a.txt", "b.txt"]},
                    }
                ]
            },
        },
    }
    path = folder / "flow.json"
    path.write_text(json.dumps(flow))
    return str(path)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-kind"], "there is no workload"),
        (["mine"], "there is no workload 'mine'; did you mean mine.py?"),
        (["./mine"], "there is no workload './mine'; did you mean ./mine.py?"),
        (["missing.json"], "cannot be read"),
        (["missing.py"], "cannot be read"),
        (["bot", "--workers", "0"], "--workers 0"),
        (["bot", "--nodes", "0"], "--nodes 0"),
        (["bot", "--strategy", "nope"], "nope"),
        (["bot", "--seed", "-1"], "--seed -1"),
        (["bot", "--execute"], "no commands"),
        (["bot", "--execute", "--folder", "missing"], "no such folder"),
        (["bot", "--trace", "missing/t.json"], "there is no folder"),
        (["bot", "--json", "missing/t.json"], "--json"),
        (["bot", "--export", "missing/t.json"], "there is no folder"),
        (["bot", "--plot", "picture.txt"], "must end in"),
        (["bot", "--export", "x.json", "--trace", "./x.json"], "--trace './x.json': this is the file of --export"),
        (["bot", "--time-scale", "-1"], "--time-scale: '-1' is less than 0"),
    ],
)
def test_wrong_commands_get_one_line(capsys, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    assert message in refusal(capsys, "run", *argv)


def test_too_wide_a_task_says_what_to_ask_for(capsys, tmp_path):
    builder = GraphBuilder()
    builder.add_task("wide", 0, cores=3)
    write_wfformat(tmp_path / "flow.json", workflow_of(builder.build(), "flow"))
    argv = ["run", str(tmp_path / "flow.json"), "--workers", "2"]
    assert "needs 3 cores, but a node has 2 workers; give --workers 3, or --ignore-needs" in refusal(capsys, *argv)
    assert main([*argv, "--ignore-needs"]) == 0


def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path):
    argv = ["run", "bot:tasks=50", "--workers", "1", "--time-scale", "1000"]
    # A folder of its own for all that is temporary, so that leftovers are seen.
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from daws.workflows.submission import GraphSubmission\n"
        "wait = GraphSubmission.wait\n"
        "def told(self, tick):\n"
        "    print('waiting', flush=True)\n"
        "    wait(self, tick)\n"
        "GraphSubmission.wait = told\n"
        "from daws.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as ran:
        assert ran.stdout is not None and ran.stdout.readline() == "waiting\n"
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate()
    assert (out, err, ran.returncode) == ("", "daws: interrupted: 50 of 50 tasks had not ended\n", 130)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not WORKLOADS.is_dir(), reason="the collection of real workflows is not here")
@pytest.mark.parametrize("name", SAMPLE)
def test_real_workflows_run(capsys, name):
    scales = ["--time-scale", "1e-6", "--data-scale", "1e-5", "--ignore-needs"]
    assert main(["run", str(WORKLOADS / name), "--json", "-", *scales]) == 0
    assert json.loads(capsys.readouterr().out)["throughput"] > 0


def test_a_strategy_that_needs_a_graph_says_so_once(capsys):
    assert main([*SMALL, "--strategy", "heft"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "works differently" in line]
    assert len(said) == 1 and said[0].startswith("daws: strategy 'heft'") and "'daws sim'" in said[0]
