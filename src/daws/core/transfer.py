"""Tasks on their way between nodes: what was offered to others, what was claimed, and what was heard before.

Moving is claiming: a task that was offered stays in `lent` until its receiver says that it has claimed it. After a
while this node claims the task back from itself, so that a late claim fails. How a claim is answered is `claims`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.effects import Send
from daws.core.empty import shared_part
from daws.core.handlers import handles
from daws.core.membership import note_leaver
from daws.core.peers import sent_task
from daws.core.store_calls import ask
from daws.model.task import NodeId, Ready
from daws.wire.messages import COPY, Offer, Refusal, Taken
from daws.wire.store import ANNOUNCE, MOVE, RETRY, Claim

if TYPE_CHECKING:
    from daws.core.node import NodeCore

SEEN_OFFERS_MAX = 64
BATCHES_MAX = 1024
"""The number of hand-outs that are remembered, in case one of them comes twice."""
GIVEN_UP_MAX = 10_000

NO_MOVE = -1
"""Comes before all moves."""

# Reasons of a claim beside those of offers.
BACK = -1  # a lender takes back what nobody claimed
REMADE = -2  # the task is to be made again and belongs to nobody yet
RECOVERED = -3  # a store that has forgotten things says that the task is the node's own


class LentTask(Struct, frozen=True, gc=False):
    """A task that was offered: to which node, and since when it counts as lent."""

    ready: Ready
    to: NodeId
    since_ns: int


class PendingClaim(Struct, frozen=True, gc=False):
    """A task that this node has claimed: from which node, and why. The store has yet to answer."""

    ready: Ready
    owner: NodeId
    why: int


class Transfer:
    """Offers and claims of this node."""

    __slots__ = (
        *("announcing", "batches", "claims", "given_up", "gives", "lent", "offers", "pushes", "seen_offers", "steals"),
        *("taken", "unreachable"),
    )

    def __init__(self) -> None:
        self.lent: dict[int, LentTask] = {}  # by task
        self.claims: dict[int, PendingClaim] = {}  # by task
        self.announcing: dict[int, Ready] = {}  # this node's own tasks that are claimed anew before they run (again)
        self.offers: dict[tuple[NodeId, int], list[Ready]] = {}  # to be sent at the end of the step
        self.taken: dict[NodeId, list[tuple[int, int]]] = {}  # likewise
        self.seen_offers: deque[tuple[NodeId, int]] = deque(maxlen=SEEN_OFFERS_MAX)
        self.batches: dict[int, None] = {}  # that clients have handed out to this node, the latest last
        self.given_up: dict[int, int] = {}  # tasks, and the move up to which all that is said of them is known
        self.unreachable: dict[int, tuple[NodeId, ...]] = {}  # by task that goes back to waiting: places without input
        self.pushes = self.gives = self.steals = 0


NO_TRANSFER = shared_part(Transfer())
"""Shared by all nodes that have never moved a task. `own_transfer` creates a node's own."""


def own_transfer(core: NodeCore) -> Transfer:
    """The offers and claims of this node, to change something."""
    if core.transfer is NO_TRANSFER:
        core.transfer = Transfer()
    return core.transfer


# -- offers ------------------------------------------------------------------------------------------------------------


def offer(core: NodeCore, to: NodeId, why: int, ready: Ready) -> None:
    """Offer a task; what goes to the same node for the same reason in one step leaves in one message."""
    transfer = core.transfer
    if transfer is NO_TRANSFER:
        transfer = own_transfer(core)
    transfer.offers.setdefault((to, why), []).append(ready)
    if why != COPY:
        transfer.lent[ready.spec.id] = LentTask(ready, to, core.now_ns)
        if core.peers.loads is not None:
            sent_task(core, to)


def push(core: NodeCore, to: NodeId, why: int, ready: Ready) -> None:
    """Offer a task that `place` wants elsewhere."""
    own_transfer(core).pushes += 1
    offer(core, to, why, ready)


def give_task(core: NodeCore, to: NodeId, why: int, ready: Ready) -> None:
    """Offer a task because there is more here than can run, or because the node leaves."""
    own_transfer(core).gives += 1
    offer(core, to, why, ready)


def count_steal(core: NodeCore) -> None:
    own_transfer(core).steals += 1


def send_offers(core: NodeCore) -> None:
    """Send the offers of this step, and the names of tasks that were taken, at its end."""
    transfer = core.transfer
    for (to, why), tasks in transfer.offers.items():
        core.out.append(Send(to, Offer(core.node, core.executors.next_token(), why, tuple(tasks))))
    for to, names in transfer.taken.items():
        core.out.append(Send(to, Taken(core.node, tuple(names))))
    transfer.offers.clear()
    transfer.taken.clear()


def has_seen(core: NodeCore, message: Offer) -> bool:
    """Has this offer come before? From now on it has."""
    seen = own_transfer(core).seen_offers
    if (message.sender, message.number) in seen:
        return True
    seen.append((message.sender, message.number))
    return False


def say_taken(core: NodeCore, to: NodeId, task: int, move: int) -> None:
    """The lender hears that this task was claimed: so this node has claims, and a part of its own for them."""
    core.transfer.taken.setdefault(to, []).append((task, move))


