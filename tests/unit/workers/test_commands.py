"""What a worker does to run a command, as far as it can be seen without one."""

import os
import pickle
from pathlib import Path

import pytest

from daws.model.errors import CommandError, UsageError
from daws.workers import commands
from daws.workers.commands import CommandSpec, Completed, RunCommand


def test_errors_travel():
    error = pickle.loads(pickle.dumps(CommandError("`x` exited with code 3", "x", 3, b"out", b"err")))
    assert (str(error), error.command, error.code, error.stdout, error.stderr) == (
        "`x` exited with code 3",
        "x",
        3,
        b"out",
        b"err",
    )


def test_outside_of_a_worker_nothing_is_run():
    run = pickle.loads(pickle.dumps(RunCommand("true")))
    with pytest.raises(UsageError, match="give them to a cluster"):
        run(CommandSpec(("true",)))


def test_completed_says_how_it_ended():
    completed = Completed("ls x", 0, b"words\xff", b"", 0.5)
    assert repr(completed) == "<Completed `ls x`: code 0, 0.5 s>" and completed.text == "words\ufffd"


def test_a_program_is_copied_from_where_nothing_may_be_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "object").write_text("#!/bin/sh\n")
    os.link(tmp_path / "object", tmp_path / "tool")
    monkeypatch.setattr(os, "access", lambda path, how: False)  # as in a file system that is mounted "noexec"
    commands._make_executable(str(tmp_path / "tool"))
    assert sorted(os.listdir(tmp_path)) == ["object", "tool"]
    assert os.stat(tmp_path / "tool").st_ino != os.stat(tmp_path / "object").st_ino
    assert os.stat(tmp_path / "tool").st_mode & 0o100 and (tmp_path / "tool").read_text() == "#!/bin/sh\n"
