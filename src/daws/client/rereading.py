"""Results that cannot be read where they should be: a task that reads one has it found elsewhere, or made again."""

from typing import TYPE_CHECKING, Any, TypeVar

from daws.client.future import Future
from daws.client.options import USUAL
from daws.data.codec import dumps_call
from daws.wire.worker import INPUTS_ALONE
from daws.workers.slots import fill_file

if TYPE_CHECKING:
    from daws.client.session import Session

T = TypeVar("T")


def read_again(session: "Session", task: int, object_: int) -> Future[Any]:
    """What a task returns that reads this object of another one: the same."""
    return _read(session, same, INPUTS_ALONE, task, object_)


def find_again(session: "Session", task: int, object_: int) -> Future[None]:
    """For an object that is a file. When this has ended, the file is somewhere."""
    return _read(session, touch, dumps_call((_FileSlot(),), {}), task, object_)


def _read(session: "Session", function: Any, payload: bytes, task: int, object_: int) -> Future[Any]:
    number = session._next_task()
    future: Future[Any] = Future(session, number, number)
    above: Any = [_Named(task, object_)]
    # A leaf: a task of ours, which the session's next client is not told of.
    session._submit(session.number_of(function), payload, above, USUAL, future, (number,), leaf=True)
    return future


class _Named:
    """An object as an argument of a task, without holding it."""

    def __init__(self, task: int, object_: int) -> None:
        self.task = task
        self.object = object_


class _FileSlot:
    """The first input, as a file."""

    def __reduce__(self) -> Any:
        return fill_file, (0, "file")


def same(value: T) -> T:
    return value


def touch(value: object) -> None:
    """Whoever calls it has what it is called with."""
