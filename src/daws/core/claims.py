"""Tasks on the move: offers are claimed in the store before they are queued; the lender is told.

The receiver of an offer claims by compare-and-set on (owner, move); only then is the task its own. The lender keeps it
as lent until it is told, and after a while claims it back from itself, so that a late claim of the receiver fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.fetching import add_staged, stage, unstage
from daws.core.handlers import handles
from daws.core.lifelines import be_unnamed
from daws.core.membership import note_leaver
from daws.core.objects import missing_inputs, pin
from daws.core.outbox import EVERY_ATTEMPT, spread_stop, told
from daws.core.placement import accept, accept_told, can_run_here, enqueue, note_taken
from daws.core.places import ends, holds, holds_itself
from daws.core.replicas import got_copy
from daws.core.store_calls import answers, ask
from daws.core.transfer import (
    BACK,
    NO_MOVE,
    RECOVERED,
    REMADE,
    begin_claim,
    count_steal,
    end_claim,
    end_own_claim,
    had_before,
    has_seen,
    say_taken,
)
from daws.model.task import AGAIN, SUSPECT, Ready
from daws.strategy.decisions import SHARED
from daws.wire.messages import (
    COPY,
    GIVEN,
    LEAVING,
    PUSH,
    STOLEN,
    Offer,
    Refusal,
    Submission,
    SubmissionTaken,
)
from daws.wire.store import ANNOUNCE, MOVE, REPLICATE, RETRY, AnswerType, Claim, Granted

if TYPE_CHECKING:
    from daws.core.node import NodeCore


@handles(Offer)
def on_offer(core: NodeCore, message: Offer) -> None:
    if has_seen(core, message):
        return  # doubled on its way; claiming again would be taken for the same claim
    if message.why == LEAVING:
        note_leaver(core, message.sender)
    if core.leaving is not None:
        refused = tuple([(ready.spec.id, ready.move) for ready in message.tasks])
        core.out.append(Send(message.sender, Refusal(core.node, refused)))
        return
    if message.why == STOLEN:
        core.note_rich(message.sender, len(message.tasks))  # it has about as many left
    copy = message.why == COPY
    for ready in message.tasks:
        task = ready.spec.id
        if task in core.transfer.claims or (copy and task in core.executors.running):
            continue
        begin_claim(core, ready, message.sender, message.why)
        ask(core, task, Claim(task, message.sender, ready.move, core.node, REPLICATE if copy else MOVE))


@answers(Claim)
def on_claim_answer(core: NodeCore, row: Claim, answer: AnswerType) -> None:
    if row.why in (ANNOUNCE, RETRY):
        _continue_own(core, row, answer)
        return
    if row.intent:
        told(core, row.intent)  # it is ours, or another's who asked for it too
    claim = core.transfer.claims.get(row.task)
    if claim is None or claim.owner != row.owner or claim.ready.move != row.move:
        return
    end_claim(core, row.task)
    ready, why = claim.ready, claim.why
    if isinstance(answer, Granted):
        again = answer.mode & AGAIN or (core.keeping is not None and core.keeping.doubts)
        if not (again and _has_it(core, row.task, answer, why)):
            _receive(core, _mine(ready, answer), why)
        if why not in (COPY, BACK, REMADE, RECOVERED):
            say_taken(core, claim.owner, row.task, row.move)
    elif why in (STOLEN, COPY) and not core.transfer.claims and _is_stealing(core):
        core.round_failed()  # all of the loot had gone elsewhere


def _has_it(core: NodeCore, task: int, granted: Granted, why: int) -> bool:
    """An offer may come twice; who claims it twice is granted it twice. To have a copy is not to have the task."""
    if why == COPY:
        return holds(core, task)
    return holds_itself(core, task, granted.move) or ends(core, task, granted.attempt)


def _mine(ready: Ready, granted: Granted) -> Ready:
    return Ready(ready.spec, granted.attempt, granted.move, ready.inputs, granted.mode & ~AGAIN)


def _replace_copy(core: NodeCore, ready: Ready) -> bool:
    """Let a copy of a task that is here count as the task itself, which belongs to this node now. True if the copy runs
    already: that run counts, unless it is of an earlier attempt."""
    task = ready.spec.id
    run = core.executors.running.get(task)
    if run is not None and run.ready.attempt == ready.attempt:
        run.replace(ready)
        return True
    if run is not None:
        core.call_off(task, ready.attempt - 1)  # it could not commit any more
    core.queues.shared.take_task(task)
    unstage(core, task, EVERY_ATTEMPT)
    return False


def accept_once_more(core: NodeCore, ready: Ready) -> None:
    """Accept a task that had gone back to waiting and is ready again. A copy of it may be here. The task itself may be
    here too, if other nodes have told it as well and the store's answers came in another order."""
    task, move = ready.spec.id, ready.move
    if move <= core.transfer.given_up.get(task, NO_MOVE) or holds_itself(core, task, move):
        return
    _forgive(core, ready)
    if not (core.replicas.count and _replace_copy(core, ready)):
        accept(core, Ready(ready.spec, ready.attempt, move, ready.inputs, ready.mode & ~AGAIN))
    if holds_itself(core, task, move):
        note_taken(core, ready)


