"""Calling one function for many items: several items per task, one view on all results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from daws.client.future import Future
from daws.client.given import whole
from daws.client.options import USUAL, Options
from daws.data.codec import dumps
from daws.model.errors import UnpicklableError, UsageError
from daws.workers.failures import exception_of, failure_of

T = TypeVar("T")
CHUNK_MAX = 1024
READ_MAX = 1 << 16
SHARE = 4
"""A chunk is this part of what one worker's share of the rest is: large at first, small towards the end."""


class Submits(Protocol):
    """What is asked of a session, of a client or of a task."""

    def number_of(self, function: Callable[..., Any]) -> int: ...

    def submit(self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Future[Any]: ...


class Failed:
    """An item whose call raised, among the results of a chunk."""

    __slots__ = ("failure",)

    def __init__(self, failure: bytes) -> None:
        self.failure = failure

    def __reduce__(self) -> tuple[type["Failed"], tuple[bytes]]:
        return Failed, (self.failure,)


class Chunked:
    """A function for many items at once. An item that raises does not spoil the others of its chunk."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, items: list[tuple[Any, ...]]) -> list[Any]:
        function = self.function
        results: list[Any] = []
        add, rest = results.append, iter(items)
        while len(results) < len(items):
            try:
                for item in rest:
                    add(function(*item))
            except Exception as error:
                add(Failed(failure_of(error)))
        return results

    @staticmethod
    def without_unpicklable(results: list[Any]) -> list[Any]:
        """Asked for by the worker when the results of a chunk cannot be pickled."""
        return [_picklable(one) for one in results]

    def __reduce__(self) -> tuple[type["Chunked"], tuple[Callable[..., Any]]]:
        return Chunked, (self.function,)


class Mapped(Sequence[T], Generic[T]):
    """The results of `map`, in the order of the items; asking for one waits for it."""

    def __init__(self, futures: list[Future[list[T]]], ends: list[int]) -> None:
        self.futures = futures
        self._ends = ends  # by future: how many items it and those before it have

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[T]:
        for future in self.futures:
            for result in future.result():
                yield _value(result)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} results, not one with number {index}")
        index %= len(self)
        low, high = 0, len(self._ends) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if index < self._ends[middle] else (middle + 1, high)
        first = self._ends[low - 1] if low else 0
        return _value(self.futures[low].result()[index - first])

    def done(self) -> bool:
        return all(future.done() for future in self.futures)

    def cancel(self) -> None:
        if self.futures:
            self.futures[0]._session.cancel(self.futures)

    def chunks(self) -> Iterator[tuple[Future[list[T]], int]]:
        """Its tasks, and of how many items each of them is."""
        first = 0
        for future, end in zip(self.futures, self._ends, strict=True):
            yield future, end - first
            first = end

    def __reduce__(self) -> tuple[Callable[[list[list[Any]]], list[Any]], tuple[list[Any]]]:
        """As an argument of a task it waits for all items, and is a list there."""
        return _joined, (self.futures,)

    def __repr__(self) -> str:
        ended = sum(future.done() for future in self.futures)
        return f"<Mapped: {len(self):,} items in {len(self.futures):,} tasks, {ended:,} ended>"


def _joined(chunks: list[list[Any]]) -> list[Any]:
    """What has become of the futures of a map where they are read; raises what the first item raised that did."""
    return [_value(result) for chunk in chunks for result in chunk]


def _picklable(result: Any) -> Any:
    try:
        dumps(result, "the result")
    except UnpicklableError as error:
        return Failed(failure_of(error))
    return result


def error_of(result: Any) -> BaseException | None:
    """What the call of an item raised, or None; as it is among the results of a chunk."""
    return exception_of(result.failure) if type(result) is Failed else None


def _value(result: Any) -> Any:
    if type(result) is Failed:
        raise exception_of(result.failure)
    return result


def check_map(iterables: tuple[Iterable[Any], ...], chunk: int | None) -> None:
    if not iterables:
        raise UsageError("map: give at least one iterable")
    for one in iterables:
        if not hasattr(one, "__iter__") and not hasattr(one, "__getitem__"):
            raise UsageError(f"map: {one!r:.100} cannot be iterated over; give lists or other iterables")
    if chunk is not None:
        whole("chunk", chunk, 1)


def map_chunks(
    session: Submits, workers: int, function: Callable[..., T], iterables: tuple[Iterable[Any], ...], chunk: int | None
) -> Mapped[T]:
    check_map(iterables, chunk)
    items: list[tuple[Any, ...]] = []
    rest = zip(*iterables, strict=False)
    while more := list(islice(rest, READ_MAX)):  # piece by piece, so that Ctrl-C ends one that is endless
        items += more
    many = session.number_of(Chunked(function))
    futures: list[Future[list[T]]] = []
    ends: list[int] = []
    low = 0
    while low < len(items):
        size = chunk or max(1, min(CHUNK_MAX, (len(items) - low) // (SHARE * workers)))
        futures.append(session.submit(many, (items[low : low + size],), {}, USUAL))
        low = min(low + size, len(items))
        ends.append(low)
    return Mapped(futures, ends)
