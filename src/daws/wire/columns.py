"""Columns: what many alike tasks or runs have, one list for each property. If all have the same, it is there once."""

from typing import TypeVar

T = TypeVar("T")


def once(column: list[T]) -> list[T]:
    """If all are the same, only the first of them."""
    return column[:1] if column.count(column[0]) == len(column) else column


def each(column: list[T], count: int) -> list[T]:
    """The same column with one for each."""
    return column * count if len(column) == 1 else column
