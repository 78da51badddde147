"""A node as a value: its state, and the one door through which it changes.

`NodeCore.step` takes a batch of events, lets one handler per event change the state, runs one scheduling pass and
appends the effects to `out`. The handlers are plain functions in the modules beside this one:

    events      what can happen to a node
    effects     what a node asks its driver to do
    handlers    the table of handlers, by type of event
    config      settings that all nodes of a cluster share
    view        the read-only view of a node
    journal     the record of a node's events and effects
    invariants  what holds after each step
    empty       shared empty containers

    places      where each task of the node is
    queues      ready tasks, in the order of the strategy
    placement   where a ready task goes
    schedule    which ready task runs next on which executor
    executors   the start of a run
    send_ahead  short tasks that wait at an executor
    run_end     many short runs that end together
    abort       runs that end early
    lengths     how long tasks take
    reserve     executors kept idle for a more critical task
    relax       dedicated tasks that are shared because they would wait too long
    memory      declared memory of tasks that run together
    pressure    which tasks may start while there is little room for objects

    transfer    tasks on their way between nodes
    claims      offers and claims
    steal       nodes that look for work, and nodes that give it
    loot        the tasks that a thief gets
    lifelines   idle nodes that are remembered, and nodes that invite
    peers       beliefs about other nodes: their load and objects
    replicas    copies of runs that take too long
    validating  copies whose task has ended elsewhere

    objects     objects that are kept here, and their release
    fetching    inputs that are fetched before a run
    damage      damaged or missing files of objects
    remake      lost objects, and the tasks that make them again
    handover    objects that go to other nodes when a node leaves

    store_calls calls to the store, in batches per shard
    commits     commits of runs, and their children
    outbox      intents in the store that outlive the node
    spawn       tasks that create tasks and wait for them
    outliving   runs that end after all tasks that they have created
    submit      tasks that a live client submits and holds
    cancel      cancelled and failed tasks
    unsafe      acknowledged rows that the store may still lose (rule 11)
    failover    sends these rows again to a new server

    membership  the state of membership: lease, leaving and dead nodes
    lease       renewal of the lease, deaths, takeover, and the tick
    leaving     a node that leaves in good order
    switching   change of the strategy while the node runs

The machine of the client's side is `session` with its parts `session_*`; `client` submits one whole graph.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from daws.core import (
    abort,
    cancel,  # noqa: F401
    claims,
    commits,
    damage,  # noqa: F401
    failover,
    handover,
    lease,  # noqa: F401
    loot,
    memory,
    pressure,
    relax,
    remake,
    schedule,
    send_ahead,
    spawn,
    steal,
    submit,  # noqa: F401
    switching,  # noqa: F401
    validating,  # noqa: F401
)
from daws.core.config import SECOND_NS as SECOND_NS
from daws.core.config import NodeConfig as NodeConfig
from daws.core.config import Phase
from daws.core.effects import EffectType
from daws.core.empty import EMPTY, same
from daws.core.events import EventType, TimerFired
from daws.core.executors import Group, Run
from daws.core.fetching import NO_FETCHING, Fetching
from daws.core.handlers import FIRED, HANDLERS, handles
from daws.core.handover import Adoptions
from daws.core.leaving import go_on
from daws.core.lifelines import NO_LIFELINES, Lifelines
from daws.core.membership import NodeMembership
from daws.core.objects import NO_OBJECTS, NodeObjects
from daws.core.outbox import NO_OUTBOX, Outbox
from daws.core.peers import heard_of, load_of
from daws.core.queues import NO_TASKS
from daws.core.run_end import end_together
from daws.core.schedule import schedule as run_pass
from daws.core.steal import Search
from daws.core.store_calls import StoreCalls, send_due_rows
from daws.core.transfer import NO_TRANSFER, Transfer, send_offers
from daws.core.unsafe import Keeping
from daws.model.cluster import Members, NodeInfo
from daws.model.task import GUESS_NS, NodeId, Ready, TaskSpec
from daws.strategy import parse_strategy
from daws.strategy.decisions import Lately, Strategy
from daws.strategy.rng import SplitMix64

SEVERAL = 4
"""Fewer events are taken one by one."""
_NO_STEP: list[EffectType] = ()  # type: ignore[assignment]


class NodeCore:
    """The state of one node. Only the handlers change it; decisions see it as a `View`."""

    __slots__ = (
        "__dict__",
        "adapt_at",
        "ahead",
        "calm_count",
        "config",
        "copies_by_use",
        "copies_bytes_max",
        "cores",
        "dedicated",
        "dirty",
        "done_count",
        "doomed",
        "groups",
        "has_short",
        "here",
        "inflight",
        "info",
        "is_giver",
        "kinds",
        "mean_run_ns",
        "members",
        "membership",
        "net_bytes_per_s",
        "node",
        "now_ns",
        "one_group",
        "one_kind",
        "one_line",
        "out",
        "phase",
        "plain",
        "plain_free",
        "relaxing",
        "resumable",
        "rng",
        "running",
        "sampled_count",
        "sampled_ns",
        "search",
        "sequence",
        "shard_count",
        "shared",
        "stall_armed",
        "store",
        "strategy",
        "takes_plain",
        "threshold",
        "token",
        "tt_ns",
    )

    # What few nodes have at any time: it takes room only in a node that has set it.
    objects: NodeObjects = NO_OBJECTS
    fetching: Fetching = NO_FETCHING
    outbox: Outbox = NO_OUTBOX
    transfer: Transfer = NO_TRANSFER
    lifelines: Lifelines = NO_LIFELINES
    adoptions: Adoptions | None = None  # what is to be kept for nodes that leave
    # tasks on their way to or from here, and tasks that wait for something
    stranded: list[Ready] | None = None
    pressed: bool = False  # there is too little room for objects
    copied: dict[int, int] = EMPTY  # how many copies of a task were offered to others
    cancelling: dict[int, int] | None = None
    growing: dict[tuple[int, bool], Any] | None = None
    outliving: dict[int, tuple[Run, set[int]]] | None = None  # by task: who created it and has ended, and who is left
    # the store, and those who have to hear of something
    recall_armed: bool = False
    waits_until_ns: int = 0  # an executor is kept for a more critical task; 0 if none is
    patience: float = 0.0  # ... for such a part of the time that another would take
    validating: bool = False  # the timer of the next look at copies is set
    # membership
    keeping: Any = None  # what was acknowledged and is not safe yet, where the store may forget it
    # balancing, under strategies that remember whom they have met
    loads: dict[NodeId, tuple[int, int]] | None = None  # what we have heard of others' loads, and when
    lengths: dict[int, deque[int]] | None = None  # of the last runs of each kind of task
    holders: dict[int, dict[NodeId, None]] | None = None  # objects, and the nodes that got tasks which read them
    leaving: Any = None  # how far it has come, if it was told to leave
    read_strategy: Callable[[str], Strategy] = staticmethod(parse_strategy)
    """How the text of a new strategy becomes one; a driver that watches decisions puts its own in here."""
    # what was seen
    stall_since: tuple[int, int] = (0, 0)  # when the timer was set, and how many tasks had ended here by then
    stalled_ns: int = 0
    adapted: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)  # what had been seen when `adapt` was last asked
    waiting_since_ns: int = 0  # when a task was last put into empty queues
    replicas: int = 0

    def __init__(self, info: NodeInfo, strategy: Strategy, config: NodeConfig, seed: int) -> None:
        self.info = info
        self.node: NodeId = info.id
        self.here: tuple[NodeId, ...] = ()  # the places of an object that only this node has, once there is one
        self.config = config
        self.cores = info.cores
        self.net_bytes_per_s = config.net_bytes_per_s
        self.rng = SplitMix64(seed * 0x9E3779B97F4A7C15 ^ info.id * 0xBF58476D1CE4E5B9)
        self.now_ns = 0
        self.out = _NO_STEP
        self.members = Members(0, ())
        self.dirty = False
        self.sequence = 0
        self.token = 0
        self.shard_count = config.shard_count
        self.has_short = False  # some kind of task is short enough to be sent ahead
        # ready tasks, and tasks on their way to or from here
        self.shared = NO_TASKS
        self.dedicated = NO_TASKS
        self.doomed: dict[int, int] | None = None
        # executors
        first = 0
        groups: list[Group] = []
        for executors in info.executors:
            groups.append(Group(executors.context, range(first, first + executors.count)))
            first += executors.count
        self.groups = tuple(groups)
        # As long as a node has seen only plain tasks, one list and one queue say all: the scheduling pass is short.
        self.one_group = len(self.groups) == 1
        self.plain_free = self.groups[0].free if self.one_group else []
        self.takes_plain = info.can_run(None)
        self.running: dict[int, Run] = EMPTY
        self.inflight: dict[int, int] | None = None  # runs on a slot, where more than one was sent
        self.ahead = 0
        self.resumable: list[Run] | None = None
        self.store = StoreCalls()
        self.membership = NodeMembership()
        self.search = Search(0)
        self.phase = Phase.JOINING
        # membership
        # balancing
        # what was seen
        # By kind of task: how many ran, for how long in all, and on average; the large objects that the last one made.
        self.kinds: dict[int, list[int]] = EMPTY
        self.done_count = 0
        self.sampled_count = 0  # how many runs were timed, and how long they took in all
        self.sampled_ns = 0
        self.mean_run_ns = 0
        if config.replicated:
            self.keeping = Keeping()
        self.go_by(strategy)
        self.plain = self.one_kind

    def go_by(self, strategy: Strategy) -> None:
        """From now on; whatever a strategy tunes begins anew."""
        self.strategy = strategy
        traits = strategy.traits
        self.is_giver = strategy.balance.mode in ("give", "invite") or traits.balance.leaves_name is not None
        if traits.place.weighs_loads:
            self.loads = {}
        self.one_line = traits.place.one_line
        self.patience = traits.order.patience
        if traits.balance.keeps_index:
            self.holders = {}
        watches = traits.replicate.overdue_ns is not None
        if watches:
            self.lengths = {}
        self.copies_bytes_max = min(self.config.memory_bytes, traits.cache.limit_bytes)
        self.copies_by_use = traits.cache.by_use
        self.one_kind = self.one_group and self.groups[0].context is None and not (self.is_giver or watches)
        start = strategy.adapt.start(traits.place.t)
        self.threshold = 0.5 if start.threshold is None else start.threshold
        self.relaxing = True if start.relaxing is None else start.relaxing
        self.tt_ns = same(strategy.relax.start_tt_ns())
        self.calm_count = 0  # so many dedicated tasks are not too many
        self.stall_armed = traits.relax.stall_ns is None  # who never shares need not look
        self.search.begin_anew(same(strategy.balance.start_poll_ns()))
        self.adapt_at = same(self.done_count + strategy.adapt.period)

    def step(self, now_ns: int, events: Sequence[EventType], out: list[EffectType]) -> None:
        """Take in what happened and append what is to be done about it."""
        self.now_ns = now_ns
        self.out = out
        if len(events) > SEVERAL and self.inflight is not None:
            events = end_together(self, events)
        for event in events:
            HANDLERS[type(event)](self, event)
        if self.phase == Phase.RESTARTING:
            return
        if self.dirty:
            self.dirty = False
            run_pass(self)
        if self.leaving is not None:
            go_on(self)
            self.dirty = False
        transfer = self.transfer
        if transfer.offers or transfer.taken:
            send_offers(self)
        if self.store.rows is not None:
            send_due_rows(self)

    # -- what modules ask of modules that they do not import --------------------------------------------------------
    # A task's life goes round in a circle, and imports must not. A module imports what lies below it; whatever else it
    # asks for is here, so that imports have few layers.

    call_off = abort.call_off
    accept_once_more = claims.accept_once_more
    finish = commits.finish
    say_again = failover.say_again
    take_on = failover.take_on
    hand_over = handover.hand_over
    loot_for = loot.loot_for
    staged_count = loot.staged_count
    may_take_memory = memory.may_take_memory
    memory_fits = memory.memory_fits
    stand_in_line = memory.stand_in_line
    waits_for_memory = memory.waits_for_memory
    is_busy = pressure.is_busy
    makes_room = pressure.makes_room
    step_forward = pressure.step_forward
    watch_for_stall = relax.watch_for_stall
    relax = relax.relax
    give_up_inputs = remake.give_up_inputs
    resume = schedule.resume
    ahead_most = send_ahead.ahead_most
    recall_ahead = send_ahead.recall_ahead
    recall_behind = send_ahead.recall_behind
    recall_soon = send_ahead.recall_soon
    send_ahead = send_ahead.send_ahead
    hear_of_end = spawn.hear_of_end
    tell_child = spawn.tell_child
    wait_again = spawn.wait_again
    forget_lost_round = steal.forget_lost_round
    look_for_takers = steal.look_for_takers
    look_for_work = steal.look_for_work
    look_for_work_soon = steal.look_for_work_soon
    note_rich = steal.note_rich
    round_failed = steal.round_failed
    round_succeeded = steal.round_succeeded

    def next_token(self) -> int:
        """A number for a run, a call, an offer or an intent."""
        self.token = token = self.token + 1
        return token

    def take_tokens(self, count: int) -> range:
        """So many numbers in a row."""
        first = self.token + 1
        self.token += count
        return range(first, self.token + 1)

    def end_plain(self) -> None:
        """Not all tasks of this node are plain any more: the short ways for nodes that know no others are closed."""
        self.plain = False

    def only_here(self) -> tuple[NodeId, ...]:
        """The places of an object that only this node has."""
        if not self.here:
            self.here = (self.node,)
        return self.here

    def schedule_soon(self) -> None:
        """There is something to decide: this step ends with a scheduling pass."""
        self.dirty = True

    def take_members(self, members: Members) -> None:
        self.members = members

    def forget_beliefs(self) -> None:
        """The strategy changes or the node leaves: what was heard of others, or noted of runs, is of no use."""
        self.loads = self.holders = self.lengths = None

    def enter(self, phase: int) -> None:
        """Begin another phase."""
        self.phase = phase

    # -- the read-only view that decisions get -------------------------------------------------------------------------

    @property
    def shared_count(self) -> int:
        return self.shared.count

    @property
    def dedicated_count(self) -> int:
        return self.dedicated.count

    @property
    def idle_count(self) -> int:
        return sum(len(group.free) for group in self.groups)

    def estimate_ns(self, spec: TaskSpec) -> int:
        seen = self.kinds.get(spec.kind)
        if seen is not None:
            return seen[2]
        if not spec.estimate_ns:
            return GUESS_NS
        return int(spec.estimate_ns / self.info.speed) or 1

    @property
    def run_ns(self) -> int:
        """How long all tasks that finished here ran, estimated from a sample."""
        return self.mean_run_ns * self.done_count

    @property
    def lately(self) -> Lately:
        done, timed, timed_ns, moved_bytes, read_bytes = self.adapted
        timed = self.sampled_count - timed
        mean_ns = (self.sampled_ns - timed_ns) // timed if timed else self.mean_run_ns
        done = self.done_count - done
        return Lately(done, done * mean_ns, self.moved_bytes - moved_bytes, self.read_bytes - read_bytes)

    @property
    def poll_ns(self) -> int:
        return self.search.poll_ns

    @property
    def neighbour_count(self) -> int:
        return self.search.neighbour_count

    @property
    def idle_since_ns(self) -> int:
        return self.search.idle_since_ns

    @property
    def failed_steals(self) -> int:
        return self.search.failed_steals

    @property
    def moved_bytes(self) -> int:
        return self.objects.moved_bytes

    @property
    def read_bytes(self) -> int:
        return self.objects.read_bytes

    def has(self, object_: int) -> bool:
        return object_ in self.objects.sizes

    def strayed(self, object_: int) -> bool:
        return object_ in self.objects.strays

    def load_of(self, node: NodeId) -> int:
        return load_of(self, node)

    def heard_of(self, most: int) -> list[NodeId]:
        return heard_of(self, most)

    def quantile_ns(self, spec: TaskSpec, share: float, least: int) -> int:
        seen = (self.lengths or EMPTY).get(spec.kind, ())
        return sorted(seen)[min(len(seen) - 1, int(share * len(seen)))] if len(seen) >= least else 0

    def __repr__(self) -> str:
        return (
            f"<node {self.node}: {len(self.running)} running, {self.dedicated.count} dedicated, "
            f"{self.shared.count} shared, {len(self.fetching.waiting)} staging, {len(self.transfer.lent)} lent>"
        )


@handles(TimerFired)
def on_timer_fired(core: NodeCore, event: TimerFired) -> None:
    act = FIRED.get(event.timer)
    if act is not None:  # at the deadline of a node that leaves nothing is left to decide
        act(core)
