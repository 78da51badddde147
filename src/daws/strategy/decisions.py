"""The questions that scheduling strategies answer, one protocol each.

A decision is pure: it gets a read-only view of a node (or a graph) and randomness, and returns a choice; the core
carries it out. Every answer can say why: `explain` returns the numbers that the choice compared, and must agree with
the choice. Answers keep no state: what changes while running (`t`, `tt`, polling interval, neighbours) lives in the
node and is seen through the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

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
"""What a decision compared: names to numbers, and under "choice" what it chose."""


class Lately(Struct, frozen=True, array_like=True, gc=False):
    """What a node has seen since `adapt` was last asked."""

    done_count: int = 0
    run_ns: int = 0
    moved_bytes: int = 0
    read_bytes: int = 0


class View(Protocol):
    """What a decision may see of the node that asks. Nothing here may be changed by a decision."""

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
        """Of the tasks that finished here; 0 before the first."""
        ...

    @property
    def moved_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def failed_steals(self) -> int: ...
    @property
    def stalled_ns(self) -> int:
        """For so long no run has ended here, while dedicated tasks wait; 0 if that is not looked at now."""
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
        """How many tasks wait or run at a node as far as this one has heard, -1 if it has not heard of it lately. News
        are gathered only for an answer to `place` that has `weighs_loads = True`."""
        ...

    def heard_of(self, most: int) -> list[NodeId]:
        """Up to so many other members whose loads are known, the latest news first."""
        ...

    def quantile_ns(self, spec: TaskSpec, share: float, least: int) -> int:
        """So many of the last runs of such tasks here were shorter; 0 if fewer than `least` were seen. They are noted
        only for an answer to `replicate` that has `overdue_ns`."""
        ...


class Rng(Protocol):
    """Randomness that is handed in: the same numbers in every replay."""

    def below(self, bound: int) -> int: ...
    def unit(self) -> float: ...


class PilotView(Struct, frozen=True):
    """What `acquire` may know: what is left to do, where pilots could run, and how many wait or run on each."""

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
    """Which share of the tasks each pilot works for, and to which share each task belongs.

    Tasks run on pilots of their own share alone. `share_of` is None where there is one share: everything.
    """

    shares: tuple[int, ...]
    share_of: np.ndarray | None = None


class Bind(Protocol):
    """Is a task tied to a pilot before that pilot runs?"""

    def bind(self, graph: Graph, pilots: tuple[PilotRequest, ...]) -> Binding:
        """For the pilots that are asked for at the start. Shares are numbered from 0; each has a pilot."""
        ...

    def explain(self, graph: Graph, pilots: tuple[PilotRequest, ...], task: int) -> Reasons: ...


class Site(Struct, frozen=True):
    """What a planner may know of the cluster that a graph is submitted to.

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

    A whole graph is planned at once. Where tasks come one by one, as from a live client, nobody knows what will follow:
    `home` is asked for each of them. An answer that is another one then has `needs_graph = True` (False where it says
    nothing), and whoever chooses it live is told so (`fitting.lacks_live`).
    """

    def plan(self, graph: Graph, site: Site) -> Plan: ...
    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        """One of the members that can run it; there is at least one."""
        ...

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons: ...


class Place(Protocol):
    """A task became ready here: share it, keep it, or push it to another node?

    An answer with `plain_is_neutral = True` shares every task that reads nothing, needs no particular executor and has
    neither priority nor rank, so nobody needs to ask about those. (The same name in an `Order`: the key of such a task
    is 0.) `small_is_neutral = True`: the same holds for a task that reads only what travels inside records, unless the
    threshold is 0. With `one_line = True` what is dedicated does not come before what is shared: the order counts for
    both, and a task is dedicated only to keep it from thieves (asked again by who gets a task, about that alone).
    """

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        """SHARED, DEDICATED, or the node to push it to."""
        ...

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        """What `choose` would compare and choose now. It leaves `rng` as it is: asking why changes nothing."""
        ...


class Order(Protocol):
    """Which ready task runs first? Smaller keys first; equal keys in the order in which they came.

    An answer that has `raised(graph, ranks, members)` says by which ranks nodes go where a graph is known, from those
    of the plan; without it they go by the plan's. With `finishes = True` thieves that get what would run first get
    tasks that begin something new rather than those that go on with what was begun. With `patience` executors wait for
    more critical tasks, for so long a part of a task's length; 0 without it.
    """

    @property
    def needs_ranks(self) -> bool:
        """Whether the client has to compute upward ranks when it submits."""
        ...

    def key(self, view: View, ready: Ready) -> float: ...
    def explain(self, view: View, ready: Ready) -> Reasons: ...


def raised_ranks(order: Order, graph: Graph, ranks: np.ndarray, members: Members) -> np.ndarray:
    """The ranks by which nodes go, from those of the plan."""
    raised = getattr(order, "raised", None)
    return ranks if raised is None else raised(graph, ranks, members)


class Match(Protocol):
    """May this executor run this task, and how gladly (0 is best, -1 is no)?"""

    def preference(self, task: Context | None, executor: Context | None) -> int: ...
    def explain(self, task: Context | None, executor: Context | None) -> Reasons: ...


class Balance(Protocol):
    """Who moves work, when, and how much?

    `mode` is "steal" (an idle node asks), "give" (a loaded node offers), "invite" (a loaded node calls others, who ask
    when they have time) or "none". With `asks_load` a node first asks all its targets for their load and then turns to
    one of them; without it a request goes straight to the first target (of who leaves its name, to all of them).

    Some answers have more than what is listed here. With mode "invite": `guests(view, fresh, rng)`, whom to call for so
    many tasks, as (node, for how many). Thieves that do not ask for loads may have `leaves_name(view)`: whether those
    who have nothing now are to remember this node and to send it what comes up. And they may have `keeps_index`: then a
    victim hands over what the thief has most bytes of, of the first `window` tasks, and if `waits_for_best` only what
    nobody has more of.
    """

    @property
    def mode(self) -> str: ...
    @property
    def asks_load(self) -> bool: ...
    @property
    def follows_rumours(self) -> bool:
        """When none of those asked has work, turn to a node that one of them has heard of."""
        ...

    @property
    def from_head(self) -> bool:
        """Hand over what would run first (True) or last (False)."""
        ...

    @property
    def wish(self) -> Wish | None:
        """What an idle node asks its victim for, if not for what the victim's own order hands over."""
        ...

    def start_poll_ns(self) -> int: ...
    def start_neighbours(self, member_count: int) -> int: ...
    def targets(self, view: View, rng: Rng) -> list[NodeId]: ...
    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        """Which of those who answered: the victim of a steal or the receiver of a gift; -1 for nobody."""
        ...

    def amount(self, view: View, available: int) -> int: ...
    def after_success(self, view: View) -> tuple[int, int]:
        """(poll_ns, neighbour_count) after work was moved."""
        ...

    def after_failure(self, view: View) -> tuple[int, int]:
        """(poll_ns, neighbour_count) after nothing was found."""
        ...

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons: ...


