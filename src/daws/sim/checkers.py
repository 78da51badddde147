"""Checkers: small independent programs that watch what a simulated cluster does, and stop at the first thing that
must not happen.

They believe nothing that a node says about itself: they see the rows that reached the store and its answers, the
effects that were carried out, and the graph. What they know of the truth they keep themselves.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daws.core.effects import DropObject, EffectType, RecallRun, ResumeRun, StartRun, StopRun
from daws.core.events import EventType, ObjectFetched, ObjectsPut, RunEnded, RunRecalled, RunWaits
from daws.core.node import NodeCore
from daws.model.context import matches
from daws.model.errors import InternalError
from daws.model.states import DONE, FAILED, FINAL
from daws.model.task import FIRST_SPAWNED_ID, INLINE_BYTES, REMAKE, REPLICA, NodeId, Ready, TaskSpec, spawned_id
from daws.wire.store import OK, STOP, AnswerType, Cancel, Committed, Estate, Finish, Row, Spawn, Stopped

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

NOWHERE = -1
"""The executor of a task that is suspended."""
ORPHAN_LEASES = 4
"""Tasks whose spawner was lost may live on for so many leases."""


class Violation(InternalError):
    """Something happened that the rules forbid."""


class Checker:
    """Watches one simulation. `deep` also checks the invariants of a node after each of its steps."""

    def __init__(self, kernel: "Kernel", deep: Callable[[NodeCore], None] | None = None) -> None:
        self.kernel = kernel
        self.graph = kernel.graph
        self.count = kernel.graph.task_count
        self.deep = deep
        self.committed: dict[int, tuple[NodeId, int]] = {}  # the run that won, of a remade task the latest
        self.first: dict[int, int] = {}  # the attempt that won
        self.ended: dict[int, int] = {}  # final state of those that did not end well
        self.started: dict[int | tuple[int, int], NodeId] = {}  # (task, attempt) -> who ran it first
        self.running: dict[NodeId, dict[int, tuple[int, Ready, int]]] = {}  # by node and task: run, ready, slot
        self.holdings: dict[NodeId, set[int]] = {}
        self.copies: dict[NodeId, set[int]] = {}
        self.fetched_bytes = 0
        self.attempts: dict[int, int] = {}
        self.attempted_ns: dict[int, int] = {}  # when the latest attempt started
        self.spawners: dict[int, tuple[int, int]] = {}  # spawned task -> who spawned it, in which attempt
        self.reads_data = len(kernel.graph.inputs) > 0
        self.makes_data = kernel.graph.object_count > 0

    def fail(self, what: str) -> None:
        raise Violation(f"at {self.kernel.now_ns / 1e9:.6f} s of seed {self.kernel.seed}: {what}")

    # -- the store ---------------------------------------------------------------------------------------------------

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None:
        for row, answer in zip(rows, answers, strict=True):
            self.on_row(row, answer)

    def on_row(self, row: Row, answer: AnswerType) -> None:
        if type(row) is Finish:
            if answer is None or type(answer) is Committed:
                self._on_commit(row)
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
        run = (row.node, row.attempt)
        task = row.task
        before = self.committed.get(task)
        if before is None:
            self.committed[task] = run
            self.first[task] = row.attempt
            if task in self.ended:
                self.fail(f"task {task} was committed by node {row.node} after it had failed or been cancelled")
        elif before != run:
            if row.attempt <= before[1]:
                self.fail(f"task {task} was committed twice: by {before} and by {run} (node, attempt)")
            self.committed[task] = run  # a remake: checked against the record
            self._check_remake(task)
        if task in self.spawners:
            self._check_spawner(task)
        if row.attempt < self.attempts.get(task, 0):
            self.fail(f"task {task}: an outdated run {run} was committed, attempt {self.attempts[task]} is under way")

    def _check_spawner(self, task: int) -> None:
        """What an attempt spawned that never committed is to be cancelled; some may end before it hears of it."""
        spawner, attempt = self.spawners[task]
        if attempt < self.attempts.get(spawner, 0) and attempt != self.first.get(spawner) and self.kernel.faults:
            known_ns = max(self.attempted_ns[spawner], self.kernel.faults.plan.horizon_ns)
            if self.kernel.now_ns > known_ns + self.kernel.config.lease_ns * ORPHAN_LEASES:
                self.fail(f"task {task} was committed long after attempt {attempt} of task {spawner}, which spawned it")

    def _check_remake(self, task: int) -> None:
        entries = sum(
            1
            for shard in self.kernel.store.shards
            for row in shard.log
            if (row if isinstance(row, int) else row[0]) == task
        )
        if entries > 1:
            self.fail(f"task {task} stands {entries} times in the commit log")

    def _on_end(self, task: int, state: int) -> None:
        if task in self.committed:
            record = self.kernel.store.record(task)
            if record is not None and record.state != DONE:
                self.fail(f"task {task} failed or was cancelled after it had been committed")
            return
        self.ended[task] = state

    # -- nodes -------------------------------------------------------------------------------------------------------

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        for event in batch:
            kind = type(event)
            if kind is RunEnded:
                self._on_run_ended(core, event)  # type: ignore[arg-type]
            elif kind is ObjectFetched or kind is ObjectsPut:
                self._on_objects(core.node, event)
            elif kind is RunRecalled:
                self.running.get(core.node, {}).pop(event.task, None)  # type: ignore[union-attr]
            elif kind is RunWaits:
                self._on_wait(core.node, event, out)  # type: ignore[arg-type]
        for effect in out:
            if type(effect) is DropObject:
                self._on_drop(core, effect.object)
            elif type(effect) is StopRun:
                self.running.get(core.node, {}).pop(effect.task, None)
            elif type(effect) is ResumeRun:
                run, ready, _ = self.running[core.node][effect.task]
                self.running[core.node][effect.task] = (run, ready, effect.slot)
        if self.deep is not None and not core.restarting:
            self.deep(core)

    def _on_wait(self, node: NodeId, event: RunWaits, out: Sequence[EffectType]) -> None:
        """A task waits for others: it has no executor from now on, and nothing may be left waiting behind it."""
        runs = self.running.get(node, {})
        run, ready, slot = runs.get(event.task, (-1, None, NOWHERE))
        if ready is None or run != event.run or slot == NOWHERE:
            return
        runs[event.task] = (run, ready, NOWHERE)
        called = {effect.task for effect in out if isinstance(effect, RecallRun | StopRun)}
        for other, (_, _, behind) in runs.items():
            if behind == slot and other not in called:
                self.fail(
                    f"task {other} is left on executor {slot} of node {node} behind task {event.task}, which waits"
                )

    def _on_run_ended(self, core: NodeCore, event: RunEnded) -> None:
        runs = self.running.get(core.node)
        entry = runs.get(event.task) if runs is not None else None
        if entry is None or entry[0] != event.run:
            return
        assert runs is not None
        del runs[event.task]
        if self.makes_data and not event.error:
            held = self.holdings.setdefault(core.node, set())
            held.update(
                object_ for object_, size in zip(entry[1].spec.outputs, event.sizes, strict=True) if size > INLINE_BYTES
            )

    def _on_objects(self, node: NodeId, event: EventType) -> None:
        held = self.holdings.setdefault(node, set())
        if isinstance(event, ObjectsPut):
            held.update(object_ for object_, _ in event.objects)
        elif isinstance(event, ObjectFetched) and event.ok:
            if event.object not in held:
                held.add(event.object)
                self.copies.setdefault(node, set()).add(event.object)
            self.fetched_bytes += self.kernel.sizes[event.object]

    def _on_drop(self, core: NodeCore, object_: int) -> None:
        node = core.node
        self.holdings.setdefault(node, set()).discard(object_)
        copies = self.copies.get(node)
        if copies is not None and object_ in copies:
            copies.discard(object_)
            self._check_not_read(node, object_)
            return
        producer = int(self.graph.producer[object_])
        won = self.committed.get(producer)
        if won is None or won[0] != node or node not in self.kernel.store.infos:
            return  # the objects of a run that did not win, or of a node that is dead and does not know it yet
        record = self.kernel.store.record(producer)
        if record is not None and not any(one[0] == object_ and node in one[3] for one in record.outputs):
            return  # it was out of reach for somebody who has it made again
        for child in self.graph.children_of(producer).tolist():
            if child not in self.committed and child not in self.ended:
                self.fail(f"node {node} dropped object {object_} although task {child} has not read it yet")

    def _check_not_read(self, node: NodeId, object_: int) -> None:
        for _, ready, _ in self.running.get(node, {}).values():
            if any(one[0] == object_ for one in ready.inputs):
                self.fail(f"node {node} dropped object {object_} while task {ready.spec.id} was reading it")

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        ready = effect.ready
        spec = ready.spec
        task = spec.id
        runs = self.running.get(node)
        if runs is None:
            runs = self.running[node] = {}
        if task in runs:
            self.fail(f"node {node} started task {task} twice at once")
        runs[task] = (effect.run, ready, effect.slot)
        if ready.attempt > self.attempts.get(task, 0):
            self.attempts[task] = ready.attempt
            self.attempted_ns[task] = self.kernel.now_ns
        if not ready.mode & REPLICA:
            first = self.started.setdefault((task, ready.attempt) if ready.attempt else task, node)
            if first != node:
                self.fail(f"attempt {ready.attempt} of task {task} runs on nodes {first} and {node}")
        if task in self.committed and not ready.mode & (REMAKE | REPLICA) and ready.attempt > self.committed[task][1]:
            self.fail(f"node {node} started task {task} again although it is done")
        if self.reads_data and task < self.count:
            self._check_inputs(node, ready)
        core = self.kernel.seats[node][0]
        if spec.needs is not None or len(core.groups) > 1 or core.groups[0].context is not None:
            self._check_executor(node, spec, effect.slot)
        elif len(runs) > core.cores and len(runs) - core.ahead - self._suspended(core) > core.cores:
            self.fail(f"node {node} runs {len(runs)} tasks on {core.cores} cores")
        if self.kernel.faults is not None:
            lease_ns = self.kernel.store.leases.get(node)
            if lease_ns is None or lease_ns < self.kernel.now_ns:
                self.fail(f"node {node} started task {task} after its lease had run out")

    def _suspended(self, core: NodeCore) -> int:
        return sum(1 for run in core.running.values() if run.suspended)

    def _check_inputs(self, node: NodeId, ready: Ready) -> None:
        task = ready.spec.id
        for parent in self.graph.parents_of(task).tolist():
            if parent not in self.committed:
                self.fail(f"task {task} started on node {node} before its parent {parent} was done")
        held = self.holdings.get(node, ())
        sizes = self.kernel.sizes
        for object_ in ready.spec.inputs:
            if sizes[object_] > INLINE_BYTES and object_ not in held:
                self.fail(f"task {task} started on node {node} without its input {object_}")

    def _check_executor(self, node: NodeId, spec: TaskSpec, slot: int) -> None:
        core, machine = self.kernel.seats[node]
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

    def on_death(self, node: NodeId) -> None:
        self.running.pop(node, None)
        self.holdings.pop(node, None)
        self.copies.pop(node, None)

    # -- at the end --------------------------------------------------------------------------------------------------

    def finish(self, killers_allowed: bool = False) -> None:
        """Everything has ended: nothing was lost or done twice, and what nodes hold is what they think they hold."""
        store = self.kernel.store
        listed: dict[int, int] = {}
        for shard in store.shards:
            for row in shard.log:
                task = row if isinstance(row, int) else row[0]
                listed[task] = listed.get(task, 0) + 1
        for task, times in listed.items():
            if times > 1:
                self.fail(f"task {task} stands {times} times in the commit log")
        for task in range(self.count):
            if task not in listed:
                self.fail(f"task {task} was lost: it never ended")
            if task not in self.committed and task not in self.ended:
                record = store.record(task)
                killed = record is not None and record.state == FAILED and killers_allowed
                if not killed:
                    self.fail(f"task {task} is in the log but no run of it was committed")
        for task in self.committed:
            if task < FIRST_SPAWNED_ID and task not in listed:
                self.fail(f"task {task} was committed but is not in the log")
        for node, (core, _) in self.kernel.seats.items():
            if core.restarting:
                continue
            thought = set(core.objects)
            held = self.holdings.get(node, set())
            if self.makes_data and thought != held:
                self.fail(
                    f"node {node} thinks it holds {sorted(thought - held)[:5]} but not {sorted(held - thought)[:5]}"
                )
        if self.fetched_bytes > self.kernel.fetched_bytes:
            self.fail(f"{self.fetched_bytes} bytes arrived but only {self.kernel.fetched_bytes} were sent")
        if self.kernel.faults is None and not self.ended:
            self._check_waiting()

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

    def check_grown(self) -> None:
        """Whatever the committed attempt of a task spawned has ended too, and the client knows of it."""
        todo = [(task, int(self.graph.kind[task])) for task in range(self.count)] if self.kernel.growth else []
        while todo:
            task, kind = todo.pop()
            growth = self.kernel.growth.get(kind)
            if growth is None or task not in self.committed:
                continue
            for number in range(growth.count):
                name = spawned_id(task, self.first[task], number)
                if name not in self.committed and name not in self.ended:
                    self.fail(f"task {task} is done, but its child {name} was lost")
                if name not in self.kernel.client.spawned:
                    self.fail(f"the client was never told of {name}, a child of task {task}")
                todo.append((name, growth.child_kind))

    def check_freed(self) -> None:
        """Long after the end: no node keeps objects for readers that have all finished."""
        for node, (core, _) in self.kernel.seats.items():
            for producer, (pending, _, objects) in core.made.items():
                if all(child in self.committed or child in self.ended for child in pending):
                    self.fail(
                        f"node {node} still keeps objects {objects[:3]} of task {producer}, which nobody will read"
                    )
