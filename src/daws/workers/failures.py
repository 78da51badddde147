"""Exceptions that travel: taken apart in a worker, put together in the client.

The client must get something sensible from any exception. Some cannot be pickled; some cannot be unpickled, because
their class lives in a module that only the worker has; the `str` of some raises. Pickle makes an exception anew from
its `args`. That is wrong for a class with a constructor of its own that passes on other arguments. The constructor of
such a class is therefore left out: its effects are in `args` and in the attributes.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from daws.data import codec
from daws.model.errors import TaskFailedError, TaskKilledError
from daws.wire.ends import Path
from daws.wire.worker import ENCODER, FAILURE, Failure
from daws.workers.errors import ItemFailedError, LostInputError, RemoteError, RemoteTraceback
from daws.workers.roots import head_of, root_in, way

TEXT_MAX = 1 << 16
OUTLINE_MAX = 200
PICKLED_MAX_BYTES = 1 << 20
PIECE_MAX_BYTES = 1 << 16
STAYED = "it cannot be pickled, is larger than 1 MB, or is no Exception"
ENDING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")  # they would end the client, which no task may do


ITEM = "(This was the call for an item of a map. The task that has the item as an argument was not run.)\n"
READ_ONLY = " is read-only"
"""The end of numpy's error when a task writes to an array that several tasks share."""


def failure_of(error: BaseException) -> bytes:
    """An exception as bytes."""
    if isinstance(error, ItemFailedError):
        read = FAILURE.decode(error.failure)
        return ENCODER.encode(replace(read, trace=read.trace + ITEM))
    if type(error) is ValueError and error.args and str(error.args[0]).endswith(READ_ONLY):
        error.args = (
            f"{error.args[0]}: large arrays are shared between tasks; change a copy (X = X.copy()), "
            "or submit the task with options(writable=True)",
        )
    return ENCODER.encode(Failure(_kind(error), _message(error), _trace(error), _pickled(error)))


def lacked_by(error: BaseException) -> int | None:
    """The object without which a run could not go on, if that is what ended it."""
    return error.object_id if isinstance(error, LostInputError) else None


def exception_of(failure: bytes) -> BaseException:
    """The exception that a task raised, or a RemoteError that speaks for it; its traceback is its cause."""
    read = FAILURE.decode(failure)
    found: object = None
    reason = STAYED if not read.pickled and read.kind not in ENDING else ""
    if read.pickled:
        try:
            found = codec.loads(read.pickled)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = f"it cannot be unpickled here: {_kind(error)}: {_message(error)}"
        else:
            reason = "" if isinstance(found, Exception) else "its pickle holds something else"
    raised = found if isinstance(found, Exception) else RemoteError(read.kind, read.message, read.trace, reason)
    raised.__cause__ = RemoteTraceback(read.trace)
    return raised


def with_way(
    error: BaseException, task: int, path: Path, text: str, name: Callable[[int], str] = lambda kind: ""
) -> BaseException:
    """An exception with a note that says which task raised it and, if that is not the `task` that was asked for, the
    way from the one to the other. `text` is the error that the store has of it."""
    root = root_in(text)
    if root < 0:
        return error
    if root != task:
        error.add_note(way(path, text, name))
    elif not isinstance(error, TaskFailedError | TaskKilledError):  # those have the message already
        error.add_note(f"raised by {head_of(text).replace(' failed', '', 1)}")
    return error


def why_of(failure: bytes) -> str:
    """The fault of a missing object, in one line, from the failure of the run that needed it."""
    return FAILURE.decode(failure).message.partition("\n")[0][:OUTLINE_MAX]


def outline_of(failure: bytes, who: str, where: str = "") -> str:
    """One line about a task that failed, for the tasks that need its outputs."""
    read = FAILURE.decode(failure)
    said = read.message.partition("\n")[0][:OUTLINE_MAX]
    prefix = f"{who}: "
    if said.startswith(prefix):  # an error of ours, which names the task itself
        return f"{who} failed: {said.removeprefix(prefix)}"
    return f"{who} failed{where}: {read.kind}: {said}" if said else f"{who} failed{where}: {read.kind}"


