"""Results that are reused in later runs: tasks with `memo=` are looked up in a folder before they are submitted.

A result is found again if nothing that it was made of has changed: the function and all code behind it, the arguments
by content, the version that the user gave. The result of a task with `memo=` counts as the call that makes it, so whole
graphs are looked up before anything has run. Each call can be asked why it was run again.

`MemoTasks` is the part of a session that does this. Sessions of all kinds have it if the cluster has a folder.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daws.client.cancelled import TaskCancelledError
from daws.client.future import CANCELLED, INLINE, Future, OutputFuture, collecting, end_pending
from daws.client.mapping import CHUNK_MAX, Chunked, Failed, Mapped, chunk_size, items_of, options_of_chunk
from daws.client.memo_calls import Before, CallKeys, MemoCall, full_name
from daws.client.options import Args, Function, Kwargs, Options
from daws.client.results import MakeFutures, output_futures
from daws.data.codec import Packed, dumps, loads, open_file
from daws.data.files import read_and_drop
from daws.data.fingerprint import Unknown
from daws.data.memo import MemoEntry, MemoFolder, Note
from daws.model.errors import DawsError
from daws.model.task import INLINE_BYTES
from daws.wire.ends import Outcome
from daws.workers.slots import fill

if TYPE_CHECKING:
    from daws.client.session import Session

log = logging.getLogger("daws.memo")
ALIVE_S = 0.5


class MemoFuture(OutputFuture[Any], gc=True):
    """A result that was there before. It becomes an object of the cluster when a task is to read it."""

    _key: str = ""
    _content: Any = None
    _put: Future[Any] | None = None

    @classmethod
    def _of(cls, session: "Session", task: int, key: str, content: Any) -> "MemoFuture":
        return cls(session, task, task, INLINE, content, _key=key, _content=content)

    def __reduce__(self) -> Any:
        found = collecting.found
        if found is None:
            return super().__reduce__()
        if len(self._content) <= INLINE_BYTES:
            return loads, (bytes(self._content),)
        if self._put is None:
            self._put = self._session._put(Packed.of(self._content))
        return fill, (found.setdefault(self._put, len(found)),)


class MemoItems(MemoFuture):
    """Results of several items of a `map`."""

    def result(self, timeout: float | None = None) -> Any:
        return [loads(one, copy=True) for one in self._content]

    def __reduce__(self) -> Any:
        return list, (self.result(),)


class Memo:
    """The value of `cluster.memo`: how many tasks were reused and how many ran, and why."""

    def __init__(self, folder: MemoFolder) -> None:
        self.folder = folder.path
        self.reused = 0
        self.ran = 0
        self.reasons: Counter[str] = Counter()

    def __repr__(self) -> str:
        why = "; ".join([f"{count:,} because {reason}" for reason, count in self.reasons.most_common(5)])
        return f"<Memo {self.folder}: {self.reused:,} reused, {self.ran:,} ran{': ' if why else ''}{why}>"


class Awaited(Struct, eq=False):
    """A task whose result is to be kept: one call, or those of many items."""

    call: MemoCall | None
    items: Sequence[MemoCall | None] = ()
    contents_of: Any = None  # for tasks that make files
    futures: Sequence[Future[Any]] = ()  # held, so that their objects stay


class MemoTasks:
    """The tasks with `memo=` of a session, and the folder of their results."""

    def __init__(self, session: "Session", folder: MemoFolder) -> None:
        self.session = session
        self.folder = folder
        self.counts = Memo(folder)
        self.keys = CallKeys()
        self.calling = RLock()
        self.running: dict[str, Sequence[Future[Any]]] = {}  # by key: futures of tasks whose results are not kept yet
        self._before: dict[str, Before] = {}
        self._keeping: set[str] = set()  # of items that have ended, and whose results are not all kept yet
        self._ended: SimpleQueue[tuple[Awaited, Outcome] | Event | None] = SimpleQueue()
        self._keeper: Thread | None = None
        self._complained = False

    # -- in ------------------------------------------------------------------------------------------------------------

    def start(self, function: Function, args: Args, kwargs: Kwargs, options: Options) -> Any:
        """Submit a task, unless an earlier run has its results."""
        number = self.session.number_of(function)
        call_of = partial(self.keys.of_call, function, args, kwargs, options)
        run = partial(self.run, number, args, kwargs, options)
        futures = self.found_or_run(full_name(function), call_of, options.outputs, run, self._reused)
        return futures if options.outputs > 1 else futures[0]

    def found_or_run(
        self,
        name: str,
        call_of: Callable[[], MemoCall],
        outputs: int,
        run: Callable[..., Sequence[Future[Any]]],
        reuse: Callable[[MemoCall, MemoEntry], Sequence[Future[Any]]],
        contents_of: Any = None,
    ) -> Sequence[Future[Any]]:
        """The futures of a call that runs already, or whose results are kept, or that is submitted now. One thread at a
        time does this, so that two do not run the same; a callback must not wait for another thread."""
        try:
            call = call_of()
        except Unknown as error:
            futures = run()
            self.note(futures[0].task, name, f"ran, and is not kept: {error}")
            return futures
        is_locked = self.calling.acquire(blocking=not self.session.engine.is_here)
        try:
            running = self.running.get(call.key)
            if running is not None:
                return running
            entry, wrong = self._find(call)
            if entry is not None and len(entry.outputs) == outputs:
                self.counts.reused += 1
                log.info("%s: reused from %s", call.name, entry.path)
                return reuse(call, entry)
            why = self._why(call, wrong)
            futures = run(Awaited(call, contents_of=contents_of))
            self._ran(futures[0].task, call, why)
            return futures
        finally:
            if is_locked:
                self.calling.release()

    def map(
        self,
        workers: int,
        function: Function,
        iterables: tuple[Iterable[Any], ...],
        chunk: int | None,
        options: Options,
    ) -> Mapped[Any]:
        """Map a function as `map_chunks` does. Each item is looked up by itself, so it does not matter which others
        there are."""
        items = items_of(function, iterables, chunk, options)
        calls = [self._call_or_none(function, item, options) for item in items]
        entries: list[MemoEntry | None] = []
        whys: list[str] = []
        for call in calls:
            entry, wrong = (None, "") if call is None else self._find(call)
            entries.append(entry)
            whys.append("" if call is None or entry is not None else self._why(call, wrong))
        missing = entries.count(None)
        many = self.session.number_of(Chunked(function, options.retries)) if missing else 0
        futures: list[Future[Any]] = []
        ends: list[int] = []
        low = 0
        unknown = "ran, and is not kept: an item has the result of a task in it"
        while low < len(items):
            is_found = entries[low] is not None
            size = CHUNK_MAX if is_found else chunk_size(missing, workers, chunk, options)
            high = low
            while high < len(items) and high - low < size and (entries[high] is not None) is is_found:
                high += 1
            if is_found:
                contents = [entry.outputs[0] for entry in entries[low:high] if entry is not None]
                future: Future[Any] = MemoItems._of(self.session, self.session._next_task(), "", contents)
                self.counts.reused += high - low
                self.session.memo_notes[future.task] = f"reused: {high - low:,} items from {self.folder.path}"
            else:
                missing -= high - low
                awaited = Awaited(None, calls[low:high])
                (future,) = self.run(many, (items[low:high],), {}, options_of_chunk(options, high - low), awaited)
                for call, why in zip(calls[low:high], whys[low:high], strict=True):
                    if call is None:
                        self.note(future.task, full_name(function), unknown)
                    else:
                        self._ran(future.task, call, why)
            futures.append(future)
            ends.append(high)
            low = high
        return Mapped(futures, ends)

    def run(
        self,
        number: int,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        awaited: Awaited | None = None,
        make: MakeFutures = output_futures,
    ) -> Sequence[Future[Any]]:
        """Submit a task; the results of one that is `awaited` are kept."""
        if awaited is None:
            return self.session.submit_several(number, args, kwargs, options, make)
        expected = awaited

        def expect(session: "Session", task: int, objects: list[int]) -> list[Future[Any]]:
            """Known before it can have ended."""
            futures = make(session, task, objects)
            expected.futures = tuple(futures)
            session.watched[task] = partial(self._on_ended, expected)
            if expected.call is not None:
                self.keys.by_task[task] = expected.call.key
                self.running[expected.call.key] = expected.futures
            return futures

        try:
            return self.session.submit_several(number, args, kwargs, options, expect)
        except BaseException as error:
            self._take_back(awaited, error)
            raise

    def _take_back(self, awaited: Awaited, error: BaseException) -> None:
        """The task was refused, or the thread that submits it is interrupted. A callback may have its futures."""
        self._forget(awaited)
        if not awaited.futures or awaited.futures[0].task in self.session.futures:
            return
        task, why = awaited.futures[0].task, str(error) or type(error).__name__
        self.session.watched.pop(task, None)
        end_pending(awaited.futures, CANCELLED, TaskCancelledError(f"task {task} was not submitted after all: {why}"))

    def _find(self, call: MemoCall) -> tuple[MemoEntry | None, str]:
        """The results that are kept of a call, after all that have ended before are kept."""
        if call.key in self._keeping and not self.session.engine.is_here:
            kept = Event()
            self._ended.put(kept)
            while not kept.wait(ALIVE_S) and self._keeper is not None and self._keeper.is_alive():
                pass
        return self.folder.find(call.key)

    def _reused(self, call: MemoCall, entry: MemoEntry) -> Sequence[Future[Any]]:
        session, note = self.session, reused_note(entry)
        futures = []
        for at, output in enumerate(entry.outputs):
            future = MemoFuture._of(session, session._next_task(), f"{call.key}.{at}", output)
            session.memo_notes[future.task] = note
            futures.append(future)
        return tuple(futures)

    def _why(self, call: MemoCall, wrong: str) -> str:
        """Asked before it runs, so that it is compared with others."""
        if wrong:
            return f"its result was damaged: {wrong}"
        before = self._before.get(call.name)
        if before is None:
            before = self._before[call.name] = Before(self.folder.notes(call.name))
        return before.why(call)

    def _ran(self, task: int, call: MemoCall, why: str) -> None:
        self.counts.ran += 1
        self.counts.reasons[why] += 1
        self.session.memo_notes[task] = f"ran: {why}"
        log.info("%s: ran because %s", call.name, why)

    def note(self, task: int, name: str, what: str) -> None:
        """A task ran that is not kept."""
        self.counts.ran += 1
        self.session.memo_notes[task] = what
        log.info("%s: %s", name, what)

    def _call_or_none(self, function: Function, item: Args, options: Options) -> MemoCall | None:
        try:
            return self.keys.of_call(function, item, {}, options)
        except Unknown:
            return None

    # -- out: on the engine's thread -----------------------------------------------------------------------------------

    def _on_ended(self, awaited: Awaited, outcome: Outcome) -> None:
        if outcome.state:
            self._forget(awaited)
            return
        self._keeping.update([call.key for call in awaited.items if call is not None])
        self._ended.put((awaited, outcome))
        if self._keeper is None:
            self._keeper = Thread(target=self._keep_all, name="daws-memo", daemon=True)
            self._keeper.start()

    def _forget(self, awaited: Awaited) -> None:
        if awaited.call is not None:
            self.running.pop(awaited.call.key, None)
        self._keeping.difference_update([call.key for call in awaited.items if call is not None])

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

    def _keep(self, awaited: Awaited, outcome: Outcome) -> None:
        contents: list[Any] = []
        if awaited.contents_of is not None:
            contents = awaited.contents_of(self, outcome.outputs)
        else:
            for output in outcome.outputs:
                contents.append(output.value or self.content(output.object, output.places))
        if awaited.call is not None:
            self._write_entry(awaited.call, contents)
            return
        for call, value in zip(awaited.items, loads(contents[0]), strict=True):
            if call is not None and type(value) is not Failed:
                self._write_entry(call, [dumps(value)])

    def content(self, object_: int, places: tuple[int, ...]) -> Any:
        """The bytes of an object, read from its file."""
        engine = self.session.engine
        if self.session._is_alone:
            return open_file(engine.bring(object_, places), object_)
        return read_and_drop(partial(engine.fetch, object_, places), self.session.files, object_, open_file)

    def _write_entry(self, call: MemoCall, contents: list[Any]) -> None:
        self.folder.keep(call.key, call.name, contents)
        self.folder.note(call.name, Note(call.key, call.parts, call.args))

    def close(self) -> None:
        """Return when the results of all tasks that have ended are kept."""
        if self._keeper is not None:
            self._ended.put(None)
            self._keeper.join()


def reused_note(entry: MemoEntry) -> str:
    """The note about a task whose results were kept."""
    return f"reused: {entry.path}, made {time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.head.made))}"
