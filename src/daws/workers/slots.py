"""Places inside pickled arguments that are filled with inputs while they are unpickled.

A client that finds a future among the arguments of a task lets it pickle as `Slot(i)` does. Measured: one microsecond
for a slot, as much as with a persistent id, and the pickling side needs no pickler of its own, which would be asked
about every single object.
"""

from collections.abc import Callable, Sequence
from threading import local
from typing import Any


class _Inputs(local):
    values: Sequence[Any] = ()


_inputs = _Inputs()  # per thread: workers may be threads


def fill(index: int) -> Any:
    """What a slot becomes; pickled arguments name this function."""
    return _inputs.values[index]


class Slot:
    """Stands for input number `index` of a run."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __repr__(self) -> str:
        return f"Slot({self.index})"

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return fill, (self.index,)


def filled(inputs: Sequence[Any], load: Callable[[bytes], Any], arguments: bytes) -> Any:
    """Load arguments, with these values in their slots."""
    before = _inputs.values
    _inputs.values = inputs
    try:
        return load(arguments)
    finally:
        _inputs.values = before