def _kind(error: BaseException) -> str:
    cls = type(error)
    is_known = cls.__module__ in ("builtins", "__main__") or cls.__module__.startswith("daws.")
    return cls.__qualname__ if is_known else f"{cls.__module__}.{cls.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:TEXT_MAX]
    except Exception as worse:
        return f"<its message cannot be had: {type(worse).__name__}>"


def _trace(error: BaseException) -> str:
    import traceback  # dear to import, and most workers never need it

    where = error.__traceback__
    while where is not None and where.tb_next and where.tb_frame.f_globals.get("__package__") == __package__:
        where = where.tb_next  # the way from the worker to the user's function
    try:
        text = "".join(traceback.format_exception(type(error), error, where))
    except Exception as worse:
        text = f"<its traceback cannot be had: {type(worse).__name__}>\n"
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX // 2] + "\n  …\n" + text[-TEXT_MAX // 2 :]


def _pickled(error: BaseException) -> bytes:
    if not isinstance(error, Exception):
        return b""  # see ENDING
    for make in (_whole, _in_part):
        try:
            data = codec.dumps(make(error))
        except Exception:
            continue
        if len(data) <= PICKLED_MAX_BYTES:
            return data
    return b""


def _whole(error: Exception) -> object:
    return _Apart(*_reduced(error)) if _has_constructor(type(error)) else error


def _in_part(error: Exception) -> object:
    """The exception without the args and attributes that cannot travel; texts replace them, and a note says so. Its
    class stays, because users catch it by that."""
    kind, args, state = _reduced(error)
    if kind is not type(error):
        raise TypeError("it has its own way to be pickled")
    left: list[str] = []
    args = tuple([_piece(one, f"args[{at}]", left) for at, one in enumerate(args)])
    state = {name: _piece(value, name, left) for name, value in state.items()}
    said = f"as text, because it cannot be sent or is too large: {', '.join(left)}"
    state["__notes__"] = [*map(str, state.get("__notes__", ())), said]
    return _Apart(kind, args, state)


def _piece(value: Any, name: str, left: list[str]) -> Any:
    try:
        if len(codec.dumps(value)) <= PIECE_MAX_BYTES:
            return value
    except Exception:
        pass
    if isinstance(value, list | tuple):  # as the exceptions of a group
        return [_piece(one, f"{name}[{at}]", left) for at, one in enumerate(value)]
    left.append(name)
    if isinstance(value, str):
        return value[: PIECE_MAX_BYTES // 4]
    if isinstance(value, Exception):
        return RemoteError(_kind(value), _message(value), _trace(value), STAYED)
    try:
        return repr(value)[:OUTLINE_MAX]
    except Exception:
        return f"<{type(value).__name__}>"


def _reduced(error: Exception) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The class, args and attributes of an exception, unless it defines its own pickling."""
    reduced: Any = error.__reduce__()
    kind, args, *state = reduced
    return kind, args, state[0] if state and isinstance(state[0], dict) else {}


class _Apart:
    """An exception that pickles as its args and attributes."""

    def __init__(self, kind: Any, args: tuple[Any, ...], state: dict[str, Any]) -> None:
        self.parts = kind, args
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        return (together, self.parts, self.state) if self.state else (together, self.parts)


def together(kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    """An exception as its class would have made it, but for what that class's own constructor does."""
    base: Any = next(one for one in kind.__mro__ if one.__module__ == "builtins")
    error: Exception = base.__new__(kind, *args)
    base.__init__(error, *args)
    return error


def _has_constructor(kind: type[Exception]) -> bool:
    """Its own, with nothing else of its own that says how to pickle it."""
    own = [one.__dict__ for one in kind.__mro__ if one.__module__ != "builtins"]
    if any(name in one for one in own for name in ("__reduce__", "__reduce_ex__")):
        return False
    if any(one.get("__slots__") for one in own):  # they are in no state
        return False
    return any(name in one for one in own for name in ("__init__", "__new__"))
