"""Functions that run in a cluster when they are called: calls that take each other's futures make the graph."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from daws.client import current
from daws.client.future import Future
from daws.client.hints import answer_to
from daws.client.options import TaskOptions, options_of
from daws.data.uses import is_by_value
from daws.model.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")


class Task(Generic[P, T]):
    """A function that `@daws.task` has decorated: its calls are tasks of the cluster in use.

    The cluster in use is that of the innermost `with daws.Cluster():`, or of `daws.use`. `plain` is the function
    itself: calling it runs it here and now.
    """

    _is_task = True
    plain: Callable[P, T]
    __wrapped__: Callable[P, T]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, T], options: dict[str, Any], named: "Task[P, T] | None" = None) -> None:
        """`named` is the task that is found under the function's name, if that is another one."""
        if not callable(function):
            raise UsageError(f"daws.task: give a function, not {function!r}")
        self._checked = options_of(**options)
        update_wrapper(self, function)
        self.plain = function
        self._given = options
        self._named = named or self
        self._sent = _Plain(self._named)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Future[T]: ...  # futures in the place of values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Submit a call; futures anywhere inside the arguments become its inputs."""
        return current.cluster()._start(self._sent_function(), args, kwargs, self._checked)

    @overload
    def options(self, **options: Unpack[TaskOptions]) -> "Task[P, T]": ...
    @overload
    def options(self, *, outputs: int, **options: Unpack[TaskOptions]) -> Callable[..., tuple[Future[Any], ...]]: ...

    def options(self, **options: Any) -> Any:
        """Return the same function with other options; see `Cluster.options`."""
        return Task(self.plain, {**self._given, **options}, self._named)

    def _sent_function(self) -> Callable[..., Any]:
        """The function that is sent to workers."""
        return self.plain if is_by_value(self._named) else self._sent

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        if is_by_value(self._named):
            return Task, (self.plain, self._given)
        if self._named is not self:
            return _variant, (self._named, self._given)
        return self.__qualname__  # pickle looks for it in its module

    def __repr__(self) -> str:
        return f"<Task {self.__module__}.{self.__qualname__}>"


answer_to(Task)


def _variant(named: Task[P, T], options: dict[str, Any]) -> Task[P, T]:
    return Task(named.plain, options, named)


class _Plain:
    """The function of a task that workers can import: under its name they find the task, and in it the function."""

    __slots__ = ("task",)

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task = task

    def __reduce__(self) -> Any:
        return getattr, (self.task, "plain")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.task.plain(*args, **kwargs)


@overload
def task(function: Callable[P, T], /) -> Task[P, T]: ...
@overload
def task(*, outputs: int = 1, **options: Unpack[TaskOptions]) -> Callable[[Callable[P, T]], Task[P, T]]: ...


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Decorate a function so that its calls are tasks of the cluster in use. A call returns a future at once.

        @daws.task
        def square(x):
            return x * x

        with daws.Cluster():
            print(square(square(2)).result())

    `@daws.task(retries=2)` sets options (see `Cluster.options`), `square.options(retries=2)` makes a variant, and
    `square.plain(2)` calls the function itself.
    """
    return (lambda wrapped: Task(wrapped, options)) if function is None else Task(function, options)
