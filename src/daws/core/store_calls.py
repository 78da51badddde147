"""Talking to the store: rows are collected per shard during a step and leave as few calls; answers come row by row.

A call that stays unanswered is sent again by the tick (every row is idempotent); an answer to a call that was answered
before is dropped by its token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from daws.core.effects import ASK_AGAIN, CallStore, Left, Restart, SetTimer
from daws.core.events import CallFine, StoreAnswered
from daws.core.handlers import handles
from daws.wire.store import SHARD_BLOCK_BITS, STRUCK, AnswerType, Release, Row, Submit

if TYPE_CHECKING:
    from daws.core.node import NodeCore

AnswerHandler = Callable[["NodeCore", Any, AnswerType], None]
ANSWERED: dict[type[Row], AnswerHandler] = {}
NO_CALL = 0
"""In `hoping`: no outstanding call can bring work."""
THIS_STEP = -1
"""In `hoping`: the call that leaves with this step; its token is not known yet."""
ROWS_PER_CALL = 256
UNKNOWN_WAIT_NS, UNKNOWN_WAIT_NS_MAX = 250_000_000, 2_500_000_000
"""After so long a row about a task that is not in the store yet is sent again, then after twice as long, and so on."""
COMMITS_HELD_MAX = 64
"""So many ends of tasks for which nobody waits leave, whatever else."""


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
    add_row(core, shard, row)


def add_row(core: NodeCore, shard: int, row: Row) -> None:
    """Put a row into this step's call to a shard; most steps talk to one shard only."""
    if core.rows is None:
        core.rows = [row]
        core.rows_shard = shard
    elif core.rows_shard == shard:
        core.rows.append(row)
    else:
        if core.more_rows is None:
            core.more_rows = {}
        core.more_rows.setdefault(shard, []).append(row)


def add_rows(core: NodeCore, rows: Sequence[Submit] | Sequence[Release]) -> None:
    """The same for many that a client submits or lets go of."""
    shard_count = core.shard_count
    if shard_count > 1:
        for row in rows:
            task = row.task if isinstance(row, Release) else row.spec.id
            add_row(core, (task >> SHARD_BLOCK_BITS) % shard_count, row)
    elif core.rows is None:
        core.rows = [*rows]
        core.rows_shard = 0
    else:
        core.rows += rows


def ask_later(core: NodeCore, row: Row) -> None:
    """The record that this row is about is not in the store yet: ask again soon."""
    if core.unknown is None:
        core.unknown = []
        wait_ns, until_ns = core.unknown_wait
        is_same = core.now_ns <= until_ns + wait_ns  # asked again, and still not there
        wait_ns = min(2 * wait_ns, UNKNOWN_WAIT_NS_MAX) if is_same and wait_ns else UNKNOWN_WAIT_NS
        core.unknown_wait = (wait_ns, core.now_ns + wait_ns)
        core.out.append(SetTimer(ASK_AGAIN, core.now_ns + wait_ns))
    core.unknown.append(row)


def waiting_rows(core: NodeCore) -> list[Row]:
    """All rows that leave at the end of this step."""
    return [row for rows in (core.rows or (), *(core.more_rows or {}).values()) for row in rows]


def send_rows(core: NodeCore) -> None:
    """At the end of a step: one call per shard, or several so that the first answers to a long one come early."""
    assert core.rows is not None
    token = core.token
    lazy = not core.urgent
    hopes = core.hoping == THIS_STEP
    for shard, rows in ((core.rows_shard, core.rows), *(core.more_rows or {}).items()):
        if core.keeping is not None:
            rows = core.keeping.hold_back(shard, rows)
        for part in (rows,) if 0 < len(rows) <= ROWS_PER_CALL else _parts(rows):
            token += 1
            core.calls[token] = call = CallStore(token, shard, part, lazy, hopes)  # type: ignore[arg-type]
            core.out.append(call)
    if hopes:
        core.hoping = token if token > core.token else NO_CALL
    core.token = token
    core.urgent = False
    core.rows = core.more_rows = None


def _parts(rows: list[Row]) -> list[list[Row]]:
    return [rows[start : start + ROWS_PER_CALL] for start in range(0, len(rows), ROWS_PER_CALL)]


def repeat_calls(core: NodeCore) -> None:
    """On each tick: send again what was not answered since the one before (a call or its answer was lost)."""
    for token, call in core.calls.items():
        if token > core.old_token:
            break
        if core.keeping is None or core.keeping.may_leave(call):
            core.out.append(call)
    core.old_token = core.token


@handles(StoreAnswered)
def on_store_answered(core: NodeCore, event: StoreAnswered) -> None:
    call = core.calls.pop(event.token, None)
    if call is None:
        return
    if core.keeping is not None and core.keeping.takes(core, call, event.answers):
        return
    for row, answer in zip(call.rows, event.answers, strict=True):
        if answer is None:
            continue  # fine, and nothing follows from it
        if answer.__class__ is int and answer == STRUCK:
            restart(core, "its lease ran out and another node took over")
            return
        ANSWERED[type(row)](core, row, answer)
    if call.hopes:
        hope_ends(core, event.token)


def hope_ends(core: NodeCore, token: int) -> None:
    """The answer is here. If it brought no work, the scheduling pass looks for it elsewhere."""
    if core.hoping == token:
        core.hoping = NO_CALL
        if core.plain_free or not core.one_group:
            core.dirty = True


@handles(CallFine)
def on_call_fine(core: NodeCore, event: CallFine) -> None:
    call = core.calls.pop(event.token, None)
    if call is None:
        return
    if core.keeping is not None and core.keeping.takes(core, call, [None] * len(call.rows)):
        return
    if call.hopes:
        hope_ends(core, event.token)


def restart(core: NodeCore, reason: str) -> None:
    """This incarnation is struck: begin anew, unless it was about to leave anyway."""
    if not core.restarting:
        core.restarting = True
        core.outgoing = True
        core.out.append(Restart(reason) if core.leaving is None else Left(core.leaving.last_words(reason)))
