"""Commands, from the client's side: descriptions that are checked when they are made, and the futures of their runs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from daws.client.future import INLINE, VALUE, Future, OutputFuture, collecting
from daws.client.hints import answer_to, refuse_run_option
from daws.client.options import NAMES, OUTPUTS_MAX, Options, options_of, timeout_ns
from daws.data.outside import File, Out, Small, Source, Stored, checked_name
from daws.model.errors import UsageError
from daws.workers.commands import CommandSpec, Completed, RunCommand
from daws.workers.slots import fill_file

if TYPE_CHECKING:
    from daws.client.session import Session

Word = str | int | float | os.PathLike[str] | File | Out | Future[Any]
Content = str | bytes | File | Future[Any]


answer_to(Completed)


class Command(Struct, frozen=True):
    """A program with its arguments, files and options, made by `daws.command`. It may be run many times."""

    spec: CommandSpec
    options: Options
    given: tuple[tuple[str, Any], ...]  # the options as they were given
    program: str

    def __repr__(self) -> str:
        spec = self.spec
        return f"<Command `{spec.line or ' '.join(map(_shown, spec.argv))}`>"


def command(
    words: str | Sequence[Word],
    *,
    inputs: Iterable[File | Future[Any]] | Mapping[str, Content] = (),
    outputs: Iterable[str | Out] = (),
    stdin: Content | None = None,
    stdout: Out | None = None,
    stderr: Out | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    check: bool = True,
    show: bool = True,
    **options: Any,
) -> Command:
    """Describe a program to run; `cluster.run` runs it.

        daws.command(["sort", daws.File("words.txt"), "-o", daws.Out("sorted.txt")])
        daws.command("sort words.txt | uniq -c > counts.txt", inputs=[daws.File("words.txt")], outputs=["counts.txt"])

    A command with files runs in an empty folder of its own, where its inputs appear under their names. The folder is
    removed afterwards. A command without files runs where the cluster was started.

    - `words`: a program and its arguments, or one line of text for a shell. Files may be among the words.
    - `inputs`, `outputs`: further files that the program reads and makes.
    - `stdin`: a file, text or bytes.
    - `stdout`, `stderr`: an `Out` to write to. By default the last part is kept, and printed here if `show` is True.
    - `env`: variables that are added to the environment.
    - `cwd`: another folder to run in. The program then gets the full paths of the files among the words.
    - `timeout`: the seconds after which the program is killed, with all that it has started.
    - `check`: an exit code other than 0 is a failure, unless this is False.
    - `memo`: with True, the command is not run if an earlier run has made its files from the same words, environment
      and inputs. The cluster must have a folder for that (`daws.Cluster(memo="…")`).
    - The other options are those of every task: retries, cores, memory, context, priority.
    """
    unknown = options.keys() - NAMES
    if unknown:
        described = [name for name in command.__annotations__ if name not in ("words", "options", "return")]
        refuse_run_option(min(unknown), [*described, *NAMES])
    line, argv = (words, ()) if isinstance(words, str) else ("", _words(words))
    if not line.strip() and not argv:
        raise UsageError("the command is empty; give a program, or a line for a shell")
    if "\0" in line:
        raise UsageError("the line of the command has a zero byte in it")
    beside = _inputs(inputs)
    made = _outputs(argv, outputs, stdout, stderr)
    given = [*beside, *[(word.name, word) for word in argv if isinstance(word, (File, FileFuture))]]
    seen: dict[str, Any] = {}
    for name, value in given:
        if name in made:
            raise UsageError(f"{name!r} is an input and an output of the same command; give one another name")
        other = seen.setdefault(name, value)
        if other is not value and not (isinstance(other, File) and other.is_same(value)):
            raise UsageError(f"two inputs are named {name!r}; name one of them in inputs={{name: file}}")
    if cwd is not None and (beside or (line and made)):
        raise UsageError("cwd= goes with files among the words of a command only: others would not be found by name")
    if stdin is not None and not isinstance(stdin, (str, bytes, File, Future)):
        raise UsageError(f"stdin={stdin!r}: give text, bytes, a file or a future")
    spec = CommandSpec(
        argv,
        line,
        _environment(env),
        "" if cwd is None else os.path.abspath(cwd),
        stdin,
        beside,
        made,
        stdout.name if stdout else "",
        stderr.name if stderr else "",
        timeout_ns(timeout),
        check,
        show,
    )
    if 1 + len(made) > OUTPUTS_MAX:
        raise UsageError(f"{len(made):,} outputs: a command may have up to {OUTPUTS_MAX - 1:,}")
    checked = options_of(outputs=1 + len(made), **options)
    program = os.path.basename(_shown(argv[0])) if argv else line.split()[0]
    return Command(spec, checked, tuple(options.items()), program)


def changed(wanted: Command, given: Mapping[str, Any]) -> Command:
    """The same command with some other options: what `cluster.options(…)` adds to it."""
    if "outputs" in given:
        raise UsageError("run: the outputs of a command are its files: daws.command(…, outputs=[…])")
    spec, asked = wanted.spec, {**dict(wanted.given), **given}
    if "timeout" in asked:
        spec = replace(spec, timeout_ns=timeout_ns(asked.pop("timeout")))
    options = options_of(outputs=wanted.options.outputs, **asked)
    return replace(wanted, spec=spec, options=options, given=tuple(asked.items()))


def _shown(word: Any) -> str:
    if isinstance(word, (File, FileFuture, Out)):
        return word.name
    return "…" if isinstance(word, Future) else str(word)


def _words(words: Sequence[Word]) -> tuple[Any, ...]:
    if isinstance(words, (bytes, File, Future)) or not isinstance(words, Iterable):
        raise UsageError(f"{words!r} is no command; give a list of words, or a line of text for a shell")
    checked: list[Any] = []
    for at, word in enumerate(words):
        if not isinstance(word, (str, int, float, os.PathLike, Out, Future)):
            raise UsageError(f"word {at} of the command is a {type(word).__name__}; give text, a number or a file")
        if isinstance(word, os.PathLike) and not isinstance(word, File):
            word = os.fspath(word)
        if isinstance(word, str) and "\0" in word:
            raise UsageError(f"word {at} of the command has a zero byte in it")
        checked.append(word)
    if checked and isinstance(checked[0], str) and "/" in checked[0]:
        checked[0] = os.path.abspath(checked[0])  # as seen from here, wherever it runs
    if checked and checked[0] == "":
        raise UsageError("the command is empty; give a program, or a line for a shell")
    return tuple(checked)


def _inputs(inputs: Iterable[File | Future[Any]] | Mapping[str, Content]) -> tuple[tuple[str, Any], ...]:
    if isinstance(inputs, Mapping):
        found = [(checked_name(name, "the input"), value) for name, value in inputs.items()]
    elif isinstance(inputs, (str, File, Future)):
        raise UsageError(f"inputs={inputs!r}: give a list")
    else:
        found = []
        for one in inputs:
            if not isinstance(one, (File, FileFuture)):
                raise UsageError(f"the input {one!r} has no name; give a daws.File, or inputs={{name: value}}")
            found.append((one.name, one))
    for name, value in found:
        if not isinstance(value, (str, bytes, File, Future)):
            raise UsageError(f"the input {name!r} is a {type(value).__name__}; give a file, a future, text or bytes")
    return tuple(found)


def _outputs(
    argv: tuple[Any, ...], outputs: Iterable[str | Out], stdout: Out | None, stderr: Out | None
) -> tuple[str, ...]:
    if isinstance(outputs, (str, Out)):
        raise UsageError(f"outputs={outputs!r}: give a list")
    for name, stream in (("stdout", stdout), ("stderr", stderr)):
        if stream is not None and not isinstance(stream, Out):
            raise UsageError(f"{name}={stream!r}: give daws.Out(name), or leave it out (result().{name} has its end)")
    found = [word for word in argv if isinstance(word, Out)]
    found += [one if isinstance(one, Out) else Out(one) for one in outputs]
    found += [stream for stream in (stdout, stderr) if stream is not None]
    return tuple(dict.fromkeys([one.name for one in found]))


def _environment(env: Mapping[str, str] | None) -> dict[str, str] | None:
    variables: Mapping[Any, Any] = env or {}
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name or "\0" in name + value:
            raise UsageError(f"env: {name!r}: {value!r} cannot be a variable; give text for text")
    return dict(env) if env else None


# -- running -----------------------------------------------------------------------------------------------------------


class FileFuture(OutputFuture[File], gc=True):
    """The future of a file that a command will make. Pass it to commands and functions.

    `name` is the name of the file in the folder of a command that reads it.
    """

    name: str = ""

    def result(self, timeout: float | None = None) -> File:
        """Wait for the file and return it. It exists as long as this future, the command's, or the File is kept."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        if self._state != VALUE:
            self._what = self._source()
            self._state = VALUE
        return File.of(self.name, self._what, self)

    def _source(self) -> Source:
        scratch = str(self._session.folders.scratch)
        if self._state == INLINE:
            return Small(self._what, scratch)
        return Stored(self._session.path_of(self.object), scratch)

    def __reduce__(self) -> Any:
        found = collecting.found
        if found is None:
            return super().__reduce__()
        return fill_file, (found.setdefault(self, len(found)), self.name)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, file {self.name}>"


