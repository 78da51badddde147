"""Notebooks and the prompt of IPython: what belongs to one cell.

Before a cell runs, functions are looked at again, because `%autoreload` may have changed their modules. A cell that is
interrupted cancels the tasks that it has submitted: nobody waits for them any more. Outside of IPython nothing happens
here: a program that catches KeyboardInterrupt decides by itself.
"""

import asyncio
import sys
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from daws.data.revisions import own as revisions

_shells: WeakSet[Any] = WeakSet()
_first: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()
"""A number that no task has, for each session: tasks of this cell have larger ones."""


def shell() -> Any:
    """IPython's shell that this process runs; None outside of one."""
    ipython: Any = sys.modules.get("IPython")  # who runs in one has it already
    return ipython.get_ipython() if ipython is not None else None


def watch(session: Any) -> None:
    """A session begins, in a cell or elsewhere."""
    revisions.watch(session)
    found = shell()
    if found is not None:
        _first[session] = 0
        if found not in _shells:
            _shells.add(found)
            found.events.register("pre_run_cell", _begin)
            found.events.register("post_run_cell", _end)


def unwatch(session: Any) -> None:
    """A session has ended."""
    revisions.unwatch(session)
    _first.pop(session, None)


def _begin(*_: Any) -> None:
    revisions.suspect()
    for session in tuple(revisions.sessions):
        _first[session] = session._next_task()


def _end(result: Any = None, *_: Any) -> None:
    error = getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)
    if not isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        return
    cancelled = 0
    for session in tuple(revisions.sessions):
        first = _first.get(session, 0)
        cancelled += session.cancel([future for task, future in [*session.futures.items()] if task >= first])
    if cancelled:
        tasks, are = ("1 task", "is") if cancelled == 1 else (f"{cancelled:,} tasks", "are")
        print(f"daws: the cell was interrupted: {tasks} that it had submitted {are} cancelled", file=sys.stderr)
