"""The levels of this program's loggers, which go with its functions to the workers.

Lines that tasks log are handled here, by the handlers, formatters and filters of this program. Workers send only the
lines that are wanted here. For that they know the level of the root logger and of each logger that has one of its own.
`logging` says that a level has changed by emptying the caches of all loggers. Therefore the cache of the root logger
is one that tells when it is emptied.
"""

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from msgspec import msgpack

from daws.workers.logs import DISABLE, ROOT

LEVELS_MAX_BYTES = 1 << 15


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
