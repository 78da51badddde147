"""The table of handlers: one function for each type of event. `node` imports all modules that enter their handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daws.core.node import NodeCore

Handler = Callable[["NodeCore", Any], None]
HANDLERS: dict[type, Handler] = {}


FIRED: dict[int, Callable[[NodeCore], None]] = {}
"""The functions that are called when a timer has fired, by timer."""


def fires(timer: int) -> Callable[[Callable[[NodeCore], None]], Callable[[NodeCore], None]]:
    """Enter the function of a timer into the table."""

    def enter(act: Callable[[NodeCore], None]) -> Callable[[NodeCore], None]:
        assert timer not in FIRED, timer
        FIRED[timer] = act
        return act

    return enter


def handles(*events: type) -> Callable[[Handler], Handler]:
    """Enter a handler into the table; each event type has exactly one."""

    def enter(handler: Handler) -> Handler:
        for event in events:
            assert event not in HANDLERS, event
            HANDLERS[event] = handler
        return handler

    return enter