class CommandFuture(OutputFuture[Completed], gc=True):
    """The future of a command. `outputs` has a future for each file that the command makes, by name."""

    outputs: dict[str, FileFuture] = field(default_factory=dict)

    def result(self, timeout: float | None = None) -> Completed:
        """Wait for the end of the command and return how it ended, with its files. Raises CommandError if it failed."""
        completed = super().result(timeout)
        return replace(completed, outputs={name: one.result() for name, one in self.outputs.items()})

    def __reduce__(self) -> Any:
        how = super().__reduce__()
        return (_with_outputs, (*how, self.outputs)) if self.outputs else how


def _with_outputs(load: Any, args: tuple[Any, ...], outputs: dict[str, File]) -> Completed:
    completed: Completed = replace(load(*args), outputs=outputs)
    return completed


def run(session: "Session", wanted: Command) -> CommandFuture:
    """Submit a command."""

    def make(session: "Session", task: int, objects: list[int]) -> list[Future[Any]]:
        hold: Future[Any] = Future(session, task, task)
        names = wanted.spec.outputs
        files = {
            name: FileFuture(session, task, object_, _held=hold, name=name)
            for name, object_ in zip(names, objects[1:], strict=True)
        }
        return [CommandFuture(session, task, task, _held=hold, outputs=files), *files.values()]

    session.check(wanted.options)
    if wanted.options.memo is not None:
        from daws.client.memo_commands import run_with_memo  # most commands are run each time

        return run_with_memo(session, wanted, make)
    function = session.number_of(RunCommand(wanted.program))
    future = session.submit_several(function, (wanted.spec,), {}, wanted.options, make)[0]
    assert isinstance(future, CommandFuture)
    return future
