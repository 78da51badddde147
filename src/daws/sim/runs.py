"""Runs on simulated executors: how long they take, and what becomes of those that are recalled, stopped or suspended.

The kernel starts and ends the usual run in its loop. This part deals with all other runs, and remembers of each of them
what a later effect may ask for.
"""

from typing import TYPE_CHECKING, NamedTuple

from daws.core.effects import RecallRun, ResumeRun, StartRun
from daws.core.events import RunEnded, RunRecalled, RunSpawned, RunWaits
from daws.model.graph import Graph
from daws.model.task import INLINE_BYTES, NodeId, Ready, TaskSpec, spawned_id
from daws.sim.machine import FATE, Machine

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel


class RunTimes(NamedTuple):
    """When a run begins and ends (or begins to wait), and on which executor."""

    begin_ns: int
    end_ns: int
    slot: int


class SimulatedRuns:
    """The runs of all nodes that are not simply begun and ended.

    It has no reference to its kernel, which is handed in: a cycle would keep a simulation in memory after its end.
    """

    __slots__ = ("output_start", "recalled", "stopped", "suspended", "times", "unbegun_ns")

    def __init__(self, graph: Graph) -> None:
        self.output_start = graph.output_start.data  # by task: its first object
        self.times: dict[tuple[NodeId, int], RunTimes] = {}  # kept where runs can be recalled or stopped
        self.suspended: dict[NodeId, dict[int, Ready]] = {}  # by node and run: those that wait or will
        self.stopped: set[tuple[NodeId, int]] = set()  # runs whose end is still to come, but counts no more
        self.recalled: set[tuple[NodeId, int]] = set()  # runs that were given back before they began: they have no end
        self.unbegun_ns = 0  # by how much runs that were called off before they began seem to have ended too early

    def was_stopped(self, node: NodeId, run: int) -> bool:
        """Whether the end of this run counts no more. It comes once."""
        if (node, run) not in self.stopped:
            return False
        self.stopped.discard((node, run))
        return True

    def forget(self, node: NodeId, run: int) -> None:
        """A run has ended."""
        self.times.pop((node, run), None)
        waiting = self.suspended.get(node)
        if waiting is not None:
            waiting.pop(run, None)

    def forget_node(self, node: NodeId) -> None:
        """A node has died."""
        self.suspended.pop(node, None)

    def length_ns(self, kernel: "Kernel", spec: TaskSpec, machine: Machine) -> int:
        if spec.id >= len(kernel.lengths):
            return int(spec.estimate_ns / machine.speed)
        if kernel.length_on is not None:
            return kernel.length_on(spec.id, machine.info)
        return int(kernel.lengths[spec.id] / machine.speed)

    def start(self, kernel: "Kernel", node: NodeId, machine: Machine, leaves_ns: int, effect: StartRun) -> None:
        """Start a run that may be recalled or stopped, or creates tasks."""
        spec = effect.ready.spec
        length_ns = self.length_ns(kernel, spec, machine)
        begin_ns = leaves_ns + kernel.costs.dispatch_ns
        slots = machine.slot_free_ns or machine.open_slots()
        free_ns = slots[effect.slot]
        if free_ns > begin_ns:
            begin_ns = free_ns
        kernel.starts.append(begin_ns)
        if kernel.checker is not None:
            kernel.checker.on_start(node, effect, begin_ns)
        if kernel.growth and spec.kind in kernel.growth:
            self._grow(kernel, node, machine, effect, begin_ns, length_ns)
            return
        self._plan_end(
            kernel, node, machine, effect, RunTimes(begin_ns, begin_ns + length_ns, effect.slot), length_ns, spec
        )

    def _plan_end(
        self,
        kernel: "Kernel",
        node: NodeId,
        machine: Machine,
        effect: StartRun | ResumeRun,
        times: RunTimes,
        length_ns: int,
        spec: TaskSpec,
    ) -> None:
        machine.slot_free_ns[times.slot] = times.end_ns
        self.times[node, effect.run] = times
        sizes = tuple([kernel.sizes[one] for one in spec.outputs])
        kernel.push(times.end_ns, node, RunEnded(spec.id, effect.run, length_ns, sizes))

    def _grow(
        self, kernel: "Kernel", node: NodeId, machine: Machine, effect: StartRun, begin_ns: int, length_ns: int
    ) -> None:
        """Start a run that creates tasks halfway through, and may wait for them."""
        ready = effect.ready
        task, run = ready.spec.id, effect.run
        growth = kernel.growth[ready.spec.kind]
        half_ns = begin_ns + length_ns // 2
        spec = TaskSpec(-1, growth.child_kind, growth.child_length_ns)
        parents = () if growth.after < 0 else (growth.after,)
        seeds = ((spec, parents),) * growth.count
        kernel.push(half_ns, node, RunSpawned(task, run, seeds, growth.held))
        if not growth.waits:
            times = RunTimes(begin_ns, begin_ns + length_ns, effect.slot)
            self._plan_end(kernel, node, machine, effect, times, length_ns, ready.spec)
            return
        on = tuple([spawned_id(task, ready.attempt, number) for number in range(growth.count)])
        machine.slot_free_ns[effect.slot] = half_ns + 1
        self.times[node, run] = RunTimes(begin_ns, half_ns, effect.slot)
        self.suspended.setdefault(node, {})[run] = ready
        kernel.push(half_ns + 1, node, RunWaits(task, run, on))
        kernel.push(half_ns + 1, FATE, lambda kernel: self._begin_waiting(kernel, node, run))

    def _begin_waiting(self, kernel: "Kernel", node: NodeId, run: int) -> None:
        """A run gives its executor back, unless it was stopped before, or its node has died."""
        if run in self.suspended.get(node, {}):
            del self.times[node, run]  # of the executor that it had
            kernel.ends.append(kernel.now_ns)

    def resume(self, kernel: "Kernel", node: NodeId, machine: Machine, leaves_ns: int, effect: ResumeRun) -> None:
        """Let a suspended run go on with its second half. A run whose worker has died does not go on."""
        ready = self.suspended.get(node, {}).pop(effect.run, None)
        if ready is None:
            return
        spec = ready.spec
        begin_ns = leaves_ns + kernel.costs.dispatch_ns
        kernel.starts.append(begin_ns)
        length_ns = self.length_ns(kernel, spec, machine)
        times = RunTimes(begin_ns, begin_ns + length_ns - length_ns // 2, effect.slot)
        self._plan_end(kernel, node, machine, effect, times, length_ns, spec)

    def recall(self, kernel: "Kernel", node: NodeId, machine: Machine, leaves_ns: int, effect: RecallRun) -> None:
        """Give a run back that has not begun."""
        times = self.times.get((node, effect.run))
        if times is not None and times.begin_ns > leaves_ns:
            self.stop(kernel, node, machine, effect.run)
            self.recalled.add((node, effect.run))
            kernel.push(leaves_ns + kernel.costs.dispatch_ns, node, RunRecalled(effect.task, effect.run))

    def stop(self, kernel: "Kernel", node: NodeId, machine: Machine, run: int) -> None:
        if (node, run) in self.stopped:
            return  # it was recalled, and is called off before the node has heard that it came back
        times, now_ns = self.times.get((node, run)), kernel.now_ns
        is_waiting = times is None and run in self.suspended.get(node, {})
        self.forget(node, run)
        self.stopped.add((node, run))
        if not is_waiting:
            kernel.ends.append(now_ns)
        if times is None:
            return
        if times.begin_ns > now_ns:
            self.unbegun_ns += times.begin_ns - now_ns
        if machine.slot_free_ns[times.slot] == times.end_ns:
            machine.slot_free_ns[times.slot] = now_ns

    def keep_outputs(self, machine: Machine, event: RunEnded) -> None:
        """A run has ended: the machine has what it made, but for objects that travel inside records."""
        first = self.output_start[event.task]
        if len(event.sizes) > 1:
            machine.keep([first + number for number, size in enumerate(event.sizes) if size > INLINE_BYTES])
        elif event.sizes and event.sizes[0] > INLINE_BYTES:
            machine.keep_one(first)
