"""Adaptive work stealing as in MATRIX, with bounded probes."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.errors import StrategyError
from daws.model.task import NodeId
from daws.strategy.balance.neighbours import NS_PER_MS, draw, part, root
from daws.strategy.balance.thief import Thief
from daws.strategy.decisions import Reasons, Rng, View


class BalanceSteal(Thief, frozen=True, dict=True):
    """An idle node asks a few random nodes for their load, and takes half of the shared tasks of the most loaded one.

    MATRIX (2014, 2015): half of the tasks, exponential back-off, neighbours that grow after failed rounds. The papers
    ask √n nodes at once. Here a round starts with `probes` nodes and grows to `neighbours`: a constant 4 simulated 1.9
    times faster at 16,384 nodes and cost at most 0.3 points of efficiency. `neighbours=sqrt` or a larger `probes` comes
    closer to the papers. Unlike MATRIX's thread the node never gives up: it goes on asking every `poll-max-ms`. Answers
    also name nodes that had work lately (`rumours`): random questions find a few busy nodes among many idle ones late.

    With `hand=first` the thief gets the most urgent tasks, and starts them at once, instead of those that can wait
    longest. `settle` is for planned tasks. When a home has just received its tasks, other nodes are idle only because
    theirs are still on the way, and stealing at that time would undo the plan.

    Helps whenever load is uneven and nodes are many. Hurts little when all nodes are idle: a round per interval.
    """

    mode: ClassVar[str] = "steal"
    asks_load: ClassVar[bool] = True

    probes: Annotated[int, Meta(ge=1, le=100_000, description="nodes asked in the first round")] = 4
    neighbours: Annotated[
        int | Literal["sqrt"], Meta(ge=1, le=100_000, description="nodes asked at most, after failures")
    ] = 6
    grow: Annotated[int, Meta(ge=0, le=1000, description="nodes added after a failed round")] = 1
    share: Annotated[float, Meta(gt=0, le=1, description="part of the victim's shared tasks that is taken")] = 0.5
    most: Annotated[
        int, Meta(ge=1, le=1_000_000, description="tasks taken at once at most; thousands at once keep others waiting")
    ] = 256
    hand: Annotated[
        Literal["last", "first"],
        Meta(description="whether a victim hands over the tasks it would run last or first"),
    ] = "last"
    settle: Annotated[
        float, Meta(ge=0, le=1, description="of a planned task's length, that a queue is left alone after it was empty")
    ] = 0.0
    poll_min_ms: Annotated[
        float, Meta(ge=0.001, le=1e6, description="ms to the next round after the first failure")
    ] = 1.0
    poll_max_ms: Annotated[
        float, Meta(ge=0.001, le=1e6, description="ms between rounds at most, unless idle for more than ten times that")
    ] = 200.0
    rumours: Annotated[
        Literal["yes", "no"], Meta(description="ask nodes that others named as busy; no is as in the papers")
    ] = "yes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.poll_max_ms < self.poll_min_ms:
            raise StrategyError(f"poll-max-ms={self.poll_max_ms:g} is less than poll-min-ms={self.poll_min_ms:g}")

    @property
    def from_head(self) -> bool:
        return self.hand == "first"

    @property
    def follows_rumours(self) -> bool:
        return self.rumours == "yes"

    def start_poll_ns(self) -> int:
        return int(self.poll_min_ms * NS_PER_MS)

    def start_neighbours(self, member_count: int) -> int:
        return self.probes

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        return draw(view, rng, view.neighbour_count)

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        best, most = -1, 0
        for node, load in loads:
            if load > most:
                best, most = node, load
        return best

    def amount(self, view: View, available: int) -> int:
        return min(part(available, self.share), self.most)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), self.probes

    def after_failure(self, view: View) -> tuple[int, int]:
        shortest_ns, longest_ns, neighbours = self._bounds(view)
        poll_ns = min(max(2 * view.poll_ns, shortest_ns), longest_ns)
        return poll_ns, max(self.probes, min(view.neighbour_count + self.grow, neighbours))

    def _bounds(self, view: View) -> tuple[int, int, int]:
        """The shortest and the longest interval after a failed round, and the largest number of nodes to ask."""
        # New work appears when tasks end; asking more often than that is useless.
        shortest_ns = max(self.start_poll_ns(), view.mean_run_ns)
        # A node that has been idle for long may ask more rarely: it loses at most a tenth of that time again.
        longest_ns = max(int(self.poll_max_ms * NS_PER_MS), (view.now_ns - view.idle_since_ns) // 10)
        return shortest_ns, longest_ns, root(len(view.members)) if self.neighbours == "sqrt" else self.neighbours

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        shortest_ns, longest_ns, neighbours = self._bounds(view)
        return {
            "loads": dict(loads),
            "poll_ns": view.poll_ns,
            "poll_after_failure_min_ns": shortest_ns,
            "poll_after_failure_max_ns": longest_ns,
            "neighbour_count": view.neighbour_count,
            "neighbours_max": neighbours,
            "failed_steals": view.failed_steals,
            **self.wished(),
            "choice": self.pick(view, loads),
        }
