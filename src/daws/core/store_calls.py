"""Calls to the store: rows are collected per shard during a step and leave as few calls; answers come row by row.

A call that stays unanswered is sent again by the tick (every row is idempotent); a second answer to a call is dropped
by its token. The ends of tasks for which nobody waits are held back for a while, so that many of them share a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from daws.core.config import Phase
from daws.core.effects import ASK_AGAIN, COMMIT, CallStore, Left, Restart, SetTimer
from daws.core.events import CallFine, StoreAnswered
from daws.core.handlers import fires, handles
from daws.wire.store import SHARD_BLOCK_BITS, STRUCK, AnswerType, Release, Row, Submit

if TYPE_CHECKING:
    from daws.core.node import NodeCore

AnswerHandler = Callable[["NodeCore", Any, AnswerType], None]
ANSWERED: dict[type[Row], AnswerHandler] = {}
NO_CALL = 0
"""A value of `hoping`: no outstanding call can bring work."""
THIS_STEP = -1
"""A value of `hoping`: the call that leaves with this step; its token is not known yet."""
ROWS_PER_CALL = 256
UNKNOWN_WAIT_NS, UNKNOWN_WAIT_NS_MAX = 250_000_000, 2_500_000_000
"""The time after which a row about a task that is not in the store yet is sent again. It doubles up to the maximum."""
ENDS_HELD_MAX = 64
"""The number of held ends of tasks at which they leave."""
ENDS_PER_LOOK = 64
"""Whether held rows are due is looked up once while so many tasks end."""


class StoreCalls:
    """The rows that have not left yet, and the calls that are not answered yet."""

    __slots__ = (
        *("calls", "commit_armed", "held_until_ns", "hoping", "more_rows", "old_token", "rows", "shard"),
        *("unknown", "unknown_wait", "urgent"),
    )

    def __init__(self) -> None:
        self.rows: list[Row] | None = None  # for one shard
        self.shard = 0
        self.more_rows: dict[int, list[Row]] | None = None  # for all other shards
        self.urgent = False  # something waits for the answers to this step's calls
        self.held_until_ns = 0  # when the rows have to leave, if they are all ends of tasks for which nobody waits
        self.commit_armed = False
        self.calls: dict[int, CallStore] = {}  # by token
        self.old_token = 0  # calls up to this one were sent before the last tick
        self.hoping = NO_CALL  # the call whose answer may bring work: no need to look for it elsewhere yet
        self.unknown: list[Any] | None = None  # rows about records that are not in the store yet
        self.unknown_wait = (0, 0)  # how long the last of those waited to be sent again, and until when


def answers(row: type[Row]) -> Callable[[AnswerHandler], AnswerHandler]:
    """Enter what is to be done with the answer to such a row."""

    def enter(handler: AnswerHandler) -> AnswerHandler:
        assert row not in ANSWERED, row
        ANSWERED[row] = handler
        return handler

    return enter


# -- rows --------------------------------------------------------------------------------------------------------------


def ask(core: NodeCore, task: int, row: Row) -> None:
    """Put a row about a task into the next call to its shard."""
    ask_shard(core, (task >> SHARD_BLOCK_BITS) % core.shard_count, row)


def ask_shard(core: NodeCore, shard: int, row: Row) -> None:
    core.store.urgent = True
    add_row(core, shard, row)


def add_row(core: NodeCore, shard: int, row: Row) -> None:
    """Put a row into this step's call to a shard; most steps talk to one shard only."""
    store = core.store
    if store.rows is None:
        store.rows = [row]
        store.shard = shard
    elif store.shard == shard:
        store.rows.append(row)
    else:
        if store.more_rows is None:
            store.more_rows = {}
        store.more_rows.setdefault(shard, []).append(row)


def ask_all(core: NodeCore, rows: Sequence[Submit] | Sequence[Release]) -> None:
    """Put many rows that a client submits or lets go of into the next calls."""
    store, shard_count = core.store, core.shard_count
    store.urgent = True
    if shard_count > 1:
        for row in rows:
            task = row.task if isinstance(row, Release) else row.spec.id
            add_row(core, (task >> SHARD_BLOCK_BITS) % shard_count, row)
    elif store.rows is None:
        store.rows = [*rows]
        store.shard = 0
    else:
        store.rows += rows


