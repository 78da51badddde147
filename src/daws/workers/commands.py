"""Commands as tasks: how a worker runs one.

A command with files runs in a folder of its own: inputs are linked in under their names, outputs are moved out as
objects, and everything else in it is removed. When the program ends, or its time is over, all processes that it has
started are killed; when the worker is killed instead, the fork server does so.
"""

import os
import shlex
import shutil
import stat
import sys
from contextlib import suppress
from functools import partial
from itertools import count
from time import monotonic_ns
from typing import Any, BinaryIO

from msgspec import Struct

from daws.data.folders import remove_tree
from daws.data.outside import File, Out, Own, Restored, Stamp, Stored, kept_mode, small_file
from daws.model.errors import CommandError, CommandTimeoutError, UsageError
from daws.wire.worker import Written
from daws.workers.output import KEPT_BYTES
from daws.workers.programs import NotStartedError, run, signal_name, start
from daws.workers.running import FileResult, Runner
from daws.workers.shell import (
    REPORT_BYTES_MAX,
    REPORT_FD,
    argv_of_line,
    said_of_code,
    said_of_members,
    statuses_in,
    without_our_lines,
)

SHOWN_BYTES = 2000
NO_STDIN = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)

_numbers = count()


class CommandSpec(Struct, frozen=True):
    """A command as it travels. The client that made it has checked it, and has replaced futures in it by their values.

    `line` is there instead of `argv` if a shell is to read it. `inputs` are files beside those in `argv`. `outputs` are
    all names of files that are taken out; `stdout` and `stderr` are those that a stream goes to. Limits of zero are
    none.
    """

    argv: tuple[Any, ...] = ()
    line: str = ""
    environment: dict[str, str] | None = None
    cwd: str = ""
    stdin: Any = None
    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    timeout_ns: int = 0
    check: bool = True
    show: bool = True


SHOWN_MAX = 2000
"""The number of characters of each stream that are shown in notebooks."""


class Completed(Struct, frozen=True):
    """The result of a command.

    `code` is its exit code or, negative, the signal that ended it. `stdout` and `stderr` are the end of its output,
    `outputs` its files by name.
    """

    command: str
    code: int
    stdout: bytes
    stderr: bytes
    duration_s: float
    outputs: dict[str, File] = {}

    @property
    def text(self) -> str:
        """The standard output as text."""
        return self.stdout.decode(errors="replace")

    def __repr__(self) -> str:
        outputs = f", outputs {', '.join(self.outputs)}" if self.outputs else ""
        return f"<Completed `{self.command}`: code {self.code}, {self.duration_s:.3g} s{outputs}>"

    def _repr_html_(self) -> str:
        from daws.model.html import table

        rows: list[tuple[str, object]] = [("code", self.code), ("duration", f"{self.duration_s:.3g} s")]
        rows += [("outputs", ", ".join(self.outputs)), ("stdout", self.text[-SHOWN_MAX:])]
        rows += [("stderr", self.stderr.decode(errors="replace")[-SHOWN_MAX:])]
        return table(self.command, rows)


class RunCommand:
    """The function of tasks that run commands. One for each program: nodes learn how long tasks take by function."""

    __slots__ = ("_at", "program")

    def __init__(self, program: str, at: Runner | None = None) -> None:
        self.program = program
        self._at = at

    @property
    def __name__(self) -> str:
        return self.program

    def __reduce__(self) -> tuple[type["RunCommand"], tuple[str]]:
        return RunCommand, (self.program,)

    def daws_bound_to(self, runner: Runner) -> "RunCommand":
        return RunCommand(self.program, runner)

    def __call__(self, spec: CommandSpec) -> Any:
        if self._at is None:
            raise UsageError("commands run in workers; give them to a cluster")
        return _Run(self._at, spec).result()


