"""Shared empty objects.

Most nodes of a large cluster are idle most of the time, and memory per node decides how large it can be. A container
that most nodes never need is therefore one shared object, which cannot be changed. A node gets its own when it has
something to put there.
"""

from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

EMPTY: dict[Any, Any] = MappingProxyType({})  # type: ignore[assignment]
NO_COPIES: set[int] = frozenset()  # type: ignore[assignment]
Part = TypeVar("Part")
EMPTIES: dict[type, Any] = {dict: EMPTY, set: NO_COPIES, list: ()}


def shared_part(part: Part) -> Part:
    """Make this the part of all nodes that do not need their own: its containers cannot be changed."""
    for name in part.__slots__:  # type: ignore[attr-defined]
        empty = EMPTIES.get(type(getattr(part, name)))
        if empty is not None:
            setattr(part, name, empty)
    return part


@lru_cache(maxsize=64)
def same(number: int) -> int:
    """One object for equal numbers: those with which all nodes of a cluster begin."""
    return number
