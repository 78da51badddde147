"""The questions that scheduling strategies answer, one protocol each.

A decision is pure: it gets a read-only view of a node (or a graph) and randomness, and returns a choice; the core
carries it out. Every answer can say why: `explain` returns the numbers that the choice compared, and must agree with
the choice. Answers keep no state: what changes while running (`t`, `tt`, polling interval, neighbours) lives in the
node and is seen through the view.

An answer is any class with the methods of its protocol. Some answers say more about themselves by optional attributes
and methods. These are the fields of `PlaceTraits`, `OrderTraits` and so on, with their defaults. `Strategy.traits` has
the values of a whole strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from daws.model.cluster import Members
from daws.model.context import Context, Wish
from daws.model.pilots import Demand, PilotRequest, Resource
from daws.model.task import Input, Needs, NodeId, Ready, TaskSpec

if TYPE_CHECKING:
    import numpy as np

    from daws.model.graph import Graph

SHARED = -1
"""Keep the task here, where others may steal it."""
DEDICATED = -2
"""Keep the task here, for this node alone (until `relax` says otherwise)."""

Reasons = dict[str, Any]
"""The numbers that a decision compared, by name. The decision itself is under "choice"."""

TraitsOf = TypeVar("TraitsOf", bound=Struct)


class Lately(Struct, frozen=True, array_like=True, gc=False):
    """The counts of a node since `adapt` was last asked."""

    done_count: int = 0
    run_ns: int = 0
    moved_bytes: int = 0
    read_bytes: int = 0


class View(Protocol):
    """The part of a node that its decisions may see. A decision may change nothing here."""

    @property
    def node(self) -> NodeId: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def members(self) -> Members: ...
    @property
    def cores(self) -> int: ...
    @property
    def net_bytes_per_s(self) -> float: ...

    # Tuning that `adapt`, `relax` and `balance` change through their answers.
    @property
    def threshold(self) -> float: ...
    @property
    def tt_ns(self) -> int: ...
    @property
    def relaxing(self) -> bool: ...
    @property
    def poll_ns(self) -> int: ...
    @property
    def neighbour_count(self) -> int: ...
    @property
    def idle_since_ns(self) -> int: ...

    # What the node has seen so far.
    @property
    def done_count(self) -> int: ...
    @property
    def mean_run_ns(self) -> int:
        """The mean run time of the tasks that finished here; 0 before the first."""
        ...

    @property
    def moved_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def failed_steals(self) -> int: ...
    @property
    def stalled_ns(self) -> int:
        """The time for which no run has ended here while dedicated tasks wait; 0 unless `relax` is asked about that."""
        ...

    @property
    def copied(self) -> dict[int, int]:
        """How many copies of a task were offered to others so far."""
        ...

    @property
    def run_ns(self) -> int:
        """How long the tasks that finished here ran in all."""
        ...

    @property
    def lately(self) -> Lately: ...

    @property
    def shared_count(self) -> int: ...
    @property
    def dedicated_count(self) -> int: ...
    @property
    def idle_count(self) -> int:
        """Executors with nothing to do."""
        ...

    def estimate_ns(self, spec: TaskSpec) -> int:
        """How long such a task runs here: the mean of its kind as seen here, else what was said, else a guess."""
        ...

    def has(self, object_: int) -> bool:
        """Is this object on this node?"""
        ...

    def strayed(self, object_: int) -> bool:
        """Was this object made here by a task that had been planned for another node?"""
        ...

    def load_of(self, node: NodeId) -> int:
        """The number of tasks that wait or run at a node by its last report, -1 if there is no recent one. News
        are gathered only if `PlaceTraits.weighs_loads` is set."""
        ...

    def heard_of(self, most: int) -> list[NodeId]:
        """Up to this many other members whose loads are known, the latest report first."""
        ...

    def quantile_ns(self, spec: TaskSpec, share: float, least: int) -> int:
        """The run time below which this share of the last runs of such tasks here stayed; 0 if fewer than `least` runs
        were seen. Runs are noted only if `ReplicateTraits.overdue_ns` is set."""
        ...


class Rng(Protocol):
    """Randomness that is handed in: the same numbers in every replay."""

    def below(self, bound: int) -> int: ...
    def unit(self) -> float: ...


class PilotView(Struct, frozen=True):
    """The facts for `acquire`: the work that is left, the resources, and how many pilots wait or run on each."""

    demand: Demand
    resources: tuple[Resource, ...]
    queued: tuple[int, ...]
    active: tuple[int, ...]


class Acquire(Protocol):
    """Which pilots are asked for? Asked at the start, and each time that a pilot has ended while work is left.

    Where tasks are tied to pilots, each share of them is asked about by itself, with the resources that it may use.
    """

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        """The pilots to submit now; at least one if none waits or runs."""
        ...

    def explain(self, view: PilotView) -> Reasons: ...


class Binding(Struct, frozen=True):
    """The share of the tasks that each pilot works for, and the share to which each task belongs.

    Tasks run on pilots of their own share alone. `share_of` is None where there is one share: everything.
    """

    shares: tuple[int, ...]
    share_of: np.ndarray | None = None


class Bind(Protocol):
    """Is a task tied to a pilot before that pilot runs?"""

    def bind(self, graph: Graph, pilots: tuple[PilotRequest, ...]) -> Binding:
        """The shares of the pilots that are asked for at the start. Shares are numbered from 0; each has a pilot."""
        ...

    def explain(self, graph: Graph, pilots: tuple[PilotRequest, ...], task: int) -> Reasons: ...


class Site(Struct, frozen=True):
    """The facts that a planner may know about the cluster to which a graph is submitted.

    `places[i]` is the position (in `members.nodes`) of the node that has the i-th external object, -1 if none has it.
    """

    members: Members
    net_bytes_per_s: float
    places: np.ndarray
    seed: int


class Plan(Struct, frozen=True):
    """A home for each task (position in `members.nodes`); `ranks` where the planner computed upward ranks."""

    homes: np.ndarray
    ranks: np.ndarray | None = None


class Newcomer(Struct, frozen=True, array_like=True, gc=False):
    """A task that is submitted by itself: how many came before it, what it needs, what is known of what it reads.

    `turn` is the number of the first task that needs the same, and how many of these came before this one.
    """

    number: int
    needs: Needs | None = None
    inputs: tuple[Input, ...] = ()
    turn: int = 0


class Assign(Protocol):
    """Which node receives each submitted task?

    A whole graph is planned at once. If tasks come one by one, as from a live client, the tasks that will follow are
    not known, and `home` is asked for each task.
    """

    def plan(self, graph: Graph, site: Site) -> Plan: ...
    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        """One of the members that can run it; there is at least one."""
        ...

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons: ...


class AssignTraits(Struct, frozen=True):
    """Optional attributes of an answer to `assign`."""

    needs_graph: bool = False
    """Whether the answer decides differently where tasks come one by one. Users who choose it for a live cluster are
    told so (`fitting.lacks_live`)."""


class Place(Protocol):
    """A task became ready here: share it, keep it, or push it to another node?"""

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        """SHARED, DEDICATED, or the node to push it to."""
        ...

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        """The numbers that `choose` would compare now, and its choice. The state of `rng` does not change."""
        ...


class PlaceTraits(Struct, frozen=True):
    """Optional attributes of an answer to `place`."""

    plain_is_neutral: bool = False
    """Whether the answer shares every plain task, so that the core need not ask about it. A plain task reads nothing,
    needs no particular executor and has neither priority nor rank. `OrderTraits` must say the same."""

    small_is_neutral: bool = False
    """Whether the same holds for a task that reads only objects that travel inside records. The core asks all the same
    if the threshold is 0."""

    one_line: bool = False
    """Whether dedicated and shared tasks form one queue, in the order of `order`. If not, dedicated tasks run before
    shared ones. With one queue a task is dedicated only to protect it from thieves, and the node that receives a task
    asks `place` again about that alone."""

    weighs_loads: bool = False
    """Whether the answer reads `View.load_of` and `View.heard_of`, so that the node has to note the loads of others."""

    t: float = 0.5
    """The threshold that `adapt` starts with."""


class Order(Protocol):
    """Which ready task runs first? Smaller keys first; equal keys in the order in which they came."""

    @property
    def needs_ranks(self) -> bool:
        """Whether the client has to compute upward ranks when it submits."""
        ...

    def key(self, view: View, ready: Ready) -> float: ...
    def explain(self, view: View, ready: Ready) -> Reasons: ...


class OrderTraits(Struct, frozen=True):
    """Optional attributes and methods of an answer to `order`."""

    plain_is_neutral: bool = False
    """Whether the key of every plain task (see `PlaceTraits.plain_is_neutral`) is 0."""

    small_is_neutral: bool = False
    """Whether the same holds for a task that reads only objects that travel inside records."""

    finishes: bool = False
    """Whether thieves that receive the first tasks of the queue get tasks that begin something new, instead of tasks
    that continue work that was begun here."""

    patience: float = 0.0
    """How long an executor waits for a more critical task, as a part of the length of the task that it could start."""

    raised: Callable[[Graph, np.ndarray, Members], np.ndarray] | None = None
    """The ranks that nodes use, from the graph, the ranks of the plan, and the members. Without it nodes use the ranks
    of the plan."""


def raised_ranks(order: Order, graph: Graph, ranks: np.ndarray, members: Members) -> np.ndarray:
    """The ranks that nodes use, from the ranks of the plan."""
    raised = traits_of(OrderTraits, order).raised
    return ranks if raised is None else raised(graph, ranks, members)


class Match(Protocol):
    """May this executor run this task, and how gladly (0 is best, -1 is no)?"""

    def preference(self, task: Context | None, executor: Context | None) -> int: ...
    def explain(self, task: Context | None, executor: Context | None) -> Reasons: ...


class Balance(Protocol):
    """Who moves work, when, and how much?

    `mode` is "steal" (an idle node asks), "give" (a loaded node offers), "invite" (a loaded node calls others, who ask
    when they have time) or "none". With `asks_load` a node first asks all its targets for their load and then turns to
    one of them. Without it the node sends its request to the first target at once, or to all targets if
    `BalanceTraits.leaves_name` says yes.
    """

    @property
    def mode(self) -> str: ...
    @property
    def asks_load(self) -> bool: ...
    @property
    def follows_rumours(self) -> bool:
        """If none of the nodes asked has work, ask a node that one of them has named."""
        ...

    @property
    def from_head(self) -> bool:
        """Hand over what would run first (True) or last (False)."""
        ...

    @property
    def wish(self) -> Wish | None:
        """The tasks that an idle node asks its victim for. With None the victim chooses by its own order."""
        ...

    def start_poll_ns(self) -> int: ...
    def start_neighbours(self, member_count: int) -> int: ...
    def targets(self, view: View, rng: Rng) -> list[NodeId]: ...
    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        """Choose one of the nodes that answered: the victim of a steal or the receiver of a gift; -1 for none."""
        ...

    def amount(self, view: View, available: int) -> int: ...
    def after_success(self, view: View) -> tuple[int, int]:
        """The new `(poll_ns, neighbour_count)` after work was moved."""
        ...

    def after_failure(self, view: View) -> tuple[int, int]:
        """The new `(poll_ns, neighbour_count)` after nothing was found."""
        ...

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons: ...


class BalanceTraits(Struct, frozen=True):
    """Optional attributes and methods of an answer to `balance`."""

    guests: Callable[[View, int, Rng], list[tuple[NodeId, int]]] | None = None
    """The nodes to call for a number of new tasks, as (node, for how many tasks). Mode "invite" needs it."""

    leaves_name: Callable[[View], bool] | None = None
    """Whether targets that have no work now shall remember this node and send it work later. Only thieves that do not
    ask for loads may have it."""

    keeps_index: bool = False
    """Whether a victim chooses among its first `window` tasks those of whose inputs the thief has most bytes."""

    window: int = 128
    """The number of tasks that the victim looks at, with `keeps_index`."""

    waits_for_best: bool = False
    """Whether the victim, with `keeps_index`, hands over a task only if no node has more of its inputs."""

    settle: float = 0.0
    """How long planned tasks that have just come are not given to thieves, as a part of the length of the first."""


class Relax(Protocol):
    """When does a dedicated task become shared?

    The core asks whenever tasks have come or ended.
    """

    def start_tt_ns(self) -> int: ...
    def excess(self, view: View) -> int:
        """How many dedicated tasks to share now."""
        ...

    def after_sharing(self, view: View) -> int:
        """The new `tt_ns` after tasks were shared."""
        ...

    def after_failed_steal(self, view: View) -> int: ...
    def explain(self, view: View) -> Reasons: ...


class RelaxTraits(Struct, frozen=True):
    """Optional methods of an answer to `relax`."""

    stall_ns: Callable[[View], int] | None = None
    """A time above 0. If all executors are busy and no run has ended for that long, the core asks `relax` again, with
    `View.stalled_ns`. Without this method the core does not look for such stalls."""


class Replicate(Protocol):
    """When does a second copy run?"""

    @property
    def copies_max(self) -> int:
        """The number of runs of a task that the store allows beside the owner's."""
        ...

    def copies(self, view: View, spec: TaskSpec) -> int:
        """How many copies may run beside the original when a task is given away; 0 moves the task itself."""
        ...

    def explain(self, view: View, spec: TaskSpec) -> Reasons: ...


