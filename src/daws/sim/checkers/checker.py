"""The checker that the kernel calls."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daws.core import view
from daws.core.effects import DropObject, EffectType, Left, ResumeRun, StartRun, StopRun
from daws.core.events import EventType, Leave, ObjectsFetched, ObjectsPut, RunEnded, RunRecalled, RunWaits
from daws.core.node import NodeCore
from daws.model.states import FAILED
from daws.model.task import NodeId, Ready
from daws.sim.checkers.commits import Commits
from daws.sim.checkers.ends import EndTruth
from daws.sim.checkers.known import Known
from daws.sim.checkers.leaving import Leavers
from daws.sim.checkers.objects import Objects
from daws.sim.checkers.prompt import Prompt
from daws.sim.checkers.runs import Runs
from daws.wire.store import (
    OK,
    STOP,
    AnswerType,
    Cancel,
    Committed,
    Estate,
    Finish,
    Remake,
    Row,
    Spawn,
    Stopped,
    TakeOver,
)

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

# What is looked at; most rows, events and effects are none of these.
WATCHED_ROWS = frozenset((Finish, Cancel, TakeOver, Spawn, Remake))
WATCHED_EVENTS = frozenset((ObjectsFetched, ObjectsPut, RunRecalled, RunWaits, Leave))  # and RunEnded, the most common
WATCHED_EFFECTS = frozenset((DropObject, StopRun, ResumeRun, Left))  # and StartRun, when it is carried out


class Checker:
    """A watcher of one simulation. `deep` also checks the invariants of a node after each of its steps.

    The events of nearly every task are handled at the top of `on_start`, `on_step` and `on_row`; all others are passed
    on to the checker of their subject. If there are faults, it also checks how long things take.
    """

    def __init__(self, kernel: "Kernel", deep: Callable[[NodeCore], None] | None = None) -> None:
        self.kernel = kernel
        self.deep = deep
        self.known = known = Known(kernel)
        self.commits = Commits(known)
        self.runs = Runs(known)
        self.objects = Objects(known)
        self.leavers = Leavers(known)
        self.ends = EndTruth(known, self.runs)
        self.prompt = Prompt(known) if kernel.faults is not None else None
        self.committed, self.started, self.running = known.committed, known.started, known.running
        self.count = known.count
        # Most starts and ends need no look where these say so.
        self.looks_at_starts = not self.runs.plain_nodes
        self.cores_min = self.runs.cores_min
        self.looks_at_ends = self.objects.made or self.runs.hasty or self.prompt is not None

    # -- the store ---------------------------------------------------------------------------------------------------

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None:
        if len(rows) != len(answers):
            self.known.fail(f"{len(rows)} rows of node {caller} got {len(answers)} answers")
        if WATCHED_ROWS.isdisjoint(map(type, rows)):
            return
        for row, answer in zip(rows, answers, strict=True):
            self.on_row(row, answer)

    def on_row(self, row: Row, answer: AnswerType) -> None:
        if type(row) is Finish:
            if answer is None or type(answer) is Committed:
                task = row.task
                if row.attempt or self.known.eventful or self.committed[task] is not None:
                    self.commits.on_commit(row)
                else:
                    self.committed[task] = row.node
                if answer is not None and answer.rivals and self.prompt is not None:
                    self.prompt.on_win(task)
            elif type(answer) is Stopped:
                self.commits.on_end(row.task, FAILED)
        elif type(row) is Cancel and type(answer) is Stopped:
            self.commits.on_end(row.task, 0)
        elif type(answer) is Estate:
            for entry in answer.outbox:
                if entry.verb == STOP and entry.error:
                    self.commits.on_end(entry.task, FAILED)  # a node killer: it failed when it was taken over
        elif type(row) is Spawn and answer == OK:
            self.commits.on_spawn(row)
        elif type(row) is Remake and type(answer) is Ready:
            self.objects.check_remake(row, answer)
            self.commits.on_remake(row.task, answer.attempt)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        for event in batch:
            kind = type(event)
            if kind is RunEnded:
                runs = self.running[core.node]
                started = runs.get(event.task)  # type: ignore[union-attr]
                if started is not None and started.run == event.run:  # type: ignore[union-attr]
                    del runs[event.task]  # type: ignore[union-attr]
                    if self.looks_at_ends:
                        self._on_run_ended(core.node, started.ready, event, now_ns)  # type: ignore[arg-type]
            elif kind in WATCHED_EVENTS:
                self._on_event(core.node, event, out)
        for effect in out:
            if type(effect) in WATCHED_EFFECTS:
                self._on_effect(core.node, effect)
        if self.prompt is not None:
            self.prompt.on_step(core.node, now_ns, out)
        if self.deep is not None and not view.is_restarting(core):
            self.deep(core)
            self.objects.check_belief(core, out)

    def _on_run_ended(self, node: NodeId, ready: Ready, event: RunEnded, now_ns: int) -> None:
        spec = ready.spec
        if spec.outputs:
            self.objects.on_outputs(node, spec, event)
        self.runs.known_kinds[node].add(spec.kind)
        if self.prompt is not None:
            self.prompt.on_run_ended(node, spec, now_ns)
            self.prompt.check_rival(node, spec.id, ready.attempt, "ended")

    def _on_event(self, node: NodeId, event: EventType, out: Sequence[EffectType]) -> None:
        if isinstance(event, ObjectsFetched):
            self.objects.on_fetched(node, event)
        elif isinstance(event, ObjectsPut):
            self.objects.on_put(node, event)
        elif isinstance(event, RunRecalled):
            self.runs.on_recalled(node, event)
        elif isinstance(event, RunWaits):
            self.runs.on_wait(node, event, out)
        elif isinstance(event, Leave):
            self.leavers.on_told(node, event)

    def _on_effect(self, node: NodeId, effect: EffectType) -> None:
        if isinstance(effect, DropObject):
            self.objects.on_drop(node, effect.object)
        elif isinstance(effect, StopRun):
            self.running[node].pop(effect.task, None)
        elif isinstance(effect, ResumeRun):
            self.runs.on_resume(node, effect)
        elif isinstance(effect, Left):
            self.leavers.on_left(node, effect.behind)

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        ready = effect.ready
        spec = ready.spec
        task = spec.id
        runs = self.running[node]
        if not runs and node not in self.kernel.seats:  # whoever dies has no runs left
            self.known.fail(f"node {node} started task {task} after it had died")
        if task in runs:
            self.known.fail(f"node {node} started task {task} twice at once")
        runs[task] = effect
        if node in self.leavers.told:
            self.known.fail(f"node {node} started task {task} after it was told to leave")
        if ready.attempt or ready.mode:
            self.runs.check_attempt(node, ready)
        else:
            first = self.started[task]
            if first is not None:
                self.runs.begun_twice(task, 0, first, node)
            self.started[task] = node
        if task >= self.count:
            self.commits.check_spawned(node, spec)
        elif self.objects.read:
            self.objects.check_inputs(node, spec)
        if len(runs) > self.cores_min or self.looks_at_starts or spec.needs is not None:
            self.runs.check_executor(node, effect)
        if self.prompt is not None:
            self.prompt.check_rival(node, task, ready.attempt, "began")
        if self.kernel.faults is not None:
            lease_ns = self.kernel.store.leases.get(node)
            if lease_ns is None or lease_ns < self.kernel.now_ns:
                self.known.fail(f"node {node} started task {task} after its lease had run out")

    def on_death(self, node: NodeId) -> None:
        self.running.pop(node, None)
        self.objects.on_death(node)
        if self.prompt is not None:
            self.prompt.on_death(node)

    # -- at the end --------------------------------------------------------------------------------------------------

    def finish(self, killers_allowed: bool = False) -> None:
        """Everything has ended: nothing was lost or done twice, and what nodes hold is what they think they hold."""
        self.ends.check_log(killers_allowed)
        self.objects.check_held()
        if self.kernel.faults is None:
            self.ends.check_starts()
            if not self.known.ended:
                self.ends.check_waiting()
