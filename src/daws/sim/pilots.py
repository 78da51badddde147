"""Pilots in a simulation: they wait in queues, their nodes join, and leave when the walltime is over.

The clock of a simulation starts when the first pilot is active, because nothing happens before; `wait_s` is the wait
until then. Strategies decide which pilots are requested (`acquire`) and which tasks are tied to them (`bind`). A tied
task asks for a context that only the nodes of its pilots offer. Until the first of them is active, it waits at the
client. If its last pilot has ended, it waits at any node until a new one is active.
"""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from daws.core.node import SECOND_NS
from daws.model.cluster import ExecutorClass
from daws.model.context import Context, Label
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.model.pilots import Demand, PilotRequest, Stage
from daws.model.states import FINAL
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.cluster import NodeGroup, SimulatedCluster, joined
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.pilotlog import PilotLog
from daws.sim.resources import Queue
from daws.sim.simulate import DEFAULTS, Opening, Result, Settings, simulate
from daws.strategy.decisions import PilotView, Strategy
from daws.strategy.rng import SplitMix64, hash_one

Mask = npt.NDArray[np.bool_]

SALT = 0x91107
"""Keeps these draws apart from others of the same seed."""
LOOK_NS = 60 * SECOND_NS
IDLE_PILOTS_MAX = 200
"""The most pilots that may end one after the other without the end of a task. After that the simulation gives up."""
HANDOVER_TICKS = 3
"""The ticks before its end in which a pilot stops its runs and hands their tasks over."""


class Pilot:
    """One batch job. Times are those of the simulation; those before the first pilot was active are negative."""

    __slots__ = ("active_ns", "asked_ns", "ended_ns", "label", "nodes", "queue", "request", "share")

    def __init__(self, request: PilotRequest, queue: int, share: int, label: Context | None) -> None:
        self.request = request
        self.queue = queue
        self.share = share
        self.label = label
        self.asked_ns = 0
        self.active_ns = 0  # or when it will be
        self.ended_ns = -1
        self.nodes: list[int] = []  # indices of those that are there

    def groups(self, cores: int) -> list[NodeGroup]:
        """Its nodes, of so many cores each but perhaps the last."""
        full, rest = divmod(self.request.cores, cores)
        parts = [(full, cores), (1, rest)]
        return [
            NodeGroup(count, (ExecutorClass(size, self.label),), cluster=self.queue)
            for count, size in parts
            if count and size
        ]


class PilotReport(Struct, frozen=True):
    """The times of a run on pilots, in seconds. As AIMES has it, `ttc_s` is from the request for pilots to the last
    task's end.

    `tw_s` is the time until the first pilot was active. `tx_s` is from the first task's start to the last one's end.
    `ts_s` is the time in which objects were on their way, most of which overlaps with `tx_s`. `held_core_s` are the
    core seconds of the pilots until they ended or all tasks were done. `used` is the share of it in which tasks ran
    that counted.
    """

    ttc_s: float
    tw_s: float
    tx_s: float
    ts_s: float
    asked: int
    active: int
    ended: int  # their walltime was over before all was done
    held_core_s: float
    used: float
    waits_s: dict[str, list[float]]  # by resource, of those that became active


