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
        """Call `function` for each item (of several iterables: with one of each), several items per task.

        `chunk` is the number of items per task; left out, chunks are large at first and small towards the end. What
        comes back has the results in order: go through it, or ask for one by its number. With `options(…)` before it,
        each item is tried again by itself; `timeout` is for each task, and so for a whole chunk if you give `chunk`,
        else for one item; `expected` is for each item.
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
        """This cluster with options for tasks: `cluster.options(retries=2, timeout=60).submit(f, x)`.

        `retries` is how often a task that raises is tried again, `timeout` after how many seconds a run is stopped.
        `cores`, `memory` (bytes, or "4 GB") and `context` are what a task needs, `priority` how urgent it is.
        `expected` is how many seconds it will run, about, and `rank` how many pass, at best, from its start to the end
        of all that hangs on it. `memo=True` reuses the results of earlier runs, of the same `version` if you name one
        (not inside of tasks). `writable=True` gives a task copies of arrays that it may change. With `outputs=n` the
        function returns n values, and `submit` gives n futures, as a tuple.
        """
        return self._with_options(options)

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        raise NotImplementedError
