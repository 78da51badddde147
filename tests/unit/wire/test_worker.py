"""What a node and its workers say to each other can be read back."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from daws.wire.worker import FRAME_HEAD_BYTES, ORDERS, REPORTS, Exit, Learn, OrderType, Recalled, ReportType, frame_of


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
