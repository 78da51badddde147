"""Rules for runs: which node may begin which task, on which executor, and beside which other tasks."""

from collections import defaultdict
from collections.abc import Sequence

from daws.core.effects import EffectType, RecallRun, ResumeRun, StartRun, StopRun
from daws.core.events import RunRecalled, RunWaits
from daws.model.context import matches
from daws.model.task import REMAKE, REPLICA, SUSPECT, NodeId, Ready
from daws.sim.checkers.known import NODE_BITS, Known

NOWHERE = -1
"""The executor of a task that is suspended."""


def cores_of(run: StartRun) -> int:
    needs = run.ready.spec.needs
    return 1 if needs is None else needs.cores


class Runs:
    """A watcher of runs that begin, wait, resume and come back."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.running = known.running
        self.restarted: dict[tuple[int, int], NodeId] = {}  # (task, attempt) -> who ran a later attempt first
        self.more_starts = 0  # of copies, of what was suspended, and of what came back without having begun
        # What is short may be sent ahead, behind what is short; nodes learn that from the ends of runs.
        self.known_kinds: defaultdict[NodeId, set[int]] = defaultdict(set)
        graph = known.graph
        # Where all executors are alike only counts need a look. A restarted node has the executors that it had before.
        infos = [machine.info for machine in known.kernel.seats.values()]
        self.plain_nodes = all(len(info.executors) == 1 and info.executors[0].context is None for info in infos)
        self.cores_min = min((info.cores for info in infos), default=0)
        lengths = [growth.child_length_ns for growth in graph.growth]
        if graph.task_count:
            lengths.append(int(graph.length_ns.min()))
        fastest = max((info.speed for info in infos), default=1.0)
        self.hasty = min(lengths, default=0) / fastest < known.kernel.config.short_ns

    def check_attempt(self, node: NodeId, ready: Ready) -> None:
        """Later attempts and runs of an unusual mode; the checker deals with all others."""
        known = self.known
        task, attempt, mode = ready.spec.id, ready.attempt, ready.mode
        if attempt > known.attempts.get(task, 0):
            known.eventful = True
            known.attempts[task] = attempt
            known.attempted_ns[task] = known.kernel.now_ns
        if mode & REPLICA:
            self.more_starts += 1
            return
        if attempt:
            first = self.restarted.get((task, attempt))
            self.restarted[task, attempt] = node
        else:
            first = known.started[task]
            known.started[task] = node
        won = known.committed[task]
        if mode & REMAKE:
            if attempt < known.remade.get(task, attempt + 1):
                known.fail(f"node {node} makes task {task} again although nobody asked for it")
        elif won is not None and attempt > won >> NODE_BITS:
            known.fail(f"node {node} started task {task} again although it is done")
        if first is not None:
            self.begun_twice(task, attempt, first, node)

    def begun_twice(self, task: int, attempt: int, first: NodeId, node: NodeId) -> None:
        """The owner of a task begins an attempt once, unless it came back without having begun."""
        if first != node:
            self.known.fail(f"attempt {attempt} of task {task} runs on nodes {first} and {node}")
        self.known.fail(f"node {node} started attempt {attempt} of task {task} again")

    def on_recalled(self, node: NodeId, event: RunRecalled) -> None:
        """A run came back without having begun: the task may begin elsewhere."""
        recalled = self.running[node].pop(event.task, None)
        if recalled is None or recalled.ready.mode & REPLICA:
            return
        self.more_starts += 1
        attempt = recalled.ready.attempt
        if attempt:
            self.restarted.pop((event.task, attempt), None)
        elif self.known.started[event.task] == node:
            self.known.started[event.task] = None

    def on_wait(self, node: NodeId, event: RunWaits, out: Sequence[EffectType]) -> None:
        """A task waits for others: it has no executor from now on, and nothing may be left waiting behind it."""
        runs = self.running[node]
        started = runs.get(event.task)
        if started is None or started.run != event.run or started.slot == NOWHERE:
            return
        runs[event.task] = StartRun(started.run, NOWHERE, started.ready)
        called = {effect.task for effect in out if isinstance(effect, RecallRun | StopRun)}
        for other, behind in runs.items():
            if behind.slot == started.slot and other not in called:
                self.known.fail(
                    f"task {other} is left on executor {started.slot} of node {node} behind task {event.task}, "
                    "which waits"
                )

    def on_resume(self, node: NodeId, effect: ResumeRun) -> None:
        runs = self.running[node]
        started = runs.pop(effect.task, None)
        if started is None:
            self.known.fail(f"node {node} resumed task {effect.task}, which does not run there")
        self.more_starts += 1
        runs[effect.task] = resumed = StartRun(started.run, effect.slot, started.ready)
        self.check_executor(node, resumed)

    # -- executors ---------------------------------------------------------------------------------------------------

    def check_executor(self, node: NodeId, run: StartRun) -> None:
        """Check that the runs of a node fit onto its executors. Runs share an executor only if all of them are known to
        be short."""
        known, info = self.known, self.known.kernel.seats[node].info
        used: dict[int, int] = {}  # executor -> cores that the run needs which has it
        for other in self.running[node].values():
            if other.slot == run.slot and other is not run:
                self._check_ahead(node, other, run)
                self._check_ahead(node, run, other)
            if other.slot != NOWHERE:
                used[other.slot] = cores_of(other)
        cores = sum(used.values())
        if cores > info.cores:
            known.fail(f"node {node} uses {cores} of its {info.cores} cores")
        if not 0 <= run.slot < info.cores:
            known.fail(f"node {node} has no executor {run.slot}, but runs task {run.ready.spec.id} there")
        if run.ready.spec.needs is not None or not self.plain_nodes:
            self._check_context(node, run)
            self._check_memory(node)

    def _check_ahead(self, node: NodeId, one: StartRun, other: StartRun) -> None:
        """Check one of two runs on the same executor: it must be known to be short."""
        spec = one.ready.spec
        why = ""
        if spec.needs is not None:
            why = "has needs of its own"
        elif one.ready.mode & SUSPECT:
            why = "is suspected of killing nodes"
        elif spec.kind not in self.known_kinds[node]:
            why = "may be long for all that node knows"
        if why:
            self.known.fail(
                f"tasks {spec.id} and {other.ready.spec.id} are both on executor {one.slot} of node {node}, "
                f"but the first {why}"
            )

    def _check_context(self, node: NodeId, run: StartRun) -> None:
        spec, slot = run.ready.spec, run.slot
        first = 0
        for group in self.known.kernel.seats[node].info.executors:
            if slot < first + group.count:
                if not matches(spec.needs.context if spec.needs is not None else None, group.context):
                    self.known.fail(
                        f"task {spec.id} runs on executor {slot} of node {node}, whose context is {group.context}"
                    )
                return
            first += group.count

    def _check_memory(self, node: NodeId) -> None:
        limit = self.known.kernel.seats[node].info.memory_bytes
        if not limit:
            return
        used = 0
        for started in self.running[node].values():
            needs = started.ready.spec.needs
            if needs is not None and started.slot != NOWHERE:
                used += needs.memory_bytes
        if used > limit:
            self.known.fail(f"tasks that declare {used} bytes of memory run together on node {node}, which has {limit}")
