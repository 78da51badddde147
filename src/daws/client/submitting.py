"""A cluster with options for the tasks that are submitted by it: what `cluster.options(…)` gives."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, Unpack, overload

from daws.client.mapping import Mapped
from daws.client.options import MapSynonyms, Options, TaskOptions, options_of
from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future
    from daws.client.tasks import Task

T = TypeVar("T")


class StartsTasks(Protocol):
    """A cluster, of a client or of a task."""

    @property
    def options(self) -> Any: ...

    def _start(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any: ...

    def _map(
        self, function: Callable[..., Any], iterables: tuple[Any, ...], chunk: Any, others: Any, options: Options
    ) -> Any: ...

    def _run(self, words: Any, described: dict[str, Any], options: dict[str, Any]) -> Any: ...


class Submitter:
    """Submits tasks with the options that it was made with."""

    __slots__ = ("_checked", "_cluster", "_given")

    def __init__(self, cluster: StartsTasks, given: dict[str, Any]) -> None:
        self._checked = options_of(**given)
        self._cluster = cluster
        self._given = given

    if TYPE_CHECKING:

        @overload
        def submit(self, function: "Task[Any, T]", /, *args: Any, **kwargs: Any) -> "Future[T]": ...
        @overload
        def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]": ...

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `Cluster.submit`. With `outputs=n` the function returns n values, and there are n futures, as a tuple."""
        plain, options = self._of(function)
        return self._cluster._start(plain, args, kwargs, options)

    @overload
    def map(
        self,
        function: "Task[Any, T]",
        *iterables: Iterable[Any],
        chunk: int | None = None,
        **others: Unpack[MapSynonyms],
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
        """As `Cluster.map`. Each item is tried again by itself; `timeout` is for each task, and so for a whole chunk if
        you give `chunk`, else for one item; `expected` is for each item."""
        plain, options = self._of(function)
        mapped: Mapped[Any] = self._cluster._map(plain, iterables, chunk, others, options)
        return mapped

    def run(self, words: "Command | str | Sequence[Word]", **described: Any) -> "CommandFuture":
        """As `Cluster.run`."""
        future: CommandFuture = self._cluster._run(words, described, self._given)
        return future

    @overload
    def options(self, **options: Unpack[TaskOptions]) -> "Submitter": ...
    @overload
    def options(self, *, outputs: int, **options: Unpack[TaskOptions]) -> "SeveralSubmitter": ...

    def options(self, **options: Any) -> Any:
        """The same with some other options."""
        return self._cluster.options(**{**self._given, **options})

    def _of(self, function: Any) -> tuple[Callable[..., Any], Options]:
        """What is sent of a function, and its options: those of a task, and on top those given here."""
        if getattr(type(function), "_is_task", False):
            return function._sent_function(), options_of(**{**function._given, **self._given})
        return function, self._checked

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def __repr__(self) -> str:
        given = ", ".join([f"{name}={value!r}" for name, value in self._given.items()])
        return f"{self._cluster!r}.options({given})"


class SeveralSubmitter(Submitter):
    """Submits tasks with several outputs. For type checkers alone: no object has this class."""

    if TYPE_CHECKING:

        def submit(  # type: ignore[override]
            self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> "tuple[Future[Any], ...]": ...


def with_options(cluster: StartsTasks, given: dict[str, Any]) -> Submitter:
    return Submitter(cluster, given)