class ReplicateTraits(Struct, frozen=True):
    """Optional attributes and methods of an answer to `replicate`."""

    overdue_ns: Callable[[View, TaskSpec], int] | None = None
    """The time after which a run should have ended; 0 if the answer cannot say. A thief gets a copy of such a run if
    its victim has no other task to give."""

    validate_ns: int = 0
    """The interval at which a node with copies asks the store about the tasks that they are copies of; 0 is never."""


class Cache(Protocol):
    """Which moved data is kept?"""

    def keeps(self, view: View, size_bytes: int) -> bool: ...
    def explain(self, view: View, size_bytes: int) -> Reasons: ...


class CacheTraits(Struct, frozen=True):
    """Optional attributes of an answer to `cache`."""

    limit_bytes: int = 1 << 62
    """The room for copies. The node's own limit (`NodeConfig.memory_bytes`) holds too."""

    by_use: bool = False
    """Whether the copies that were not read for the longest time are evicted first, instead of the oldest copies."""


class Changes(Struct, frozen=True, array_like=True):
    """The values that `adapt` changes; None leaves a value as it is."""

    threshold: float | None = None
    relaxing: bool | None = None
    tt_ns: int | None = None


class Adapt(Protocol):
    """What changes while running? Asked now and then, every few task lengths."""

    @property
    def period(self) -> int:
        """Ask after this many finished tasks; 0 is never."""
        ...

    def start(self, threshold: float) -> Changes: ...
    def adjust(self, view: View) -> Changes | None: ...
    def explain(self, view: View) -> Reasons: ...


