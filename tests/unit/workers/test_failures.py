import pickle
import threading
from typing import Any

import pytest

from daws.model.errors import CommandError, TaskKilledError
from daws.wire.worker import ENCODER, Failure
from daws.workers.errors import RemoteError
from daws.workers.failures import (
    OUTLINE_MAX,
    PICKLED_MAX_BYTES,
    PIECE_MAX_BYTES,
    TEXT_MAX,
    exception_of,
    failure_of,
    outline_of,
)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return exception_of(failure_of(caught))


def test_an_exception_comes_back_with_its_traceback():
    found = raised(KeyError("key"))
    assert type(found) is KeyError
    assert "raise error" in str(found.__cause__)


def test_classes_of_functions_come_back():
    class LocalError(Exception):
        pass

    assert type(raised(LocalError("here"))).__name__ == "LocalError"


class KeywordError(Exception):
    def __init__(self, text: str, *, code: int) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class WrappedError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")


class DiskError(OSError):
    def __init__(self, disk: str) -> None:
        super().__init__(28, "no space", disk)
        self.disk = disk


class MadeError(ValueError):
    def __new__(cls, one: int, two: int) -> "MadeError":
        return super().__new__(cls, f"{one}/{two}")

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one}/{two}")


class ReducedError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} or {two}")
        self.both = one, two

    def __reduce__(self) -> Any:
        return ReducedError, self.both


class SlotsError(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@pytest.mark.parametrize(
    "error, attributes",
    [
        (KeywordError("bad", code=3), {"code": 3}),
        (WrappedError(7), {}),
        (DiskError("/scratch"), {"disk": "/scratch", "errno": 28, "filename": "/scratch"}),
        (MadeError(1, 2), {}),
        (ReducedError(1, 2), {"both": (1, 2)}),
        (SlotsError(4), {"code": 4}),
    ],
)
def test_exceptions_with_constructors_of_their_own_come_back(error: Exception, attributes: dict[str, object]):
    error.add_note("seen on a Monday")
    found = raised(error)
    assert type(found) is type(error) and str(found) == str(error)
    assert {name: getattr(found, name) for name in attributes} == attributes
    if type(error) is not ReducedError:
        assert found.__notes__ == ["seen on a Monday"]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_what_would_end_the_client_is_put_into_words(error: BaseException):
    found = raised(error)
    assert isinstance(found, RemoteError)
    assert found.kind == type(error).__name__ and not found.reason


@pytest.mark.parametrize(
    "error, said",
    [
        (ValueError("no such\nstar"), "task 7 failed: ValueError: no such"),
        (KeyboardInterrupt(), "task 7 failed: KeyboardInterrupt"),
        (CommandError("`sh` exited", "sh", 3), "task 7 failed: CommandError: `sh` exited"),
        (TaskKilledError("task 7: its worker was killed"), "task 7 failed: its worker was killed"),
        (ValueError("x" * 999), "task 7 failed: ValueError: " + "x" * OUTLINE_MAX),
    ],
)
def test_those_that_need_a_failed_task_hear_why_in_a_line(error: BaseException, said: str):
    assert outline_of(failure_of(error), "task 7") == said


def test_huge_exceptions_are_cut():
    found = raised(ValueError("x" * (PICKLED_MAX_BYTES + 1)))
    assert type(found) is ValueError
    assert len(str(found)) == PIECE_MAX_BYTES // 4
    assert len(str(found.__cause__)) < 2 * TEXT_MAX


@pytest.mark.parametrize(
    "pickled, reason",
    [
        (b"rubbish", "cannot be unpickled here"),
        (b"cno.such.module\nname\n.", "No module named 'no'"),
        (pickle.dumps("a text"), "holds something else"),
        (b"csys\nexit\n(I3\ntR.", "SystemExit: 3"),
    ],
)
def test_whatever_the_pickle_does_it_is_an_error_with_words(pickled: bytes, reason: str):
    found = exception_of(ENCODER.encode(Failure("Kind", "message", "trace", pickled)))
    assert isinstance(found, RemoteError)
    assert str(found).startswith("Kind: message (")
    assert reason in found.reason
    assert str(found.__cause__) == "\ntrace"


class LockedError(ValueError):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code
        self.lock = threading.Lock()


def test_what_cannot_travel_of_an_exception_is_left_out_and_not_its_class():
    found = raised(LockedError("bad", 3))
    assert type(found) is LockedError and str(found) == "bad" and found.code == 3
    assert str(found.lock).startswith("<unlocked _thread.lock")
    assert found.__notes__ == ["as text, because it cannot be sent or is too large: lock"]
    found = raised(KeyError(threading.Lock(), 1))
    assert type(found) is KeyError and found.args[1] == 1 and "lock" in found.args[0]


def test_what_is_too_large_of_an_exception_is_left_out():
    error = ValueError("bad")
    error.data = bytes(PICKLED_MAX_BYTES)  # type: ignore[attr-defined]
    found = raised(error)
    assert type(found) is ValueError and len(found.data) <= OUTLINE_MAX  # type: ignore[attr-defined]


def test_groups_come_back_with_what_is_in_them():
    found = raised(ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [KeyError("two")])]))
    assert isinstance(found, ExceptionGroup) and found.split(KeyError)[0] is not None
    assert "KeyError: 'two'" in str(found.__cause__)
    found = raised(ExceptionGroup("several", [ValueError("one"), ReducedBadlyError("two")]))
    assert isinstance(found, ExceptionGroup) and isinstance(found.exceptions[0], ValueError)
    assert isinstance(found.exceptions[1], RemoteError) and found.exceptions[1].kind.endswith("ReducedBadlyError")


class ReducedBadlyError(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("never")


def test_causes_and_contexts_are_in_the_traceback():
    try:
        try:
            raise KeyError("first")
        except KeyError as first:
            raise ValueError("second") from first
    except ValueError as second:
        found = exception_of(failure_of(second))
    assert type(found) is ValueError
    text = str(found.__cause__)
    assert "KeyError: 'first'" in text and "direct cause" in text and "ValueError: second" in text
