"""The log of daws: levels, lines, files, and reading them."""

import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from daws import logs
from daws.model.errors import UsageError


@pytest.fixture(autouse=True)
def loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the loggers of this process as they were."""
    monkeypatch.delenv(logs.VARIABLE, raising=False)
    monkeypatch.setattr(logs, "_place", {})
    yield
    logs.reset()


@pytest.mark.parametrize(
    ("text", "base", "parts"),
    [
        ("", None, {}),
        ("info", logging.INFO, {}),
        ("node=debug,store=info", None, {"node": logging.DEBUG, "store": logging.INFO}),
        ("Error, daws.client=DEBUG", logging.ERROR, {"client": logging.DEBUG}),
    ],
)
def test_levels_are_read(text: str, base: int | None, parts: dict[str, int]):
    assert logs.read_levels(text) == (base, parts)


@pytest.mark.parametrize("text", ["loud", "node=loud", "nodes=info", "node=", "=info"])
def test_levels_that_are_none_are_refused_by_name(text: str):
    with pytest.raises(UsageError, match=f"DAWS_LOG='{text}'"):
        logs.read_levels(text)


@pytest.mark.parametrize(
    ("variable", "louder", "level"),
    [
        ("", 0, "WARNING"),
        ("", 1, "INFO"),
        ("", 5, "DEBUG"),
        ("", -1, "ERROR"),
        ("error", 0, "ERROR"),
        ("error", 1, "INFO"),
    ],
)
def test_options_go_before_the_variable_and_that_before_the_default(
    variable: str, louder: int, level: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(logs.VARIABLE, variable)
    logs.set_up(louder=louder)
    assert logging.getLevelName(logging.getLogger("daws").level) == level


def test_lines_say_time_level_node_session_and_task(capsys: pytest.CaptureFixture[str]):
    logs.set_up(logging.INFO)
    logs.set_place(node=3)
    logging.getLogger("daws.node").info("it %s", "ran", extra=logs.about(task=7, session="night"))
    logging.getLogger("daws.node").debug("not seen")
    line = capsys.readouterr().err
    assert line.endswith(" info daws.node node 3 session night task 7: it ran\n")
    assert len(line.split()[1]) == len("11:22:33.444")


def test_a_second_set_up_writes_each_line_once(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    logs.set_up(logging.INFO)
    logs.set_up(logging.INFO, folder=tmp_path, role="node")
    logging.getLogger("daws.node").info("once")
    assert capsys.readouterr().err.count("once") == 1
    assert [line["message"] for line in logs.LogReader(tmp_path).news()] == ["once"]


def test_files_are_private_and_have_all_fields(tmp_path: Path):
    logs.set_up(logging.INFO, folder=tmp_path, role="store")
    try:
        raise ValueError("on purpose")
    except ValueError:
        logging.getLogger("daws.store").exception("it broke")
    (path,) = (tmp_path / logs.FOLDER).iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.name.startswith("store-")
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert (line["level"], line["logger"], line["message"]) == ("error", "daws.store", "it broke")
    assert "ValueError: on purpose" in line["exception"] and "ValueError: on purpose" in logs.line_of(line)


def test_a_reader_has_each_line_once_across_rotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "FILE_BYTES_MAX", 2000)
    logs.set_up(logging.INFO, folder=tmp_path, role="node")
    log, reader, seen = logging.getLogger("daws.node"), logs.LogReader(tmp_path), []
    for number in range(40):
        log.info("line %s", number)
        seen += [line["message"] for line in reader.news()]
    assert seen == [f"line {number}" for number in range(40)]
    assert 1 < len([*(tmp_path / logs.FOLDER).iterdir()]) <= 1 + logs.OLDER_FILES


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path):
    folder = tmp_path / logs.FOLDER
    folder.mkdir()
    path, reader = folder / "node-a-1.jsonl", logs.LogReader(tmp_path)
    path.write_text('{"time": 1, "message": "a"}\nno line\n{"time": 2, "mess')
    assert [line["message"] for line in reader.news()] == ["a"]
    with open(path, "a") as file:
        file.write('age": "b"}\n')
    assert [line["message"] for line in reader.news()] == ["b"]


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "FILES_MAX", 3)
    folder = tmp_path / logs.FOLDER
    folder.mkdir()
    for number in range(5):
        path = folder / f"node-a-{number}.jsonl"
        path.write_text("")
        os.utime(path, (number, number))
    logs.set_up(folder=tmp_path, role="node")
    assert {"node-a-3.jsonl", "node-a-4.jsonl"} < {path.name for path in folder.iterdir()}
    assert len([*folder.iterdir()]) == 3


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / logs.FOLDER).write_text("a file")
    logs.set_up(folder=tmp_path, role="node")
    assert "there is no log file" in capsys.readouterr().err


def test_programs_get_a_handler_only_if_they_have_none(monkeypatch: pytest.MonkeyPatch):
    top = logging.getLogger("daws")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.set_up_by_environment()
    assert not top.handlers
    monkeypatch.setenv(logs.VARIABLE, "info")
    logs.set_up_by_environment()
    logs.set_up_by_environment()
    assert len(top.handlers) == 1 and top.level == logging.INFO
