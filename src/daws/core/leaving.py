"""A node that is told to leave: it starts nothing new, gives away what waits here, lets its runs end, and goes.

A node that leaves in good order leaves nothing behind, so no other node has to take over from it and no task runs again
because of it. Until its deadline it waits for its runs (suspended ones too), and for answers to all that it has told,
offered or asked. It also waits until every object that was made here was read or is on another node (`handover`). At
the deadline it stops its runs, whose tasks become new attempts elsewhere. A tick later it leaves, even if something is
still undone. Then others take over as from a dead node, and have lost objects made again.

A node may own tasks that it has not heard of, because a client hands out tasks batch by batch. When nothing is left to
do, the node therefore asks every shard what it still owns. It says farewell only if it owns nothing and nothing has
happened since it asked.

`leased_until_ns` is 0 from the first moment on, which keeps the scheduling pass from starting anything. Each step ends
with `go_on`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from daws.core.config import Phase
from daws.core.effects import DEADLINE, RecallRun, SetTimer
from daws.core.events import NEVER_NS, Leave
from daws.core.fetching import unstage_all
from daws.core.handlers import handles
from daws.core.lifelines import forget_others
from daws.core.membership import NO_VERSION
from daws.core.objects import send_all_releases, send_freed
from daws.core.outbox import send_clears
from daws.core.placement import NOWHERE, accept_all
from daws.core.places import places
from daws.core.queues import is_doomed, own_queues
from daws.core.store_calls import answers, ask_shard, unanswered_rows
from daws.core.transfer import claim_own, give_task
from daws.core.unsafe import RECONCILES
from daws.model.task import AGAIN, REPLICA, Needs, NodeId, Ready
from daws.wire.messages import LEAVING
from daws.wire.store import MEMBERSHIP_SHARD, RETRY, AnswerType, Estate, Lease, Owned, Owners, Watch

if TYPE_CHECKING:
    from daws.core.node import NodeCore

TAKERS_MAX = 64
"""The largest number of nodes to which the tasks of one step are dealt, unless `place` wants them elsewhere."""
NOT_ASKED = -1
"""A value of `shards_left`: the shards have to be asked, perhaps again, what this node owns."""
ASKS_ONLY = frozenset((Lease, Owned, Owners, Watch))
"""Rows that change nothing: whoever leaves need not wait for their answers."""


class Leaving:
    """How far a node has come on its way out."""

    __slots__ = (
        *("behind", "deadline_ns", "found", "handed", "is_late", "leased_until_ns", "look", "said", "shards_left"),
        "stuck",
    )

    def __init__(self, leased_until_ns: int) -> None:
        self.deadline_ns = NEVER_NS
        self.leased_until_ns = leased_until_ns  # may go on with what it has begun, as before
        self.is_late = False  # the deadline has come
        self.look = 0  # how often it has asked the shards what is its own
        self.shards_left = NOT_ASKED  # the number of shards that have yet to answer that nothing is its own
        self.found: set[int] = set()  # tasks of which it heard from the store first
        self.handed: dict[int, int] = {}  # tasks whose objects others are to have, and when they were told so
        self.said = False  # the farewell is on its way
        self.behind = ""
        self.stuck = (NO_VERSION, 0)  # so many tasks could be given to none of the members of this version

    def lease(self, until_ns: int) -> None:
        self.leased_until_ns = max(self.leased_until_ns, until_ns)

    def last_words(self, reason: str) -> str:
        """The text about tasks that it could not hand over, or the reason why it was struck before it could."""
        return self.behind if self.said else reason

    def unheard(self, tasks: tuple[Ready, ...]) -> tuple[Ready, ...]:
        """A client hands out tasks, of which the store has told us perhaps."""
        return tuple([ready for ready in tasks if ready.spec.id not in self.found])


@handles(Leave)
def on_leave(core: NodeCore, event: Leave) -> None:
    if core.leaving is None:
        core.leaving = Leaving(core.membership.leased_until_ns)
        core.membership.lease(0)
        core.enter(Phase.LEAVING)
        core.search.end_round()
        forget_others(core)
        _call_back(core)
    leaving = core.leaving
    if event.deadline_ns < leaving.deadline_ns:
        leaving.deadline_ns = event.deadline_ns
        core.out.append(SetTimer(DEADLINE, max(event.deadline_ns, core.now_ns)))


def _call_back(core: NodeCore) -> None:
    """Recall runs that were sent ahead and have not begun yet. Stop copies: the owners of their tasks run them too."""
    for run in [run for run in core.executors.running.values() if run.ready.mode & REPLICA]:
        core.call_off(run.ready.spec.id, run.ready.attempt)
    begun: set[int] = set()
    for run in core.executors.running.values():
        if run.suspended:
            continue
        if run.slot in begun:
            core.out.append(RecallRun(run.ready.spec.id, run.number))
        begun.add(run.slot)


def go_on(core: NodeCore) -> None:
    """Do the next part of leaving, at the end of each step of a node that leaves."""
    leaving = core.leaving
    if leaving.said:
        return
    if core.executors.resumable and core.now_ns < leaving.leased_until_ns:
        core.resume()
    give_away(core)
    if core.now_ns >= leaving.deadline_ns and not leaving.is_late:
        _stop_waiting(core)
    if not core.executors.running:
        _say_what_can_wait(core)
        if core.objects.made and not leaving.is_late and (takers := _some(core, core.members.nodes)):
            core.hand_over(takers)
    why = hindrance(core)
    if why:
        leaving.shards_left = NOT_ASKED
        if leaving.is_late and core.now_ns >= leaving.deadline_ns + core.config.tick_ns:
            _say_farewell(core, why)
    elif leaving.shards_left == NOT_ASKED:
        leaving.look += 1
        leaving.shards_left = core.shard_count
        for shard in range(core.shard_count):
            ask_shard(core, shard, Owned(core.node, leaving.look))
    elif not leaving.shards_left:
        _say_farewell(core, _left_behind(core))


def _stop_waiting(core: NodeCore) -> None:
    """The deadline has come: what still runs has to be run elsewhere, from the start."""
    leaving = core.leaving
    leaving.is_late = True
    leaving.deadline_ns = core.now_ns  # it may have been told late; a tick to hand over is left in any case
    core.out.append(SetTimer(DEADLINE, core.now_ns + core.config.tick_ns))
    for task, run in list(core.executors.running.items()):
        if run.outcome is not None:
            continue  # it has ended, and counts as soon as its children are safe
        ready = run.ready
        core.call_off(task, ready.attempt)
        claim_own(core, ready, RETRY)


def _say_what_can_wait(core: NodeCore) -> None:
    """Send messages at once that other nodes collect until there are many."""
    if core.outbox.clearing:
        send_clears(core)
    if core.objects.freed:
        send_freed(core)


def hindrance(core: NodeCore) -> str:
    """The reason why a node cannot leave yet, for users who ask; empty if there is none."""
    for what, waiting in (
        ("runs that have not ended", core.executors.running),
        ("tasks that it has offered", core.transfer.lent),
        ("tasks that it has claimed", core.transfer.claims),
        ("tasks that it wants to try again", core.transfer.announcing),
        ("tasks that it creates", core.spawning.growing),
        ("intents that others have to hear of", core.outbox.telling),
        ("rows about unknown tasks", core.store.unknown),
        ("orders of a client", core.outbox.orders),
        ("words that are not safe yet", core.keeping and (core.keeping.rows or core.keeping.resending)),
        ("tasks whose objects are yet to be read", None if core.leaving.is_late else core.objects.made),
    ):
        if waiting:
            return f"{len(waiting)} {what}"
    if core.store.rows is not None or any(type(row) not in ASKS_ONLY for row in unanswered_rows(core)):
        return "words that the store has not heard"
    return ""


def _left_behind(core: NodeCore) -> str:
    behind = []
    if core.queues.stranded:
        behind.append(f"{len(core.queues.stranded)} tasks that nobody is there to take")
    if core.objects.made:
        behind.append(f"the objects of {len(core.objects.made)} tasks, which are yet to be read")
    return ", ".join(behind)


def _say_farewell(core: NodeCore, behind: str) -> None:
    leaving = core.leaving
    leaving.said = True
    leaving.behind = behind
    send_all_releases(core)
    ask_shard(core, MEMBERSHIP_SHARD, Lease(core.node, core.members.version, leaving=True, asked_ns=core.now_ns))


@answers(Owned)
def on_owned_answer(core: NodeCore, row: Owned, answer: AnswerType) -> None:
    assert isinstance(answer, Estate)
    if row.look == RECONCILES:
        core.take_on(answer)
        return
    leaving = core.leaving
    if row.look != leaving.look or leaving.shards_left == NOT_ASKED or leaving.said:
        return  # it is old: something has happened since we asked
    leaving.shards_left -= 1
    held = {ready.spec.id for _, ready in places(core)} | core.transfer.lent.keys()
    found = [ready for ready in answer.ready if ready.spec.id not in held]
    leaving.found.update([ready.spec.id for ready in found])
    accept_all(core, tuple([_without_again(ready) for ready in found]))


def _without_again(ready: Ready) -> Ready:
    return Ready(ready.spec, ready.attempt, ready.move, ready.inputs, ready.mode & ~AGAIN)


# -- giving away -------------------------------------------------------------------------------------------------------


def give_away(core: NodeCore) -> None:
    """Offer everything that waits here to others: where `place` wants it, or dealt out to those who can run it.

    A task that no member can run goes to any member, which keeps it until a node joins that can run it. It stays here
    only if there is no other member at all.
    """
    leaving = core.leaving
    queued = core.queues.dedicated.count or core.queues.shared.count or core.fetching.waiting or core.fetching.staged
    if not queued and leaving.stuck == (core.members.version, len(core.queues.stranded or ())):
        return
    tasks = _take_out(core)
    if not tasks:
        return
    takers: dict[Needs | None, list[NodeId]] = {}
    for number, ready in enumerate(tasks):
        needs = ready.spec.needs
        if needs not in takers:
            takers[needs] = _some(core, core.members.capable(needs)) or _some(core, core.members.nodes)
        to = _wanted_at(core, ready)
        if to == NOWHERE and takers[needs]:
            to = takers[needs][number % len(takers[needs])]
        if to != NOWHERE:
            give_task(core, to, LEAVING, ready)
        else:
            core.queues.strand(ready)
    leaving.stuck = (core.members.version, len(core.queues.stranded or ()))


def _some(core: NodeCore, nodes: Sequence[NodeId]) -> list[NodeId]:
    """Some of these nodes, from a random one on, without this one and those that leave too."""
    found: list[NodeId] = []
    first = core.rng.below(len(nodes)) if nodes else 0
    for number in range(len(nodes)):
        node = nodes[(first + number) % len(nodes)]
        if node != core.node and node not in core.membership.leavers:
            found.append(node)
            if len(found) == TAKERS_MAX:
                break
    return found


def _wanted_at(core: NodeCore, ready: Ready) -> NodeId:
    """Another node that `place` would push this task to, if it can run it."""
    choice = core.strategy.place.choose(core, ready, core.rng)
    info = core.members.info(choice) if choice >= 0 and choice != core.node else None
    if info is None or choice in core.membership.leavers or not info.can_run(ready.spec.needs):
        return NOWHERE
    return choice


def _take_out(core: NodeCore) -> list[Ready]:
    """All tasks that are ready here and do not run, except copies of what others own."""
    queues = own_queues(core)
    queued = [*queues.dedicated.all(), *queues.shared.all()]
    queues.forget_all()
    return [ready for ready in chain(queued, unstage_all(core), queues.take_stranded()) if _is_ours(core, ready)]


def _is_ours(core: NodeCore, ready: Ready) -> bool:
    return not ready.mode & REPLICA and not (core.queues.doomed and is_doomed(core, ready))
