"""Rule 11, the other half: when another server serves a shard, acknowledged rows are sent again.

They are sent in order, before anything else. Rows are idempotent, so those that were not lost do no harm. A row of one
node may depend on rows that another node has yet to send again. Such a row is refused though it was granted before. It
is tried for some rounds and then given up, which loses nothing but work. In the end the node asks what it owns and what
it means to do. It takes on what it did not know of, because the node that had it since may be dead. (Three parts only
save time and work: the rounds, new rows that wait for them, and intents that are carried out under new marks at once.
600 fault seeds do not miss them. The order and the look at the end must not be left out.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daws.core.effects import CallStore
from daws.core.events import CallsSafe, StoreChanged
from daws.core.handlers import handles
from daws.core.outbox import ask_for_remakes, carry_out, spread_again, tell_children, wake
from daws.core.places import holds
from daws.core.remake import claim_remake
from daws.core.store_calls import ANSWERED, ROWS_PER_CALL, ask, ask_shard, call_now, forget_call, restart, take_calls
from daws.core.transfer import forget_moves, recover
from daws.core.unsafe import RECONCILES, Keeping, Resending, Said, go_on, is_refused, tasks_of
from daws.model.cluster import Members
from daws.model.task import NO_TASK, Ready
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    OK,
    STRUCK,
    AnswerType,
    Available,
    Claim,
    Committed,
    Estate,
    Finish,
    FinishSmall,
    Granted,
    Lease,
    Noted,
    Owned,
    Owners,
    Register,
    Remake,
    Resume,
    Row,
    Satisfy,
    Spawn,
    Stopped,
    Suspend,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore

ROUNDS = 4
"""How often a row is sent again that depends on rows of other nodes; there is a tick between rounds."""
LOOKS_TICKS = (2, 4, 8, 16, 32)
"""The ticks until a node asks what it owns, after all rows were sent again and after each such look. Mostly the others
have sent their rows by the first look, but some may have been out of reach."""
OF_OWNERS = (Claim, Finish, FinishSmall, Spawn, Suspend)
"""Rows that are granted to whoever owns the task."""
OWNED_MAX = 1 << 30


@handles(CallsSafe)
def on_calls_safe(core: NodeCore, event: CallsSafe) -> None:
    core.keeping.forget(event.shard, event.tokens)
    go_on(core)


# -- saying it again ---------------------------------------------------------------------------------------------------


@handles(StoreChanged)
def on_store_changed(core: NodeCore, event: StoreChanged) -> None:
    keeping: Keeping = core.keeping
    shard = event.shard
    if shard == 0 and core.leaving is None:
        # It may have gone back to earlier members, count on from there, and not know this node.
        core.take_members(Members(0, core.members.infos, core.members.strategy))
        ask_shard(core, shard, Lease(core.node, 0, core.info, asked_ns=core.now_ns))
    forget_moves(core)
    before = keeping.resending.get(shard)
    if before is not None:
        forget_call(core, before.token)
    calls = {token: [Said(row, True) for row in rows] for token, rows in keeping.take(shard).items()}
    calls.update(_unanswered(core, shard))
    said = [one for _, rows in sorted(calls.items()) for one in rows]
    _send_next(core, shard, keeping.begin_resending(shard, said, on_resent))


def _unanswered(core: NodeCore, shard: int) -> dict[int, list[Said]]:
    """Rows that are under way to a shard. Should they get there before what comes first, that answer does not count.
    A look at what is ours is not among them: it would come before others have said again what is theirs, and there is
    another look after this round."""
    calls = take_calls(core, shard)
    return {call.token: [Said(row, False) for row in call.rows if not _is_asked_anew(row)] for call in calls}


def _is_asked_anew(row: Row) -> bool:
    return isinstance(row, Lease) or (isinstance(row, Owned) and row.look == RECONCILES)


def _send_next(core: NodeCore, shard: int, resending: Resending) -> None:
    """One call after the other: their order counts."""
    if resending.left:
        resending.sent(call_now(core, shard, resending.next_rows(ROWS_PER_CALL)))
    else:
        _end_round(core, shard, resending)


def on_resent(core: NodeCore, call: CallStore, answers: Sequence[AnswerType]) -> None:
    keeping: Keeping = core.keeping
    resending = keeping.resending[call.shard]
    said = resending.answered_now()
    keeping.keep(call, answers)  # this server may be replaced as well
    stuck = {task for one in resending.failed for task in tasks_of(one.row)}
    for one, answer in zip(said, answers, strict=True):
        if answer.__class__ is int and answer == STRUCK:
            restart(core, "its lease ran out and another node took over")
            return
        tasks = tasks_of(one.row)
        if not stuck.isdisjoint(tasks) or (one.heard and is_refused(one.row, answer)):
            resending.fail(Said(one.row, one.heard, answer))
            stuck.update(tasks)
        elif one.heard:
            _intend_again(core, one.row, answer)
        elif answer is not None:
            ANSWERED[type(one.row)](core, one.row, answer)
    _send_next(core, call.shard, resending)


def _end_round(core: NodeCore, shard: int, resending: Resending) -> None:
    resending.end_round()
    if resending.round == ROUNDS:
        _let_go(core, resending)
    for row in resending.take_waiting():
        ask_shard(core, shard, row)  # some may have to wait for the next round
    if not resending.failed:
        core.keeping.end_resending(shard, LOOKS_TICKS[0])


def _let_go(core: NodeCore, resending: Resending) -> None:
    """Give up the rows that still fail: the node that had to send its rows first is not there. The tasks of these rows
    are not ours any more, or ours anew."""
    for one in resending.give_up():
        run = core.executors.running.get(one.row.task) if isinstance(one.row, OF_OWNERS) else None
        if run is not None:
            core.call_off(run.ready.spec.id, run.ready.attempt)
        if one.heard:
            _intend_again(core, one.row, one.answer)
        elif one.answer is not None:
            ANSWERED[type(one.row)](core, one.row, one.answer)


def say_again(core: NodeCore) -> None:
    """Begin the next round of rows that were refused, and look whether something is ours; called on each tick."""
    keeping: Keeping = core.keeping
    for shard, resending in list(keeping.resending.items()):
        if not resending.left and not resending.token:
            resending.begin_round()
            _send_next(core, shard, resending)
    for shard in list(keeping.looks):
        if keeping.is_look_due(shard, LOOKS_TICKS):
            ask_shard(core, shard, Owned(core.node, RECONCILES, OWNED_MAX, True))
            if shard == MEMBERSHIP_SHARD:
                _look_for_strangers(core)


def _look_for_strangers(core: NodeCore) -> None:
    """Ask every shard which nodes own something. The shard of the members may have forgotten a node that had just
    joined and then died, so no node takes over from it. But other shards may have what it got meanwhile. The other way
    round, the shard of the members may have forgotten that this node was struck. Other shards have not: they answer
    STRUCK to `Owned`, and this node begins anew. (The limit of 0 says that the tasks themselves are not asked for.)"""
    for shard in range(core.shard_count):
        if shard != MEMBERSHIP_SHARD:
            ask_shard(core, shard, Owned(core.node, RECONCILES, 0))
        ask_shard(core, shard, Owners())


def _intend_again(core: NodeCore, row: Row, answer: AnswerType) -> None:
    """Carry out the intents that the store holds this node to, under marks that may be new. Tasks are not among them: a
    later look finds those that are ours, once the others have claimed theirs again."""
    task = getattr(row, "task", NO_TASK)
    if isinstance(answer, Committed):
        if answer.stop is not None:
            spread_again(core, task, answer.stop)
        if answer.children and answer.key >= 0:
            tell_children(core, answer.key, answer.mark, task, answer.children, row.outputs, answer.needs)  # type: ignore[attr-defined]
    elif isinstance(answer, Stopped):
        spread_again(core, task, answer)
    elif isinstance(answer, Granted) and answer.stop is not None:
        spread_again(core, task, answer.stop)
    elif isinstance(answer, Noted):
        ask_for_remakes(core, answer.key, answer.mark, task, row.producers, ())  # type: ignore[attr-defined]
    elif isinstance(answer, Estate):
        for entry in answer.outbox:
            carry_out(core, entry)
    elif isinstance(answer, Resume):
        wake(core, task, 0, answer.node)
    elif isinstance(row, Register) and answer != OK:
        core.tell_child(row, answer)
    elif isinstance(row, Suspend):
        core.wait_again(row, answer)
    elif isinstance(row, Remake) and isinstance(answer, Available):
        ask(core, row.waiter, Satisfy(row.waiter, row.task, core.node, answer.inputs, 0, row.need))
    elif isinstance(row, Remake) and isinstance(answer, Ready):
        claim_remake(core, answer, 0)


def take_on(core: NodeCore, answer: Estate) -> None:
    """Take on what the store says is ours and is not here: the node that had it since has not sent its rows again.
    Intents can be carried out twice, so those that only wait to be cleared do no harm."""
    for ready in answer.ready:
        if not _is_known(core, ready):
            recover(core, ready)
    intended = {(intent.key, intent.mark) for intent in core.outbox.telling.values()}
    for entry in answer.outbox:
        # Numbers of moves come again, so a word of before that was late may have been taken for one of now.
        if (entry.key, entry.mark) not in intended:
            carry_out(core, entry)


def _is_known(core: NodeCore, ready: Ready) -> bool:
    """Is it here, or is something about it under way whose answer is still to come?"""
    task = ready.spec.id
    if task in core.transfer.claims or (core.spawning.growing and (task, False) in core.spawning.growing):
        return True
    said_again = [one.row for resending in core.keeping.resending.values() for one in resending.all()]
    return holds(core, task, ready.attempt, ready.move) or any(task in tasks_of(row) for row in said_again)
