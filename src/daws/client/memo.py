"""Results that are reused in later runs: tasks with `memo=` are looked up in a folder before they are submitted.

A result is found again if nothing that it was made of has changed: the function and all code behind it, the arguments
by content, the version that the user gave. The result of a task with `memo=` counts as the call that makes it, so whole
graphs are looked up before anything has run. Each call can be asked why it was run again.
"""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from queue import SimpleQueue
from threading import Event, RLock, Thread, local
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from daws.client.cancelled import TaskCancelledError
from daws.client.future import CANCELLED, FAILED, INLINE, PENDING, Future, collecting
from daws.client.mapping import CHUNK_MAX, SHARE, Chunked, Failed, Mapped, check_map
from daws.client.options import OUTPUTS_MAX, Options
from daws.client.session import Session
from daws.data.codec import Packed, dumps, loads, open_file
from daws.data.files import read_and_drop
from daws.data.fingerprint import Fingerprint, Unknown, Versions
from daws.data.functions import dumps_function, inside_of, name_of
from daws.data.memo import MemoEntry, MemoFolder, Note
from daws.data.outside import File
from daws.model.errors import DawsError
from daws.model.task import INLINE_BYTES, Input
from daws.runtime.outcomes import ended_here
from daws.runtime.ports import Outcome
from daws.workers.slots import fill

if TYPE_CHECKING:
    from daws.client.explaining import Explanation

log = logging.getLogger("daws.memo")
ALIVE_S = 0.5
NEVER = "it never ran before"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class MemoFuture(Future[Any], gc=True):
    """A result that was there before. It becomes an object of the cluster when a task is to read it."""

    _key: str = ""
    _content: Any = None
    _put: Future[Any] | None = None

    @classmethod
    def _of(cls, session: "MemoSession", task: int, key: str, content: Any) -> "MemoFuture":
        return cls(session, task, task, INLINE, content, None, key, content)

    def __reduce__(self) -> Any:
        found = collecting.found
        if found is None:
            return super().__reduce__()
        if len(self._content) <= INLINE_BYTES:
            return loads, (bytes(self._content),)
        if self._put is None:
            self._put = self._session.put_packed(Packed.of(self._content))  # type: ignore[attr-defined]
        return fill, (found.setdefault(self._put, len(found)),)

    def __del__(self) -> None:
        """There is no task to let go of."""


class MemoItems(MemoFuture):
    """Results of several items of a `map`."""

    def result(self, timeout: float | None = None) -> Any:
        return [loads(one, copy=True) for one in self._content]

    def __reduce__(self) -> Any:
        return list, (self.result(),)


class Call:
    """One call, as it is looked up and kept."""

    __slots__ = ("args", "key", "name", "parts")

    def __init__(self, name: str, parts: dict[str, str], args: list[tuple[str, str]], outputs: int) -> None:
        self.name = name
        self.parts = parts
        self.args = args
        said = repr((1, name, sorted(parts.items()), args, outputs))
        self.key = blake2b(said.encode(errors="replace"), digest_size=16).hexdigest()


class Before:
    """What is known of earlier calls of one function: of those in earlier runs, and which code this one has called."""

    def __init__(self, notes: Iterable[Note]) -> None:
        self._parts: dict[tuple[Any, ...], dict[str, str]] = {}  # by arguments: what the code was, the last time
        self._keys: set[str] = set()
        self._others: set[tuple[int, tuple[Any, ...]]] = set()  # all arguments but one
        for note in notes:
            args = tuple(note.args)
            self._keys.add(note.key)
            self._parts[args] = note.parts
            for at in range(len(args)):
                self._others.add((at, args[:at] + args[at + 1 :]))

    def why(self, call: Call) -> str:
        """Why there is no result of this call, in a few words."""
        args = tuple(call.args)
        before = self._parts.get(args)
        self._parts[args] = call.parts
        if call.key in self._keys:
            return "its result is not there any more"
        if before is not None:
            if before == call.parts:
                return "it gave no result before"
            changed = [name for name in {**before, **call.parts} if before.get(name) != call.parts.get(name)]
            return f"{' and '.join(changed[:3])}{' and others' if len(changed) > 3 else ''} changed"
        if not self._keys:
            return NEVER
        changed = [label for at, (label, _) in enumerate(args) if (at, args[:at] + args[at + 1 :]) in self._others]
        return f"{changed[0]} changed" if len(changed) == 1 else "it never ran with these arguments"


