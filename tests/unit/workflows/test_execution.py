"""Workflows by their own commands."""

from dataclasses import replace

import pytest

from daws.client.cluster import Cluster
from daws.formats import Workflow, workflow_of
from daws.model.errors import UsageError
from daws.model.graph import GraphBuilder
from daws.runs.timeline import Timeline
from daws.workflows.command import Command, CommandError
from daws.workflows.execution import CommandRun, argv_of, check_commands


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


def executed(workflow: Workflow, folder) -> CommandRun:
    with Cluster(1, timeline=Timeline()) as cluster:
        run = CommandRun(cluster, workflow, str(folder))
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
    assert "'cp' exited with code 1" in str(error) and "nothing.txt" in str(error)


def test_a_file_that_was_not_written_is_an_error(tmp_path):
    with pytest.raises(CommandError, match=r"has not written 'out.txt'"):
        Command("quiet", str(tmp_path))(None, ("true",), (), ("out.txt",))
    with pytest.raises(CommandError, match=r"cannot read 'in.txt'"):
        Command("quiet", str(tmp_path))(None, ("true",), ("in.txt",), ())
    with pytest.raises(CommandError, match="cannot be started"):
        Command("quiet", str(tmp_path))(None, ("no-such-program",), (), ())
    with pytest.raises(CommandError, match="got signal 9"):
        Command("quiet", str(tmp_path))(None, ("sh", "-c", "kill -9 $$"), (), ())


def test_folders_of_outputs_are_made(tmp_path):
    Command("touch", str(tmp_path))(None, ("touch", "a/b/c.txt"), (), ("a/b/c.txt",))
    assert (tmp_path / "a/b/c.txt").exists()


def test_arguments_become_what_a_program_expects(tmp_path):
    folder = str(tmp_path)
    assert argv_of(("cp", "a b", "c"), folder) == ("cp", "a b", "c")
    assert argv_of(("cp", "--size 3", '--out "{}"'), folder) == ("cp", "--size", "3", "--out", "{}")
    assert argv_of(("echo", "-m it's", "it's"), folder) == ("echo", "-m", "it's", "it's")  # no quotes, after all
    files = ("--output-files {'a b': 1, 'c': 2}", "--input-files ['x', 'y']", '--json {"x": [1, true]}')
    expected = ("--output-files", '{"a b": 1, "c": 2}', "--input-files", '["x", "y"]', "--json", '{"x": [1, true]}')
    assert argv_of(("wfbench", *files), folder) == ("wfbench", *expected)
    assert argv_of(("ls", "--only [ab] c", "-x {1}", "-y " + "[" * 10_000), folder) == (
        *("ls", "--only", "[ab]", "c"),
        *("-x", "{1}", "-y", "[" * 10_000),
    )
    assert argv_of(("echo a > b\n", "c"), folder)[1:] == ("-c", "echo a > b\n c")
    own = tmp_path / "own-program"
    own.write_text("#!/bin/sh\n")
    assert argv_of(("own-program",), folder) == ("own-program",)
    own.chmod(0o755)
    assert argv_of(("own-program", "x"), folder) == (str(own), "x")


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
