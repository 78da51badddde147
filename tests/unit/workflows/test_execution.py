"""Workflows by their own commands."""

import os
import pickle
import re
from dataclasses import replace

import pytest

from daws.client.cluster import Cluster
from daws.formats import Workflow, workflow_of
from daws.model.errors import CommandError, CommandTimeoutError, UsageError
from daws.model.graph_builder import GraphBuilder
from daws.runs.timeline import Timeline
from daws.workers.commands import CommandSpec
from daws.workflows.command import RecordedCommand
from daws.workflows.execution import CommandRun, check_commands, words_of


def copies(second: tuple[str, ...] = ("cp", "middle.txt", "end.txt")) -> Workflow:
    """start.txt is copied to middle.txt, and that to end.txt."""
    builder = GraphBuilder()
    start = builder.add_external(3)
    first = builder.add_task("copy", 0, [start], [0])
    builder.add_task("copy", 0, [first], [0])
    return replace(
        workflow_of(builder.build(), "copies"),
        programs=["cp", second[0]],
        arguments=[("start.txt", "middle.txt"), second[1:]],
        file_names=["middle.txt", "end.txt", "start.txt"],
    )


def executed(workflow: Workflow, folder, **limits) -> CommandRun:
    with Cluster(1, timeline=Timeline()) as cluster:
        run = CommandRun(cluster, workflow, str(folder), **limits)
        run.start()
        run.wait(lambda: None)
    return run


def test_commands_run_after_each_other_in_their_folder(tmp_path):
    (tmp_path / "start.txt").write_text("hello")
    check_commands(copies(), str(tmp_path))
    run = executed(copies(), tmp_path)
    assert run.failed is None and (tmp_path / "end.txt").read_text() == "hello"
    result = run.result()
    assert result.object_bytes.tolist() == [5, 5, 5]
    assert (result.length_ns > 0).all()


def test_a_command_that_fails_is_named_with_what_it_wrote(tmp_path):
    (tmp_path / "start.txt").write_text("hello")
    run = executed(copies(("cp", "nothing.txt", "end.txt")), tmp_path)
    assert run.failed is not None
    task, error = run.failed
    assert task == 1 and isinstance(error, CommandError)
    assert str(error).startswith("`cp nothing.txt end.txt` exited with code 1; the last it wrote: cp:")


def one(program: str, *arguments: str, writes: tuple[str, ...] = (), reads: tuple[str, ...] = ()) -> Workflow:
    builder = GraphBuilder()
    builder.add_task("one", 0, [builder.add_external(0) for _ in reads], [0 for _ in writes])
    return replace(
        workflow_of(builder.build(), "one"), programs=[program], arguments=[arguments], file_names=[*writes, *reads]
    )


@pytest.mark.parametrize(
    ("workflow", "message"),
    [
        (one("true", writes=("out.txt",)), "`true` ended well, but has not written 'out.txt'"),
        (one("true", reads=("in.txt",)), "`true` cannot read 'in.txt'"),
        (one("no-such-program"), "no program 'no-such-program'"),
        (one("sh", "-c", "kill -9 $$"), "was killed by SIGKILL"),
        (
            one("zcat nosuch.gz | sort"),
            r"^`zcat nosuch.gz \| sort` failed: `zcat nosuch.gz` exited with code 1; .*nosuch",
        ),
    ],
)
def test_what_went_wrong_is_said_of_the_command(tmp_path, workflow, message):
    run = executed(workflow, tmp_path)
    assert run.failed is not None and isinstance(run.failed[1], CommandError)
    assert re.search(message, str(run.failed[1])) and "bash" not in str(run.failed[1])
    assert run.causes == [0]


def test_commands_run_in_workers_alone(tmp_path):
    like = CommandSpec(cwd=str(tmp_path), timeout_ns=5)
    command = pickle.loads(pickle.dumps(RecordedCommand("kind", like, "content")))
    assert command.like == like and (command.__name__, command.folder, command.mode) == (
        "kind",
        str(tmp_path),
        "content",
    )
    with pytest.raises(UsageError, match="give them to a cluster"):
        command(None, "task", ("true",), (), ())


