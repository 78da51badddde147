"""`daws memo`."""

import json
import os
from pathlib import Path

import pytest

from daws.cli import main
from daws.data.memo import MemoFolder


@pytest.fixture
def folder(tmp_path: Path) -> MemoFolder:
    made = MemoFolder(tmp_path / "memo")
    for at in range(3):
        made.keep(f"{at:032x}", "mine.f", [bytes(1000)])
    made.keep(f"{9:032x}", "mine.g", [b""])
    return made


def test_list_check_and_clear(folder: MemoFolder, capsys: pytest.CaptureFixture[str]):
    assert main(["memo", str(folder.path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [["function", "results"], ["mine.f", "3"], ["mine.g", "1"]]
    assert main(["memo", str(folder.path), "--json", "--function", "mine.f"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert said.keys() == {"function", "results", "bytes", "used"}
    assert (said["function"], said["results"]) == ("mine.f", 3) and said["bytes"] > 3000
    assert main(["memo", str(folder.path), "--check"]) == 0
    path = folder.entry_path(f"{1:032x}")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    capsys.readouterr()
    assert main(["memo", str(folder.path), "--check"]) == 1
    assert "(damaged)" in capsys.readouterr().out
    os.utime(folder.entry_path(f"{9:032x}"), (1, 1))
    assert main(["memo", str(folder.path), "--clear", "--unused-days", "30"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 result,")
    assert main(["memo", str(folder.path), "--clear", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["results_removed"] == 3 and said["bytes"] > 3000
    assert main(["memo", str(folder.path)]) == 0
    assert capsys.readouterr().out == "there are no results\n"
    assert main(["memo", str(folder.path), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for arguments in (["memo", str(tmp_path / "none")], ["memo", str(tmp_path), "--unused-days", "-1"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "none").exists()
