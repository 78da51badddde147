"""A few nodes, a store and a client whose messages arrive in an order that a chooser decides, some of them twice.

The simulator asks how long things take. A flock asks only whether the results are right in any order. Time passes when
a timer fires. A timer fires when nothing else is under way, or when the chooser wants it and no call to the store is
under way (a lease might depend on that call).
"""

from typing import Any, Protocol

import numpy as np

from daws.core import invariants
from daws.core.effects import (
    CallStore,
    EffectType,
    FetchObjects,
    Left,
    RecallRun,
    Restart,
    ResumeRun,
    Send,
    SetTimer,
    StartRun,
    StopRun,
)
from daws.core.events import (
    EventType,
    Leave,
    ObjectsFetched,
    ObjectsPut,
    RunEnded,
    RunRecalled,
    Started,
    StoreAnswered,
    TimerFired,
)
from daws.core.node import SECOND_NS, NodeConfig, NodeCore
from daws.model.graph import Graph
from daws.model.task import CLIENT, NodeId
from daws.sim.graph_user import GraphUser
from daws.store.memory import MemoryStore
from daws.store.memory.snapshot import unfinished_in
from daws.strategy.decisions import Site, Strategy
from daws.testing.build import members_of


class Chooser(Protocol):
    def below(self, bound: int) -> int: ...


