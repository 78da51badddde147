"""The results of tasks: their objects and futures, and results in files, which are made again if they are lost."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from daws.client.future import Future, OutputFuture
from daws.client.options import OUTPUTS_MAX, USUAL
from daws.data.codec import dumps_call
from daws.model.errors import ClosedError, DamagedObjectError, UnavailableError
from daws.model.task import Input, NodeId
from daws.wire.worker import INPUTS_ALONE
from daws.workers.slots import fill_file

if TYPE_CHECKING:
    from daws.client.session import Session

T = TypeVar("T")
MakeFutures = Callable[["Session", int, list[int]], list[Future[Any]]]
"""Makes the futures of a task, one for each of its objects."""
FIRST_EXTRA_OBJECT = 1 << 62
KEPT_MAX = 10_000
"""The number of results in files that can be asked for when their cluster is closed. Each may be a mapping, of which a
process may have some ten thousands."""


def objects_of(task: int, count: int) -> list[int]:
    """The objects of a task with so many outputs. The first has the number of the task."""
    first = FIRST_EXTRA_OBJECT + task * OUTPUTS_MAX
    return [task, *range(first + 1, first + count)]


def output_futures(session: "Session", task: int, objects: list[int]) -> list[Future[Any]]:
    """The futures of a task with several outputs."""
    first: Future[Any] = Future(session, task, objects[0])
    return [first, *[OutputFuture(session, task, object_, _held=first) for object_ in objects[1:]]]


def task_of(object_: int) -> int:
    """The task that makes an object."""
    return object_ if object_ < FIRST_EXTRA_OBJECT else (object_ - FIRST_EXTRA_OBJECT) // OUTPUTS_MAX


class StoredResults:
    """The results of a session that lie in files."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.stored: dict[int, tuple[Input, ...]] = {}  # by task: where its outputs are
        self.kept: dict[int, Any] = {}  # by object: results that outlive the session
        self._again: dict[int, Future[Any]] = {}  # by object that was lost and is about to be read: what reads it

    def places(self, object_: int) -> tuple[NodeId, ...]:
        """The nodes that have an object, as far as that is known here."""
        found = {output.object: output.places for output in self.stored.get(task_of(object_), ())}
        return found.get(object_, ())

    def forget(self, task: int) -> bool:
        """No future of this task is held any more. Returns whether its results are in files."""
        outputs = self.stored.pop(task, None)
        if self.kept:
            for output in outputs or ():
                self.kept.pop(output.object, None)
        return outputs is not None

    def keep(self, room_bytes: int, room: int, are_away: bool = False) -> None:
        """Read at most so many bytes and results, those of the last tasks first.

        If the results `are_away` on other machines, none is asked for after one that did not come: each would have to
        be waited for.
        """
        for output in [one for outputs in reversed([*self.stored.values()]) for one in outputs]:
            if output.value or not room or output.size_bytes > room_bytes:
                continue
            try:
                self.kept[output.object] = self._session.engine.load(output.object, output.places)
                room_bytes, room = room_bytes - output.size_bytes, room - 1
            except Exception as error:  # a file of a command, or damaged: who asks for it is told
                if are_away and isinstance(error, UnavailableError | OSError):
                    return

    def load(self, object_: int) -> Any:
        """The value of an object. If no node has it any more, or it is damaged, a task that reads it has it made
        again."""
        if object_ in self.kept:
            return self.kept[object_]
        if (reader := self._again.pop(object_, None)) is not None:
            return reader.result()
        try:
            return self._loaded(object_)
        except (DamagedObjectError, FileNotFoundError, UnavailableError) as error:
            if not self._may_read_again(error):
                raise
        return self.read_again(object_).result()

    def _loaded(self, object_: int, is_asked: bool = False) -> Any:
        session = self._session
        try:
            return session.engine.load(object_, self.places(object_))
        except (OSError, UnavailableError) as error:
            if session._closed is not None:
                raise ClosedError(
                    "the result was not asked for before its cluster was closed; "
                    "call result() or gather() inside the with block"
                ) from None
            if is_asked or isinstance(error, OSError) or not self._may_read_again(error):
                raise
        self._ask_places(object_)
        return self._loaded(object_, is_asked=True)

    def path_of(self, object_: int) -> str:
        """The path of an object that is a file; it stays there as long as its future is kept."""
        session = self._session
        if session._closed is not None:
            raise ClosedError("the file was not asked for before its cluster was closed")
        try:
            return session.engine.bring(object_, self.places(object_))
        except UnavailableError as error:
            if not self._may_read_again(error):
                raise
        self._read(touch, dumps_call((_FileSlot(),), {}), object_).result()
        self._ask_places(object_)
        return session.engine.bring(object_, self.places(object_))

    def expect_reading(self, futures: list[Future[Any]]) -> None:
        """Prepare to read the results of these futures from files, one after the other. All of them have ended.

        All results that went with their nodes are made again at once, and not each when its turn has come.
        """
        if self._session.engine.is_here:
            return
        for object_ in [one.object for one in futures]:
            if not self._is_there(object_):
                self._ask_places(object_)
                if not self._is_there(object_):
                    self._again[object_] = self.read_again(object_)

    def _may_read_again(self, error: Exception) -> bool:
        session = self._session
        return getattr(error, "retry", True) and session._closed is None and not session.engine.is_here

    def read_again(self, object_: int) -> Future[Any]:
        """Submit a task that reads an object and returns it. The object is found elsewhere, or made again."""
        return self._read(same, INPUTS_ALONE, object_)

    def _read(self, function: Any, payload: bytes, object_: int) -> Future[Any]:
        session = self._session
        number = session._next_task()
        future: Future[Any] = Future(session, number, number)
        above: Any = [SimpleNamespace(task=task_of(object_), object=object_)]  # without holding it
        # A leaf: a task of daws itself, which the session's next client is not told of.
        session._submit(session.number_of(function), payload, above, USUAL, future, (number,), leaf=True)
        return future

    def _ask_places(self, object_: int) -> None:
        """Ask the store which nodes have an object by now."""
        task = task_of(object_)
        self.stored[task] = self._session.engine.outcome_of(task).outputs

    def _is_there(self, object_: int) -> bool:
        """Is one of the places of an object a node that is there?"""
        return not set(self.places(object_)).isdisjoint(self._session.engine.members.nodes)


class _FileSlot:
    """The first input, as a file."""

    def __reduce__(self) -> Any:
        return fill_file, (0, "file")


def same(value: T) -> T:
    """Return the argument."""
    return value


def touch(value: object) -> None:
    """Do nothing. A worker that calls this has the argument."""