class Relax(Protocol):
    """When does a dedicated task become shared?

    Asked whenever tasks have come or ended. An answer may have `stall_ns(view)`, a number above 0: where all executors
    are busy and no run has ended for so long, it is asked again, with `stalled_ns` in the view. Without it nobody asks.
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


class Replicate(Protocol):
    """When does a second copy run?

    An answer that has `overdue_ns(view, spec)` says after how long a run should have ended (0: it cannot say); who asks
    a node for work that has none to give, but such runs, gets a copy of one. With `validate_ns` nodes ask the store
    that often what became of the tasks of which they have copies, as long as they have any.
    """

    @property
    def copies_max(self) -> int:
        """The store allows so many runs of a task beside the owner's."""
        ...

    def copies(self, view: View, spec: TaskSpec) -> int:
        """How many copies may run beside the original when a task is given away; 0 moves the task itself."""
        ...

    def explain(self, view: View, spec: TaskSpec) -> Reasons: ...


class Cache(Protocol):
    """Which moved data is kept?

    An answer may have `limit_bytes`, the room for copies (beside the node's own limit), and `by_use = True`: beyond the
    limit those go first that were not read for the longest time, instead of those that came first.
    """

    def keeps(self, view: View, size_bytes: int) -> bool: ...
    def explain(self, view: View, size_bytes: int) -> Reasons: ...


class Changes(Struct, frozen=True, array_like=True):
    """What `adapt` wants changed; None leaves a value as it is."""

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


class Strategy(Struct, frozen=True):
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