class Traits(Struct, frozen=True):
    """The optional attributes and methods of all answers of a strategy."""

    assign: AssignTraits
    place: PlaceTraits
    order: OrderTraits
    balance: BalanceTraits
    relax: RelaxTraits
    replicate: ReplicateTraits
    cache: CacheTraits


def traits_of(traits: type[TraitsOf], answer: object) -> TraitsOf:
    """Read the optional attributes of an answer, with defaults for those that it does not have."""
    return traits(**{name: getattr(answer, name) for name in traits.__struct_fields__ if hasattr(answer, name)})


class Strategy(Struct, frozen=True, dict=True):
    """An answer to each question. Presets are Strategies; anything else is a Strategy too."""

    name: str
    acquire: Acquire
    bind: Bind
    assign: Assign
    place: Place
    order: Order
    match: Match
    balance: Balance
    relax: Relax
    replicate: Replicate
    cache: Cache
    adapt: Adapt

    @cached_property
    def traits(self) -> Traits:
        """The optional attributes of the answers, read once."""
        return Traits(
            assign=traits_of(AssignTraits, self.assign),
            place=traits_of(PlaceTraits, self.place),
            order=traits_of(OrderTraits, self.order),
            balance=traits_of(BalanceTraits, self.balance),
            relax=traits_of(RelaxTraits, self.relax),
            replicate=traits_of(ReplicateTraits, self.replicate),
            cache=traits_of(CacheTraits, self.cache),
        )
