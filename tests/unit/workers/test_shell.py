"""Which shell runs a line, and what is said of its pipelines."""

import os
import subprocess
from pathlib import Path

import pytest

from daws.workers import shell
from daws.workers.shell import argv_of_line, pipelines, said_of_code, said_of_members, statuses_in, without_our_lines


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("zcat a.gz | sort > out", [["zcat a.gz", "sort > out"]]),
        ("a |& b || c && d; e & f\ng", [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("grep 'a|b' | sed \"s/|/;/\" | tr \\| x", [["grep 'a|b'", 'sed "s/|/;/"', "tr \\| x"]]),
        ("(a | b; c) | d", [["(a | b; c)", "d"]]),
        ("echo $(a | b) ${x:-|} `c | d` | e", [["echo $(a | b) ${x:-|} `c | d`", "e"]]),
        ("a >| b 2>&1 | c &> d", [["a >| b 2>&1", "c &> d"]]),
        ("a # | b\nc#d | e", [["a"], ["c#d", "e"]]),
        ("  ", []),
    ],
)
def test_pipelines_are_told_apart(line: str, found: list[list[str]]):
    assert pipelines(line) == found


@pytest.mark.parametrize(
    ("line", "statuses", "said"),
    [
        ("a | b", (1, 0), "`a` exited with code 1"),
        ("a | b | c", (1, 0, 3), "`a` exited with code 1 and `c` exited with code 3"),
        ("a | b", (141, 2), "`b` exited with code 2"),
        ("a | b", (137, 0), "`a` was killed by SIGKILL (code 137)"),
        ("a | b; c | d", (1, 0), "program 1 of 2 in the pipe exited with code 1"),
        ("a | b && c", (1,), ""),
        ("a | b && c", (), ""),
        ("a" * 200 + " | b", (1, 0), "`" + "a" * 99 + "…` exited with code 1"),
    ],
)
def test_the_member_that_failed_is_named(line: str, statuses: tuple[int, ...], said: str):
    assert said_of_members(line, statuses) == said


def test_a_broken_pipe_on_which_something_depends_names_the_cure():
    assert said_of_members("yes | head && x", (141, 0)).endswith("begin the line with 'set +o pipefail;'")


@pytest.mark.parametrize(
    ("report", "code", "statuses"),
    [
        (b"1 0\n", 1, (1, 0)),
        (b"1 0\n0 2 0\n", 2, (0, 2, 0)),
        (b"0 1 0\n", 3, ()),  # from before an `exit 3`
        (b"0\n", 2, ()),
        (b"", 2, ()),
        (b"1 x\n", 1, ()),
        (b"1 0", 1, ()),
    ],
)
def test_only_the_pipeline_that_gave_the_exit_code_counts(report: bytes, code: int, statuses: tuple[int, ...]):
    assert statuses_in(report, code) == statuses


def test_exit_codes_of_signals_are_named():
    assert said_of_code(3) == "exited with code 3"
    assert said_of_code(255) == "exited with code 255"
    assert said_of_code(139) == "was killed by SIGSEGV (code 139)"


def test_messages_of_the_shell_have_the_numbers_of_the_users_lines():
    assert without_our_lines("command: line 2: x: command not found", "x\n") == "x: command not found"
    assert without_our_lines("a\ncommand: line 3: x: no", "a\nx") == "a\nline 2: x: no"


@pytest.fixture
def fresh_shell():
    shell._shell.cache_clear()
    yield
    shell._shell.cache_clear()


@pytest.mark.parametrize("knows_pipefail", [True, False])
def test_without_bash_the_shell_of_the_system_is_asked(
    tmp_path: Path, monkeypatch, capsys, fresh_shell, knows_pipefail
):
    sh = tmp_path / "sh"
    sh.write_text(f"#!/bin/sh\nexit {0 if knows_pipefail else 2}\n")
    sh.chmod(0o755)
    monkeypatch.setattr(shell, "SH", str(sh))
    monkeypatch.setattr(os, "defpath", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ["-o", "pipefail"] if knows_pipefail else []
    for _ in range(2):
        assert argv_of_line("a | b") == ([str(sh), *options, "-c", "a | b", "command"], False)
    said = capsys.readouterr().err
    assert said.count("only the last program is checked") == (0 if knows_pipefail else 1)


def ended(line: str) -> int:
    argv, _ = argv_of_line(line)
    return subprocess.run(argv, capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("false | cat", 1),
        ("yes | head -n 1", 0),
        ("cd / && yes | head -n 1", 0),
        ("set -u; yes | cat | head -n 1", 0),
        ("if true; then yes | head -n 1; fi", 0),
        ("yes | head -n 1 && echo", 141),  # something was left out
        ("yes | head -n 1; yes | head -n 2 && echo", 141),
        ("set -e; yes | head -n 1; echo", 141),
        ("yes | (exit 3)", 3),
        ("yes | (head -n 1; kill -PIPE $BASHPID)", 141),  # the last one itself
        ("set +o pipefail; false | cat", 0),
        ("exit 141", 141),
        ("trap 'exit 5' EXIT; true", 5),
        ("exec false", 1),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_failure(line: str, code: int):
    assert ended(line) == code
