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
    plain       the fast lane: plain tasks, from their start to their commit
    abort       runs that end early
    lengths     how long tasks take
    tuning      numbers that the strategy tunes
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

The machine of the client's side is `session` with its parts `session_*`.
"""

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
    outbox,
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
from daws.core.executors import executors_of
from daws.core.fetching import NO_FETCHING, Fetching
from daws.core.handlers import FIRED, HANDLERS, handles
from daws.core.handover import Adoptions
from daws.core.leaving import go_on
from daws.core.lengths import NO_LENGTHS, Lengths, watch_lengths
from daws.core.lifelines import NO_LIFELINES, Lifelines
from daws.core.membership import NodeMembership
from daws.core.objects import NO_OBJECTS, NodeObjects
from daws.core.outbox import NO_OUTBOX, Outbox
from daws.core.outliving import NO_SPAWNING, Spawning
from daws.core.peers import NO_PEERS, Peers, heard_of, load_of
from daws.core.plain import end_together
from daws.core.queues import NO_QUEUES, Queues
from daws.core.replicas import NO_REPLICAS, NodeReplicas
from daws.core.schedule import schedule as run_pass
from daws.core.steal import Search
from daws.core.store_calls import ENDS_HELD_MAX, StoreCalls, send_rows
from daws.core.transfer import NO_TRANSFER, Transfer, send_offers
from daws.core.tuning import first_tuning
from daws.core.unsafe import Keeping
from daws.model.cluster import Members, NodeInfo
from daws.model.task import GUESS_NS, NodeId, TaskSpec
from daws.strategy import parse_strategy
from daws.strategy.decisions import Lately, Strategy
from daws.strategy.rng import SplitMix64

RESTARTING = Phase.RESTARTING
SEVERAL = 4
"""Fewer events are taken one by one."""
_NO_STEP: list[EffectType] = ()  # type: ignore[assignment]


class NodeCore:
    """The state of one node. Only the handlers change it; decisions see it as a `View`."""

    __slots__ = (
        "adoptions",
        "config",
        "cores",
        "dirty",
        "executors",
        "fetching",
        "here",
        "info",
        "is_giver",
        "keeping",
        "lane_open",
        "leaving",
        "lengths",
        "lifelines",
        "members",
        "membership",
        "node",
        "now_ns",
        "objects",
        "one_kind",
        "one_line",
        "out",
        "outbox",
        "patience",
        "peers",
        "phase",
        "queues",
        "read_strategy",
        "replicas",
        "rng",
        "search",
        "shard_count",
        "spawning",
        "store",
        "strategy",
        "takes_plain",
        "transfer",
        "tuning",
    )

    def __init__(self, info: NodeInfo, strategy: Strategy, config: NodeConfig, seed: int) -> None:
        self.info = info
        self.node: NodeId = info.id
        self.here: tuple[NodeId, ...] = ()  # the places of an object that only this node has, once there is one
        self.config = config
        self.cores = info.cores
        self.rng = SplitMix64(seed * 0x9E3779B97F4A7C15 ^ info.id * 0xBF58476D1CE4E5B9)
        self.now_ns = 0
        self.out = _NO_STEP
        self.members = Members(0, ())
        self.dirty = False
        self.shard_count = config.shard_count
        self.takes_plain = info.can_run(None)
        # The parts. A node that does not need one yet has the shared, empty one.
        self.executors = executors_of(info)
        self.queues: Queues = NO_QUEUES
        self.lengths: Lengths = NO_LENGTHS
        self.peers: Peers = NO_PEERS
        self.replicas: NodeReplicas = NO_REPLICAS
        self.objects: NodeObjects = NO_OBJECTS
        self.fetching: Fetching = NO_FETCHING
        self.transfer: Transfer = NO_TRANSFER
        self.lifelines: Lifelines = NO_LIFELINES
        self.outbox: Outbox = NO_OUTBOX
        self.spawning: Spawning = NO_SPAWNING
        self.adoptions: Adoptions | None = None  # what is to be kept for nodes that leave
        self.keeping: Any = Keeping() if config.replicated else None  # acknowledged rows that the store may forget
        self.leaving: Any = None  # how far it has come, if it was told to leave
        self.read_strategy: Callable[[str], Strategy] = parse_strategy
        """How the text of a new strategy becomes one; a driver that watches decisions puts its own in here."""
        self.store = StoreCalls()
        self.membership = NodeMembership()
        self.search = Search(0)
        self.phase = Phase.JOINING
        self.go_by(strategy)
        self.lane_open = False

    def go_by(self, strategy: Strategy, stall_since: tuple[int, int] = (0, 0)) -> None:
        """Follow this strategy from now on; whatever a strategy tunes begins anew."""
        self.strategy = strategy
        traits = strategy.traits
        self.is_giver = strategy.balance.mode in ("give", "invite") or traits.balance.leaves_name is not None
        if traits.place.weighs_loads or traits.balance.keeps_index:
            self.peers = Peers(traits.place.weighs_loads, traits.balance.keeps_index)
        self.one_line = traits.place.one_line  # do the keys of `order` count across both queues?
        self.patience = traits.order.patience  # an executor is kept for such a part of the time that another task takes
        watches = traits.replicate.overdue_ns is not None
        watch_lengths(self, watches)
        executors = self.executors
        self.one_kind = executors.one_group and executors.groups[0].context is None and not (self.is_giver or watches)
        self.tuning = first_tuning(strategy, self.lengths.done_count, stall_since)
        self.search.begin_anew(same(strategy.balance.start_poll_ns()))

    def step(self, now_ns: int, events: Sequence[EventType], out: list[EffectType]) -> None:
        """Take in what happened and append what is to be done about it."""
        self.now_ns = now_ns
        self.out = out
        if len(events) > SEVERAL and self.executors.inflight is not None:
            events = end_together(self, events)
        for event in events:
            HANDLERS[type(event)](self, event)
        if self.phase == RESTARTING:
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
        store = self.store
        if store.rows is not None and (
            store.urgent
            or self.executors.plain_free
            or now_ns >= store.held_until_ns
            or len(store.rows) >= ENDS_HELD_MAX
        ):
            send_rows(self)

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
    send_to_first = send_ahead.send_to_first
    slots_to_queue_at = send_ahead.slots_to_queue_at
    send_ahead = send_ahead.send_ahead
    hear_late = outbox.hear_late
    hear_of_end = spawn.hear_of_end
    on_function_answer = spawn.on_function_answer
    tell_child = spawn.tell_child
    wait_again = spawn.wait_again
    forget_lost_round = steal.forget_lost_round
    look_for_takers = steal.look_for_takers
    look_for_work = steal.look_for_work
    look_for_work_soon = steal.look_for_work_soon
    note_rich = steal.note_rich
    round_failed = steal.round_failed
    round_succeeded = steal.round_succeeded

    def open_lane(self) -> None:
        """Nothing but the shared queue says which task runs next (see `plain`)."""
        self.lane_open = True

    def close_lane(self) -> None:
        """Something else has to be decided first, or may have to be."""
        self.lane_open = False

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
        self.peers = NO_PEERS
        watch_lengths(self, False)

    def enter(self, phase: int) -> None:
        """Begin another phase."""
        self.phase = phase

    # -- the read-only view that decisions get -------------------------------------------------------------------------

    @property
    def net_bytes_per_s(self) -> float:
        return self.config.net_bytes_per_s

    @property
    def shared_count(self) -> int:
        return self.queues.shared.count

    @property
    def dedicated_count(self) -> int:
        return self.queues.dedicated.count

    @property
    def idle_count(self) -> int:
        return sum([len(group.free) for group in self.executors.groups])

    @property
    def ahead(self) -> int:
        """The number of runs that wait at executors behind others."""
        return self.executors.ahead

    @property
    def threshold(self) -> float:
        return self.tuning.threshold

    @property
    def tt_ns(self) -> int:
        return self.tuning.tt_ns

    @property
    def relaxing(self) -> bool:
        return self.tuning.relaxing

    @property
    def stalled_ns(self) -> int:
        return self.tuning.stalled_ns

    @property
    def copied(self) -> dict[int, int]:
        return self.replicas.copied

    @property
    def done_count(self) -> int:
        return self.lengths.done_count

    @property
    def mean_run_ns(self) -> int:
        return self.lengths.mean_run_ns

    def estimate_ns(self, spec: TaskSpec) -> int:
        seen = self.lengths.kinds.get(spec.kind)
        if seen is not None:
            return seen.mean_ns
        if not spec.estimate_ns:
            return GUESS_NS
        return int(spec.estimate_ns / self.info.speed) or 1

    @property
    def run_ns(self) -> int:
        """How long all tasks that finished here ran, estimated from a sample."""
        return self.lengths.mean_run_ns * self.lengths.done_count

    @property
    def lately(self) -> Lately:
        done, timed, timed_ns, moved_bytes, read_bytes = self.tuning.adapted
        lengths = self.lengths
        timed = lengths.sampled_count - timed
        mean_ns = (lengths.sampled_ns - timed_ns) // timed if timed else lengths.mean_run_ns
        done = lengths.done_count - done
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
        seen = (self.lengths.last or EMPTY).get(spec.kind, ())
        return sorted(seen)[min(len(seen) - 1, int(share * len(seen)))] if len(seen) >= least else 0

    def __repr__(self) -> str:
        return (
            f"<node {self.node}: {len(self.executors.running)} running, {self.queues.dedicated.count} dedicated, "
            f"{self.queues.shared.count} shared, {len(self.fetching.waiting)} staging, {len(self.transfer.lent)} lent>"
        )


@handles(TimerFired)
def on_timer_fired(core: NodeCore, event: TimerFired) -> None:
    act = FIRED.get(event.timer)
    if act is not None:  # at the deadline of a node that leaves nothing is left to decide
        act(core)
