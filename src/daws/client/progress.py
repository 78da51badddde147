"""Waiting with a progress bar, if somebody can see it: on a terminal, or in a notebook."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from daws.runs.progress import Progress

if TYPE_CHECKING:
    from daws.client.mapping import ItemFuture, Mapped

T = TypeVar("T")
F = TypeVar("F")


class FutureList(list[T]):
    """Futures, as a list that says in one line how far they are: the last line of a cell is shown."""

    def __repr__(self) -> str:
        from daws.client.html import states

        return f"<{len(self):,} futures: {states(self)}>"

    def _repr_html_(self) -> str:
        from daws.client.html import futures_html

        return futures_html(self)


@overload
def progress(futures: "Mapped[T]", timeout: float | None = None) -> "FutureList[ItemFuture[T]]": ...
@overload
def progress(futures: "Iterable[F]", timeout: float | None = None) -> "FutureList[F]": ...


def progress(futures: Any, timeout: float | None = None, *more: Any, **others: Any) -> Any:
    """Wait for all futures with a progress bar, and return them as a list.

    The bar is shown on terminals and in notebooks. The result of a `map` stands for the futures of its items. Failed
    and cancelled tasks are counted; they raise nothing here.
    """
    from daws.client.waiting import as_completed, each_once

    if more or others or hasattr(timeout, "result"):
        from daws.client.hints import refuse_waiting

        refuse_waiting("progress", others, ("timeout",))
    waiting: FutureList[Any] = FutureList(each_once(futures))
    with Progress(len(waiting), counted=noun_of(waiting)) as bar:
        show(bar, as_completed(waiting, timeout))
    return waiting


def noun_of(futures: Sequence[Any]) -> str:
    """The noun that a bar counts: tasks, or items if any of the futures is of one."""
    from daws.client.mapping import ItemFuture

    return "items" if any(isinstance(one, ItemFuture) for one in futures) else "tasks"


def show(bar: Progress, ended: Iterable[Any], to_the_first_error: bool = False) -> None:
    """Move a bar with each future that ends, of a task or of an item."""
    failed = 0
    for done, future in enumerate(ended, 1):
        failed += future._has_failed()
        bar(done, failed)
        if failed and to_the_first_error:
            return
