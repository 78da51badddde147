"""A user who hands in one whole graph, and waits for its end: the client of most simulations.

The graph is in the store before time begins: the writing of it is no part of a simulation.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallsSafe, Started, StoreAnswered
from daws.core.node import NodeConfig
from daws.core.session import SessionCore
from daws.core.session_events import GraphAdvanced, GraphSubmitted, MembersSeen, SessionOpened, TasksEnded
from daws.model.cluster import Members
from daws.model.graph import Graph
from daws.strategy.decisions import Site, Strategy
from daws.wire.store import AnswerType

SESSION = 0
"""Its tasks and objects have the numbers that they have in the graph."""


class GraphUser:
    """The user, with one client, whose session goes on if it is away for long."""

    def __init__(self, graph: Graph, strategy: Strategy, site: Site, config: NodeConfig) -> None:
        self.graph = graph
        self.places = site.places
        self.core = SessionCore(b"graph", config, kept=True, proposal=SESSION)
        self.waiting_for = graph.task_count
        self.ended: dict[int, tuple[int, str]] = {}  # only those that did not end well
        self._submitted = GraphSubmitted(graph, strategy, site, SESSION)
        self._is_replicated = config.replicated
        self._effects: list[Any] = []  # of the time before time begins

    @property
    def is_done(self) -> bool:
        return not self.waiting_for

    @property
    def tokens(self) -> list[int]:
        return [self.core.calls.token]

    @property
    def spawned(self) -> set[int]:
        """The tasks that tasks of the graph have created, as far as the client knows."""
        assert self.core.graph is not None
        return self.core.graph.spawned

    @property
    def cancels(self) -> bool:
        """Are there tasks that are to be cancelled, of which no node has said that it has seen to it?"""
        return bool(self.core.cancels)

    def hand_in(self, members: Members, serve: Callable[[CallStore], list[AnswerType]]) -> None:
        """Write the graph. All that was written is safe at once."""
        calls: deque[CallStore] = deque()
        events: list[Any] = [Started(members)]
        while events or calls:
            if not events:
                call = calls.popleft()
                events = [StoreAnswered(call.token, serve(call))]
                if self._is_replicated:
                    events.append(CallsSafe(call.shard, (call.token,)))
            effects: list[Any] = []
            self.core.step(0, events, effects)
            events = []
            for effect in effects:
                if isinstance(effect, SessionOpened):
                    events.append(self._submitted)
                elif isinstance(effect, CallStore):
                    calls.append(effect)
                else:
                    self._effects.append(effect)

    def step(self, now_ns: int, events: Sequence[Any], out: list[Any]) -> None:
        effects, self._effects = self._effects, []  # none after the first step
        self.core.step(now_ns, [event for event in events if not isinstance(event, Started)], effects)
        for effect in effects:
            if isinstance(effect, GraphAdvanced):
                self.waiting_for = effect.left
            elif isinstance(effect, TasksEnded):
                self.ended.update({one.task: (one.state, one.error) for one in effect.ends})
            elif not isinstance(effect, MembersSeen):
                out.append(effect)
