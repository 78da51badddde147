"""The methods that a cluster, a cluster with options and the cluster inside of a task have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack, overload

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.client.future import Future
    from daws.client.gathering import Errors
    from daws.client.mapping import Mapped
    from daws.client.options import MapSynonyms, Options, TaskOptions
    from daws.client.submitting import SeveralSubmitter, Submitter
    from daws.client.tasks import Task

T = TypeVar("T")


class Signatures:
    """The methods `submit`, `map` and `options` with their types."""

    __slots__ = ()

    _cluster: ClusterMethods

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def _of(self, function: Any) -> tuple[Callable[..., Any], Options]:
        """The function to send, and its options."""
        raise NotImplementedError

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        raise NotImplementedError

    @overload
    def submit(self, function: Task[Any, T], /, *args: Any, **kwargs: Any) -> Future[T]: ...
    @overload
    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]: ...

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run `function(*args, **kwargs)` in a worker and return its future.

        Futures may be anywhere inside the arguments: the task waits for them, and the function gets their results. With
        `options(outputs=n)` before it the function returns n values, and this a tuple of n futures.
        """
        plain, options = self._of(function)
        return self._cluster._start(plain, args, kwargs, options)

    @overload
    def map(
        self, function: Task[Any, T], *iterables: Iterable[Any], chunk: int | None = None, **others: Unpack[MapSynonyms]
    ) -> Mapped[T]: ...
    @overload
    def map(
        self,
        function: Callable[..., T],
        *iterables: Iterable[Any],
        chunk: int | None = None,
        **others: Unpack[MapSynonyms],
    ) -> Mapped[T]: ...

    def map(
        self,
        function: Callable[..., Any],
        *iterables: Iterable[Any],
        chunk: int | None = None,
        **others: Unpack[MapSynonyms],
    ) -> Mapped[Any]:
        """Call `function` for each item, several items per task, and return a sequence of the results.

        With several iterables the function gets one item of each. `chunk` is the number of items per task; by default
        chunks are large at first and small towards the end. Iterate over the results, or ask for one by its number.

        With `options(…)` before it, `retries` and `expected` are for each item. `timeout` is for each task: for a whole
        chunk if you give `chunk`, else for one item.
        """
        if others:
            from daws.client.hints import chunk_of
            from daws.client.options import NAMES

            chunk = chunk_of(others, chunk, NAMES)
        plain, given = self._of(function)
        return self._cluster._map(plain, iterables, chunk, given)

    @overload
    def options(self, **options: Unpack[TaskOptions]) -> Submitter: ...
    @overload
    def options(self, *, outputs: int, **options: Unpack[TaskOptions]) -> SeveralSubmitter: ...

    def options(self, **options: Any) -> Any:
        """Return this cluster with options for tasks: `cluster.options(retries=2, timeout=60).submit(f, x)`.

        - `retries`: how often a task that raises is tried again.
        - `timeout`: the seconds after which a run is stopped.
        - `cores`, `memory` (bytes, or "4 GB") and `context`: the needs of a task.
        - `priority`: tasks with a higher number run first.
        - `expected`: about how many seconds the task will run.
        - `rank`: the seconds, at best, from the start of the task to the end of all tasks that depend on it.
        - `memo`: with True, reuse the result of an earlier run of the same `version`. Not inside of tasks.
        - `writable`: with True, the task gets copies of shared arrays, which it may change.
        - `outputs`: with n, the function returns n values, and `submit` returns a tuple of n futures.
        """
        return self._with_options(options)


class ClusterMethods(Signatures):
    """The methods of clusters that are the same inside and outside of tasks."""

    __slots__ = ()

    @property
    def _cluster(self) -> ClusterMethods:  # type: ignore[override]
        return self

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        from daws.client.submitting import Submitter

        return Submitter(self, options)

    def _of(self, function: Any) -> tuple[Callable[..., Any], Options]:
        if getattr(type(function), "_is_task", False):
            return function._sent_function(), function._checked
        return function, self._usual

    @cached_property
    def _usual(self) -> Options:
        from daws.client.options import USUAL

        return USUAL

    def _start(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        """Submit a task with options: one future, or a tuple of them if it has several outputs."""
        raise NotImplementedError

    def _map(
        self, function: Callable[..., Any], iterables: tuple[Any, ...], chunk: int | None, options: Options
    ) -> Mapped[Any]:
        raise NotImplementedError

    def _run(self, words: Any, described: dict[str, Any], options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def gather(
        self,
        futures: Any,
        errors: Errors = "raise",
        timeout: float | None = None,
        progress: bool = False,
        *more: Any,
        **others: Any,
    ) -> Any:
        """Wait for all futures and return their results in the same shape.

        Futures may be in lists, tuples, sets, dicts and dataclasses, however deep. `errors="return"` puts exceptions
        where results would be, `"skip"` leaves failed ones out. `progress=True` shows a bar on terminals and in
        notebooks. Inside of tasks `timeout` is None, or 0 to take only what has ended already.
        """
        from daws.client.gathering import gather

        return gather(futures, errors, timeout, progress, *more, **others)
