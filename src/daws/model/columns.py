"""Small tools for numpy columns, and for lists per row that are kept as one long array with start offsets (CSR).

This module knows nothing of tasks or objects.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from daws.model.errors import GraphError

Int16s = npt.NDArray[np.int16]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Column = npt.NDArray[Any] | Sequence[int]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def frozen(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """A read-only view, so that readers can rely on an array that a value has given out."""
    view = array.view()
    view.flags.writeable = False
    return view


def column(name: str, values: Column, dtype: type[_Scalar], length: int | None = None) -> npt.NDArray[_Scalar]:
    """`values` as a read-only column of the given type. A number that does not fit raises instead of wrapping."""
    given = np.asarray(values, dtype=None if len(values) else dtype)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise GraphError(f"column {name} must be a flat list of integers, not {given.dtype} of {given.ndim} dimensions")
    if length is not None and len(given) != length:
        raise GraphError(f"column {name} must have {length} entries, not {len(given)}")
    if len(given) and not np.can_cast(given.dtype, dtype):
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # only integer types are asked for
        if int(given.min()) < limits.min or int(given.max()) > limits.max:
            raise GraphError(f"column {name} holds numbers that do not fit into {limits.dtype}")
    return frozen(np.ascontiguousarray(given, dtype=dtype))


def optional_column(name: str, values: Column | None, length: int) -> Int64s | None:
    """A column in which 0 means "not known". The result is None, which costs nothing, if no value is known."""
    if values is None:
        return None
    given = column(name, values, np.int64, length)
    return given if given.any() else None


def check_offsets(name: str, starts: Int64s, total: int, exact: bool) -> None:
    """Start offsets begin at 0, never fall, and end at `total` (or, if not exact, at most there)."""
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise GraphError(f"column {name} must start at 0 and never fall")
    if int(starts[-1]) > total or (exact and int(starts[-1]) != total):
        raise GraphError(f"column {name} ends at {starts[-1]}, but there are {total} entries")


def offsets(sorted_rows: Int64s, row_count: int) -> Int64s:
    """Start offsets of entries that are already in the order of their row numbers."""
    starts = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(sorted_rows, minlength=row_count), out=starts[1:])
    return starts


def spans(starts: Int64s, counts: Int64s) -> Int64s:
    """The indices start, start + 1, … of each span, one span after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total, dtype=np.int64)


def distinct(values: Int64s) -> Int64s:
    """The distinct values, sorted."""
    values = np.sort(values)
    keep = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=keep[1:])
    return values[keep]


def check_number(what: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is no whole number between `low` and `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise GraphError(f"{what} of {value!r}; it must be a whole number between {low} and {high}")
