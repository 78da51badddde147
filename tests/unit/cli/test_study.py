"""`daws study` lists, chooses and refuses."""

import re
from argparse import Namespace
from pathlib import Path

import pytest

from daws.cli import main
from daws.cli.study import OUT, ROOT, folder_of, studies_package


def test_lists_all_studies(capsys):
    assert main(["study"]) == 0
    said = capsys.readouterr().out
    names = [line.split()[0] for line in said.splitlines()]
    assert names == list(studies_package().find_studies())
    assert {"table4", "figure5", "figure6", "figure9", "figure12", "figure13"} <= set(names)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["nonsense"], "there is no study 'nonsense'; there are .*table4"),
        (["table4", "--all"], "either names of studies or --all"),
        (["table4", "--jobs", "0"], "--jobs 0: give a number of at least 1"),
        (["table4", "--files", "/nowhere/at/all"], "there is no such folder"),
        (["table4", "--files", "."], "table4 has no use for --files"),
    ],
)
def test_refuses_in_one_line_before_anything_runs(typed, says, capsys):
    assert main(["study", *typed]) == 2
    said = capsys.readouterr().err
    assert re.search(says, said)
    assert said.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_known_before_anything_runs(tmp_path, capsys, monkeypatch):
    study = studies_package().find_studies()["table4"]._replace(run=lambda _: pytest.fail("it was run"))
    monkeypatch.setattr(studies_package(), "find_studies", lambda: {"table4": study})
    (tmp_path / "file").write_text("")
    assert main(["study", "table4", "--out", str(tmp_path / "file" / "folder")]) != 0
    assert capsys.readouterr().err.count("\n") == 1


def test_only_full_runs_change_the_docs():
    def folder(**given: object) -> Path:
        return folder_of(Namespace(**({"out": None, "quick": False, "files": None} | given)))

    assert folder() == ROOT / "docs" / "studies"
    assert folder(quick=True) == folder(files="x") == OUT
    assert folder(out="here") == Path("here")
