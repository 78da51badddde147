"""Work that finds its taker without being asked for again: idle nodes that are remembered, and nodes that invite.

A thief whose strategy lets it leave its name asks once; who has nothing remembers it (`thieves`) and hands over what
comes up later. The other way round, a node with more than it can run invites others (`invitations`), who ask it for a
task when they have time: a task is bound to a node only then. Names and invitations may get lost, and nothing rests on
them: whatever is queued runs where it is in any case. After a while both are given anew, and then, as long as no task
has ended here, after twice as long each time: who waits for hours sends a few messages, not thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import CALL, Send, SetTimer
from daws.core.handlers import handles
from daws.core.loot import Contexts, loot_for
from daws.core.placement import offer
from daws.model.task import NodeId
from daws.wire.messages import STOLEN, Invitation, StealRequest

if TYPE_CHECKING:
    from daws.core.node import NodeCore

CALL_NS = 2_500_000_000
"""After so long a name that was left or an invitation is given anew for the first time."""


def remember(core: NodeCore, thief: NodeId, contexts: Contexts) -> None:
    """It found nothing here and waits."""
    if core.thieves is None:
        core.thieves = {}
    core.thieves[thief] = contexts


def feed(core: NodeCore) -> None:
    """There is more than this node can run: those that wait get their share, the first that came first."""
    assert core.thieves
    most: dict[int, int] = {}
    for thief, contexts in list(core.thieves.items()):
        if not core.shared.count:
            return
        if thief not in core.members or thief in core.leavers:
            del core.thieves[thief]
            continue
        loot = loot_for(core, thief, contexts, None, most)
        if loot:
            del core.thieves[thief]
        for ready in loot:
            offer(core, thief, STOLEN, ready)


def invite(core: NodeCore) -> None:
    """Call others for those of the shared tasks for which nobody was called yet."""
    waiting = core.shared.count
    fresh = waiting - core.invited
    core.invited = waiting
    if waiting and not core.call_armed:
        call_later(core)
    if fresh > 0:
        for node, count in core.strategy.balance.guests(core, fresh, core.rng):  # type: ignore[attr-defined]
            if node not in core.leavers:
                core.out.append(Send(node, Invitation(core.node, count)))


@handles(Invitation)
def on_invitation(core: NodeCore, message: Invitation) -> None:
    if core.leaving is not None or core.strategy.balance.mode != "invite":
        return
    if core.invitations is None:
        core.invitations = {}
    core.invitations[message.sender] = core.invitations.get(message.sender, 0) + message.count
    core.dirty = True


def accept_invitation(core: NodeCore, contexts: Contexts) -> None:
    """This node has time: ask the first who called, of those that are still there."""
    invitations = core.invitations
    while invitations:
        host = next(iter(invitations))
        left = invitations.pop(host) - 1
        if host not in core.members or host in core.leavers:
            continue
        if left:
            invitations[host] = left  # behind the others
        core.stealing_since_ns = core.now_ns
        core.out.append(Send(host, StealRequest(core.node, contexts)))
        return


def call_later(core: NodeCore) -> None:
    """A name was left, or others were invited: set the timer after which that is done anew."""
    wait_ns, done_count = core.call_wait
    wait_ns = 2 * wait_ns if wait_ns and core.done_count == done_count else CALL_NS
    core.call_wait = (wait_ns, core.done_count)
    core.call_armed = True
    core.out.append(SetTimer(CALL, core.now_ns + wait_ns))


def call_again(core: NodeCore) -> None:
    """The timer has fired: a name or an invitation may have got lost, or was with a node that died."""
    core.call_armed = False
    if core.named or core.invited:
        core.named = False
        core.invited = 0
        core.dirty = True


def forget_others(core: NodeCore) -> None:
    """The strategy changes or the node leaves: what was agreed upon with others is void."""
    core.thieves = core.invitations = core.loads = core.holders = core.lengths = None
    core.named = core.naming = False
    core.invited = 0
