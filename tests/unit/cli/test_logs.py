"""`daws logs`, and the options for the log that every command has."""

import json
import logging
from contextlib import nullcontext
from pathlib import Path

import pytest

from daws import admin, logs
from daws.cli import main, workloads
from daws.cli.parser import COMMANDS, make_parser
from tests.unit.runtime.cluster.machines import Machines, until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a cluster with lines of two nodes."""
    made = tmp_path / "lab"
    admin.create_cluster(made)
    (made / logs.FOLDER).mkdir()
    for number in (1, 2):
        lines = [
            {
                "time": at * 2.0 + number,
                "level": level,
                "logger": "daws.node",
                "node": number,
                "message": f"{level} {at}",
            }
            for at, level in enumerate(("info", "warning", "error"))
        ]
        (made / logs.FOLDER / f"node-a-{number}.jsonl").write_text("".join([json.dumps(one) + "\n" for one in lines]))
    return made


def test_lines_of_all_processes_are_shown_by_time(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["logs", "--cluster", str(folder)]) == 0
    said = [line.partition(" daws.node ")[2] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        f"node {number}: {level} {at}" for at, level in enumerate(("info", "warning", "error")) for number in (1, 2)
    ]


def test_lines_are_chosen_by_node_level_and_number(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["logs", "--cluster", str(folder), "--node", "2", "--level", "warning", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["node"], one["message"]) for one in found] == [(2, "warning 1"), (2, "error 2")]
    assert main(["logs", "--cluster", str(folder), "--last", "1"]) == 0
    assert capsys.readouterr().out.endswith("node 2: error 2\n")


def test_following_goes_on_with_new_lines(folder: Path):
    following = admin.read_log(folder, level="error", follow=True)
    assert [next(following)["node"] for _ in range(2)] == [1, 2]
    with open(folder / logs.FOLDER / "node-a-1.jsonl", "a") as file:
        file.write('{"time": 9, "level": "error", "logger": "daws.node", "message": "new"}\n')
    assert next(following)["message"] == "new"


@pytest.mark.parametrize(
    "typed", [["--last", "0"], ["--last", "3", "--follow"], ["--level", "loud"], ["--node", "x"]], ids=" ".join
)
def test_wrong_options_are_one_line(folder: Path, typed: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) if typed[0] != "--last" else nullcontext():
        assert main(["logs", "--cluster", str(folder), *typed]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_is_none_of_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["logs", "--cluster", str(tmp_path)]) != 0
    assert "daws cluster init" in capsys.readouterr().err


def test_a_cluster_that_never_ran_has_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    admin.create_cluster(tmp_path)
    assert main(["logs", "--cluster", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr() == ("", "daws: no log yet; 'daws node' starts a node\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_verbose_and_quiet(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([command, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and "--verbose" in text and "--quiet" in text


def test_verbose_and_the_variable_set_levels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    log, before = logging.getLogger("daws"), logging.getLogger("daws").level
    levels: list[tuple[int, int]] = []

    def look(_: object) -> int:
        levels.append((log.level, len(log.handlers)))
        return 0

    monkeypatch.setattr(workloads, "run", look)
    assert main(["workloads", "-vv"]) == 0
    monkeypatch.setenv(logs.VARIABLE, "error")
    assert main(["workloads"]) == 0
    assert levels == [(logging.DEBUG, 1), (logging.ERROR, 1)]
    assert (log.level, log.handlers) == (before, [])
    monkeypatch.setenv(logs.VARIABLE, "loud")
    assert main(["workloads"]) == 2
    assert "DAWS_LOG='loud'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["node", "store"])
def test_no_log_file_is_made_where_there_is_no_cluster(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main([command, "--cluster", str(tmp_path)]) != 0
    assert capsys.readouterr().err.count("\n") == 1 and not [*tmp_path.iterdir()]


def test_nodes_and_the_store_write_their_log(tmp_path: Path):
    with Machines(tmp_path) as machines:
        machines.node()
        (number,) = machines.wait_for(1).nodes
        until(lambda: any("executor" in line["message"] for line in admin.read_log(machines.folder, node=number)))
        (line,) = [one for one in admin.read_log(machines.folder, node=number) if "executor" in one["message"]]
        assert (line["logger"], line["level"]) == ("daws.node", "info")
        names = {path.name.partition("-")[0] for path in (machines.folder / logs.FOLDER).iterdir()}
        assert names == {"node", "store"}
