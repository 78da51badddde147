"""Tables that notebooks show of clusters and futures. Nothing here waits, or reads a result that nobody has asked
for."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from daws.model.html import size, table

SHOWN_MAX = 200


def cluster_html(cluster: Any) -> str:
    """Its nodes, workers and strategy, and the tasks that it has still to do."""
    session = cluster._session
    rows: list[tuple[str, object]] = [("state", "closed" if session is None else "open")]
    if session is not None:
        nodes, workers = len(session.engine.members), cluster.workers
        rows += [("nodes", f"{nodes:,}"), ("workers", f"{workers:,}"), ("strategy", cluster.strategy.name)]
        rows += [("tasks to end", f"{len(session.futures):,}")]
    return table(type(cluster).__name__, rows)


def future_html(future: Any) -> str:
    """Its state and, if it has ended, what is known of its result."""
    return table(f"{type(future).__name__} {future.task}", [("state", future.state), *_result(future)])


def _result(future: Any) -> Iterable[tuple[str, object]]:
    from daws.client.future import FAILED, INLINE, STORED, VALUE

    if future._state == INLINE:
        yield "result", f"{size(len(future._what))}, not read yet"
    elif future._state == STORED:
        stored = future._session.stored.get(future.task, ())
        known = [output.size_bytes for output in stored if output.object == future.object]
        yield "result", f"{size(known[0])} in a file, not read yet" if known else "in a file, not read yet"
    elif future._state == VALUE:
        kind = type(future._what)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        yield "type", name
        yield "result", _short(future._what)
    elif future._state >= FAILED:
        error = future.exception()
        yield "error", f"{type(error).__name__}: {_short(error, str)}"


def mapped_html(mapped: Any) -> str:
    """How many items and tasks it has, and how far they are."""
    return table("Mapped", [("items", f"{len(mapped):,}"), ("tasks", states(mapped._futures))])


def futures_html(futures: Any) -> str:
    """How many there are, and how far they are."""
    return table("Futures", [("tasks", states(futures))])


def states(futures: Any) -> str:
    """How many futures are in which state, in words."""
    counted = Counter([future.state for future in futures])
    named = [f"{counted[state]:,} {state}" for state in ("done", "failed", "cancelled", "pending") if counted[state]]
    return ", ".join(named) or "none"


def _short(value: object, said: Any = repr) -> str:
    try:
        text = said(value)
    except Exception as error:
        return f"<it cannot be shown: {type(error).__name__}>"
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
