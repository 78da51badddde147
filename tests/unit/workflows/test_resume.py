"""Workflows by their own commands: what is up to date does not run again, and what a failure does to the rest."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daws.cli import main
from daws.client.cluster import Cluster
from daws.formats import read_workflow
from daws.runs.timeline import Timeline
from daws.workflows.execution import CommandRun
from daws.workflows.records import CommandRecords, alone_in

Task = tuple[str, str, list[str], list[str]]
DIAMOND: list[Task] = [
    ("top", "tr a-z A-Z < start.txt > top.txt", ["start.txt"], ["top.txt"]),
    ("left", "head -c 1 top.txt > left.txt", ["top.txt"], ["left.txt"]),
    ("right", "tail -c 3 top.txt > right.txt", ["top.txt"], ["right.txt"]),
    ("end", "cat left.txt right.txt > end.txt", ["left.txt", "right.txt"], ["end.txt"]),
]


class Flow:
    """A workflow file whose commands say in a file that they ran."""

    def __init__(self, folder: Path, tasks: list[Task]) -> None:
        self.folder = folder
        (folder / "start.txt").write_text("hello\n")
        self.write(tasks)

    def write(self, tasks: list[Task]) -> None:
        made = {name: task for task, _, _, writes in tasks for name in writes}
        parents = {task: {made[name] for name in reads if name in made} for task, _, reads, _ in tasks}
        names = dict.fromkeys(name for _, _, reads, writes in tasks for name in [*reads, *writes])
        specified = [
            {
                "name": task,
                "id": task,
                "parents": sorted(parents[task]),
                "children": sorted(one for one in parents if task in parents[one]),
                "inputFiles": reads,
                "outputFiles": writes,
            }
            for task, _, reads, writes in tasks
        ]
        ran = [
            {"id": task, "runtimeInSeconds": 1, "command": {"program": f"echo {task} >> ran; {line}"}}
            for task, line, _, _ in tasks
        ]
        flow = {
            "name": "flow",
            "schemaVersion": "1.5",
            "workflow": {
                "specification": {"tasks": specified, "files": [{"id": name, "sizeInBytes": 1} for name in names]},
                "execution": {"makespanInSeconds": 1, "executedAt": "2026-01-01T00:00:00Z", "tasks": ran},
            },
        }
        (self.folder / "flow.json").write_text(json.dumps(flow))

    @property
    def argv(self) -> list[str]:
        return ["run", str(self.folder / "flow.json"), "--execute", "--folder", str(self.folder), "--workers", "2"]

    def run(self, *options: str, code: int = 0) -> set[str]:
        """Those that ran."""
        assert main([*self.argv, *options]) == code
        return self.ran()

    def ran(self) -> set[str]:
        log = self.folder / "ran"
        names = log.read_text().split() if log.exists() else []
        assert len(names) == len(set(names))
        log.unlink(missing_ok=True)
        return set(names)

    def age(self) -> None:
        """All files are as if they had been made long ago, in their order."""
        for path in self.folder.glob("*.txt"):
            changed_ns = path.stat().st_mtime_ns - 10**12
            os.utime(path, ns=(changed_ns, changed_ns))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_done(folder: Path, task: str) -> bool:
    record = CommandRecords(str(folder)).of(task)
    return record is not None and record.state == "done"


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return Flow(tmp_path, DIAMOND)


ALL = {"top", "left", "right", "end"}


def test_what_is_up_to_date_does_not_run_again(flow: Flow, capsys):
    assert flow.run() == ALL
    assert "4 run, 0 up to date" in capsys.readouterr().out
    assert flow.run() == set()
    assert "0 run, 4 up to date" in capsys.readouterr().out
    flow.age()  # contents count, not times
    assert flow.run() == set()
    assert flow.run("--rerun") == ALL
    assert (flow.folder / "end.txt").read_text() == "HLO\n"


def changed_start(flow: Flow) -> None:
    (flow.folder / "start.txt").write_text("other\n")


def changed_start_alike(flow: Flow) -> None:
    """What follows from it is the same but for one file."""
    (flow.folder / "start.txt").write_text("jello\n")


def changed_case(flow: Flow) -> None:
    """What follows from it is the same."""
    (flow.folder / "start.txt").write_text("HELLO\n")


def changed_command(flow: Flow) -> None:
    flow.write([*DIAMOND[:2], ("right", "tail -c 2 top.txt > right.txt", ["top.txt"], ["right.txt"]), DIAMOND[3]])


def changed_command_alike(flow: Flow) -> None:
    flow.write([*DIAMOND[:2], ("right", "cat top.txt | tail -c 3 > right.txt", ["top.txt"], ["right.txt"]), DIAMOND[3]])


def deleted_output(flow: Flow) -> None:
    (flow.folder / "left.txt").unlink()


def truncated_output(flow: Flow) -> None:
    os.truncate(flow.folder / "top.txt", 3)


def edited_output(flow: Flow) -> None:
    path = flow.folder / "end.txt"
    status = path.stat()
    path.write_text("xLO\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def damaged_record(flow: Flow) -> None:
    path = Path(CommandRecords(str(flow.folder))._path("tasks", "left"))
    path.write_bytes(path.read_bytes()[:20])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed_start, ALL),
        (changed_start_alike, {"top", "left", "right", "end"}),
        (changed_case, {"top"}),
        (changed_command, {"right", "end"}),
        (changed_command_alike, {"right"}),
        (deleted_output, {"left"}),
        (truncated_output, {"top"}),
        (edited_output, {"end"}),
        (damaged_record, {"left"}),
    ],
)
def test_exactly_what_is_necessary_runs_again(flow: Flow, change: Callable[[Flow], None], expected: set[str]):
    flow.run()
    flow.age()
    flow.run()  # sees all files as old
    change(flow)
    assert flow.run() == expected
    assert flow.run() == set()


def test_times_of_change_decide_on_request(flow: Flow):
    flow.run()
    assert flow.run("--mtime") == set()
    flow.write([*DIAMOND[:2], ("right", "tail -c 2 top.txt > right.txt", ["top.txt"], ["right.txt"]), DIAMOND[3]])
    assert flow.run("--mtime") == set()  # make does not look at commands
    os.utime(flow.folder / "start.txt")
    assert flow.run("--mtime") == ALL
    (flow.folder / "left.txt").unlink()
    assert flow.run("--mtime") == {"left", "end"}


def test_a_dry_run_says_what_would_run_and_why(flow: Flow, capsys):
    assert flow.run("--dry-run") == set()
    assert capsys.readouterr().out.endswith("4 to run, 0 up to date\n") and not (flow.folder / ".daws").exists()
    flow.run()
    (flow.folder / "left.txt").unlink()
    capsys.readouterr()
    assert flow.run("--dry-run") == set()
    out = capsys.readouterr().out
    assert "left  its output 'left.txt' is not there" in out and "unless left makes what it made before" in out
    assert out.endswith("2 to run, 2 up to date\n")
    assert flow.run() == {"left"}


FAILING: list[Task] = [
    ("bad", "echo half > bad.txt; echo oops >&2; false | cat", ["start.txt"], ["bad.txt"]),
    ("after-bad", "cp bad.txt after.txt", ["bad.txt"], ["after.txt"]),
    ("good", "until test -e failed; do sleep 0.01; done; cp start.txt good.txt", ["start.txt"], ["good.txt"]),
    ("after-good", "cp good.txt more.txt", ["good.txt"], ["more.txt"]),
]


def test_a_failure_lets_run_what_has_begun_and_nothing_else(tmp_path: Path):
    bad = "until grep -q good ran; do sleep 0.01; done; false"
    flow = Flow(tmp_path, [("bad", bad, *FAILING[0][2:]), *FAILING[1:]])
    workflow = read_workflow(tmp_path / "flow.json")
    with Cluster(2, timeline=Timeline()) as cluster:
        run = CommandRun(cluster, workflow, str(tmp_path), mode="content")
        run.start()
        until(lambda: len(run.errors) == 3)
        (tmp_path / "failed").write_text("")  # what the good one waits for
        run.wait(lambda: None)
    assert run.causes == [0] and run.ended == 1 and flow.ran() == {"bad", "good"}
    flow.write([("bad", "cp start.txt bad.txt", *FAILING[0][2:]), *FAILING[1:]])
    assert flow.run() == {"bad", "after-bad", "after-good"}


def test_what_did_not_run_because_of_a_failure_is_counted(tmp_path: Path, capsys):
    flow = Flow(tmp_path, FAILING[:2])
    assert flow.run(code=1) == {"bad"}
    assert capsys.readouterr().err.splitlines()[1:] == [
        "daws: 1 failed, 0 run, 0 up to date, 1 not run; --keep-going goes on with all that does not need what failed"
    ]


def test_keep_going_runs_all_that_does_not_need_what_failed(tmp_path: Path, capsys):
    flow = Flow(tmp_path, FAILING)
    (tmp_path / "failed").write_text("")
    assert flow.run("--keep-going", code=1) == {"bad", "good", "after-good"}
    err = capsys.readouterr().err
    assert "daws: error: task bad failed: " in err and "`false` exited with code 1; the last it wrote: oops" in err
    assert "after-bad" not in err and err.endswith("daws: 1 failed, 2 run, 0 up to date, 1 not run\n")
    assert (tmp_path / "bad.txt").exists()  # half of it, which counts for nothing
    assert flow.run("-k", code=1) == {"bad"}
    flow.write([("bad", "test ! -e bad.txt && cp start.txt bad.txt", *FAILING[0][2:]), *FAILING[1:]])
    assert flow.run() == {"bad", "after-bad"}


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path):
    slow = "echo half > left.txt; touch begun; until test -e go; do sleep 0.01; done; head -c 1 top.txt > left.txt"
    flow = Flow(tmp_path, [DIAMOND[0], ("left", slow, *DIAMOND[1][2:]), *DIAMOND[2:]])
    process = subprocess.Popen([sys.executable, "-m", "daws", *flow.argv, "--quiet"])
    until(lambda: (tmp_path / "begun").exists() and is_done(tmp_path, "right"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert flow.ran() == {"top", "left", "right"}
    (tmp_path / "go").write_text("")
    assert flow.run() == {"left", "end"}
    assert (tmp_path / "end.txt").read_text() == "HLO\n"


def test_times_of_earlier_runs_are_exported(flow: Flow, tmp_path: Path):
    flow.run()
    (flow.folder / "left.txt").unlink()
    assert flow.run("--export", str(tmp_path / "run.json")) == {"left"}
    graph = read_workflow(tmp_path / "run.json").graph
    top = CommandRecords(str(tmp_path)).of("top")
    assert top is not None and graph.length_ns.tolist()[0] == top.duration_ns and (graph.length_ns > 0).all()


def test_counts_are_in_the_json_too(flow: Flow, capsys):
    flow.run()
    (flow.folder / "left.txt").unlink()
    capsys.readouterr()
    flow.run("--json", "-")
    found = json.loads(capsys.readouterr().out)
    assert (found["commands_run"], found["commands_up_to_date"]) == (1, 3)


def test_folders_count_by_all_that_is_in_them(tmp_path: Path):
    tasks: list[Task] = [
        ("unpack", "mkdir -p tree/deep; cp start.txt tree/deep/a", ["start.txt"], ["tree"]),
        ("list", "ls tree/* > list.txt", ["tree"], ["list.txt"]),
    ]
    flow = Flow(tmp_path, tasks)
    assert flow.run() == {"unpack", "list"}
    assert flow.run() == set()
    (tmp_path / "tree/deep/a").write_text("edited")
    assert flow.run() == {"unpack"}
    (tmp_path / "tree/deep/b").write_text("new")
    assert "unpack" in flow.run()


def test_a_program_of_the_folder_counts_by_its_content(tmp_path: Path):
    flow = Flow(tmp_path, DIAMOND[:1])
    tool = tmp_path / "tool"
    for text in ("one", "two"):
        tool.write_text(f"#!/bin/sh\necho {text} > top.txt\n")
        tool.chmod(0o755)
        path = tmp_path / "flow.json"
        document = json.loads(path.read_text())
        document["workflow"]["execution"]["tasks"][0]["command"] = {"program": "tool", "arguments": ["x"]}
        path.write_text(json.dumps(document))
        flow.run()
        assert (tmp_path / "top.txt").read_text() == f"{text}\n"


def test_options_of_commands_need_commands(flow: Flow, capsys):
    for option in ("--keep-going", "--dry-run", "--rerun", "--mtime"):
        assert main(["run", str(flow.folder / "flow.json"), option]) == 2
        assert capsys.readouterr().err == f"daws: error: {option} needs --execute\n"
    assert main([*flow.argv, "--rerun", "--mtime"]) == 2


def test_a_file_with_several_writers_is_never_removed(tmp_path: Path):
    tasks: list[Task] = [
        ("first", "echo 1 >> log.txt; cp start.txt a.txt", ["start.txt"], ["a.txt", "log.txt"]),
        ("second", "echo 2 >> log.txt; cp a.txt b.txt", ["a.txt"], ["b.txt", "log.txt"]),
    ]
    flow = Flow(tmp_path, tasks)
    flow.run()
    (tmp_path / "b.txt").unlink()
    flow.run()
    assert (tmp_path / "log.txt").read_text().startswith("1\n2\n")


def test_two_runs_do_not_work_in_one_folder(flow: Flow, capsys):
    with alone_in(str(flow.folder)):
        assert flow.run(code=2) == set()
        assert "another daws run is at work in" in capsys.readouterr().err
    assert flow.run() == ALL


def test_an_interrupt_ends_a_run_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    Flow(tmp_path, [("slow", "touch begun; sleep 1000", ["start.txt"], ["slow.txt"])])
    cluster = Cluster(1, timeline=Timeline())
    run = CommandRun(cluster, read_workflow(tmp_path / "flow.json"), str(tmp_path))
    run.start()
    until((tmp_path / "begun").exists)
    cluster.close(cancel=True)
    until(lambda: run.failed is not None)
    assert caplog.text == "" and run.ended == 0
