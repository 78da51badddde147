"""Talking to the store: rows are collected per shard during a step and leave as few calls; answers come back row by row.

A call that stays unanswered is sent again by the tick (every row is idempotent); an answer to a call that was answered
before is dropped by its token.
"""

from collections.abc import Callable
from typing import Any

from daws.core.effects import CallStore, Restart
from daws.core.events import StoreAnswered
from daws.core.node import NodeCore, handles
from daws.wire.store import SHARD_BLOCK_BITS, STRUCK, AnswerType, Row

AnswerHandler = Callable[[NodeCore, Any, AnswerType], None]
ANSWERED: dict[type[Row], AnswerHandler] = {}


def answers(row: type[Row]) -> Callable[[AnswerHandler], AnswerHandler]:
    """Enter what is to be done with the answer to such a row."""

    def enter(handler: AnswerHandler) -> AnswerHandler:
        assert row not in ANSWERED, row
        ANSWERED[row] = handler
        return handler

    return enter


def ask(core: NodeCore, task: int, row: Row) -> None:
    """Put a row about a task into the next call to its shard."""
    ask_shard(core, (task >> SHARD_BLOCK_BITS) % core.config.shard_count, row)


def ask_shard(core: NodeCore, shard: int, row: Row) -> None:
    rows = core.rows.get(shard)
    if rows is None:
        core.rows[shard] = [row]
    else:
        rows.append(row)


def send_rows(core: NodeCore) -> None:
    """At the end of a step: one call per shard, or several so that the first answers to a long one come early."""
    limit = core.config.rows_per_call
    for shard, rows in core.rows.items():
        if len(rows) <= limit:
            _call(core, shard, rows)
        else:
            for start in range(0, len(rows), limit):
                _call(core, shard, rows[start : start + limit])
    core.rows = {}


def _call(core: NodeCore, shard: int, rows: list[Row]) -> None:
    core.token = token = core.token + 1
    core.calls[token] = (shard, rows, core.now_ns)
    core.out.append(CallStore(token, shard, rows))  # type: ignore[arg-type]


def repeat_calls(core: NodeCore, older_than_ns: int) -> None:
    """Send again what was not answered (the request or its answer got lost, or the store is away)."""
    now_ns = core.now_ns
    for token, (shard, rows, sent_ns) in core.calls.items():
        if now_ns - sent_ns >= older_than_ns:
            core.calls[token] = (shard, rows, now_ns)
            core.out.append(CallStore(token, shard, rows))  # type: ignore[arg-type]


@handles(StoreAnswered)
def on_store_answered(core: NodeCore, event: StoreAnswered) -> None:
    call = core.calls.pop(event.token, None)
    if call is None:
        return
    for row, answer in zip(call[1], event.answers, strict=True):
        if answer.__class__ is int and answer == STRUCK:
            restart(core, "its lease ran out and another node took over")
            return
        ANSWERED[type(row)](core, row, answer)


def restart(core: NodeCore, reason: str) -> None:
    if not core.restarting:
        core.restarting = True
        core.out.append(Restart(reason))
