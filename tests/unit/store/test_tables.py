"""Whatever a store can be asked has somebody who answers."""

from typing import get_args

from daws.store.memory.store import HANDLERS
from daws.wire.store import RowType


def test_each_row_has_one_handler():
    assert set(HANDLERS) == {*get_args(RowType)}