def test_a_command_over_its_time_limit_is_killed_with_all_that_it_started(tmp_path):
    workflow = one("sh", "-c", "echo $$ > shell; sleep 1000 & echo $! > child; wait")
    run = executed(workflow, tmp_path, timeout=0.5)
    assert run.failed is not None and isinstance(run.failed[1], CommandTimeoutError)
    assert "took longer than its time limit of 0.5 s" in str(run.failed[1])
    for name in ("shell", "child"):
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / name).read_text()), 0)


def test_a_command_that_fails_is_tried_again(tmp_path):
    workflow = one("sh", "-c", "echo . >> tries; test $(wc -l < tries) -ge 3 && touch made", writes=("made",))
    assert executed(workflow, tmp_path, retries=1).failed is not None
    assert executed(workflow, tmp_path, retries=1).failed is None
    assert (tmp_path / "tries").read_text().count(".") == 3


@pytest.mark.parametrize("limits", [{"timeout": 0}, {"timeout": -1}, {"retries": -1}], ids=str)
def test_limits_that_make_no_sense_are_refused(tmp_path, limits):
    with pytest.raises(UsageError, match=next(iter(limits))):
        executed(one("true"), tmp_path, **limits)


def test_folders_of_outputs_are_made(tmp_path):
    assert executed(one("touch", "a/b/c.txt", writes=("a/b/c.txt",)), tmp_path).failed is None
    assert (tmp_path / "a/b/c.txt").exists()


def test_arguments_become_what_a_program_expects(tmp_path):
    folder = str(tmp_path)
    assert words_of(("cp", "a b", "c"), folder) == ("cp", "a b", "c")
    assert words_of(("cp", "--size 3", '--out "{}"'), folder) == ("cp", "--size", "3", "--out", "{}")
    assert words_of(("echo", "-m it's", "it's"), folder) == ("echo", "-m", "it's", "it's")  # no quotes, after all
    files = ("--output-files {'a b': 1, 'c': 2}", "--input-files ['x', 'y']", '--json {"x": [1, true]}')
    expected = ("--output-files", '{"a b": 1, "c": 2}', "--input-files", '["x", "y"]', "--json", '{"x": [1, true]}')
    assert words_of(("wfbench", *files), folder) == ("wfbench", *expected)
    assert words_of(("ls", "--only [ab] c", "-x {1}", "-y " + "[" * 10_000), folder) == (
        *("ls", "--only", "[ab]", "c"),
        *("-x", "{1}", "-y", "[" * 10_000),
    )
    assert words_of(("echo a > b\n", "c"), folder) == "echo a > b\n c"
    own = tmp_path / "own-program"
    own.write_text("#!/bin/sh\n")
    assert words_of(("own-program",), folder) == ("own-program",)
    own.chmod(0o755)
    assert words_of(("own-program", "x"), folder) == (str(own), "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"programs": ["", ""]}, "there are no commands in this file"),
        ({"programs": ["cp", ""]}, "has no command"),
        ({"programs": ["cp", "no-such-program"]}, "'no-such-program' of task 'copy_00000001' is neither on the path"),
        ({"programs": ["cp", "c\0p"]}, "the command of task 'copy_00000001' has a NUL character in it"),
        ({"arguments": [("a", "b"), ("a\0", "b")]}, "the command of task 'copy_00000001' has a NUL character in it"),
        ({"file_names": ["middle.txt", "end.txt", "other.txt"]}, "'other.txt' must be in"),
    ],
)
def test_what_cannot_be_executed_is_refused_before_anything_runs(tmp_path, change, message):
    (tmp_path / "start.txt").write_text("hello")
    with pytest.raises(UsageError, match=message):
        check_commands(replace(copies(), **change), str(tmp_path))
    with pytest.raises(UsageError, match=r"^runs/one\.json: .*" + message):
        check_commands(replace(copies(), **change), str(tmp_path), "runs/one.json")
    with pytest.raises(UsageError, match="there is no such folder"):
        check_commands(copies(), str(tmp_path / "missing"))
