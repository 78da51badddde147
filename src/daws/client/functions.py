"""Functions as workers know them: each content has a number, under which it is sent once.

The levels of this program's loggers go to the workers with its functions. Lines that tasks log are handled here, by the
handlers, formatters and filters of this program. Workers send only the lines that are wanted here. For that they know
the level of the root logger and of each logger that has one of its own. `logging` says that a level has changed by
emptying the caches of all loggers. Therefore the cache of the root logger is one that tells when it is emptied.
"""

import logging
from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any
from weakref import WeakSet

from msgspec import msgpack

from daws.data.functions import Carried, LargeFunction, dumps_function, is_settled, name_of, refuse_large
from daws.data.revisions import own as revisions
from daws.data.tags import leveled, named
from daws.runs.timeline import Timeline
from daws.workers.logs import DISABLE, ROOT

LEVELS_MAX_BYTES = 1 << 15


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


class _TellingCache(dict[int, bool]):
    """The cache of a logger, which knows whether it is enabled for a level."""

    def clear(self) -> None:
        super().clear()
        for watch in tuple(_watches):
            watch.changed()


class LevelWatch:
    """The levels as they are. `on_change` is called after they were asked for and have changed since. The levels that
    are `known` are None until they are asked for."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.known: bytes | None = None
        _watches.add(self)
        root: Any = logging.root
        if not isinstance(getattr(root, "_cache", None), _TellingCache):
            root._cache = _TellingCache()

    def changed(self) -> None:
        if self.known is not None:
            self.known = None
            self._on_change()

    def now(self) -> bytes:
        """The levels as they go to workers: nothing if they are those of a new process."""
        levels = self.known
        if levels is None:
            levels = self.known = levels_now()
        return levels


_watches: WeakSet[LevelWatch] = WeakSet()


def levels_now() -> bytes:
    root = logging.root
    found: dict[str, int] = {}
    if root.level != logging.WARNING:
        found[ROOT] = root.level
    if root.manager.disable:
        found[DISABLE] = root.manager.disable
    for name, logger in root.manager.loggerDict.copy().items():
        if isinstance(logger, logging.Logger) and logger.level:
            found[name] = logger.level
    levels = msgpack.encode(found) if found else b""
    if len(levels) > LEVELS_MAX_BYTES:  # thousands of loggers: those of the program are likely to have short names
        kept = sorted(found, key=len)[: len(found) * LEVELS_MAX_BYTES // len(levels) // 2]
        levels = msgpack.encode({name: found[name] for name in kept})
    return levels
