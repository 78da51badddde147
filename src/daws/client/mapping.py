"""Calling one function for many items: several items per task, one view on all results."""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from daws.client.future import Future, check_callback
from daws.client.given import whole
from daws.client.hints import answer_to, refuse_as_list, refuse_as_value
from daws.client.options import USUAL, Options
from daws.data.codec import dumps
from daws.model.errors import DawsError, UnpicklableError, UsageError
from daws.wire.worker import ENCODER, FAILURE, ITEMS_FAILED, Printed
from daws.workers.coroutines import awaiting, is_coroutine, run_coroutine
from daws.workers.errors import ItemFailedError
from daws.workers.failures import exception_of, failure_of
from daws.workers.nest import here

if TYPE_CHECKING:
    from daws.client.inside import InnerSession
    from daws.client.session import Session

T = TypeVar("T")
CHUNK_MAX = 1024
READ_MAX = 1 << 16
TOLD_MAX = 200
SHARE = 4
"""A chunk is this part of what one worker's share of the rest is: large at first, small towards the end."""


class Failed(Struct, eq=False):
    """An item whose call raised, among the results of a chunk."""

    failure: bytes


class Chunked(Struct, eq=False):
    """A function for many items at once. An item that raises is tried again as often as `retries` says, and does not
    spoil the others of its chunk. The client is told how many failed, if it `hears` of that."""

    function: Callable[..., Any]
    retries: int = 0
    hears: bool = True

    def __call__(self, items: list[tuple[Any, ...]]) -> list[Any]:
        function = awaiting(self.function)
        results: list[Any] = []
        add, rest = results.append, iter(items)
        has_raised = False
        while len(results) < len(items):
            try:
                for item in rest:
                    add(function(*item))
            except Exception as error:
                has_raised = True
                add(self._again(function, items[len(results)], error))
        if has_raised and self.hears:
            _tell_failed(results)
        return results

    def _again(self, function: Callable[..., Any], item: tuple[Any, ...], error: Exception) -> Any:
        for _ in range(self.retries):
            try:
                return function(*item)
            except Exception as other:
                error = other
        return Failed(failure_of(error))

    @property
    def without_unpicklable(self) -> Callable[[list[Any]], list[Any]]:
        """Asked for by the worker when the results of a chunk cannot be pickled."""
        return partial(_mended, hears=self.hears)


def _mended(results: list[Any], hears: bool) -> list[Any]:
    results = [_picklable(one) for one in results]
    if hears:
        _tell_failed(results)
    return results


def _tell_failed(results: list[Any]) -> None:
    """Tell the client how many items failed; nobody may ever read the results."""
    failed = [one for one in results if type(one) is Failed]
    hand = here.hand
    if not failed or hand is None or hand.order is None:
        return
    first = FAILURE.decode(failed[0].failure)
    line = first.message.partition("\n")[0][:TOLD_MAX]
    text = f"{first.kind}: {line}" if line else first.kind
    hand.host.say(hand, Printed(hand.order.run, ITEMS_FAILED, ENCODER.encode((len(failed), text))))


