"""Functions as workers know them: each content has a number, under which it is sent once."""

from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any

from daws.client.levels import LevelWatch
from daws.data.functions import Carried, LargeFunction, dumps_function, is_settled, name_of, refuse_large
from daws.data.revisions import own as revisions
from daws.data.tags import leveled, named
from daws.runs.timeline import Timeline


class CarriedNumber(int):
    """The number of a function that calls another one, which goes with its arguments because it is large."""

    function: Callable[..., Any]


class Functions:
    """The functions that a session has sent. `learn` sends one to the nodes."""

    def __init__(self, learn: Callable[[int, bytes], None], timeline: Timeline | None) -> None:
        self.settled: dict[Callable[..., Any], int] = {}  # numbers of functions that need not be looked at again
        self.by_content: dict[bytes, int] = {}
        self.names: dict[int, str] = {}
        self.next_number = count().__next__
        self._learn = learn
        self._timeline = timeline
        self._levels = LevelWatch(self.settled.clear)

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number of a function; it is sent if it is new."""
        known = self.settled.get(function) if function.__class__ is FunctionType else None
        if known is not None:
            return known
        try:
            pickled = self._prepared(dumps_function(function, share=refuse_large))
        except LargeFunction:
            return self._carried(function)
        if self._levels.known != b"":
            pickled = leveled(self._levels.now(), pickled)
        known = self.by_content.get(pickled)
        if known is None:
            known = self.by_content[pickled] = self.next_number()
            name = self.names[known] = name_of(function)
            self._send(known, named(name, pickled))
            if self._timeline is not None:
                self._timeline.learn(known, name)
        if is_settled(function):
            self.settled[function] = known
        return known

    def _carried(self, function: Callable[..., Any]) -> CarriedNumber:
        carrier = Carried(name_of(function), getattr(function, "without_unpicklable", None))
        number = CarriedNumber(self.number_of(carrier))
        number.function = function
        return number

    def _prepared(self, pickled: bytes) -> bytes:
        """The function with all that workers have to know of the modules that it may need."""
        return revisions.carried(pickled)

    def _send(self, number: int, pickled: bytes) -> None:
        self._learn(number, pickled)
