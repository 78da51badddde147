"""What a worker does to run a command, as far as it can be seen without one."""

import os
import pickle
import signal
import time
from pathlib import Path

import pytest

from daws.model.errors import CommandError, UsageError
from daws.workers import commands
from daws.workers.commands import CommandSpec, Completed, RunCommand, find_program


def program(path: Path, mode: int) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def test_programs_are_found_as_shells_find_them(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    program(one / "tool", 0o644)
    found = program(two / "tool", 0o755)
    (one / "folder").mkdir()
    assert find_program("tool", f"{one}:{two}") == found
    with pytest.raises(PermissionError) as refused:
        find_program("tool", f"{tmp_path}:{one}")
    assert refused.value.filename == str(one / "tool")
    with pytest.raises(FileNotFoundError):
        find_program("folder", str(one))


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_waiting_ends_with_the_program_or_the_time(monkeypatch: pytest.MonkeyPatch, has_pidfd: bool):
    def refuse(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    if not has_pidfd:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    quick = os.posix_spawn("/bin/true", ["true"], {})
    slow = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    try:
        assert commands._wait(quick, time.monotonic_ns() + 60_000_000_000)
        assert commands._wait(quick, 0), "it stays a zombie"
        assert not commands._wait(slow, time.monotonic_ns() + 1_000_000)
    finally:
        os.kill(slow, signal.SIGKILL)
        os.waitpid(slow, 0)
        os.waitpid(quick, 0)


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