def _forgive(core: NodeCore, ready: Ready) -> None:
    """A copy of it, or an earlier attempt, was called off here. Now it is ours, as the store says: another matter."""
    core.queues.forgive(ready.spec.id, ready.attempt - 1)


def _is_stealing(core: NodeCore) -> bool:
    """Has this node asked somebody for work? (Rounds of givers look alike from outside.)"""
    return core.search.stealing_since_ns >= 0 and core.strategy.balance.mode != "give"


def _receive(core: NodeCore, ready: Ready, why: int) -> None:
    if why != COPY:
        _forgive(core, ready)
        if core.replicas.count and _replace_copy(core, ready):
            return
    if why == STOLEN:
        count_steal(core)
        be_unnamed(core)
        enqueue(core, ready, False)
        if core.search.stealing_since_ns >= 0:
            core.round_succeeded()
    elif why in (PUSH, GIVEN):
        enqueue(core, ready, not (core.one_line and core.strategy.place.choose(core, ready, core.rng) == SHARED))
    elif why in (REMADE, LEAVING):
        accept(core, ready)
    elif why == RECOVERED:
        accept(core, Ready(ready.spec, ready.attempt, ready.move, ready.inputs, ready.mode | AGAIN))
    else:
        if why == COPY:
            got_copy(core)
            if _is_stealing(core):
                core.round_succeeded()
        if can_run_here(core, ready):
            enqueue(core, ready, False)  # copies run when there is nothing of our own to do
        else:
            accept(core, ready)  # taken back from a node that was to run it in our place: find another


def _continue_own(core: NodeCore, row: Claim, answer: AnswerType) -> None:
    """The owner said that it is about to run a suspect task, or asked for another attempt."""
    ready = end_own_claim(core, row.task)
    if ready is None or not isinstance(answer, Granted):
        return
    if answer.stop is not None:
        spread_stop(core, row.task, answer.stop)
    if row.why == RETRY:
        accept(core, _mine(ready, answer))
        return
    # From here on it is like any other task, except that nothing is queued behind it (SUSPECT stays set on the run).
    mine = Ready(ready.spec, answer.attempt, answer.move, ready.inputs, answer.mode & ~AGAIN | SUSPECT)
    missing = missing_inputs(core, mine)
    if missing:
        stage(core, mine, missing)
    else:
        pin(core, mine)
        add_staged(core, mine)
    core.schedule_soon()


@handles(Submission)
def on_submission(core: NodeCore, message: Submission) -> None:
    """Tasks of a client that the store has given to this node from the start."""
    core.out.append(Send(message.sender, SubmissionTaken(core.node, message.batch)))
    if had_before(core, message.batch):
        return
    tasks = message.tasks
    accept_told(core, tasks if core.leaving is None else core.leaving.unheard(tasks))
