"""The methods that a cluster, a cluster with options and the cluster inside of a task have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack, overload

from daws.client.hints import answer_to
from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future
    from daws.client.gathering import Errors
    from daws.client.mapping import Mapped
    from daws.client.options import Args, Function, Kwargs, MapSynonyms, Options, TaskOptions
    from daws.client.tasks import Task

T = TypeVar("T")


class Signatures:
    """The methods `submit`, `map` and `options` with their types, for the options that are `_given`."""

    __slots__ = ()

    _cluster: ClusterMethods
    _given: dict[str, Any]
    _checked: Options

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def _of(self, function: Any) -> tuple[Function, Options]:
        """The function to send, and its options: those of a task, and on top those given here."""
        if not getattr(type(function), "_is_task", False):
            return function, self._checked
        if not self._given:
            return function._sent_function(), function._checked
        from daws.client.options import options_of

        return function._sent_function(), options_of(**{**function._given, **self._given})

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
        return self._cluster._with_options({**self._given, **options})


class Submitter(Signatures):
    """The cluster with options for tasks that `cluster.options(…)` returns."""

    __slots__ = ("_checked", "_cluster", "_given")

    def __init__(self, cluster: ClusterMethods, given: dict[str, Any]) -> None:
        from daws.client.options import options_of

        self._checked = options_of(**given)
        self._cluster = cluster
        self._given = given

    def run(self, words: Command | str | Sequence[Word], **described: Any) -> CommandFuture:
        """Run a program as `Cluster.run` does."""
        future: CommandFuture = self._cluster._run(words, described, self._given)
        return future

    def __repr__(self) -> str:
        given = ", ".join([f"{name}={value!r}" for name, value in self._given.items()])
        return f"{self._cluster!r}.options({given})"


answer_to(Submitter)


class SeveralSubmitter(Submitter):
    """Submits tasks with several outputs. For type checkers alone: no object has this class."""

    if TYPE_CHECKING:

        def submit(  # type: ignore[override]
            self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> tuple[Future[Any], ...]: ...


class ClusterMethods(Signatures):
    """The methods of clusters that are the same inside and outside of tasks.

    A cluster has `_start` (submit a task with options: one future, or a tuple of them if it has several outputs),
    `_map` and `_run`.
    """

    __slots__ = ()

    _given = {}  # noqa: RUF012 (never written)
    _start: Callable[[Function, Args, Kwargs, Options], Any]
    _map: Callable[[Function, tuple[Any, ...], int | None, Options], Mapped[Any]]
    _run: Callable[[Any, dict[str, Any], dict[str, Any]], Any]

    @property
    def _cluster(self) -> ClusterMethods:  # type: ignore[override]
        return self

    @cached_property
    def _checked(self) -> Options:  # type: ignore[override]
        from daws.client.options import USUAL

        return USUAL

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        return Submitter(self, options)

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
