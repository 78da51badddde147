"""Places inside pickled arguments that are filled with inputs while they are unpickled.

A client that finds a future among the arguments of a task lets it pickle as `Slot(i)` does. Measured: one microsecond
for a slot, as much as with a persistent id, and the pickling side needs no pickler of its own, which would be asked
about every single object.
"""

from collections.abc import Callable, Sequence
from threading import local
from typing import Any, Protocol


class Reader(Protocol):
    """A source of inputs, as values and as files."""

    def value(self, one: Any, /) -> Any: ...

    def file(self, one: Any, name: str, /) -> Any: ...


class _Inputs(local):
    given: Sequence[Any] = ()
    reader: Any = None


_inputs = _Inputs()  # per thread: workers may be threads


def fill(index: int) -> Any:
    """The value of a slot. Pickled arguments name this function."""
    return _inputs.reader.value(_inputs.given[index])


def fill_file(index: int, name: str) -> Any:
    """The value of a slot whose input is a file and no pickled value."""
    return _inputs.reader.file(_inputs.given[index], name)


class Slot:
    """Stands for input number `index` of a run."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __repr__(self) -> str:
        return f"Slot({self.index})"

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return fill, (self.index,)


def filled(given: Sequence[Any], reader: Reader, load: Callable[..., Any], arguments: bytes) -> Any:
    """Load arguments, with these inputs in their slots."""
    before = _inputs.given, _inputs.reader
    _inputs.given, _inputs.reader = given, reader
    try:
        return load(arguments)
    finally:
        _inputs.given, _inputs.reader = before
