import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from daws.workers.programs import STARTING, NotStartedError, find_program, run, signal_name, start, wait


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
        assert wait(quick, time.monotonic_ns() + 60_000_000_000)
        assert wait(quick, 0), "it stays a zombie"
        assert not wait(slow, time.monotonic_ns() + 1_000_000)
    finally:
        os.kill(slow, signal.SIGKILL)
        os.waitpid(slow, 0)
        os.waitpid(quick, 0)


@pytest.mark.parametrize("is_process", [True, False])
def test_a_program_runs_in_a_folder_and_a_group(tmp_path: Path, is_process: bool):
    groups: list[int] = []
    home = os.getcwd()
    line = 'echo "$PWD $X" > found; cut -d " " -f 5 /proc/$$/stat >> found; exit 3'
    environment = {"PATH": os.environ["PATH"], "X": "x"}
    begin = partial(start, ["sh", "-c", line], environment, str(tmp_path), [], is_process)
    assert run(begin, groups.append, 0) == (True, 3) and os.getcwd() == home
    assert groups[0] == STARTING and groups[2] == 0 and len(groups) == 3
    assert (tmp_path / "found").read_text().split() == [str(tmp_path), "x", str(groups[1])]


def test_a_program_that_never_was_is_no_longer_announced():
    groups: list[int] = []
    with pytest.raises(NotStartedError):
        run(partial(start, ["/absent"], {}, "", [], True), groups.append, 0)
    assert groups == [STARTING, 0]


@pytest.mark.parametrize("is_process", [True, False])
@pytest.mark.parametrize(
    "program, cwd, code, message",
    [
        ("absent", "/", 127, "no program 'absent'"),
        ("./absent", "/", 127, "no program /./absent"),
        ("/bin/sh", "/absent", 127, "no folder /absent"),
        ("/etc", "/", 126, "/etc is not executable"),
        ("/etc/passwd", "/", 126, "/etc/passwd is not executable"),
    ],
)
def test_what_cannot_be_started_is_told_in_a_line(program: str, cwd: str, code: int, message: str, is_process: bool):
    home = os.getcwd()
    with pytest.raises(NotStartedError, match=message) as refused:
        start([program], {}, cwd, [], is_process)
    assert refused.value.code == code and os.getcwd() == home


def test_too_many_words_are_told_in_a_line():
    with pytest.raises(NotStartedError, match="cannot be run: Argument list too long"):
        start(["/bin/true", "x" * 10_000_000], {}, "", [], True)


def test_signals_have_names():
    assert signal_name(9) == "SIGKILL" and signal_name(99) == "signal 99"
