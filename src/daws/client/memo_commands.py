"""Commands that are reused: their files are kept beside the results of functions, by what they were made of.

A command is the same if its words, its environment and the contents of its inputs are. An input that another command
with `memo=` makes counts as the call that makes it, so whole pipelines are looked up before anything has run.
"""

import mmap
import os
import time
from itertools import count
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from daws.client.commands import Command, CommandFuture, FileFuture
from daws.client.future import INLINE, Future, collecting
from daws.client.memo import Call, MemoSession, _Awaited, log
from daws.data.fingerprint import Fingerprint, Unknown, file_digest
from daws.data.outside import File, Lent, Out, Restored, Source, kept_mode, lent_file, stamp_of
from daws.model.errors import UsageError
from daws.model.task import INLINE_BYTES, Input
from daws.workers.commands import RunCommand

if TYPE_CHECKING:
    from collections.abc import Callable

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
        if hasattr(self._session, "joined"):  # nodes on other machines
            if self._put is None:
                small = len(self._content) <= INLINE_BYTES
                self._put = self._session.put(bytes(self._content) if small else PickleBuffer(self._content))
            return lent_file, (self.name, self._put, self.mode)
        if not self._path:
            path = f"{self._session.folders.scratch}/reused-{next(_numbers)}"
            self._source().place(path)
            self._path = path
        return File.of, (self.name, Restored(self._path, stamp_of(self._path)[:2]))


def run_with_memo(
    session: "Session", wanted: Command, make: "Callable[[Session, int, list[int]], list[Future[Any]]]"
) -> CommandFuture:
    """Submit a command, unless an earlier run has made its files. `make` makes the futures of one that runs."""
    if not isinstance(session, MemoSession):
        raise UsageError("memo: name a folder for the results first: daws.Cluster(memo='…'), or DAWS_MEMO")
    function = RunCommand(wanted.program)
    number = session.number_of(function)
    try:
        call = _call_of(session, wanted)
    except Unknown as error:
        future = session._run(number, (wanted.spec,), {}, wanted.options, make=make)[0]
        session._say(future.task, function, f"ran, and is not kept: {error}")
        return future  # type: ignore[no-any-return]
    if session.engine.is_here:  # a callback: it must not wait for anybody
        return _found_or_run(session, number, call, wanted, make)
    with session._calling:
        return _found_or_run(session, number, call, wanted, make)


def _found_or_run(session: MemoSession, number: int, call: Call, wanted: Command, make: Any) -> CommandFuture:
    running = session._running.get(call.key)
    if running is not None:
        return running[0] if isinstance(running, tuple) else running  # type: ignore[no-any-return]
    entry, wrong = session._find(call)
    if entry is not None and len(entry.outputs) == 2 + len(wanted.spec.outputs):
        return _reuse(session, call, entry, wanted.spec.outputs)
    why = session._why(call, wrong)
    awaited = _Awaited(call)
    awaited.contents_of = contents_of
    future = session._run(number, (wanted.spec,), {}, wanted.options, awaited, make)[0]
    session._ran(future.task, call, why)
    return future  # type: ignore[no-any-return]


def _reuse(session: MemoSession, call: Call, entry: "MemoEntry", names: tuple[str, ...]) -> CommandFuture:
    session.memo.reused += 1
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.head.made))
    completed, modes, *contents = entry.outputs
    files: dict[str, FileFuture] = {}
    tasks = [session._next_task() for _ in range(1 + len(names))]
    for at, (name, content) in enumerate(zip(names, contents, strict=True), 1):
        one = MemoFileFuture(session, tasks[at], tasks[at], INLINE, None, name=name, _key=f"{call.key}.{at}")
        one.mode, one._content = modes[at - 1], content
        files[name] = one
    future = CommandFuture(session, tasks[0], tasks[0], INLINE, bytes(completed), outputs=files)
    session._keys[tasks[0]] = call.key
    for task in tasks:
        session._whys[task] = f"reused: {entry.path}, made {made}"
    log.info("%s: reused from %s", call.name, entry.path)
    return future


def contents_of(session: MemoSession, outputs: tuple[Input, ...]) -> list[Any]:
    """What is kept of a command: how it ended, the modes of its files, and what is in them."""
    contents: list[Any] = [outputs[0][4] or session._content(outputs[0][0], outputs[0][3]), b""]
    modes = bytearray()
    for object_, _, _, places, inline in outputs[1:]:
        if inline:
            modes.append(inline[0])
            contents.append(memoryview(inline)[1:])
            continue
        path = session.engine.bring(object_, places)
        with open(path, "rb") as file:
            modes.append(kept_mode(os.fstat(file.fileno()).st_mode) & 0o377)
            contents.append(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    contents[1] = bytes(modes)
    return contents


def _call_of(session: MemoSession, wanted: Command) -> Call:
    """What a command is known by. Raises Unknown if an input is not known yet."""
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
    marks = Fingerprint(session._of_future, Future)
    digests: list[tuple[str, str]] = []
    for label, value in given:
        try:
            digests.append((label, marks.digest(value, label)))
        except Unknown:
            raise Unknown(f"{label} is the result of a task without memo") from None
    words = (spec.line, shape, spec.cwd, spec.stdout, spec.stderr, spec.outputs, spec.check)
    parts = {"the command": marks.digest(words, "the command")}
    if spec.environment:
        parts["its environment"] = marks.digest(sorted(spec.environment.items()), "its environment")
    program = spec.argv[0] if spec.argv else ""
    if isinstance(program, str) and "/" in program and os.path.isfile(program):
        parts["its program"] = file_digest(program, stamp_of(program)).hex()
    if wanted.options.memo:
        parts["its memo version"] = wanted.options.memo
    return Call(f"command {wanted.program}", parts, digests, 2 + len(spec.outputs))
