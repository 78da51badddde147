"""Commands that are reused: their files are kept beside the results of functions, by what they were made of.

A command is the same if its words, its environment and the contents of its inputs are. An input that another command
with `memo=` makes counts as the call that makes it, so whole pipelines are looked up before anything has run.
"""

import mmap
import os
from functools import partial
from itertools import count
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from daws.client.commands import Command, CommandFuture, FileFuture
from daws.client.future import INLINE, Future, collecting
from daws.client.memo import MemoTasks, reused_note
from daws.client.memo_calls import CallKeys, MemoCall
from daws.client.results import MakeFutures
from daws.data.fingerprint import file_digest
from daws.data.outside import File, Lent, Out, Restored, Source, kept_mode, lent_file, stamp_of
from daws.model.task import INLINE_BYTES, Input
from daws.workers.commands import RunCommand

if TYPE_CHECKING:
    from daws.client.session import Session
    from daws.data.memo import MemoEntry

_numbers = count()


class MemoFileFuture(FileFuture, gc=True):
    """A file that a command made in an earlier run. Tasks that read it find it in the scratch folder of this machine;
    on other machines, its content is brought to them."""

    _key: str = ""
    mode: int = 0
    _content: Any = None
    _path: str = ""
    _put: Future[Any] | None = None

    def _source(self) -> Source:
        return Lent(self._content, self.mode, str(self._session.folders.scratch))

    def __reduce__(self) -> Any:
        if collecting.found is None:
            return super().__reduce__()
        if hasattr(self._session, "fetch_results"):  # nodes on other machines
            if self._put is None:
                small = len(self._content) <= INLINE_BYTES
                self._put = self._session.put(bytes(self._content) if small else PickleBuffer(self._content))
            return lent_file, (self.name, self._put, self.mode)
        if not self._path:
            path = f"{self._session.folders.scratch}/reused-{next(_numbers)}"
            self._source().place(path)
            self._path = path
        return File.of, (self.name, Restored(self._path, stamp_of(self._path)[:2]))


def run_with_memo(session: "Session", wanted: Command, make: MakeFutures) -> CommandFuture:
    """Submit a command, unless an earlier run has made its files. `make` makes the futures of one that runs."""
    memo = session.memo_tasks()
    number = session.number_of(RunCommand(wanted.program))
    run = partial(memo.run, number, (wanted.spec,), {}, wanted.options, make=make)
    call_of, reuse = partial(_call_of, memo.keys, wanted), partial(_reused, memo, wanted.spec.outputs)
    outputs = 2 + len(wanted.spec.outputs)
    future = memo.found_or_run(f"command {wanted.program}", call_of, outputs, run, reuse, contents_of)[0]
    assert isinstance(future, CommandFuture)
    return future


def _reused(memo: MemoTasks, names: tuple[str, ...], call: MemoCall, entry: "MemoEntry") -> list[CommandFuture]:
    completed, modes, *contents = entry.outputs
    session = memo.session
    files: dict[str, FileFuture] = {}
    tasks = [session._next_task() for _ in range(1 + len(names))]
    for at, (name, content) in enumerate(zip(names, contents, strict=True), 1):
        one = MemoFileFuture(session, tasks[at], tasks[at], INLINE, None, name=name, _key=f"{call.key}.{at}")
        one.mode, one._content = modes[at - 1], content
        files[name] = one
    memo.keys.by_task[tasks[0]] = call.key
    session.memo_notes.update(dict.fromkeys(tasks, reused_note(entry)))
    return [CommandFuture(session, tasks[0], tasks[0], INLINE, bytes(completed), outputs=files)]


def contents_of(memo: MemoTasks, outputs: tuple[Input, ...]) -> list[Any]:
    """The parts of a command that are kept: how it ended, the modes of its files, and their contents."""
    contents: list[Any] = [outputs[0].value or memo.content(outputs[0].object, outputs[0].places), b""]
    modes = bytearray()
    for output in outputs[1:]:
        if output.value:
            modes.append(output.value[0])
            contents.append(memoryview(output.value)[1:])
            continue
        path = memo.session.engine.bring(output.object, output.places)
        with open(path, "rb") as file:
            modes.append(kept_mode(os.fstat(file.fileno()).st_mode) & 0o377)
            contents.append(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    contents[1] = bytes(modes)
    return contents


def _call_of(keys: CallKeys, wanted: Command) -> MemoCall:
    """The call by which a command is known. Raises Unknown if an input is not known yet."""
    spec = wanted.spec
    shape: list[Any] = []
    given: list[tuple[str, Any]] = []
    for at, word in enumerate(spec.argv):
        if isinstance(word, (File, FileFuture)):
            shape.append(("file", word.name))
            given.append((f"input {word.name!r}", word))
        elif isinstance(word, Out):
            shape.append(("output", word.name))
        elif isinstance(word, Future):
            shape.append(("value", ""))
            given.append((f"word {at}", word))
        else:
            shape.append(str(word))
    given += [(f"input {name!r}", value) for name, value in spec.inputs]
    if spec.stdin is not None:
        given.append(("its standard input", spec.stdin))
    marks = keys.marks()
    digests = keys.digests(marks, given)
    words = (spec.line, shape, spec.cwd, spec.stdout, spec.stderr, spec.outputs, spec.check)
    parts = {"the command": marks.digest(words, "the command")}
    if spec.environment:
        parts["its environment"] = marks.digest(sorted(spec.environment.items()), "its environment")
    program = spec.argv[0] if spec.argv else ""
    if isinstance(program, str) and "/" in program and os.path.isfile(program):
        parts["its program"] = file_digest(program, stamp_of(program)).hex()
    if wanted.options.memo:
        parts["its memo version"] = wanted.options.memo
    return MemoCall(f"command {wanted.program}", parts, digests, 2 + len(spec.outputs))
