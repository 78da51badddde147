"""Starting a program and waiting for it: without a shell, without a copy of this process, in a group of its own.

`posix_spawn` does just that, but it cannot start a program in another folder. A worker that is a process changes its
own folder for a moment. A thread cannot do that without affecting all others, and uses a shell.
"""

import os
import posix
import select
import signal
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import monotonic_ns, sleep
from typing import Any

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as shells have it
STARTING = -1  # in the place of a group that has no number yet
STEP_S = 0.005
SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and programs would inherit that
IN_FOLDER = ("/bin/sh", "-c", 'cd "$0" && exec "$@"')


class NotStartedError(Exception):
    """A program that cannot be started: the reason, and the exit code that a shell would have given."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def start(argv: list[str], environment: Mapping[str, str], cwd: str, actions: list[Any], is_process: bool) -> int:
    """The number of a new process, which leads a group. `cwd` is empty for here; `actions` are for its descriptors."""
    program = _path_of(argv[0], environment.get("PATH", os.defpath), cwd)
    home = -1
    try:
        if cwd and is_process:
            home = os.open(".", os.O_PATH | os.O_CLOEXEC)  # its name may not be there any more
            posix.chdir(cwd)  # not os.chdir, which workers watch
            started = program, argv
        elif cwd:
            if not (os.path.isdir(cwd) and os.path.isfile(program) and os.access(program, os.X_OK)):
                raise PermissionError
            started = IN_FOLDER[0], [*IN_FOLDER, cwd, program, *argv[1:]]
        else:
            started = program, argv
        return os.posix_spawn(*started, environment, file_actions=actions, setpgroup=0, setsigdef=SIGNALS)
    except OSError as error:
        raise _refusal(program, cwd, error) from None
    finally:
        if home >= 0:
            posix.fchdir(home)
            os.close(home)


def run(begin: Callable[[], int], announce: Callable[[int], None], timeout_ns: int) -> tuple[bool, int]:
    """Start a program, wait until it has ended or its time is over (0: never), then end all that it has started.

    Returns whether it was in time, and its exit code or, negative, its signal. `announce` gets STARTING, then the
    program's group, then 0: another process that has to end the program knows at any time whether there is something to
    end.
    """
    announce(STARTING)
    try:
        until_ns = monotonic_ns() + timeout_ns if timeout_ns else 0
        pid = begin()
    except BaseException:
        announce(0)
        raise
    announce(pid)
    in_time = False
    try:
        in_time = wait(pid, until_ns)
    finally:
        os.killpg(pid, signal.SIGKILL)  # the group is still ours: its leader has not been waited for
        announce(0)
        _, status = os.waitpid(pid, 0)
    return in_time, os.waitstatus_to_exitcode(status)


def wait(pid: int, until_ns: int) -> bool:
    """False if it has not ended until then (0: forever). It stays a zombie, so that its number stays its own."""
    how = os.WEXITED | os.WNOWAIT
    if not until_ns:
        os.waitid(os.P_PID, pid, how)
        return True
    try:
        fd = os.pidfd_open(pid)
    except OSError:  # an old kernel
        while os.waitid(os.P_PID, pid, how | os.WNOHANG) is None:
            if monotonic_ns() > until_ns:
                return False
            sleep(STEP_S)
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(max(0, until_ns - monotonic_ns()) / 1e6))
    finally:
        os.close(fd)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@lru_cache(maxsize=256)
def find_program(name: str, path: str) -> str:
    """The path of a program, found as a shell does; FileNotFoundError if there is none, PermissionError if none can be
    executed."""
    refused = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            refused = refused or candidate
    if refused:
        raise PermissionError(NOT_EXECUTABLE, "not executable", refused)
    raise FileNotFoundError(name)


def _path_of(program: str, path: str, cwd: str) -> str:
    if "/" in program:
        return os.path.join(cwd, program)
    try:
        return find_program(program, path)
    except FileNotFoundError:
        raise NotStartedError(f"no program {program!r} in the folders of PATH", NOT_FOUND) from None
    except PermissionError as error:
        raise NotStartedError(f"{error.filename} is not executable", NOT_EXECUTABLE) from None


def _refusal(program: str, cwd: str, error: OSError) -> NotStartedError:
    """The error for a program that does not start."""
    if cwd and not os.path.isdir(cwd):
        return NotStartedError(f"no folder {cwd} to run {program} in", NOT_FOUND)
    if not os.path.exists(program):
        return NotStartedError(f"no program {program}", NOT_FOUND)
    if isinstance(error, FileNotFoundError):
        return NotStartedError(f"{program} names an interpreter that is not there", NOT_FOUND)
    if not os.path.isfile(program) or not os.access(program, os.X_OK):
        return NotStartedError(f"{program} is not executable", NOT_EXECUTABLE)
    return NotStartedError(f"{program} cannot be run: {error.strerror}", NOT_EXECUTABLE)
