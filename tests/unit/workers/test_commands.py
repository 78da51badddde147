"""What a worker does to run a command, as far as it can be seen without one."""

import pickle

import pytest

from daws.model.errors import CommandError, UsageError
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
