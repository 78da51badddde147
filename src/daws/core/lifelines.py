"""Work that finds its taker without being asked for again: idle nodes that are remembered, and nodes that invite.

A thief whose strategy lets it leave its name asks once. A node that has no work remembers the thief (`thieves`) and
hands over tasks that come later. The other way round, a node with more tasks than it can run invites others
(`invitations`). They ask it for a task when they have time, and only then is a task bound to a node. Names and
invitations may get lost, and nothing rests on them: whatever is queued runs where it is in any case. After a while both
are given anew, and then, as long as no task has ended here, after twice as long each time. A node that waits for hours
thus sends a few messages, not thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import CALL, Send, SetTimer
from daws.core.empty import shared_part
from daws.core.handlers import fires, handles
from daws.core.transfer import offer
from daws.model.task import NodeId
from daws.wire.messages import STOLEN, Invitation, StealRequest

if TYPE_CHECKING:
    from daws.core.loot import Contexts
    from daws.core.node import NodeCore

CALL_NS = 2_500_000_000
"""After so long a name that was left or an invitation is given anew for the first time."""


class Lifelines:
    """The nodes that wait for a word of this one, and those whose word it has."""

    __slots__ = ("call_armed", "call_wait", "invitations", "invited", "named", "naming", "thieves")

    def __init__(self) -> None:
        self.thieves: dict[NodeId, Contexts] = {}  # nodes that asked in vain and wait
        self.named = False  # this node is remembered by others and need not ask
        self.naming = False  # ... if the answer to what it has just asked is no
        self.invitations: dict[NodeId, int] = {}  # nodes that have more than they can run, and how many tasks
        self.invited = 0  # others were called for so many of the shared tasks
        self.call_armed = False
        self.call_wait = (0, 0)  # how long the last timer took, and how many tasks had ended here by then


NO_LIFELINES = shared_part(Lifelines())
"""Shared by all nodes that have no such agreements. `own_lifelines` creates a node's own."""


def own_lifelines(core: NodeCore) -> Lifelines:
    if core.lifelines is NO_LIFELINES:
        core.lifelines = Lifelines()
    return core.lifelines


def remember(core: NodeCore, thief: NodeId, contexts: Contexts) -> None:
    """Remember a thief that found nothing here and waits."""
    own_lifelines(core).thieves[thief] = contexts


def leave_name(core: NodeCore, leaves: bool) -> None:
    """Nodes that have nothing now are to remember this one, or not."""
    own_lifelines(core).naming = leaves


def be_named(core: NodeCore) -> bool:
    """A round was in vain. True if others remember this node, so that it need not ask again."""
    lifelines = core.lifelines
    if not lifelines.naming:
        return False
    lifelines.naming, lifelines.named = False, True
    if not lifelines.call_armed:
        call_later(core)
    return True


def be_unnamed(core: NodeCore) -> None:
    """Work has come: a node that remembered this one does so no more."""
    if core.lifelines.named:
        core.lifelines.named = False


def uninvite(core: NodeCore, count: int) -> None:
    """Note that this many of the tasks for which others were called have gone."""
    if core.lifelines.invited:
        core.lifelines.invited = max(0, core.lifelines.invited - count)


def forget_invitation(core: NodeCore, host: NodeId) -> None:
    """The tasks that this node has called for have gone."""
    if core.lifelines.invitations:
        core.lifelines.invitations.pop(host, None)


def feed(core: NodeCore) -> None:
    """There is more than this node can run: those that wait get their share, the first that came first."""
    most: dict[int, int] = {}
    for thief, contexts in list(core.lifelines.thieves.items()):
        if not core.queues.shared.count:
            return
        if thief not in core.members or thief in core.membership.leavers:
            del core.lifelines.thieves[thief]
            continue
        loot = core.loot_for(thief, contexts, None, most)
        if loot:
            del core.lifelines.thieves[thief]
        for ready in loot:
            offer(core, thief, STOLEN, ready)


def invite(core: NodeCore) -> None:
    """Call others for those of the shared tasks for which nobody was called yet."""
    waiting, lifelines = core.queues.shared.count, own_lifelines(core)
    fresh = waiting - lifelines.invited
    lifelines.invited = waiting
    if waiting and not lifelines.call_armed:
        call_later(core)
    if fresh > 0:
        guests = core.strategy.traits.balance.guests
        assert guests is not None, "mode invite needs guests"
        for node, count in guests(core, fresh, core.rng):
            if node not in core.membership.leavers:
                core.out.append(Send(node, Invitation(core.node, count)))


@handles(Invitation)
def on_invitation(core: NodeCore, message: Invitation) -> None:
    if core.leaving is not None or core.strategy.balance.mode != "invite":
        return
    invitations = own_lifelines(core).invitations
    invitations[message.sender] = invitations.get(message.sender, 0) + message.count
    core.schedule_soon()


def accept_invitation(core: NodeCore, contexts: Contexts) -> None:
    """This node has time: ask the first who called, of those that are still there."""
    invitations = core.lifelines.invitations
    while invitations:
        host = next(iter(invitations))
        left = invitations.pop(host) - 1
        if host not in core.members or host in core.membership.leavers:
            continue
        if left:
            invitations[host] = left  # behind the others
        core.search.begin_round(core.now_ns)
        core.out.append(Send(host, StealRequest(core.node, contexts)))
        return


def call_later(core: NodeCore) -> None:
    """A name was left, or others were invited: set the timer after which that is done anew."""
    lifelines = own_lifelines(core)
    wait_ns, done_count = lifelines.call_wait
    wait_ns = 2 * wait_ns if wait_ns and core.lengths.done_count == done_count else CALL_NS
    lifelines.call_wait = (wait_ns, core.lengths.done_count)
    lifelines.call_armed = True
    core.out.append(SetTimer(CALL, core.now_ns + wait_ns))


@fires(CALL)
def call_again(core: NodeCore) -> None:
    """The timer has fired: a name or an invitation may have got lost, or was with a node that died."""
    lifelines = core.lifelines
    lifelines.call_armed = False
    if lifelines.named or lifelines.invited:
        lifelines.named = False
        lifelines.invited = 0
        core.schedule_soon()


def forget_others(core: NodeCore) -> None:
    """The strategy changes or the node leaves: what was agreed upon with others is void."""
    core.forget_beliefs()
    if core.lifelines is not NO_LIFELINES:
        lifelines = core.lifelines
        lifelines.thieves, lifelines.invitations = {}, {}
        lifelines.named = lifelines.naming = False
        lifelines.invited = 0