def add_end(core: NodeCore, task: int, row: Row, is_awaited: bool) -> None:
    """Put the end of a run into the next call. If nobody waits for it and all executors are busy, that call may wait
    for more of its kind."""
    store = core.store
    shard = (task >> SHARD_BLOCK_BITS) % core.shard_count
    if is_awaited:
        store.urgent = True
    if store.rows is not None:
        if store.shard == shard:
            store.rows.append(row)
        else:
            add_row(core, shard, row)
        return
    store.rows = [row]
    store.shard = shard
    if not is_awaited:
        delay_ns = core.config.commit_delay_ns
        if core.executors.one_group and core.lengths.mean_run_ns <= delay_ns:
            store.held_until_ns = core.now_ns + delay_ns
            if not store.commit_armed:
                _look_later(core)
        else:
            store.held_until_ns = 0


def add_ends(core: NodeCore, rows: list[Row], is_awaited: bool) -> None:
    """Put the ends of many runs into this step's call, which has rows already; there is one shard."""
    store = core.store
    assert store.rows is not None
    store.rows += rows
    if is_awaited:
        store.urgent = True


def _look_later(core: NodeCore) -> None:
    """The next end of a run wakes this node up, but that run may take unusually long. A timer for each held row would
    cost more than holding rows saves: one comes after so many ends as it may cost."""
    core.store.commit_armed = True
    ends_ns = ENDS_PER_LOOK * core.lengths.mean_run_ns // core.cores
    core.out.append(SetTimer(COMMIT, core.now_ns + max(core.config.commit_delay_ns, ends_ns)))


@fires(COMMIT)
def look_at_held(core: NodeCore) -> None:
    """Set the timer again for rows that are not due yet. The step sends those that are."""
    store = core.store
    store.commit_armed = False
    if store.rows is not None and core.now_ns < store.held_until_ns:
        _look_later(core)


def ask_later(core: NodeCore, row: Row) -> None:
    """Send a row again soon, because the record that it is about is not in the store yet."""
    store = core.store
    if store.unknown is None:
        store.unknown = []
        wait_ns, until_ns = store.unknown_wait
        is_same = core.now_ns <= until_ns + wait_ns  # asked again, and still not there
        wait_ns = min(2 * wait_ns, UNKNOWN_WAIT_NS_MAX) if is_same and wait_ns else UNKNOWN_WAIT_NS
        store.unknown_wait = (wait_ns, core.now_ns + wait_ns)
        core.out.append(SetTimer(ASK_AGAIN, core.now_ns + wait_ns))
    store.unknown.append(row)


@fires(ASK_AGAIN)
def ask_unknown_again(core: NodeCore) -> None:
    """Send again the rows about tasks that were not in the store yet."""
    rows, core.store.unknown = core.store.unknown or (), None
    for row in rows:
        ask(core, row.task, row)


def waiting_rows(core: NodeCore) -> list[Row]:
    """All rows that leave at the end of this step."""
    store = core.store
    return [row for rows in (store.rows or (), *(store.more_rows or {}).values()) for row in rows]


def unanswered_rows(core: NodeCore) -> list[Row]:
    """All rows of calls that were not answered."""
    return [row for call in core.store.calls.values() for row in call.rows]


# -- calls -------------------------------------------------------------------------------------------------------------


def send_rows(core: NodeCore) -> None:
    """Send the rows at the end of a step. (The step knows whether they may be held back.)"""
    store = core.store
    rows = store.rows
    assert rows is not None
    if store.more_rows is not None or len(rows) > ROWS_PER_CALL or core.keeping is not None:
        _send_rows(core)
        return
    store.rows = None
    token = core.executors.next_token()
    lazy, hopes = not store.urgent, False
    if store.urgent:
        store.urgent = False
        hopes = store.hoping == THIS_STEP
        if hopes:
            store.hoping = token
    store.calls[token] = call = CallStore(token, store.shard, rows, lazy, hopes)  # type: ignore[arg-type]
    core.out.append(call)