class ItemFuture(Struct, Generic[T], eq=False):
    """The future result of one item of a `map`. Several items may share one task."""

    _chunk: Future[list[T]]
    _at: int
    item: int

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result and return it. Raises the exception of the call, or TimeoutError."""
        return _value(self._chunk, self._chunk.result(timeout)[self._at], self.item)  # type: ignore[no-any-return]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the call and return the exception that it raised, or None."""
        error = self._chunk.exception(timeout)
        return error_of(self._chunk, self._chunk.result()[self._at], self.item) if error is None else error

    @property
    def task(self) -> int:
        """The number of the task that has the item."""
        return self._chunk.task

    @property
    def state(self) -> str:
        """The state in a word: pending, done, failed or cancelled."""
        state = self._chunk.state
        if state != "done" or not self._has_failed():
            return state
        self._chunk._session.see([self._chunk])
        return "failed"

    def done(self) -> bool:
        """Has the call ended, in whatever way?"""
        return self._chunk.done()

    def _has_failed(self) -> bool:
        """Has it ended, and not well? A result in a file is read only if an item of its task failed."""
        chunk = self._chunk
        if chunk._has_failed() or not chunk.done():
            return chunk._has_failed()
        if chunk._is_stored() and not chunk._session.may_have_failed_items(chunk.task):
            return False
        try:
            return type(chunk.result()[self._at]) is Failed
        except DawsError:  # it cannot be read
            return True

    def running(self) -> bool:
        """Does a worker run the item's task now?"""
        return self._chunk.running()

    def cancelled(self) -> bool:
        """Was the item's task cancelled?"""
        return self._chunk.cancelled()

    def cancel(self) -> bool:
        """Cancel the task with all of its items; `map(…, chunk=1)` makes tasks of one item."""
        return self._chunk.cancel()

    def add_done_callback(self, function: Callable[["ItemFuture[T]"], Any]) -> None:
        """Call `function(future)` on a thread of the cluster when the task ends, or now if it has ended."""
        check_callback(function)
        self._chunk.add_done_callback(lambda _: function(self))

    def __await__(self) -> Generator[Any, None, T]:
        yield from self._chunk.__await__()
        return self.result()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ItemFuture) and other._chunk is self._chunk and other._at == self._at

    def __hash__(self) -> int:
        return hash((id(self._chunk), self._at))

    def __reduce__(self) -> Any:
        """Pickle an argument of a task as its result; if it failed, that task fails too."""
        self._chunk._session.see([self._chunk])
        return _item_of, (self._chunk, self._at)

    def __repr__(self) -> str:
        return f"<ItemFuture {self.item} of a map, task {self.task}: {self._chunk.state}>"


answer_to(ItemFuture, "Future")
refuse_as_value(ItemFuture)


def _item_of(chunk: list[Any], at: int) -> Any:
    if type(chunk[at]) is Failed:
        raise ItemFailedError(chunk[at].failure)
    return chunk[at]


class Mapped(Sequence[T], Generic[T]):
    """The sequence of results that `map` returns, in the order of the items. Reading one waits for it."""

    def __init__(self, futures: list[Future[list[T]]], ends: list[int]) -> None:
        self._futures = futures
        self._ends = ends  # by future: how many items it and those before it have

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[T]:
        try:
            first = 0
            for future, count in self._chunks():
                results = future.result()
                for result in results:
                    if type(result) is Failed:
                        _value(future, result, first + results.index(result))
                    yield result
                first += count
        except Exception:
            self._see()  # one error is raised for all
            raise

    def __next__(self) -> NoReturn:
        """Refuse `next`: a map is no iterator, and going through it twice gives all results twice."""
        raise TypeError("a map has all results: mapped[0] is the first; results = iter(mapped) for next(results)")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} results, not one with number {index}")
        index %= len(self)
        at = bisect_right(self._ends, index)
        first = self._ends[at - 1] if at else 0
        return _value(self._futures[at], self._futures[at].result()[index - first], index)

    def done(self) -> bool:
        """Have all items ended, in whatever way?"""
        return all(future.done() for future in self._futures)

    def cancel(self) -> bool:
        """Cancel all items that have not ended. Returns True if there were any."""
        return bool(self._futures) and self._futures[0]._session.cancel(self._futures) > 0

    def _see(self) -> None:
        """Somebody knows how its items have ended."""
        if self._futures:
            self._futures[0]._session.see(self._futures)

    def _chunks(self) -> Iterator[tuple[Future[list[T]], int]]:
        """Its tasks, and of how many items each of them is."""
        first = 0
        for future, end in zip(self._futures, self._ends, strict=True):
            yield future, end - first
            first = end

    def __reduce__(self) -> tuple[Callable[[list[list[Any]]], list[Any]], tuple[list[Any]]]:
        """Pickle an argument of a task as the list of all results; if an item failed, that task fails too."""
        self._see()
        return _joined, (self._futures,)

    def __repr__(self) -> str:
        ended = sum(future.done() for future in self._futures)
        tasks = f"{len(self._futures):,} tasks, {ended:,} ended"
        return f"<Mapped: {len(self):,} items in {tasks}; list(mapped) has the results>"

    def __eq__(self, other: object) -> bool:
        """The same map; or a list, if these are its results, for which this waits."""
        return list(self) == other if isinstance(other, list) else self is other

    __hash__ = object.__hash__

    def _repr_html_(self) -> str:
        from daws.client.html import mapped_html

        return mapped_html(self)


