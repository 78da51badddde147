"""`--json` of every command that prints a table: one document on standard output, and nothing else there."""

import json
from pathlib import Path
from typing import Any

import pytest

from daws.cli import main
from daws.cli.parser import COMMANDS, make_parser
from daws.cli.study import studies_package
from daws.cli.table import as_json
from daws.strategy import DECISIONS, PRESETS, answers, describe, parameters_of
from daws.workloads import KINDS
from tests.unit.cli.test_run import commands_file

WITHOUT_TABLE = {"node", "store", "drain", "submit", "wait"}


@pytest.fixture
def found(capsys: pytest.CaptureFixture[str]):
    """Run a command; give its document."""

    def run(*words: str) -> Any:
        assert main([*words]) == 0
        said = capsys.readouterr()
        assert said.err == "" and said.out.count("\n") == 1 and said.out.isascii()
        return json.loads(said.out)

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_with_a_table_has_it(name: str, capsys: pytest.CaptureFixture[str]):
    words = [name, "show"] if name == "cluster" else [name]
    with pytest.raises(SystemExit):
        make_parser().parse_args([*words, "--help"])
    assert ("--json" in capsys.readouterr().out) == (name not in WITHOUT_TABLE)


def test_all_strategies_and_decisions(found):
    document = found("strategies", "--json")
    assert [one["strategy"] for one in document["strategies"]] == [*PRESETS]
    assert [one["strategy"] for one in document["strategies"] if one["is_default"]] == ["daws"]
    assert [one["decision"] for one in document["decisions"]] == [*DECISIONS]
    assert all(one["answers"] == [*answers(one["decision"])] and one["question"] for one in document["decisions"])


def test_one_strategy_with_its_parameters(found):
    document = found("strategies", "flds:t=0.2", "--json")
    assert document.keys() == {"strategy", "is_default", "summary", "paper", "decisions"}
    assert (document["strategy"], document["is_default"]) == ("flds:t=0.2", False)
    assert document["paper"] == PRESETS["flds"].paper
    assert document["decisions"]["place"]["parameters"]["t"] == "0.2"
    expected = {row.decision: row.answer for row in describe(PRESETS["flds"].strategy)}
    assert {decision: one["answer"] for decision, one in document["decisions"].items()} == expected


def test_one_decision_with_its_answers(found):
    document = found("strategies", "place", "--json")
    assert document["decision"] == "place" and document["question"]
    for one in document["answers"]:
        cls = answers("place")[one["answer"]]
        assert [each["key"] for each in one["parameters"]] == [each.key for each in parameters_of(cls)]
        assert one["about"]
    assert "mlb" in next(one for one in document["answers"] if one["answer"] == "daws")["used_by"]


def test_all_workloads(found):
    document = found("workloads", "--json")
    assert [one["kind"] for one in document] == [*KINDS]
    bot = document[0]
    assert bot["meaning"] == KINDS["bot"].help
    length = next(one for one in bot["keys"] if one["key"] == "length-ms")
    assert (length["type"], length["default"], length["unit"]) == ("number", 50.0, "ms") and length["meaning"]


def test_the_list_of_studies(found):
    document = found("study", "--json")
    assert [one["study"] for one in document] == [*studies_package().find_studies()]
    assert all(one.keys() == {"study", "paper", "shows"} and one["paper"] for one in document)


def test_a_study_that_is_run(found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from studies.shared.study import Claim, Report, Row, Table

    table = Table("Times", ("nodes",), "s", [Row(("4",), None, 2.5), Row(("8",), 2.0, 1.5)])
    report = Report([table], [Claim("more is faster", True, "1.5 < 2.5")], [], None)
    study = studies_package().find_studies()["table4"]._replace(run=lambda _: report)
    monkeypatch.setattr(studies_package(), "find_studies", lambda: {"table4": study})
    monkeypatch.setattr("studies.shared.page.write", lambda *_: [tmp_path / "table4.md"])
    (document,) = found("study", "table4", "--quick", "--quiet", "--out", str(tmp_path), "--json")
    assert (document["study"], document["files"]) == ("table4", [str(tmp_path / "table4.md")])
    assert document["claims"] == [{"text": "more is faster", "holds": True, "seen": "1.5 < 2.5"}]
    (shown,) = document["tables"]
    assert (shown["title"], shown["unit"]) == ("Times", "s")
    assert shown["rows"][0] == {"keys": {"nodes": "4"}, "paper": None, "daws": 2.5}
    assert shown["rows"][1] == {"keys": {"nodes": "8"}, "paper": 2.0, "daws": 1.5}


def test_the_folder_of_a_cluster(found, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = str(tmp_path / "lab")
    assert main(["cluster", "init", folder, "--store", "redis://me:secret@10.0.0.1:6379", "--host", "10.0.0.1"]) == 0
    capsys.readouterr()
    document = found("cluster", "show", folder, "--json")
    assert document["keys_good_until"].startswith("20") and "secret" not in json.dumps(document)
    assert {
        "name": "lab",
        "store": "redis://me:***@10.0.0.1:6379",
        "hosts": ["10.0.0.1"],
        "port": 7878,
        "node_ports": None,
        "lease_s": 6.0,
        "keys": ["node", "client"],
    }.items() <= document.items()


def test_commands_that_would_run(found, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["run", commands_file(tmp_path, "cp"), "--execute", "--folder", str(tmp_path)]
    document = found(*words, "--dry-run", "--json", "-")
    assert [one["task"] for one in document["would_run"]] == ["copy_1"] and document["would_run"][0]["reason"]
    assert document["commands_up_to_date"] == 0
    assert main([*words, "--quiet"]) == 0
    assert main([*words, "--dry-run", "--json", str(tmp_path / "plan.json")]) == 0
    assert capsys.readouterr().out == "0 to run, 1 up to date\n"
    assert json.loads((tmp_path / "plan.json").read_text()) == {"would_run": [], "commands_up_to_date": 1}


def test_numbers_that_json_does_not_have_and_letters_beyond_ascii():
    assert as_json({"±": [float("inf"), 0.5], "n": (1,)}) == '{"\\u00b1": [null, 0.5], "n": [1]}'