def _send_rows(core: NodeCore) -> None:
    """One call per shard, or several so that the first answers to a long one come early."""
    store = core.store
    assert store.rows is not None
    lazy = not store.urgent
    hopes = store.hoping == THIS_STEP
    token = NO_CALL
    for shard, rows in ((store.shard, store.rows), *(store.more_rows or {}).items()):
        if core.keeping is not None:
            rows = core.keeping.hold_back(shard, rows)
        for part in (rows,) if 0 < len(rows) <= ROWS_PER_CALL else _parts(rows):
            token = call_now(core, shard, part, lazy, hopes)
    if hopes:
        store.hoping = token
    store.urgent = False
    store.rows = store.more_rows = None


def _parts(rows: list[Row]) -> list[list[Row]]:
    return [rows[start : start + ROWS_PER_CALL] for start in range(0, len(rows), ROWS_PER_CALL)]


def call_now(core: NodeCore, shard: int, rows: list[Row], lazy: bool = False, hopes: bool = False) -> int:
    """Send these rows by themselves; the token of their call."""
    token = core.executors.next_token()
    core.store.calls[token] = call = CallStore(token, shard, rows, lazy, hopes)  # type: ignore[arg-type]
    core.out.append(call)
    return token


def repeat_calls(core: NodeCore) -> None:
    """Send again, on each tick, the calls of before the last tick that were not answered (one of the two was lost)."""
    store = core.store
    for token, call in store.calls.items():
        if token > store.old_token:
            break
        if core.keeping is None or core.keeping.may_leave(call):
            core.out.append(call)
    store.old_token = core.executors.token


def take_calls(core: NodeCore, shard: int) -> list[CallStore]:
    """Take out the calls to a shard that were not answered. Late answers to them are ignored."""
    calls = [call for call in core.store.calls.values() if call.shard == shard]
    for call in calls:
        forget_call(core, call.token)
        if call.hopes:
            hope_ends(core, call.token)
    return calls


def forget_call(core: NodeCore, token: int) -> None:
    """Ignore the answer to this call, should it come."""
    core.store.calls.pop(token, None)


def shrink_calls(core: NodeCore) -> None:
    """Free the table of calls if it is empty: an emptied dictionary keeps its size."""
    if not core.store.calls:
        core.store.calls = {}


@handles(StoreAnswered)
def on_store_answered(core: NodeCore, event: StoreAnswered) -> None:
    call = core.store.calls.pop(event.token, None)
    if call is None:
        if core.keeping is None:  # else it may come from a server whose successor has forgotten it
            core.hear_late(event.answers)
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


@handles(CallFine)
def on_call_fine(core: NodeCore, event: CallFine) -> None:
    call = core.store.calls.pop(event.token, None)
    if call is None:
        return
    if core.keeping is not None and core.keeping.takes(core, call, [None] * len(call.rows)):
        return
    if call.hopes:
        hope_ends(core, event.token)


# -- calls that may bring work -----------------------------------------------------------------------------------------


def hope(core: NodeCore) -> bool:
    """May the answer to a call that was sent, or leaves with this step, bring work? A commit may make tasks ready."""
    store = core.store
    if store.hoping == NO_CALL and store.urgent:
        store.hoping = THIS_STEP
    return store.hoping != NO_CALL


def hope_ends(core: NodeCore, token: int) -> None:
    """Note that the answer has come. If it brought no work, the scheduling pass looks for work elsewhere."""
    if core.store.hoping == token:
        core.store.hoping = NO_CALL
        if core.executors.plain_free or not core.executors.one_group:
            core.schedule_soon()


def forget_hope(core: NodeCore, old_token: int) -> None:
    """Stop waiting, on each tick, for an answer that got lost. Calls up to the old token were sent before the last
    tick."""
    if core.store.hoping != NO_CALL and core.store.hoping <= old_token:
        core.store.hoping = NO_CALL
        core.schedule_soon()


def restart(core: NodeCore, reason: str) -> None:
    """Begin anew, because this incarnation was struck. A node that is about to leave ends instead."""
    if core.phase != Phase.RESTARTING:
        core.enter(Phase.RESTARTING)
        core.out.append(Restart(reason) if core.leaving is None else Left(core.leaving.last_words(reason)))
