import numpy as np
import pytest

from daws.model.columns import check_offsets, column, distinct, frozen, offsets, spans
from daws.model.errors import GraphError


def test_column_converts_and_is_read_only():
    made = column("kind", [1, 2], np.int32, 2)
    assert made.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 3


def test_empty_column():
    assert column("kind", [], np.int32).tolist() == []


@pytest.mark.parametrize("values", [[1.5], [[1]], ["a"], [True], [2**31], [-(2**31) - 1], [2**70], [1, 2, 3]])
def test_column_refuses(values: list[int]):
    with pytest.raises(GraphError, match="column kind"):
        column("kind", values, np.int32, 1)


def test_frozen_leaves_the_original_writable():
    original = np.zeros(2, np.int64)
    frozen(original)
    original[0] = 1


@pytest.mark.parametrize(("starts", "total"), [([1, 2], 2), ([0, 2, 1], 2), ([0, 3], 2), ([0, 1], 2)])
def test_offsets_refused(starts: list[int], total: int):
    with pytest.raises(GraphError):
        check_offsets("input_start", np.array(starts), total, exact=True)


def test_offsets_may_end_early_when_not_exact():
    check_offsets("output_start", np.array([0, 1]), 2, exact=False)


def test_offsets_spans_and_distinct():
    starts = offsets(np.array([0, 0, 2]), 4)
    assert starts.tolist() == [0, 2, 2, 3, 3]
    assert spans(np.array([5, 9, 1]), np.array([2, 0, 3])).tolist() == [5, 6, 1, 2, 3]
    assert spans(np.array([], np.int64), np.array([], np.int64)).tolist() == []
    assert distinct(np.array([3, 1, 3])).tolist() == [1, 3]
    assert distinct(np.array([], np.int64)).tolist() == []
