"""The typed methods that a cluster, a cluster with options and the cluster inside of a task have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

if TYPE_CHECKING:
    from daws.client.mapping import Mapped
    from daws.client.options import MapSynonyms, TaskOptions
    from daws.client.submitting import SeveralSubmitter, Submitter
    from daws.client.tasks import Task

T = TypeVar("T")


class Signatures:
    """What type checkers know of `map` and `options`; each class says what these do."""

    __slots__ = ()

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
        return self._map_items(function, iterables, chunk, others)

    def _map_items(
        self, function: Callable[..., Any], iterables: tuple[Iterable[Any], ...], chunk: int | None, others: Any
    ) -> Mapped[Any]:
        raise NotImplementedError

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

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        raise NotImplementedError