class Memo:
    """What `cluster.memo` is: how many tasks were reused and how many ran, and why."""

    def __init__(self, folder: MemoFolder) -> None:
        self.folder = folder.path
        self.reused = 0
        self.ran = 0
        self.reasons: Counter[str] = Counter()

    def __repr__(self) -> str:
        why = "; ".join([f"{count:,} because {reason}" for reason, count in self.reasons.most_common(5)])
        return f"<Memo {self.folder}: {self.reused:,} reused, {self.ran:,} ran{': ' if why else ''}{why}>"


class _Awaited:
    """A task whose result is to be kept: one call, or those of many items."""

    __slots__ = ("call", "contents_of", "future", "items")

    def __init__(self, call: Call | None, items: Sequence[Call | None] = ()) -> None:
        self.call = call
        self.items = items
        self.contents_of: Any = None  # for tasks that make files
        self.future: Any = None  # held, so that its objects stay


class _Here(local):
    awaited: _Awaited | None = None


class MemoSession(Session):
    """A session with a folder of results. Mixed in before `Session` or `JoinedSession`."""

    folder: MemoFolder

    def remember(self, folder: MemoFolder) -> None:
        """Called before anything else."""
        self.folder = folder
        self.memo = Memo(folder)
        self._codes: dict[bytes, tuple[str, frozenset[str]]] = {}
        self._versions = Versions()
        self._before: dict[str, Before] = {}
        self._keys: dict[int, str] = {}  # by task
        self._whys: dict[int, str] = {}
        self._running: dict[str, Any] = {}  # by key: futures of tasks that have not ended
        self._awaited: dict[int, _Awaited] = {}
        self._keeping: set[str] = set()  # of items that have ended, and whose results are not all kept yet
        self._ended: SimpleQueue[tuple[_Awaited, Outcome] | Event | None] = SimpleQueue()
        self._keeper: Thread | None = None
        self._calling = RLock()
        self._here = _Here()  # what this thread is about to submit
        self._complained = False

    # -- in ------------------------------------------------------------------------------------------------------------

    def check_memo(self) -> None:
        """Results are kept here."""

    def start_task(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        if options.memo is None:
            return super().start_task(function, args, kwargs, options)
        self.check(options)
        return self.call(function, args, kwargs, options)

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        """A task with `memo=`."""
        number = self.number_of(function)
        try:
            call = self._call(function, args, kwargs, options)
        except Unknown as error:
            future = self._run(number, args, kwargs, options)
            self._say(_first(future).task, function, f"ran, and is not kept: {error}")
            return future
        if self.engine.is_here:  # a callback: it must not wait for anybody
            return self._found_or_run(number, call, args, kwargs, options)
        with self._calling:
            return self._found_or_run(number, call, args, kwargs, options)

    def _found_or_run(
        self, number: int, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        """By one thread at a time, so that two do not run the same."""
        running = self._running.get(call.key)
        if running is not None:
            return running
        entry, wrong = self._find(call)
        if entry is not None and len(entry.outputs) == options.outputs:
            return self._reuse(call, entry)
        why = self._why(call, wrong)
        future = self._run(number, args, kwargs, options, _Awaited(call))
        self._ran(_first(future).task, call, why)
        return future

    def map(
        self,
        workers: int,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        chunk: int | None,
        options: Options,
    ) -> Mapped[Any]:
        """As `map_chunks`; each item is looked up by itself, so it does not matter which others there are."""
        check_map(function, iterables, chunk, options)
        items = list(zip(*iterables, strict=False))
        calls = [self._call_or_none(function, item, options) for item in items]
        found = [(None, "") if call is None else self._find(call) for call in calls]
        missing = sum(entry is None for entry, _ in found)
        whys = [
            self._why(call, wrong) if call is not None and entry is None else ""
            for call, (entry, wrong) in zip(calls, found, strict=True)
        ]
        many = self.number_of(Chunked(function, options.retries)) if missing else 0
        futures: list[Future[Any]] = []
        ends: list[int] = []
        low = 0
        while low < len(items):
            is_found = found[low][0] is not None
            size = chunk or max(1, min(CHUNK_MAX, CHUNK_MAX if is_found else missing // (SHARE * workers)))
            high = low
            while high < len(items) and high - low < size and (found[high][0] is not None) is is_found:
                high += 1
            if is_found:
                contents = [entry.outputs[0] for entry, _ in found[low:high] if entry is not None]
                future: Future[Any] = MemoItems._of(self, self._next_task(), "", contents)
                self.memo.reused += high - low
                self._whys[future.task] = f"reused: {high - low:,} items from {self.folder.path}"
            else:
                missing -= high - low
                awaited = _Awaited(None, calls[low:high])
                future = self._run(many, (items[low:high],), {}, options, awaited)
                for call, why in zip(calls[low:high], whys[low:high], strict=True):
                    if call is None:
                        self._say(future.task, function, "ran, and is not kept: an item has the result of a task in it")
                    else:
                        self._ran(future.task, call, why)
            futures.append(future)
            ends.append(high)
            low = high
        return Mapped(futures, ends)

    def put_packed(self, packed: Packed) -> Future[Any]:
        return self._put(packed)

    def _run(
        self,
        number: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Options,
        awaited: _Awaited | None = None,
        make: Any = None,
    ) -> Any:
        plain = replace(options, memo=None)
        submit: Any = super().submit if options.outputs == 1 else super().submit_several
        if make is not None:
            submit = partial(super().submit_several, make=make)
        self._here.awaited = awaited
        try:
            return submit(number, args, kwargs, plain)
        except BaseException as error:
            if awaited is not None:
                self._take_back(awaited, error)
            raise
        finally:
            self._here.awaited = None

    def _forget_outputs(self, task: int) -> None:
        if task not in self._awaited:  # else `_take_back` ends them
            super()._forget_outputs(task)

    def _take_back(self, awaited: _Awaited, error: BaseException) -> None:
        """It was refused, or whoever submits it is interrupted. A callback may have its future already."""
        self._forget(awaited)
        future = awaited.future
        if future is None or future.task in self.futures:
            return
        self._awaited.pop(future.task, None)
        for one in (future, *self.outputs.pop(future.task, ())):
            if one._state == PENDING:
                why = str(error) or type(error).__name__
                one._what = TaskCancelledError(f"task {future.task} was not submitted after all: {why}")
                one._state = CANCELLED
                one._tell_all()

    def _submit(
        self,
        function: int,
        payload: bytes,
        above: Iterable[Future[Any]],
        options: Options,
        future: Future[Any],
        made: tuple[int, ...],
        leaf: bool = False,
    ) -> None:
        awaited = self._here.awaited
        if awaited is not None:  # known before it can have ended
            self._here.awaited = None
            awaited.future = future
            self._awaited[future.task] = awaited
            if awaited.call is not None:
                self._keys[future.task] = awaited.call.key
                others = self.outputs.get(future.task)
                self._running[awaited.call.key] = (future, *others) if others else future
        super()._submit(function, payload, above, options, future, made, leaf)

    def _find(self, call: Call) -> tuple[MemoEntry | None, str]:
        """What is kept of a call, with all that has ended before."""
        if call.key in self._keeping and not self.engine.is_here:
            kept = Event()
            self._ended.put(kept)
            while not kept.wait(ALIVE_S) and self._keeper is not None and self._keeper.is_alive():
                pass
        return self.folder.find(call.key)

    def _reuse(self, call: Call, entry: MemoEntry) -> Any:
        self.memo.reused += 1
        futures = []
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.head.made))
        for at, output in enumerate(entry.outputs):
            future = MemoFuture._of(self, self._next_task(), f"{call.key}.{at}", output)
            self._whys[future.task] = f"reused: {entry.path}, made {made}"
            futures.append(future)
        log.info("%s: reused from %s", call.name, entry.path)
        return futures[0] if len(futures) == 1 else tuple(futures)

    def _why(self, call: Call, wrong: str) -> str:
        """Asked before it runs, so that it is compared with others."""
        if wrong:
            return f"its result was damaged: {wrong}"
        before = self._before.get(call.name)
        if before is None:
            before = self._before[call.name] = Before(self.folder.notes(call.name))
        return before.why(call)

    def _ran(self, task: int, call: Call, why: str) -> None:
        self.memo.ran += 1
        self.memo.reasons[why] += 1
        self._whys[task] = f"ran: {why}"
        log.info("%s: ran because %s", call.name, why)

    def _say(self, task: int, function: Callable[..., Any], what: str) -> None:
        self.memo.ran += 1
        self._whys[task] = what
        log.info("%s: %s", _name_of(function), what)

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Call:
        print_ = Fingerprint(self._of_future, Future)
        pickled = dumps_function(function)
        code = self._codes.get(pickled)
        if code is None:
            digest = print_.digest(function, "the function")
            code = self._codes[pickled] = digest, frozenset(print_.needs)
        print_.needs = set(code[1])
        digests = []
        for at, value in enumerate(args):
            label = f"argument {at + 1}"
            try:
                digests.append((label, print_.digest(value, label)))
            except Unknown:
                raise Unknown(f"{label} is the result of a task without memo") from None
        for name in sorted(kwargs):
            label = f"argument {name!r}"
            try:
                digests.append((label, print_.digest(kwargs[name], label)))
            except Unknown:
                raise Unknown(f"{label} is the result of a task without memo") from None
        parts = {"the function": code[0], "Python": PYTHON, **self._versions.of(print_.needs)}
        if options.memo:
            parts["its memo version"] = options.memo
        return Call(_name_of(function), parts, digests, options.outputs)

    def _call_or_none(self, function: Callable[..., Any], item: tuple[Any, ...], options: Options) -> Call | None:
        try:
            return self._call(function, item, {}, options)
        except Unknown:
            return None

    def _of_future(self, future: Future[Any]) -> str | tuple[Any]:
        known: str = getattr(future, "_key", "")
        if known:
            return known
        key = self._keys.get(future.task)
        if key is not None:
            return f"{key}.{future.object % OUTPUTS_MAX if future.object != future.task else 0}"
        if future._state in (PENDING, FAILED, CANCELLED):
            raise Unknown
        result: Any = future.result()
        return (result.content_digest(),) if isinstance(result, File) else (result,)

    # -- out: on the engine's thread -----------------------------------------------------------------------------------

    def _end_cancelled(self, future: Future[Any]) -> None:
        awaited = self._awaited.pop(future.task, None)
        if awaited is not None:
            self._forget(awaited)
        super()._end_cancelled(future)

    def on_ended(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes if self._awaited else ():
            awaited = self._awaited.pop(outcome.task, None)
            if awaited is None:
                continue
            if outcome.state:
                self._forget(awaited)
            else:
                self._keeping.update([call.key for call in awaited.items if call is not None])
                self._ended.put((awaited, outcome))
                self._keep_later()
        super().on_ended(outcomes)

    def on_done(self, tasks: list[int], made: list[tuple[Input, ...] | bytes]) -> None:
        if self._awaited:
            self.on_ended([*map(ended_here, tasks, made)])
        else:
            super().on_done(tasks, made)

    def _forget(self, awaited: _Awaited) -> None:
        if awaited.call is not None:
            self._running.pop(awaited.call.key, None)
        self._keeping.difference_update([call.key for call in awaited.items if call is not None])

    def _keep_later(self) -> None:
        if self._keeper is None:
            self._keeper = Thread(target=self._keep_all, name="daws-memo", daemon=True)
            self._keeper.start()

    # -- out: on a thread of its own -----------------------------------------------------------------------------------

    def _keep_all(self) -> None:
        while (ended := self._ended.get()) is not None:
            if isinstance(ended, Event):
                ended.set()
                continue
            awaited, outcome = ended
            try:
                self._keep(awaited, outcome)
            except (OSError, DawsError) as error:
                if not self._complained:
                    self._complained = True
                    log.warning(
                        "results cannot be kept in %s: %s; make room there ('daws memo %s --clear'), or name another "
                        "folder",
                        self.folder.path,
                        error,
                        self.folder.path,
                    )
            except Exception:
                log.exception("a result cannot be kept in %s", self.folder.path)
            finally:
                self._forget(awaited)
            del awaited, outcome, ended

    def _keep(self, awaited: _Awaited, outcome: Outcome) -> None:
        contents: list[Any] = []
        if awaited.contents_of is not None:
            contents = awaited.contents_of(self, outcome.outputs)
        else:
            for object_, _, _, places, inline in outcome.outputs:
                contents.append(inline or self._content(object_, places))
        if awaited.call is not None:
            self._write_entry(awaited.call, contents)
            return
        for call, value in zip(awaited.items, loads(contents[0]), strict=True):
            if call is not None and type(value) is not Failed:
                self._write_entry(call, [dumps(value)])

    def _content(self, object_: int, places: tuple[int, ...]) -> Any:
        if self._is_alone:
            return open_file(self.engine.bring(object_, places), object_)
        return read_and_drop(partial(self.engine.fetch, object_, places), self.files, object_, open_file)

    def _write_entry(self, call: Call, contents: list[Any]) -> None:
        self.folder.keep(call.key, call.name, contents)
        self.folder.note(call.name, Note(call.key, call.parts, call.args))

    def close(self, reason: BaseException) -> int:
        """What has ended is kept first."""
        keeper = self._keeper
        if keeper is not None:
            self._ended.put(None)
            keeper.join()
        return super().close(reason)

    # -- what futures ask ----------------------------------------------------------------------------------------------

    def memo_of(self, task: int) -> str | None:
        return self._whys.get(task)

    def explain(self, future: Future[Any]) -> "Explanation":
        return replace(super().explain(future), memo=self._whys.get(future.task, ""))


def _first(futures: Any) -> Future[Any]:
    first: Future[Any] = futures[0] if isinstance(futures, tuple) else futures
    return first


def _name_of(function: Any) -> str:
    """With its module: this is part of the keys of results."""
    inside = inside_of(function)
    return f"{(inside if hasattr(inside, '__qualname__') else type(inside)).__module__}.{name_of(inside)}"
