"""Lost objects: when no place has an object any more, the task that made it runs again.

The consumer goes back to waiting in the store, which in the same update notes in an outbox that its producers are to be
remade for it; so the request survives this node. However many ask, one remake runs, and it satisfies only those who
asked.
"""

from daws.core.calls import answers, ask, ask_later
from daws.core.node import EMPTY, NodeCore
from daws.core.outbox import ask_for_remakes, told
from daws.core.places import ends, holds_itself
from daws.model.task import REPLICA, NodeId, Ready
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

NOBODY: NodeId = -1
REMADE = -2
"""The reason of a claim: the task is to be made again and belongs to nobody yet."""


def give_up_inputs(core: NodeCore, ready: Ready, object_: int, tried: tuple[NodeId, ...]) -> None:
    """An input of this task cannot be had from where it was said to be."""
    if ready.mode & REPLICA:
        return  # a second run may just be dropped; the owner's remains
    lost = next(one for one in ready.inputs if one[0] == object_)
    if lost[2] < 0:
        error = (
            f"ObjectLost: task {ready.spec.id} reads object {object_}, "
            "which was put in from outside and has no place left; put it in again and submit the task anew"
        )
        ask(core, ready.spec.id, Finish(ready.spec.id, ready.attempt, core.node, (), error))
        return
    # Whatever else it reads from places that are gone will be asked for at the same time.
    producers = {lost[2]: None}
    for one in ready.inputs:
        if one[0] not in core.objects and one[2] >= 0 and not any(place in core.members for place in one[3]):
            producers[one[2]] = None
    # Places that are no members, and this node itself: whatever the store believes, it is not here any more.
    absent = [
        place
        for one in ready.inputs
        if one[2] in producers and one[0] not in core.objects
        for place in one[3]
        if place == core.node or place not in core.members
    ]
    if core.unreachable is None:
        core.unreachable = {}
    core.unreachable[ready.spec.id] = (*tried, *absent)
    if core.given_up is EMPTY:
        core.given_up = {}
    core.given_up[ready.spec.id] = ready.move
    ask(core, ready.spec.id, Unready(ready.spec.id, core.node, ready.move, tuple(producers)))


@answers(Unready)
def on_unready_answer(core: NodeCore, row: Unready, answer: AnswerType) -> None:
    gone = core.unreachable.pop(row.task, ()) if core.unreachable else ()
    if isinstance(answer, Noted):
        ask_for_remakes(core, answer.key, answer.mark, row.task, row.producers, gone)


def claim_remake(core: NodeCore, ready: Ready, intent: int) -> None:
    task = ready.spec.id
    if holds_itself(core, task, ready.move) or ends(core, task):
        told(core, intent)  # others had asked for it too, and it is ours since; a second grant might come after its end
        return
    if core.claims is None:
        core.claims = {}
    known = core.claims.get(task)
    if known is None or known[0].move < ready.move:  # else it was offered to us since, by whoever was quicker
        core.claims[task] = (ready, NOBODY, REMADE)
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