class _Run:
    def __init__(self, at: Runner, spec: CommandSpec) -> None:
        self.at = at
        self.spec = spec
        self.folder = ""
        self.placed: dict[str, tuple[File, Stamp | None]] = {}
        self.shown = spec.line
        self.has_report = False
        self.statuses: tuple[int, ...] = ()  # of the members of a pipeline that failed

    def result(self) -> Any:
        """A Completed and, if there are outputs, the kept file of each; CommandError if something is wrong."""
        spec = self.spec
        try:
            if spec.outputs or spec.inputs or any(isinstance(word, File) for word in spec.argv):
                self.folder = _empty_folder(self.at)
            argv = self._bring()
            completed = self._run(argv)
            self._check(completed)
            return (completed, *self._take(completed)) if spec.outputs else completed
        finally:
            if self.folder and _is_emptied(self.folder):
                self.at.free_folders.append(self.folder)

    # -- before --------------------------------------------------------------------------------------------------------

    def _bring(self) -> list[str]:
        """Put all inputs into the folder; answers the words of the command."""
        spec = self.spec
        for name in spec.outputs:
            os.makedirs(os.path.dirname(self._path(name)), exist_ok=True)
        for name, value in spec.inputs:
            self._place(value, name)
        if spec.line:
            argv, self.has_report = argv_of_line(spec.line)
            return argv
        argv = [self._word(index, word) for index, word in enumerate(spec.argv)]
        self.shown = shlex.join(argv)
        return argv

    def _word(self, index: int, word: Any) -> str:
        if isinstance(word, File):
            self._place(word, word.name)
            if not index and (not isinstance(word.source, Own) or isinstance(word.source, Restored)):
                _make_executable(self._path(word.name))
        elif not isinstance(word, Out):
            if isinstance(word, os.PathLike):
                return os.fsdecode(word)
            if isinstance(word, str) or not hasattr(word, "__iter__"):
                return str(word)
            raise UsageError(f"word {index} of the command is a {type(word).__name__}; give text, a number or a file")
        if self.spec.cwd:
            return self._path(word.name)
        return word.name if index and not word.name.startswith("-") else f"./{word.name}"

    def _place(self, value: Any, name: str) -> None:
        if name in self.placed and self.placed[name][0].is_same(value):
            return
        path = self._path(name)
        if "/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            if isinstance(value, File):
                value.source.place(path)
                self.placed[name] = value, value.source.stamp()
            elif isinstance(value, (str, bytes)):
                with open(path, "xb") as new:
                    new.write(value.encode() if isinstance(value, str) else value)
            else:
                raise UsageError(f"input {name!r} is a {type(value).__name__}; give a file, bytes or text")
        except FileExistsError:
            raise UsageError(f"two inputs are named {name!r}; give one of them another name") from None

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    # -- the program ---------------------------------------------------------------------------------------------------

    def _run(self, argv: list[str]) -> Completed:
        spec = self.spec
        environment = {**os.environ, **spec.environment} if spec.environment else os.environ
        given = self._stdin()
        streams = _Streams(self.at, spec.show)
        report = os.pipe() if self.has_report else ()
        try:
            actions = [NO_STDIN if given is None else (os.POSIX_SPAWN_DUP2, given.fileno(), 0), *streams.actions]
            for number, name in ((1, spec.stdout), (2, spec.stderr)):
                if name and number == 2 and name == spec.stdout:
                    actions.append((os.POSIX_SPAWN_DUP2, 1, 2))
                elif name:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                    actions.append((os.POSIX_SPAWN_OPEN, number, self._path(name), flags, 0o666))
            if report:
                actions.append((os.POSIX_SPAWN_DUP2, report[1], REPORT_FD))
            began_ns = monotonic_ns()
            begin = partial(start, argv, environment, spec.cwd or self.folder, actions, self.at.is_process)
            in_time, code = run(begin, self.at.announce, spec.timeout_ns)
            duration_s = (monotonic_ns() - began_ns) / 1e9
            if report and code > 0:
                self.statuses = statuses_in(_read_now(report[0]), code)
            stdout, stderr = streams.taken(spec.show)
        except NotStartedError as error:
            raise CommandError(str(error), self.shown, error.code) from None
        finally:
            for fd in report:
                os.close(fd)
            streams.close()
            if given is not None:
                given.close()
        if not in_time:
            self._changed_inputs()
            limit = f"took longer than its time limit of {spec.timeout_ns / 1e9:g} s and was stopped"
            raise self._error(limit, code, stdout, stderr, CommandTimeoutError)
        return Completed(self.shown, code, stdout, stderr, duration_s)

    def _stdin(self) -> BinaryIO | None:
        stdin = self.spec.stdin
        if stdin is None:
            return None
        if isinstance(stdin, File):
            opened = stdin.source.open()
            try:
                opened.fileno()
                return opened
            except OSError:  # not a file of the system
                with opened:
                    stdin = opened.read()
        if not isinstance(stdin, (str, bytes)):
            raise UsageError(f"stdin is a {type(stdin).__name__}; give a file, bytes or text")
        spool = _nameless(self.at.scratch)
        spool.write(stdin.encode() if isinstance(stdin, str) else stdin)
        spool.seek(0)
        return spool

    # -- after ---------------------------------------------------------------------------------------------------------

    def _check(self, completed: Completed) -> None:
        code = completed.code
        changed = self._changed_inputs()
        if code and self.spec.check:
            raise self._error(self._ended(code), code, completed.stdout, completed.stderr)
        if changed:
            how = f"changed its input {changed[0]!r} in place, which other tasks may read; let it write a new file"
            raise self._error(how, code, completed.stdout, completed.stderr)

    def _ended(self, code: int) -> str:
        """How a command ended that was no success: of a pipe, which of its programs it was."""
        if code < 0:
            return f"was killed by {signal_name(-code)}"
        if not self.spec.line:
            return f"exited with code {code}"
        members = said_of_members(self.spec.line, self.statuses)
        return f"failed: {members}" if members else said_of_code(code)

    def _changed_inputs(self) -> list[str]:
        """The inputs that were written to. Inputs that a command has made are removed then, so that no task takes them
        for the original; a task that needs one has it remade."""
        changed = []
        for name, (file, before) in self.placed.items():
            try:
                now = file.source.stamp()
            except UsageError:  # it is gone: another one has changed it
                continue
            if before != now and before and now and before[2] == now[2]:  # else it was moved, as objects may be
                changed.append(name)
                if isinstance(file.source, Stored):
                    with suppress(FileNotFoundError):
                        os.unlink(file.source.where)
        return changed

    def _take(self, completed: Completed) -> list[FileResult]:
        """Move the outputs out of the folder: small ones into memory, the others to where new objects are."""
        missing = [name for name in self.spec.outputs if not os.path.isfile(self._path(name))]
        if missing:
            how = f"did not make its output {', '.join(map(repr, missing))}"
            if os.path.exists(self._path(missing[0])):
                is_folder = os.path.isdir(self._path(missing[0]))
                what = "a folder; declare the files in it, or pack it into one" if is_folder else "no regular file"
                how += f": {missing[0]!r} is {what}"
            if completed.code:
                how = f"exited with code {completed.code} and {how}"
            raise self._error(how, completed.code, completed.stdout, completed.stderr)
        kept: list[FileResult] = []
        try:
            for name in self.spec.outputs:
                kept.append(self._taken(self._path(name)))
        except BaseException:
            for one in kept:
                if isinstance(one.result, Written):
                    os.unlink(one.result.path)
            raise
        return kept

    def _taken(self, path: str) -> FileResult:
        status = os.stat(path)
        mode = kept_mode(status.st_mode)
        is_own = status.st_nlink == 1 and not os.path.islink(path)
        if is_own and mode != stat.S_IMODE(status.st_mode):
            os.chmod(path, mode)
        if status.st_size < self.at.inline_max_bytes:  # there is one byte more than its content
            with open(path, "rb") as small:
                return FileResult(small_file(small.read(), mode))
        assert self.at.segments is not None  # a client that submits commands has a node with folders
        target = f"{self.at.segments.folders_new[-1]}/{os.getpid()}-file-{next(_numbers)}"
        if is_own:
            os.rename(path, target)
        else:  # it is an input under another name, or something outside: that must not become an object of ours
            shutil.copyfile(path, target)
            os.chmod(target, mode)
        return FileResult(Written(target, status.st_size, is_raw=True))

    def _error(
        self, how: str, code: int, stdout: bytes, stderr: bytes, kind: type[CommandError] = CommandError
    ) -> CommandError:
        last = stderr[-SHOWN_BYTES:].decode(errors="replace").strip()
        if self.has_report:
            last = without_our_lines(last, self.spec.line)
        said = f"; the last it wrote: {last}" if last else ""
        return kind(f"`{self.shown}` {how}{said}", self.shown, code, stdout, stderr)


