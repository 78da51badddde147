"""What a node and its workers say to each other can be read back."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from daws.wire.worker import (
    FRAME_HEAD_BYTES,
    ORDERS,
    REPORTS,
    TOGETHER_MIN,
    Ended,
    EndedTogether,
    Execute,
    ExecuteTogether,
    Exit,
    Learn,
    OrderType,
    Recalled,
    ReportType,
    Written,
    apart,
    calls_apart,
    ends_together,
    frame_of,
)


@pytest.mark.parametrize(
    "decoder, kind",
    [
        *((ORDERS, kind) for kind in get_args(OrderType)),
        *((REPORTS, kind) for kind in get_args(ReportType)),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_written_is_read_back(decoder: Any, kind: type, data: st.DataObject):
    value = data.draw(st.from_type(kind))
    buffer = bytearray(b"what was here before")
    try:
        frame_of([value], buffer)
    except OverflowError:  # numbers of more than 64 bits do not travel
        reject()
    assert int.from_bytes(buffer[:FRAME_HEAD_BYTES], "little") == len(buffer) - FRAME_HEAD_BYTES
    assert decoder.decode(memoryview(buffer)[FRAME_HEAD_BYTES:]) == [value]


def test_a_frame_takes_the_place_of_a_longer_one():
    buffer = bytearray()
    frame_of([Learn(1, bytes(1000))], buffer)
    frame_of([Exit()], buffer)
    assert ORDERS.decode(buffer[FRAME_HEAD_BYTES:]) == [Exit()]


def test_orders_are_no_reports():
    buffer = bytearray()
    frame_of([Recalled(1)], buffer)
    with pytest.raises(msgspec.ValidationError):
        ORDERS.decode(buffer[FRAME_HEAD_BYTES:])


@pytest.mark.parametrize("values", [[b"a"], [b"a", b"b", b"a"]])
def test_many_ends_travel_as_columns_and_are_the_same_apart(values: list[bytes]):
    ends: list[ReportType] = [
        Ended(run, 10 + run, (values[run % len(values)],), 1000 * run) for run in range(3 * TOGETHER_MIN)
    ]
    (together,) = ends_together(ends)
    assert isinstance(together, EndedTogether)
    assert len(together.results) == (1 if len(values) == 1 else len(ends))
    assert apart([Recalled(9), together]) == [Recalled(9), *ends]


@pytest.mark.parametrize(
    "odd", [Recalled(1), Ended(1, 1, ()), Ended(1, 1, (b"a", b"b")), Ended(1, 1, (7,)), Ended(1, 1, (Written("x", 1),))]
)
def test_ends_stay_apart_if_one_of_them_is_unusual(odd: ReportType):
    ends: list[ReportType] = [*[Ended(run, 1, (b"a",)) for run in range(TOGETHER_MIN)], odd]
    assert ends_together(ends) is ends
    assert ends_together(ends[:1]) == ends[:1]


def test_many_calls_are_the_same_apart():
    calls = calls_apart(ExecuteTogether(3, [5, 6], [b"x"], [50, 60]))
    assert calls == [Execute(5, 3, b"x", (), (50,)), Execute(6, 3, b"x", (), (60,))]
    assert [call.arguments for call in calls_apart(ExecuteTogether(3, [5, 6], [b"x", b"y"], [50, 60]))] == [b"x", b"y"]
