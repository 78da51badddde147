"""Lost objects: when no place has an object any more, the task that made it runs again.

The consumer goes back to waiting in the store. The same update notes in an outbox that its producers are to be remade
for it, so the request survives this node. However many ask, one remake runs, and it satisfies only those who asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from daws.core.outbox import ask_for_remakes, told
from daws.core.places import ends, holds_itself
from daws.core.store_calls import answers, ask, ask_later
from daws.core.transfer import REMADE, begin_claim, end_unreachable, forget_moves, know_until, note_unreachable
from daws.model.task import NOBODY, REPLICA, NodeId, Ready
from daws.wire.store import (
    CANCELLED,
    FAILED,
    MOVE,
    REFUSED,
    UNKNOWN,
    AnswerType,
    Available,
    Cancel,
    Claim,
    Finish,
    Noted,
    Remake,
    Satisfy,
    Unready,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def give_up_inputs(core: NodeCore, ready: Ready, lost: Mapping[int, tuple[NodeId, ...]]) -> None:
    """Inputs of this task are among these objects, which cannot be had from where they were said to be; with each come
    the places that were tried."""
    if ready.mode & REPLICA:
        return  # a second run may just be dropped; the owner's remains
    inputs = [one for one in ready.inputs if one.object in lost]
    from_outside = next((one for one in inputs if one.producer < 0), None)
    if from_outside is not None:
        error = (
            f"ObjectLost: task {ready.spec.id} reads object {from_outside.object}, "
            "which was put in from outside and has no place left; put it in again and submit the task anew"
        )
        ask(core, ready.spec.id, Finish(ready.spec.id, ready.attempt, core.node, (), error))
        return
    # Beside what was tried: this node itself, and places that are no members, whatever the store believes of them.
    gone: dict[NodeId, None] = {}
    for one in inputs:
        gone |= dict.fromkeys(lost[one.object])
        gone |= dict.fromkeys(place for place in one.places if place == core.node or place not in core.members)
    producers = dict.fromkeys(one.producer for one in inputs)
    note_unreachable(core, ready.spec.id, tuple(gone))
    know_until(core, ready)
    ask(core, ready.spec.id, Unready(ready.spec.id, core.node, ready.move, tuple(producers)))


@answers(Unready)
def on_unready_answer(core: NodeCore, row: Unready, answer: AnswerType) -> None:
    gone = end_unreachable(core, row.task)
    if isinstance(answer, Noted):
        ask_for_remakes(core, answer.key, answer.mark, row.task, row.producers, gone)
    elif core.keeping is not None:
        forget_moves(core, row.task)


def claim_remake(core: NodeCore, ready: Ready, intent: int) -> None:
    task = ready.spec.id
    if holds_itself(core, task, ready.move) or ends(core, task, ready.attempt):
        told(core, intent)  # others had asked for it too, and it is ours since; a second grant might come after its end
        return
    known = core.transfer.claims.get(task)
    if known is None or known.ready.move < ready.move:  # else it was offered to us since, by whoever was quicker
        begin_claim(core, ready, NOBODY, REMADE)
    ask(core, task, Claim(task, NOBODY, ready.move, core.node, MOVE, intent))


@answers(Remake)
def on_remake_answer(core: NodeCore, row: Remake, answer: AnswerType) -> None:
    if isinstance(answer, Ready):
        claim_remake(core, answer, row.intent)  # whoever asks claims it; one of them gets it
        return
    elif isinstance(answer, Available):
        # Somebody else has it: the edge can go at once, and only then may the intent be forgotten.
        ask(core, row.waiter, Satisfy(row.waiter, row.task, core.node, answer.inputs, row.intent, row.need))
        return
    elif answer == UNKNOWN:
        ask_later(core, row)
        return
    elif isinstance(answer, int) and answer in (REFUSED, CANCELLED, FAILED):
        error = (
            f"ObjectLost: task {row.waiter} reads what task {row.task} made, which is lost and cannot be made again; "
            "if it was put in from outside, put it in again and submit the task anew"
        )
        ask(core, row.waiter, Cancel(row.waiter, core.node, error))
    told(core, row.intent)
