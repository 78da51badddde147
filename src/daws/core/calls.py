"""Talking to the store: rows are collected per shard during a step and leave as few calls; answers come row by row.

A call that stays unanswered is sent again by the tick (every row is idempotent); an answer to a call that was answered
before is dropped by its token.
"""

from collections.abc import Callable
from typing import Any

from daws.core.effects import CallStore, Restart
from daws.core.events import CallsFine, StoreAnswered
from daws.core.node import NodeCore, handles
from daws.wire.store import SHARD_BLOCK_BITS, STRUCK, AnswerType, Row

AnswerHandler = Callable[[NodeCore, Any, AnswerType], None]
ANSWERED: dict[type[Row], AnswerHandler] = {}
ROWS_PER_CALL = 256


def answers(row: type[Row]) -> Callable[[AnswerHandler], AnswerHandler]:
    """Enter what is to be done with the answer to such a row."""

    def enter(handler: AnswerHandler) -> AnswerHandler:
        assert row not in ANSWERED, row
        ANSWERED[row] = handler
        return handler

    return enter


def ask(core: NodeCore, task: int, row: Row) -> None:
    """Put a row about a task into the next call to its shard."""
    ask_shard(core, (task >> SHARD_BLOCK_BITS) % core.shard_count, row)


def ask_shard(core: NodeCore, shard: int, row: Row) -> None:
    core.urgent = True
    if core.rows is None:
        core.rows = {shard: [row]}
    else:
        core.rows.setdefault(shard, []).append(row)


def send_rows(core: NodeCore) -> None:
    """At the end of a step: one call per shard, or several so that the first answers to a long one come early."""
    assert core.rows is not None
    token = core.token
    lazy = not core.urgent
    for shard, rows in core.rows.items():
        for part in (rows,) if len(rows) <= ROWS_PER_CALL else _parts(rows):
            token += 1
            core.calls[token] = call = CallStore(token, shard, part, lazy)  # type: ignore[arg-type]
            core.out.append(call)
    core.token = token
    core.urgent = False
    core.rows = None


def _parts(rows: list[Row]) -> list[list[Row]]:
    return [rows[start : start + ROWS_PER_CALL] for start in range(0, len(rows), ROWS_PER_CALL)]


def repeat_calls(core: NodeCore) -> None:
    """On each tick: send again what was not answered since the one before (a call or its answer was lost)."""
    for token, call in core.calls.items():
        if token > core.old_token:
            break
        core.out.append(call)
    core.old_token = core.token


@handles(StoreAnswered)
def on_store_answered(core: NodeCore, event: StoreAnswered) -> None:
    call = core.calls.pop(event.token, None)
    if call is None:
        return
    for row, answer in zip(call.rows, event.answers, strict=True):
        if answer is None:
            continue  # fine, and nothing follows from it
        if answer == STRUCK:
            restart(core, "its lease ran out and another node took over")
            return
        ANSWERED[type(row)](core, row, answer)


@handles(CallsFine)
def on_calls_fine(core: NodeCore, event: CallsFine) -> None:
    calls = core.calls
    for token in event.tokens:
        calls.pop(token, None)


def restart(core: NodeCore, reason: str) -> None:
    if not core.restarting:
        core.restarting = True
        core.outgoing = True
        core.out.append(Restart(reason))