class Flock:
    """`step` lets one thing happen; `run` goes on until the client has seen everything end."""

    def __init__(
        self,
        graph: Graph,
        strategy: Strategy,
        chooser: Chooser,
        nodes: int = 3,
        cores: int = 2,
        shards: int = 2,
        doubled: int = 0,
        deaths: int = 0,
        leaves: int = 0,
    ) -> None:
        """Set up the nodes, the store and the client.

        One of `doubled` deliveries is doubled (0: none). Up to `deaths` nodes die, but never the last one. Up to
        `leaves` nodes are told to leave, but never the living node with the lowest number.
        """
        self.chooser = chooser
        self.doubled = doubled
        self.deaths = deaths
        self.leaves = leaves
        self.left: dict[NodeId, str] = {}  # who has left, and what was left behind
        config = NodeConfig(shard_count=shards, lease_ns=8 * SECOND_NS)
        self.store = MemoryStore(shards, config.lease_ns)
        members = self.store.join(members_of(nodes, cores).infos)
        self.cores = {info.id: NodeCore(info, strategy, config, 1) for info in members.infos}
        places = np.arange(graph.external_count) % nodes
        self.client = GraphUser(graph, strategy, Site(members, config.net_bytes_per_s, places, 1), config)
        self.sizes: list[int] = graph.object_bytes.tolist()
        self.now_ns = 0
        self.step_count = 0
        self.under_way: list[tuple[int, Any]] = []  # (address, event or call)
        self.timers: list[tuple[int, int, int, int]] = []  # at_ns, sequence, address, timer
        self.running: dict[NodeId, dict[int, StartRun]] = {node: {} for node in self.cores}
        self.client.hand_in(members, lambda call: self.store.apply(call.shard, call.rows, 0))
        for index, node in enumerate(members.nodes):
            own = [graph.external_start + i for i, place in enumerate(places.tolist()) if place == index]
            if own:
                self._give(node, ObjectsPut(tuple((one, self.sizes[one]) for one in own)))
        for node in (*self.cores, CLIENT):
            self._give(node, Started(members))

    def run(self, steps_max: int = 100_000) -> None:
        while not self.client.is_done:
            self.step()
            assert self.step_count < steps_max, f"still waiting for {self.client.waiting_for} tasks: {self.stuck()}"

    def stuck(self) -> str:
        left = [f"task {task}: {record}" for task, record in unfinished_in(self.store)]
        return "\n".join([*left[:5], *map(repr, self.cores.values())])

    def step(self) -> None:
        """One delivery, one end of a run, one timer, or one death."""
        self.step_count += 1
        choose = self.chooser.below
        if self.deaths and len(self.cores) > 1 and not choose(200):
            self.deaths -= 1
            self.kill(list(self.cores)[choose(len(self.cores))])
            return
        if self.leaves and len(self.cores) > 1 and not choose(20):
            self.leaves -= 1
            others = list(self.cores)[1:]
            self._give(others[choose(len(others))], Leave())
            return
        runs = [(node, run) for node, started in self.running.items() for run in started]
        count = len(self.under_way) + len(runs)
        if not count or (not choose(40) and not any(isinstance(event, tuple) for _, event in self.under_way)):
            self._fire()
            return
        number = choose(count)
        if number >= len(self.under_way):
            self._end_run(*runs[number - len(self.under_way)])
            return
        to, event = self.under_way[number]
        if not self.doubled or choose(self.doubled):
            self.under_way[number] = self.under_way[-1]
            self.under_way.pop()
        if isinstance(event, tuple):
            self._serve(*event)
        else:
            self._give(to, event)

    def kill(self, node: NodeId) -> None:
        del self.cores[node]
        self.running.pop(node)

    def _fire(self) -> None:
        at_ns, _, to, timer = min(self.timers)
        self.timers.remove(min(self.timers))
        self.now_ns = max(self.now_ns, at_ns)
        self._give(to, TimerFired(timer))

    def _serve(self, caller: NodeId, call: CallStore) -> None:
        answers = self.store.apply(call.shard, call.rows, self.now_ns)
        self.under_way.append((caller, StoreAnswered(call.token, answers)))

    def _give(self, to: int, event: EventType) -> None:
        out: list[EffectType] = []
        if to == CLIENT:
            self.client.step(self.now_ns, (event,), out)
        else:
            core = self.cores.get(to)
            if core is None:
                return
            core.step(self.now_ns, (event,), out)
            invariants.check(core)
        for effect in out:
            self._perform(to, effect)

    def _perform(self, node: NodeId, effect: EffectType) -> None:
        if isinstance(effect, Send):
            self.under_way.append((effect.to, effect.message))
        elif isinstance(effect, CallStore):
            self.under_way.append((-2, (node, effect)))
        elif isinstance(effect, SetTimer):
            self.timers.append((effect.at_ns, self.step_count, node, effect.timer))
        elif isinstance(effect, StartRun):
            assert effect.run not in self.running[node]
            self.running[node][effect.run] = effect
        elif isinstance(effect, StopRun):
            self.running[node].pop(effect.run, None)
        elif isinstance(effect, RecallRun):
            if self.running[node].pop(effect.run, None) is not None:
                self.under_way.append((node, RunRecalled(effect.task, effect.run)))
        elif isinstance(effect, FetchObjects):
            self._fetch(node, effect)
        elif isinstance(effect, Left):
            self.left[node] = effect.behind
            self.kill(node)
        elif isinstance(effect, (Restart, ResumeRun)):
            raise AssertionError(f"node {node} wants {effect}")

    def _fetch(self, node: NodeId, effect: FetchObjects) -> None:
        """Some arrive together, some alone: both must do."""
        for number in range(0, len(effect.wanted), 2):
            two = effect.wanted[number : number + 2]
            failed = tuple([one for one in two if not self._has(one.source, one.object)])
            fetched = tuple([one for one in two if one not in failed])
            self.under_way.append((node, ObjectsFetched(fetched, failed)))

    def _has(self, place: NodeId, object_: int) -> bool:
        return place == CLIENT or (place in self.cores and object_ in self.cores[place].objects.sizes)

    def _end_run(self, node: NodeId, run: int) -> None:
        effect = self.running[node].pop(run)
        spec = effect.ready.spec
        sizes = tuple(self.sizes[one] for one in spec.outputs)
        self._give(node, RunEnded(spec.id, run, 1_000_000 * (1 + spec.id % 3), sizes))