answer_to(Mapped)
refuse_as_list(Mapped)


def _joined(chunks: list[list[Any]]) -> list[Any]:
    """The list of all results of a map, where a task reads it. Raises the error of the first item that failed."""
    results = [result for chunk in chunks for result in chunk]
    for result in results:
        if type(result) is Failed:
            raise ItemFailedError(result.failure)
    return results


def _picklable(result: Any) -> Any:
    try:
        if is_coroutine(result):  # of a function that is none itself
            result = run_coroutine(result)
    except Exception as error:
        return Failed(failure_of(error))
    try:
        dumps(result, "the result")
    except UnpicklableError as error:
        return Failed(failure_of(error))
    return result


def error_of(chunk: Future[Any], result: Any, item: int) -> BaseException | None:
    """The exception that the call of an item raised, or None; `result` is one of the results of a chunk."""
    if type(result) is not Failed:
        return None
    chunk._session.see([chunk])
    error = exception_of(result.failure)
    error.add_note(f"raised by item {item} of the map, in task {chunk.task}")
    return error


def _value(chunk: Future[Any], result: Any, item: int) -> Any:
    error = error_of(chunk, result, item)
    if error is not None:
        raise error
    return result


def items_of(
    function: Any, iterables: tuple[Iterable[Any], ...], chunk: int | None, options: Options
) -> list[tuple[Any, ...]]:
    """The arguments of each call, after all that `map` was given is checked."""
    if not callable(function):
        raise UsageError(f"map: {function!r:.100} cannot be called; give the function first: cluster.map(f, items)")
    if not iterables:
        name = getattr(function, "__name__", "f")
        raise UsageError(f"map: give at least one iterable: cluster.map({name}, items)")
    for one in iterables:
        if isinstance(one, (Future, ItemFuture)) or not (hasattr(one, "__iter__") or hasattr(one, "__getitem__")):
            raise UsageError(
                f"map: {one!r:.100} cannot be iterated over; give lists or other iterables; "
                f"one value for all items: itertools.repeat({one!r:.40}), or functools.partial"
                + ("" if isinstance(one, (Future, ItemFuture)) else f"; items per task: chunk={one!r:.10}")
            )
    if chunk is not None:
        whole("chunk", chunk, 1)
    if options.outputs > 1:
        raise UsageError("map: outputs= is for submit; the results of an item are one value of map")
    items: list[tuple[Any, ...]] = []
    rest = zip(*iterables, strict=False)
    while more := list(islice(rest, READ_MAX)):  # piece by piece, so that Ctrl-C ends one that is endless
        items += more
    return items


def chunk_size(left: int, workers: int, chunk: int | None, options: Options) -> int:
    """The number of items of the next task, if so many are left."""
    if chunk is None and options.timeout_ns:
        return 1  # so that it is the time limit of each item
    return chunk or max(1, min(CHUNK_MAX, left // (SHARE * workers)))


def options_of_chunk(options: Options, items: int) -> Options:
    return replace(options, estimate_ns=options.estimate_ns * items) if options.estimate_ns else options


def map_chunks(
    session: "Session | InnerSession",
    workers: int,
    function: Callable[..., T],
    iterables: tuple[Iterable[Any], ...],
    chunk: int | None,
    options: Options = USUAL,
) -> Mapped[T]:
    items = items_of(function, iterables, chunk, options)
    many = session.number_of(Chunked(function, options.retries, session.hears_of_items))
    futures: list[Future[list[T]]] = []
    ends: list[int] = []
    low = 0
    while low < len(items):
        part = items[low : low + chunk_size(len(items) - low, workers, chunk, options)]
        futures.append(session.submit_number(many, (part,), {}, options_of_chunk(options, len(part))))
        low += len(part)
        ends.append(low)
    return Mapped(futures, ends)
