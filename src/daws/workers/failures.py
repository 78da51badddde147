"""Exceptions that travel: taken apart in a worker, put together in the client.

The client must get something sensible whatever the exception is: one that cannot be pickled, one that cannot be
unpickled (its class lives in a module that only the worker has), one whose `str` raises. Pickle makes an exception anew
from its `args`, which is wrong as soon as a class has a constructor of its own that hands on something else. So the
constructor of such a class is left out: what it did is in `args` and in the attributes.
"""

from typing import Any

from daws.data import codec
from daws.wire.worker import ENCODER, FAILURE, Failure
from daws.workers.errors import LostInputError, RemoteError, RemoteTraceback

TEXT_MAX = 1 << 16
OUTLINE_MAX = 200
PICKLED_MAX_BYTES = 1 << 20
STAYED = "it cannot be pickled, is larger than 1 MB, or is no Exception"
ENDING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")  # they would end the client, which no task may do


def failure_of(error: BaseException) -> bytes:
    """An exception as bytes."""
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


def why_of(failure: bytes) -> str:
    """In one line, what a run that lacks an object says of it."""
    return FAILURE.decode(failure).message.partition("\n")[0][:OUTLINE_MAX]


def outline_of(failure: bytes, who: str) -> str:
    """One line about a task that failed, for those that need what it would have made."""
    read = FAILURE.decode(failure)
    said = read.message.partition("\n")[0][:OUTLINE_MAX]
    prefix = f"{who}: "
    if said.startswith(prefix):  # an error of ours, which names the task itself
        return f"{who} failed: {said.removeprefix(prefix)}"
    return f"{who} failed: {read.kind}: {said}" if said else f"{who} failed: {read.kind}"


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
    try:
        data = codec.dumps(_Apart(error) if _has_constructor(type(error)) else error)
    except Exception:
        return b""
    return data if len(data) <= PICKLED_MAX_BYTES else b""


class _Apart:
    """An exception that pickles as its args and attributes."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: Any = self.error.__reduce__()  # nobody has changed what it is: class, args, perhaps attributes
        kind, args, *state = reduced
        return together, (kind, args), *state


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
