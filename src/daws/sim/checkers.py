"""Checkers: small independent programs that watch what a simulated cluster does, and stop at the first thing that
must not happen.

They believe nothing that a node says about itself: they see the rows that reached the store and its answers, the
effects that were carried out, and the graph. What they know of the truth they keep themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from daws.core.effects import DropObject, EffectType, Left, RecallRun, ResumeRun, StartRun, StopRun
from daws.core.events import EventType, Leave, ObjectsFetched, ObjectsPut, RunEnded, RunRecalled, RunWaits
from daws.core.node import NodeCore
from daws.model.context import matches
from daws.model.errors import InternalError
from daws.model.states import DONE, FAILED, FINAL
from daws.model.task import FIRST_SPAWNED_ID, INLINE_BYTES, REMAKE, REPLICA, NodeId, Ready, TaskSpec, spawned_id
from daws.wire.store import (
    OK,
    STOP,
    AnswerType,
    Cancel,
    Committed,
    Estate,
    Finish,
    LogRow,
    Row,
    Spawn,
    Stopped,
    TakeOver,
)

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

NOWHERE = -1
"""The executor of a task that is suspended."""
ORPHAN_LEASES = 4
"""Tasks whose spawner was lost may live on for so many leases."""

# What is looked at; most rows, events and effects are none of these.
WATCHED_ROWS = frozenset((Finish, Cancel, TakeOver, Spawn))
WATCHED_EVENTS = frozenset((ObjectsFetched, ObjectsPut, RunRecalled, RunWaits, Leave))  # and RunEnded, the most common
WATCHED_EFFECTS = frozenset((DropObject, StopRun, ResumeRun, Left))  # and StartRun, when it is carried out

NODE_BITS = 64
NODE_MASK = (1 << NODE_BITS) - 1


def run_key(node: NodeId, attempt: int) -> int:
    """A run as one number. A first attempt is named by its node: that number exists already, so it costs no memory."""
    return attempt << NODE_BITS | node if attempt else node


class Sparse(dict[int, int | None]):
    """A number per task where graphs grow: the ids of spawned tasks are no indices."""

    def __missing__(self, task: int) -> None:
        return None


PerTask = list[int | None] | Sparse
"""A number per task, None where there is none yet. Eight bytes per task, in all graphs but those that grow."""


def _task_of(row: LogRow) -> int:
    return row if isinstance(row, int) else row[0]


class Violation(InternalError):
    """Something happened that the rules forbid."""


class Checker:
    """Watches one simulation. `deep` also checks the invariants of a node after each of its steps.

    What happens to nearly every task (one attempt, started and committed once) is written out at the top of `on_start`,
    `on_step` and `on_row` and kept in columns; what is known of the others is in dictionaries that stay small.
    """

    def __init__(self, kernel: "Kernel", deep: Callable[[NodeCore], None] | None = None) -> None:
        graph = kernel.graph
        self.kernel = kernel
        self.graph = graph
        self.count = graph.task_count
        self.sizes = kernel.sizes
        self.deep = deep
        self.committed = self._per_task()  # the run that won, of a remade task the latest
        self.started = self._per_task()  # who ran the first attempt first
        self.restarted: dict[tuple[int, int], NodeId] = {}  # (task, attempt) -> who ran a later attempt first
        self.first: dict[int, int] = {}  # the attempt that won where it was not the first one
        self.remakes: set[tuple[int, int]] = set()  # (task, attempt) of remakes that were committed
        self.ended: dict[int, int] = {}  # final state of those that did not end well
        self.attempts: dict[int, int] = {}  # the latest attempt that was started, where it was not the first one
        self.attempted_ns: dict[int, int] = {}  # when it was started
        self.spawners: dict[int, tuple[int, int]] = {}  # spawned task -> who spawned it, in which attempt
        self.leaving: dict[NodeId, int] = {}  # who was told to leave, and by when
        self.left: dict[NodeId, str] = {}  # who has left, and what it said it left behind
        self.eventful = False  # some task has failed, was cancelled or was started a second time
        self.running: defaultdict[NodeId, dict[int, StartRun]] = defaultdict(dict)  # by node and task
        self.holdings: defaultdict[NodeId, set[int]] = defaultdict(set)
        self.copies: defaultdict[NodeId, set[int]] = defaultdict(set)
        self.fetched_bytes = 0
        self.reads_data = len(graph.inputs) > 0
        self.makes_data = graph.object_count > 0
        if self.makes_data:
            # Views, not lists: they give plain integers and take no memory of their own.
            self.producer = graph.producer.data
            self.parent_start, self.parents = graph.parent_start.data, graph.parents.data
            self.child_start, self.children = graph.child_start.data, graph.children.data
        # Where all executors are alike only counts need a look. A restarted node has the executors that it had before.
        infos = [machine.info for machine in kernel.seats.values()]
        self.plain_nodes = all(len(info.executors) == 1 and info.executors[0].context is None for info in infos)
        self.cores_min = min((info.cores for info in infos), default=0)

    def _per_task(self) -> PerTask:
        return Sparse() if self.graph.growth else [None] * self.count

    def fail(self, what: str) -> None:
        raise Violation(f"at {self.kernel.now_ns / 1e9:.6f} s of seed {self.kernel.seed}: {what}")

    def has_ended(self, task: int) -> bool:
        return self.committed[task] is not None or task in self.ended

    # -- the store ---------------------------------------------------------------------------------------------------

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None:
        if len(rows) != len(answers):
            self.fail(f"{len(rows)} rows of node {caller} got {len(answers)} answers")
        if WATCHED_ROWS.isdisjoint(map(type, rows)):
            return
        for row, answer in zip(rows, answers, strict=True):
            self.on_row(row, answer)

    def on_row(self, row: Row, answer: AnswerType) -> None:
        if type(row) is Finish:
            if answer is None or type(answer) is Committed:
                task = row.task
                if row.attempt or self.eventful or self.committed[task] is not None:
                    self._on_commit(row)
                else:
                    self.committed[task] = row.node
            elif type(answer) is Stopped:
                self._on_end(row.task, FAILED)
        elif type(row) is Cancel and type(answer) is Stopped:
            self._on_end(row.task, 0)
        elif type(answer) is Estate:
            for entry in answer.outbox:
                if entry.verb == STOP and entry.error:
                    self._on_end(entry.task, FAILED)  # a node killer: it failed when it was taken over
        elif type(row) is Spawn and answer == OK:
            self.spawners.update(dict.fromkeys(row.tasks, (row.task, row.attempt)))

    def _on_commit(self, row: Finish) -> None:
        """Any commit; that of a first attempt, while nothing else has happened, is dealt with above."""
        task, attempt = row.task, row.attempt
        run = run_key(row.node, attempt)
        before = self.committed[task]
        if before is None:
            self.committed[task] = run
            if attempt:
                self.first[task] = attempt
            if task in self.ended:
                self.fail(f"task {task} was committed by node {row.node} after it had failed or been cancelled")
        elif before != run:
            if attempt <= before >> NODE_BITS:
                won = (before & NODE_MASK, before >> NODE_BITS)
                self.fail(f"task {task} was committed twice: by {won} and by {row.node, attempt} (node, attempt)")
            self.committed[task] = run  # a remake: checked against the record
            self.remakes.add((task, attempt))
            self._check_remake(task)
        if task in self.spawners:
            self._check_spawner(task)
        latest = self.attempts.get(task, 0)
        if attempt < latest:
            self.fail(f"task {task}: an outdated run {row.node, attempt} was committed, attempt {latest} is under way")

    def _check_spawner(self, task: int) -> None:
        """What an attempt spawned that never committed is to be cancelled; some may end before it hears of it."""
        spawner, attempt = self.spawners[task]
        if attempt == self._winner(spawner) or (spawner, attempt) in self.remakes:
            return  # it was committed, and what it spawned stands on its own feet
        if attempt < self.attempts.get(spawner, 0) and self.kernel.faults:
            known_ns = max(self.attempted_ns[spawner], self.kernel.faults.plan.horizon_ns)
            if self.kernel.now_ns > known_ns + self.kernel.config.lease_ns * ORPHAN_LEASES:
                self.fail(f"task {task} was committed long after attempt {attempt} of task {spawner}, which spawned it")

    def _winner(self, task: int) -> int | None:
        """The attempt that was the first to be committed."""
        return None if self.committed[task] is None else self.first.get(task, 0)

    def _check_remake(self, task: int) -> None:
        entries = sum(1 for shard in self.kernel.store.shards for row in shard.log if _task_of(row) == task)
        if entries > 1:
            self.fail(f"task {task} stands {entries} times in the commit log")

    def _on_end(self, task: int, state: int) -> None:
        if self.committed[task] is not None:
            record = self.kernel.store.record(task)
            if record is not None and record.state != DONE:
                self.fail(f"task {task} failed or was cancelled after it had been committed")
            return
        self.eventful = True
        self.ended[task] = state

    # -- nodes -------------------------------------------------------------------------------------------------------

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        for event in batch:
            kind = type(event)
            if kind is RunEnded:
                task = event.task  # type: ignore[union-attr]
                runs = self.running[core.node]
                started = runs.get(task)
                if started is not None and started.run == event.run:  # type: ignore[union-attr]
                    del runs[task]
                    if self.makes_data:
                        self._on_outputs(core.node, started.ready.spec, event)  # type: ignore[arg-type]
            elif kind in WATCHED_EVENTS:
                self._on_event(core.node, event, out)
        for effect in out:
            if type(effect) in WATCHED_EFFECTS:
                self._on_effect(core.node, effect)
        if self.deep is not None and not core.restarting:
            self.deep(core)

    def _on_outputs(self, node: NodeId, spec: TaskSpec, event: RunEnded) -> None:
        if not event.error:
            for object_, size in zip(spec.outputs, event.sizes, strict=True):
                if size > INLINE_BYTES:
                    self.holdings[node].add(object_)

    def _on_event(self, node: NodeId, event: EventType, out: Sequence[EffectType]) -> None:
        kind = type(event)
        if kind is ObjectsFetched:
            self._on_fetched(node, event)  # type: ignore[arg-type]
        elif kind is ObjectsPut:
            self.holdings[node].update([object_ for object_, _ in event.objects])  # type: ignore[union-attr]
        elif kind is RunRecalled:
            self._on_recalled(node, event)  # type: ignore[arg-type]
        elif kind is RunWaits:
            self._on_wait(node, event, out)  # type: ignore[arg-type]
        elif kind is Leave:
            self.leaving[node] = min(event.deadline_ns, self.leaving.get(node, event.deadline_ns))  # type: ignore[union-attr]

    def _on_recalled(self, node: NodeId, event: RunRecalled) -> None:
        """A run came back without having begun: the task may begin elsewhere."""
        recalled = self.running[node].pop(event.task, None)
        if recalled is None or recalled.ready.mode & REPLICA:
            return
        attempt = recalled.ready.attempt
        if attempt:
            self.restarted.pop((event.task, attempt), None)
        elif self.started[event.task] == node:
            self.started[event.task] = None

    def _on_effect(self, node: NodeId, effect: EffectType) -> None:
        kind = type(effect)
        if kind is DropObject:
            self._on_drop(node, effect.object)  # type: ignore[union-attr]
        elif kind is StopRun:
            self.running[node].pop(effect.task, None)  # type: ignore[union-attr]
        elif kind is ResumeRun:
            self._on_resume(node, effect)  # type: ignore[arg-type]
        elif kind is Left:
            self._on_left(node, effect.behind)  # type: ignore[union-attr]

    def _on_left(self, node: NodeId, behind: str) -> None:
        """A node says that it may go: the store must not expect anything of it."""
        if node not in self.leaving:
            self.fail(f"node {node} left although nobody told it to")
        self.left[node] = behind
        if node in self.kernel.store.infos:
            self.fail(f"node {node} left and is still a member")
        if behind:
            return
        if self.running[node]:
            self.fail(f"node {node} left in good order with task {next(iter(self.running[node]))} running")
        for shard in self.kernel.store.shards:
            for task, record in shard.records.items():
                if record is not None and record.owner == node and record.state not in FINAL:
                    self.fail(f"node {node} left in good order, but task {task} is still its own")
            for key, entry in shard.outbox.items():
                if entry[0] == node:
                    self.fail(
                        f"node {node} left in good order, but intent {key & 3} of task {key >> 2} is still its own"
                    )

    def _on_wait(self, node: NodeId, event: RunWaits, out: Sequence[EffectType]) -> None:
        """A task waits for others: it has no executor from now on, and nothing may be left waiting behind it."""
        runs = self.running[node]
        started = runs.get(event.task)
        if started is None or started.run != event.run or started.slot == NOWHERE:
            return
        runs[event.task] = StartRun(started.run, NOWHERE, started.ready)
        called = {effect.task for effect in out if isinstance(effect, RecallRun | StopRun)}
        for other, behind in runs.items():
            if behind.slot == started.slot and other not in called:
                self.fail(
                    f"task {other} is left on executor {started.slot} of node {node} behind task {event.task}, "
                    "which waits"
                )

    def _on_resume(self, node: NodeId, effect: ResumeRun) -> None:
        runs = self.running[node]
        started = runs.get(effect.task)
        if started is None:
            self.fail(f"node {node} resumed task {effect.task}, which does not run there")
        else:
            runs[effect.task] = StartRun(started.run, effect.slot, started.ready)
            self._check_memory(node)

    def _on_fetched(self, node: NodeId, event: ObjectsFetched) -> None:
        held = self.holdings[node]
        for object_, _, _ in event.fetched:
            if object_ not in held:
                held.add(object_)
                self.copies[node].add(object_)
            self.fetched_bytes += self.sizes[object_]

    def _on_drop(self, node: NodeId, object_: int) -> None:
        self.holdings[node].discard(object_)
        copies = self.copies[node]
        if object_ in copies:
            copies.discard(object_)
            self._check_not_read(node, object_)
            return
        producer = self.producer[object_]
        if producer < 0:
            return  # it was put in from outside
        won = self.committed[producer]
        if won is None or won & NODE_MASK != node:
            return  # the object of a run that did not win
        committed = self.committed
        for child in self.children[self.child_start[producer] : self.child_start[producer + 1]].tolist():
            if committed[child] is None and child not in self.ended:
                self._check_unread(node, object_, child)

    def _check_unread(self, node: NodeId, object_: int, child: int) -> None:
        """A node has dropped its own object before a reader of it has ended, for which there are few excuses."""
        if node not in self.kernel.store.infos:
            return  # it is dead and does not know it yet
        record = self.kernel.store.record(self.producer[object_])
        if record is not None and not any(one[0] == object_ and node in one[3] for one in record.outputs):
            return  # it was out of reach for somebody who has it made again
        self.fail(f"node {node} dropped object {object_} although task {child} has not read it yet")

    def _check_not_read(self, node: NodeId, object_: int) -> None:
        for started in self.running[node].values():
            ready = started.ready
            if any(one[0] == object_ for one in ready.inputs):
                self.fail(f"node {node} dropped object {object_} while task {ready.spec.id} was reading it")

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        ready = effect.ready
        spec = ready.spec
        task = spec.id
        runs = self.running[node]
        if not runs and node not in self.kernel.seats:  # whoever dies has no runs left
            self.fail(f"node {node} started task {task} after it had died")
        if task in runs:
            self.fail(f"node {node} started task {task} twice at once")
        runs[task] = effect
        if node in self.leaving:
            self.fail(f"node {node} started task {task} after it was told to leave")
        if ready.attempt or ready.mode:
            self._check_attempt(node, ready)
        else:
            first = self.started[task]
            if first is None:
                self.started[task] = node
            elif first != node:
                self.fail(f"attempt 0 of task {task} runs on nodes {first} and {node}")
        if self.reads_data and task < self.count:
            self._check_inputs(node, spec)
        if len(runs) > self.cores_min or not self.plain_nodes or spec.needs is not None:
            self._check_cores(node, spec, effect.slot)
        if self.kernel.faults is not None:
            lease_ns = self.kernel.store.leases.get(node)
            if lease_ns is None or lease_ns < self.kernel.now_ns:
                self.fail(f"node {node} started task {task} after its lease had run out")

    def _check_attempt(self, node: NodeId, ready: Ready) -> None:
        """As in `on_start`, for later attempts and for runs of an unusual mode."""
        task, attempt, mode = ready.spec.id, ready.attempt, ready.mode
        if attempt > self.attempts.get(task, 0):
            self.eventful = True
            self.attempts[task] = attempt
            self.attempted_ns[task] = self.kernel.now_ns
        if mode & REPLICA:
            return
        if attempt:
            first = self.restarted.setdefault((task, attempt), node)
        else:
            known = self.started[task]
            first = self.started[task] = node if known is None else known
        if first != node:
            self.fail(f"attempt {attempt} of task {task} runs on nodes {first} and {node}")
        won = self.committed[task]
        if won is not None and not mode & REMAKE and attempt > won >> NODE_BITS:
            self.fail(f"node {node} started task {task} again although it is done")

    def _check_inputs(self, node: NodeId, spec: TaskSpec) -> None:
        task = spec.id
        committed = self.committed
        for parent in self.parents[self.parent_start[task] : self.parent_start[task + 1]].tolist():
            if committed[parent] is None:
                self.fail(f"task {task} started on node {node} before its parent {parent} was done")
        held = self.holdings[node]
        for object_ in spec.inputs:
            if object_ not in held and self.sizes[object_] > INLINE_BYTES:
                self.fail(f"task {task} started on node {node} without its input {object_}")

    def _check_cores(self, node: NodeId, spec: TaskSpec, slot: int) -> None:
        core = self.kernel.seats[node].core
        if spec.needs is not None or len(core.groups) > 1 or core.groups[0].context is not None:
            self._check_executor(node, spec, slot)
            return
        runs = len(self.running[node])
        if runs > core.cores and runs - core.ahead - self._suspended(core) > core.cores:
            self.fail(f"node {node} runs {runs} tasks on {core.cores} cores")

    def _suspended(self, core: NodeCore) -> int:
        return sum(1 for run in core.running.values() if run.suspended)

    def _check_executor(self, node: NodeId, spec: TaskSpec, slot: int) -> None:
        machine = self.kernel.seats[node]
        core = machine.core
        first = 0
        for group in machine.info.executors:
            if slot < first + group.count:
                if not matches(spec.needs.context if spec.needs is not None else None, group.context):
                    self.fail(
                        f"task {spec.id} runs on executor {slot} of node {node}, whose context is {group.context}"
                    )
                break
            first += group.count
        used = 0
        for run in core.running.values():
            if not run.suspended:
                used += 1 if run.ready.spec.needs is None else run.ready.spec.needs.cores
        if used - core.ahead > machine.info.cores:
            self.fail(f"node {node} uses {used} of its {machine.info.cores} cores")
        self._check_memory(node)

    def _check_memory(self, node: NodeId) -> None:
        limit = self.kernel.seats[node].info.memory_bytes
        if not limit:
            return
        used = 0
        for started in self.running[node].values():
            needs = started.ready.spec.needs
            if needs is not None and started.slot != NOWHERE:
                used += needs.memory_bytes
        if used > limit:
            self.fail(f"tasks that declare {used} bytes of memory run together on node {node}, which has {limit}")

    def on_death(self, node: NodeId) -> None:
        self.running.pop(node, None)
        self.holdings.pop(node, None)
        self.copies.pop(node, None)

    # -- at the end --------------------------------------------------------------------------------------------------

    def finish(self, killers_allowed: bool = False) -> None:
        """Everything has ended: nothing was lost or done twice, and what nodes hold is what they think they hold."""
        self._check_log(killers_allowed)
        for node, machine in self.kernel.seats.items():
            core = machine.core
            if core.restarting or not self.makes_data:
                continue
            thought = set(core.objects)
            held = self.holdings[node]
            if thought != held:
                self.fail(
                    f"node {node} thinks it holds {sorted(thought - held)[:5]} but not {sorted(held - thought)[:5]}"
                )
        if self.fetched_bytes > self.kernel.fetched_bytes:
            self.fail(f"{self.fetched_bytes} bytes arrived but only {self.kernel.fetched_bytes} were sent")
        if self.kernel.faults is None and not self.ended:
            self._check_waiting()

    def _check_log(self, killers_allowed: bool) -> None:
        """Every task of the graph stands in the commit log once, and whatever was committed stands there."""
        logs = [shard.log for shard in self.kernel.store.shards]
        tasks = np.concatenate(
            [np.array([row if type(row) is int else _task_of(row) for row in log], np.int64) for log in logs]
        )
        inside = (tasks >= 0) & (tasks < self.count)
        times = np.bincount(tasks[inside], minlength=self.count)
        others = Counter(tasks[~inside].tolist())
        for task in np.flatnonzero(times > 1).tolist():
            self.fail(f"task {task} stands {times[task]} times in the commit log")
        for task, count in others.items():
            if count > 1:
                self.fail(f"task {task} stands {count} times in the commit log")
        for task in np.flatnonzero(times == 0).tolist():
            self.fail(f"task {task} was lost: it never ended")
        committed = self.committed
        for task in [task for task in range(self.count) if committed[task] is None]:
            if task not in self.ended:
                record = self.kernel.store.record(task)
                killed = record is not None and record.state == FAILED and killers_allowed
                if not killed:
                    self.fail(f"task {task} is in the log but no run of it was committed")
        if isinstance(committed, Sparse):  # else it has the tasks of the graph alone, and they are in the log
            for task in committed:
                if self.count <= task < FIRST_SPAWNED_ID and task not in others:
                    self.fail(f"task {task} was committed but is not in the log")

    def _check_waiting(self) -> None:
        """No record may be left in a state that is not final."""
        for shard in self.kernel.store.shards:
            for task, record in shard.records.items():
                if record is not None and record.state not in FINAL:
                    self.fail(f"task {task} is still in state {record.state} although all has ended")

    def check_settled(self) -> None:
        """Long after the end: every record is final, every intent was carried out, the client has been heard."""
        for shard in self.kernel.store.shards:
            for task, record in shard.records.items():
                if record is not None and record.state not in FINAL and not (record.rare and record.rare.remaking):
                    self.fail(f"task {task} is still in state {record.state} although all has ended")
            for key in shard.outbox:
                self.fail(f"intent {key & 3} of task {key >> 2} was never carried out: {shard.outbox[key]}")
        client = self.kernel.client
        if client.cancels:
            self.fail(f"nobody has carried out {client.cancels}")

    def check_left(self, orderly: bool) -> None:
        """Long after the end: whoever was told to leave has left, in good order if nothing else went wrong."""
        for node in self.kernel.seats:
            if node in self.leaving:
                self.fail(f"node {node} was told to leave and is still there")
        for node, behind in self.left.items():
            if behind and orderly:
                self.fail(f"node {node} had all the time it wanted, but left behind {behind}")

    def check_begun_once(self) -> None:
        """Nothing went wrong but that nodes left: no task had to begin again because of it."""
        for task, attempt in self.attempts.items():
            self.fail(f"task {task} was begun {attempt + 1} times, although nodes only left")

    def check_grown(self) -> None:
        """Whatever the committed attempt of a task spawned has ended too, and the client knows of it."""
        todo = [(task, int(self.graph.kind[task])) for task in range(self.count)] if self.kernel.growth else []
        while todo:
            task, kind = todo.pop()
            growth = self.kernel.growth.get(kind)
            if growth is None or self.committed[task] is None:
                continue
            for number in range(growth.count):
                name = spawned_id(task, self.first.get(task, 0), number)
                if not self.has_ended(name):
                    self.fail(f"task {task} is done, but its child {name} was lost")
                if name not in self.kernel.client.spawned:
                    self.fail(f"the client was never told of {name}, a child of task {task}")
                todo.append((name, growth.child_kind))

    def check_freed(self) -> None:
        """Long after the end: no node keeps objects for readers that have all finished."""
        for node, machine in self.kernel.seats.items():
            core = machine.core
            for producer, (pending, _, objects) in core.made.items():
                if all(map(self.has_ended, pending)):
                    self.fail(
                        f"node {node} still keeps objects {objects[:3]} of task {producer}, which nobody will read"
                    )