class _Streams:
    """The output of a command: the files that keep the output of a worker's tasks, or for threads, files of its own."""

    def __init__(self, at: Runner, show: bool) -> None:
        self._hold = at.hold_output
        self._hold(not show)
        self._files: list[BinaryIO] = []
        self.actions: list[Any] = []
        self._fds = (1, 2)
        if not at.captures:
            self._files = [_nameless(at.scratch) for _ in self._fds]
            self.actions = [(os.POSIX_SPAWN_DUP2, self._files[n].fileno(), n + 1) for n in range(2)]
            self._fds = (self._files[0].fileno(), self._files[1].fileno())
        self._begun = [os.lseek(fd, 0, os.SEEK_END) for fd in self._fds]

    def taken(self, show: bool) -> tuple[bytes, bytes]:
        """The end of the output. The rest of it is shown where tasks' output is shown, or dropped."""
        found = []
        for fd, begun, to in zip(self._fds, self._begun, (sys.stdout, sys.stderr), strict=True):
            end = os.lseek(fd, 0, os.SEEK_END)
            first = max(begun, end - KEPT_BYTES)
            found.append(os.pread(fd, end - first, first) if end > first else b"")
            if end > begun and not show and not self._files:
                os.ftruncate(fd, begun)
            elif self._files and show and found[-1] and to is not None:
                to.write(found[-1].decode(errors="replace"))
        return found[0], found[1]

    def close(self) -> None:
        self._hold(False)
        for file in self._files:
            file.close()