class Pilots:
    """All pilots of one run, from asking for the first to the end."""

    def __init__(self, graph: Graph, queues: tuple[Queue, ...], strategy: Strategy, seed: int) -> None:
        if not queues:
            raise UsageError("pilots need at least one resource")
        if graph.growth or graph.context.any():
            raise UsageError("pilots: tasks that ask for a context, or create tasks, cannot run on them yet")
        self.queues = queues
        self.strategy = strategy
        self.resources = tuple([queue.resource for queue in queues])
        self.rngs = [SplitMix64(hash_one(number, seed ^ SALT)) for number in range(len(queues))]
        self.fullness_s = [queue.waits.fullness_s(rng) for queue, rng in zip(queues, self.rngs, strict=True)]
        self.levels = graph.levels()
        self.ended_since = 0  # pilots, since a task has ended
        self.done_then = 0
        everything = np.ones(graph.task_count, np.bool_)
        nobody = (0,) * len(queues)
        asked = strategy.acquire.ask(PilotView(self._demand(graph, everything), self.resources, nobody, nobody))
        if not asked:
            raise UsageError("acquire has asked for no pilot at all")
        binding = strategy.bind.bind(graph, asked)
        self.share_of = binding.share_of
        self.labels: list[Context | None] = [None] * (max(binding.shares) + 1)
        if binding.share_of is not None:
            self.labels = [Label(f"share-{number}") for number in range(len(self.labels))]
            graph = graph.changed(contexts=(None, *self.labels), context=(binding.share_of + 1).astype(np.int32))
        self.graph = graph
        self.all = [
            Pilot(one, one.resource, share, self.labels[share])
            for one, share in zip(asked, binding.shares, strict=True)
        ]
        waits_s = [self._wait_s(pilot) for pilot in self.all]
        self.wait_s = min(waits_s)
        for pilot, wait_s in zip(self.all, waits_s, strict=True):
            pilot.asked_ns = -round(self.wait_s * SECOND_NS)
            pilot.active_ns = round((wait_s - self.wait_s) * SECOND_NS)
        self.all.sort(key=lambda pilot: pilot.active_ns)  # nodes are numbered as they come
        self.of_node: dict[int, Pilot] = {}
        groups: list[NodeGroup] = []
        for pilot in self.all:
            for group in pilot.groups(queues[pilot.queue].cores):
                groups.append(group)
                self._number_nodes(pilot, group.count)
        self.cluster: SimulatedCluster = joined(groups)

    def opening(self) -> Opening:
        present = len(self.all[0].nodes)
        planned = present if self.share_of is None else self.cluster.node_count
        return Opening(present, planned, min(pilot.request.walltime_s for pilot in self.all))

    def attach(self, kernel: Kernel) -> None:
        """Let the first pilot be there, and the others come."""
        self.log = PilotLog(kernel)
        kernel.tracks_runs = True  # runs are recalled and stopped when a pilot ends
        kernel.one_cluster = len(self.queues) == 1
        kernel.on_left = self._left
        self._plan_end(kernel, self.all[0])
        for pilot in self.all[1:]:
            kernel.push(pilot.active_ns, FATE, partial(self._activate, pilot=pilot))
        if self.share_of is not None and self.graph.edge_count:
            kernel.push(LOOK_NS, FATE, self._look)

    # -- one pilot -----------------------------------------------------------------------------------------------------

    def _wait_s(self, pilot: Pilot) -> float:
        number = pilot.queue
        return self.queues[number].waits.draw_s(self.fullness_s[number], pilot.request.cores, self.rngs[number])

    def _number_nodes(self, pilot: Pilot, count: int) -> None:
        for _ in range(count):
            index = len(self.of_node)
            self.of_node[index] = pilot
            pilot.nodes.append(index)

    def _activate(self, kernel: Kernel, pilot: Pilot) -> None:
        for index in pilot.nodes:
            kernel.arrive(index)
        self._plan_end(kernel, pilot)

    def _plan_end(self, kernel: Kernel, pilot: Pilot) -> None:
        """First it starts nothing more, then it stops what runs and hands over, then it is gone."""
        tick_ns = kernel.config.tick_ns
        end_ns = pilot.active_ns + round(pilot.request.walltime_s * SECOND_NS)
        notice_ns = max(round(pilot.request.drain_s * SECOND_NS), HANDOVER_TICKS * tick_ns)
        deadline_ns = max(pilot.active_ns, end_ns - (HANDOVER_TICKS - 1) * tick_ns)
        told = partial(self._tell, pilot=pilot, deadline_ns=deadline_ns)
        kernel.push(max(pilot.active_ns, end_ns - notice_ns), FATE, told)
        kernel.push(end_ns, FATE, partial(self._end, pilot=pilot))

    def _tell(self, kernel: Kernel, pilot: Pilot, deadline_ns: int) -> None:
        for index in pilot.nodes:
            kernel.leave(index, deadline_ns)

    def _left(self, kernel: Kernel, node: NodeId) -> None:
        index = node & NODE_INDEX_MASK
        pilot = self.of_node[index]
        pilot.nodes.remove(index)
        if not pilot.nodes:
            self._ended(kernel, pilot)

    def _end(self, kernel: Kernel, pilot: Pilot) -> None:
        """The batch system asks nobody."""
        if not pilot.nodes:
            return
        for index in pilot.nodes:
            kernel.kill(kernel.machines[index].info.id)
        pilot.nodes = []
        self._ended(kernel, pilot)

    def _ended(self, kernel: Kernel, pilot: Pilot) -> None:
        pilot.ended_ns = kernel.now_ns
        if self.log.done_count > self.done_then:
            self.done_then, self.ended_since = self.log.done_count, 0
        self.ended_since += 1
        if self.ended_since > IDLE_PILOTS_MAX:
            raise UsageError(
                f"{IDLE_PILOTS_MAX} pilots have ended since another task was done: what they made was lost with them "
                f"before it was read; ask for longer ones (spare-s=…), or tie no tasks to pilots (bind=late)"
            )
        self._ask(kernel, pilot.share)

    # -- asking for more -----------------------------------------------------------------------------------------------

    def _look(self, kernel: Kernel) -> None:
        """Lost objects are made again, perhaps by a task whose pilots have all ended."""
        for share in range(len(self.labels)):
            if not any(pilot.share == share and pilot.ended_ns < 0 for pilot in self.all):
                self._ask(kernel, share)
        kernel.push(kernel.now_ns + LOOK_NS, FATE, self._look)

    def _ask(self, kernel: Kernel, share: int) -> None:
        left = self._unfinished(kernel, share)
        if not left.any():
            return
        now_ns = kernel.now_ns
        pilots = [pilot for pilot in self.all if pilot.share == share]
        tied = self.share_of is not None
        numbers = sorted({pilot.queue for pilot in pilots}) if tied else list(range(len(self.queues)))
        queued = dict.fromkeys(numbers, 0)
        active = dict(queued)
        for pilot in pilots:
            if pilot.ended_ns < 0:
                (active if pilot.active_ns <= now_ns else queued)[pilot.queue] += 1
        view = PilotView(
            self._demand(self.graph, left),
            tuple([self.resources[number] for number in numbers]),
            tuple(queued.values()),
            tuple(active.values()),
        )
        asked = self.strategy.acquire.ask(view)
        if not asked and not sum(view.queued) and not sum(view.active):
            raise UsageError(f"{int(left.sum())} tasks are left, and acquire has asked for no pilot to run them")
        for one in asked:
            self._submit(kernel, Pilot(one, numbers[one.resource], share, self.labels[share]))

    def _submit(self, kernel: Kernel, pilot: Pilot) -> None:
        pilot.asked_ns = kernel.now_ns
        pilot.active_ns = kernel.now_ns + round(self._wait_s(pilot) * SECOND_NS)
        self.all.append(pilot)
        for group in pilot.groups(self.queues[pilot.queue].cores):
            for info in joined([group]).infos():
                kernel.expect(replace(info, id=len(kernel.machines)))
            self._number_nodes(pilot, group.count)
        kernel.push(pilot.active_ns, FATE, partial(self._activate, pilot=pilot))

    def _unfinished(self, kernel: Kernel, share: int) -> Mask:
        left = self.log.undone()
        if self.graph.edge_count:
            # Some may have to run again because what they made is lost.
            records = map(kernel.store.record, range(self.graph.task_count))
            left |= np.fromiter((one is not None and one.state not in FINAL for one in records), np.bool_)
        return left if self.share_of is None else left & (self.share_of == share)

    def _demand(self, graph: Graph, tasks: Mask) -> Demand:
        """The cores and the longest task of each level of these tasks."""
        _, level = np.unique(self.levels[tasks], return_inverse=True)
        cores = np.bincount(level, weights=graph.cores[tasks]).astype(np.int64)
        longest_ns = np.zeros(len(cores), np.int64)
        np.maximum.at(longest_ns, level, graph.length_ns[tasks])
        stages = [Stage(*one) for one in zip(cores.tolist(), (longest_ns / SECOND_NS).tolist(), strict=True)]
        return Demand(tuple(stages), int(graph.cores[tasks].max(initial=1)))

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def report(self, kernel: Kernel) -> PilotReport:
        end_ns = max(kernel.ends, default=0)
        active = [pilot for pilot in self.all if pilot.active_ns <= end_ns]
        held_ns = 0
        waits_s: dict[str, list[float]] = {queue.name: [] for queue in self.queues}
        for pilot in active:
            until_ns = pilot.ended_ns if 0 <= pilot.ended_ns < end_ns else end_ns
            held_ns += pilot.request.cores * (until_ns - pilot.active_ns)
            waits_s[self.queues[pilot.queue].name].append((pilot.active_ns - pilot.asked_ns) / SECOND_NS)
        return PilotReport(
            ttc_s=self.wait_s + end_ns / SECOND_NS,
            tw_s=self.wait_s,
            tx_s=(end_ns - min(kernel.starts, default=0)) / SECOND_NS,
            ts_s=self.log.staging_ns / SECOND_NS,
            asked=len(self.all),
            active=len(active),
            ended=sum(0 <= pilot.ended_ns < end_ns for pilot in active),
            held_core_s=held_ns / SECOND_NS,
            used=self.graph.total_core_ns / held_ns if held_ns else 0.0,
            waits_s=waits_s,
        )


def simulate_pilots(
    graph: Graph,
    queues: tuple[Queue, ...],
    strategy: Strategy,
    settings: Settings = DEFAULTS,
    progress: Any = None,
) -> tuple[PilotReport, Result, Kernel]:
    """Run to the end on pilots. `efficiency` and `utilization` of the result are of what the pilots held, its makespan
    is from when the first of them was active, and its nodes are those of all pilots."""
    pilots = Pilots(graph, queues, strategy, settings.seed)
    result, kernel = simulate(
        pilots.graph, pilots.cluster, strategy, settings, progress, pilots.attach, pilots.opening()
    )
    report = pilots.report(kernel)
    cores = {info.cores for info in (machine.info for machine in kernel.machines)}
    held = result.cores_total * result.makespan_s / report.held_core_s if report.held_core_s else 0.0
    result = replace(
        result,
        nodes=len(kernel.machines),
        cores=cores.pop() if len(cores) == 1 else 0,
        cores_total=sum(machine.info.cores for machine in kernel.machines),
        efficiency=report.used,
        utilization=result.utilization * held,
    )
    return report, result, kernel
