"""Leaving a cluster: wait until all that was submitted has ended, and say in one line what was not done."""

import sys
from contextlib import suppress
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from daws.client.future import FAILED, Ring
from daws.client.notebook import shell
from daws.wire.ends import Outcome
from daws.workers.roots import root_in

if TYPE_CHECKING:
    from daws.client.session import Session

SAY_AFTER_S = 2.0
LOOK_S = 0.5
TEXT_MAX = 200


def wait_until_ended(session: "Session", quiet: bool = False) -> None:
    """Return when every task of the session has ended, also those that callbacks submit, or when none can end any more.

    No future is kept here meanwhile: results that nobody wants go as soon as they are there.
    """
    began_s, said, is_first = monotonic(), quiet, True
    session.engine.wake()  # a Ctrl-C may have come between the last task and its waking
    while session._closed is None:
        tasks = list(session.futures)
        if not tasks:
            session.engine.catch_up()  # a callback may be about to submit more
            if not session.futures:
                return
            continue
        # Most often the last one ends last. If not, half of the others may have ended with one in the middle.
        future = session.futures.get(tasks[-1] if is_first else tasks[len(tasks) // 2])
        is_first = False
        if future is None:
            continue
        ring = Ring()
        future._tell(ring.release)
        del future, tasks
        while not ring.lock.acquire(timeout=LOOK_S) and session._closed is None:
            if not said and monotonic() - began_s >= SAY_AFTER_S:
                said = _say_waiting(session)


def _say_waiting(session: "Session") -> bool:
    """Tell a person at a terminal what takes so long; without nodes, tell everybody. False if nothing was said."""
    count = f"{len(session.futures):,}"
    if not session.engine.members:
        return say(f"closing waits for {count} tasks, and there are no nodes: 'daws node' starts one, Ctrl-C cancels")
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    return say(f"closing waits for {count} tasks that have not ended; Ctrl-C cancels them")


def say(line: str) -> bool:
    """One line on standard error, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # it was closed
            print(f"daws: {line}", file=sys.stderr, flush=True)
    return True


def say_cancelled(count: int, why: str) -> None:
    """Tell how many tasks did not end, unless all did."""
    if count:
        say(f"{count:,} {'task was' if count == 1 else 'tasks were'} cancelled: {why}")


def say_failed(session: "Session") -> None:
    """Tell of failures that nobody has seen: no future of these tasks was ever asked how it ended."""
    count, named = session.unseen.take()
    if not count:
        return
    said = ""
    if named is not None:
        task, what = named
        future: Any = SimpleNamespace(task=task, _what=what, _state=FAILED)
        said = f": {what if type(what) is str else in_short(session.exception_of(future))}"
    say(f"{count} failed and nobody asked for the result{said}")


def in_short(error: BaseException) -> str:
    """The kind of an exception and the first line of its message."""
    try:
        text = str(error).partition("\n")[0][:TEXT_MAX]
    except Exception:  # of the user's own
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_error(error: BaseException | None) -> bool:
    """Does this exception mean that what was begun is not wanted any more? `sys.exit(0)` does not."""
    return error is not None and not (isinstance(error, SystemExit) and error.code in (None, 0))


def error_of_program() -> BaseException | None:
    """The exception that ends this program, if one does. Those of a prompt were survived."""
    error: BaseException | None = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return None if hasattr(sys, "ps1") else error


def exit_interrupted() -> None:
    """Have the interpreter end as after a Ctrl-C that nobody caught (exit code 130), when all else has come to its end.

    Exceptions of exit handlers do not change the exit code. But the interpreter remembers whether the last code that it
    was given as text ended by a KeyboardInterrupt, and looks at that after its exit handlers.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def is_kernel() -> bool:
    """Is this the kernel of a notebook? It is given a few seconds to end and then killed."""
    return getattr(shell(), "kernel", None) is not None


def named_in(what: Any, task: int) -> list[int]:
    """The tasks that are named when somebody asks how a task has ended: if it failed because of another, that too."""
    if not isinstance(what, Outcome):
        return [task]
    return [task, root_in(what.error), *[one for one, _ in what.path]]