def _read_now(fd: int) -> bytes:
    """The content of a pipe."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, REPORT_BYTES_MAX)
    except BlockingIOError:
        return b""


def _make_executable(path: str) -> None:
    """Make a program executable. A file that is used as a program is meant to run, even if its mode does not say so."""
    mode = os.stat(path).st_mode
    if not mode & stat.S_IXUSR:
        os.chmod(path, stat.S_IMODE(mode) | stat.S_IXUSR)
    if not os.access(path, os.X_OK):  # it lies where nothing may be executed, as file systems in memory often are
        copy = f"{path}.{next(_numbers)}"
        shutil.copy(path, copy)
        os.replace(copy, path)


def _empty_folder(at: Runner) -> str:
    """One that an earlier run has left empty (removing folders takes milliseconds on some disks), or a new one."""
    try:
        return at.free_folders.pop()
    except IndexError:
        folder = f"{at.runs_folder}/{next(_numbers)}"
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        os.makedirs(folder, 0o700)
    return folder


def _is_emptied(folder: str) -> bool:
    """Remove everything in a folder, whatever its program has forbidden; False if something stays."""
    try:
        os.chmod(folder, 0o700)
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.path.isdir(path) and not os.path.islink(path):
                remove_tree(path)
            else:
                os.unlink(path)
        return not os.listdir(folder)
    except OSError:
        return False


def _nameless(folder: str) -> BinaryIO:
    """A file on disk that is gone when it is closed."""
    from tempfile import TemporaryFile  # dear to import, and seldom needed

    return TemporaryFile(dir=folder)