# -- what was lent -----------------------------------------------------------------------------------------------------


@handles(Taken)
def on_taken(core: NodeCore, message: Taken) -> None:
    for task, move in message.tasks:
        lent = core.transfer.lent.get(task)
        if lent is not None and lent.to == message.sender and lent.ready.move == move:
            del core.transfer.lent[task]


@handles(Refusal)
def on_refusal(core: NodeCore, message: Refusal) -> None:
    """A node that is about to leave does not want what it was offered: no need to wait for it."""
    note_leaver(core, message.sender)
    transfer = core.transfer
    for task, move in message.tasks:
        lent = transfer.lent.get(task)
        if lent is None or lent.to != message.sender or lent.ready.move != move:
            continue
        if task not in transfer.claims:
            _claim_back(core, task, lent.ready)


def take_back(core: NodeCore, older_than_ns: int) -> None:
    """Claim from this node itself, on each tick, tasks that were offered long ago or to a node that is gone."""
    back = [
        (task, lent.ready)
        for task, lent in core.transfer.lent.items()
        if (core.now_ns - lent.since_ns >= older_than_ns or lent.to not in core.members)
        and task not in core.transfer.claims  # else it was offered back before we heard that it was taken
    ]
    for task, ready in back:
        _claim_back(core, task, ready)


def _claim_back(core: NodeCore, task: int, ready: Ready) -> None:
    del core.transfer.lent[task]
    _claim_from_self(core, ready, BACK)


def forget_lent(core: NodeCore, task: int, attempt: int) -> None:
    """This attempt was called off: whoever has it, it is not taken back."""
    lent = core.transfer.lent.get(task)
    if lent is not None and lent.ready.attempt <= attempt:
        del core.transfer.lent[task]


def recover(core: NodeCore, ready: Ready) -> None:
    """Take a task that the store says is this node's own, after a failover. This node may have lent the task, and the
    store may have forgotten the receiver's claim, which the receiver sends again. Therefore this node claims the task
    from itself before it runs it: one of the two claims fails. Otherwise both nodes would run the same attempt, and the
    run that lost the task while it was suspended would never be woken or stopped."""
    own_transfer(core).lent.pop(ready.spec.id, None)
    _claim_from_self(core, ready, RECOVERED)


# -- claims ------------------------------------------------------------------------------------------------------------


def begin_claim(core: NodeCore, ready: Ready, owner: NodeId, why: int) -> None:
    """This task is being claimed from that node."""
    transfer = core.transfer
    if transfer is NO_TRANSFER:
        transfer = own_transfer(core)
    transfer.claims[ready.spec.id] = PendingClaim(ready, owner, why)


def end_claim(core: NodeCore, task: int) -> None:
    del core.transfer.claims[task]


def _claim_from_self(core: NodeCore, ready: Ready, why: int) -> None:
    task = ready.spec.id
    begin_claim(core, ready, core.node, why)
    ask(core, task, Claim(task, core.node, ready.move, core.node, MOVE))


def claim_own(core: NodeCore, ready: Ready, why: int) -> None:
    """Claim a task of this node anew: before it runs (ANNOUNCE; a node died with it, so a killer is found out), or
    because its run failed (RETRY)."""
    assert why in (ANNOUNCE, RETRY)
    own_transfer(core).announcing[ready.spec.id] = ready
    ask(core, ready.spec.id, Claim(ready.spec.id, core.node, ready.move, core.node, why))


def end_own_claim(core: NodeCore, task: int) -> Ready | None:
    announcing = core.transfer.announcing
    return announcing.pop(task, None) if announcing else None


# -- what was heard before ---------------------------------------------------------------------------------------------


def had_before(core: NodeCore, batch: int) -> bool:
    """Has this hand-out come before? From now on it has."""
    transfer = own_transfer(core)
    if batch in transfer.batches:
        return True
    if len(transfer.batches) >= BATCHES_MAX:  # the oldest go; their numbers say nothing: each client counts for itself
        transfer.batches = dict.fromkeys([*transfer.batches][BATCHES_MAX // 2 :])
    transfer.batches[batch] = None
    return False


def know_until(core: NodeCore, ready: Ready) -> None:
    """Messages about a task up to this move are old. Only those that are on their way can be: so what was noted long
    ago is forgotten."""
    transfer = own_transfer(core)
    if len(transfer.given_up) >= GIVEN_UP_MAX:
        transfer.given_up = dict([*transfer.given_up.items()][GIVEN_UP_MAX // 2 :])
    transfer.given_up.pop(ready.spec.id, None)
    transfer.given_up[ready.spec.id] = ready.move


def forget_moves(core: NodeCore, task: int | None = None) -> None:
    """The store has forgotten moves, of this task or of all: their numbers may come again."""
    given_up = own_transfer(core).given_up
    if task is None:
        given_up.clear()
    else:
        given_up.pop(task, None)


def note_unreachable(core: NodeCore, task: int, places: tuple[NodeId, ...]) -> None:
    """A task goes back to waiting, because these places do not have what it reads."""
    own_transfer(core).unreachable[task] = places


def end_unreachable(core: NodeCore, task: int) -> tuple[NodeId, ...]:
    unreachable = core.transfer.unreachable
    return unreachable.pop(task, ()) if unreachable else ()
