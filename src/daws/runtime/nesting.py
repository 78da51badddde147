"""Runs that create tasks and wait for them, between the workers and the node.

Workers number the tasks of a run from zero; here they get their ids. How a task has ended is kept for the run that
created it until that run asks or goes on. Nothing here decides anything.
"""

from collections.abc import Callable
from typing import Any

from daws.core.effects import ResumeRun
from daws.core.events import RunSpawned, RunWaits
from daws.model.cluster import NodeInfo
from daws.model.context import format_context
from daws.model.states import FAILED
from daws.model.task import Input, TaskSpec, spawned_id
from daws.wire.worker import ChildEnd, ObjectFile, Seed, Spawned, Waits

FURTHER_OUTPUT = 1 << 32
"""In the place of an attempt: further outputs of a task get ids in the way of tasks that it would have spawned."""
REFUSED = -1
"""In the place of the id of a task that was not created."""


class Nest:
    """A run that has created tasks."""

    __slots__ = ("attempt", "awaited", "created", "heard", "news", "run", "slot", "spec", "tasks")

    def __init__(self, run: int, slot: int, spec: TaskSpec, attempt: int) -> None:
        self.run = run
        self.slot = slot
        self.spec = spec
        self.attempt = attempt
        self.tasks: list[tuple[int, tuple[int, ...]]] = []  # by number: the task and its outputs
        self.created = 0
        self.heard: set[int] = set()  # tasks that have ended
        self.news: list[ChildEnd] = []  # that the run has not been told
        self.awaited: tuple[int, ...] = ()  # without which the run cannot go on


class Nesting:
    """All such runs of one node. `resume(slot, run, ended)` lets a worker go on with one."""

    def __init__(
        self,
        info: NodeInfo,
        input_of: Callable[[Input], bytes | ObjectFile],
        resume: Callable[[int, int, tuple[ChildEnd, ...]], None],
    ) -> None:
        self._info = info
        self._input_of = input_of
        self._resume = resume
        self.nests: dict[int, Nest] = {}  # by run
        self._creators: dict[int, tuple[Nest, int]] = {}  # by task: whose it is, and under which number
        self._going_on: dict[int, Nest] = {}  # runs that may go on, and were not told everything yet

    def spawned(self, report: Spawned, slot: int, spec: TaskSpec, attempt: int) -> RunSpawned:
        nest = self.nests.get(report.run)
        if nest is None:
            nest = self.nests[report.run] = Nest(report.run, slot, spec, attempt)
        created = [self._created(nest, seed) for seed in report.tasks]
        return RunSpawned(spec.id, report.run, tuple([one for one in created if one is not None]), held=True)

    def _created(self, nest: Nest, seed: Seed) -> tuple[TaskSpec, tuple[int, ...]] | None:
        number = len(nest.tasks)
        why = self._refusal(nest, seed)
        if why:
            nest.tasks.append((REFUSED, ()))
            nest.news.append(ChildEnd(number, (), FAILED, why))
            return None
        task = spawned_id(nest.spec.id, nest.attempt, nest.created)
        nest.created += 1
        outputs = (task, *(spawned_id(task, FURTHER_OUTPUT, index) for index in range(1, seed.outputs)))
        nest.tasks.append((task, outputs))
        self._creators[task] = nest, number
        inputs = tuple([nest.tasks[other][1][index] for other, index in seed.inputs])
        parents = tuple(dict.fromkeys([nest.tasks[other][0] for other, _ in seed.inputs]))
        # Those that were created last go first: so few runs wait at a time, instead of a whole generation of them.
        priority = nest.spec.priority + 1 + seed.priority
        spec = TaskSpec(
            -1, seed.function, 0, inputs, outputs, seed.needs, priority, 0, -1, False, seed.arguments, seed.retries
        )
        return spec, parents

    def _refusal(self, nest: Nest, seed: Seed) -> str:
        """Why nobody could ever run it."""
        for other, _ in seed.inputs:
            if nest.tasks[other][0] == REFUSED:
                return "a task that it needs was refused"
        needs = seed.needs
        if needs is None or self._info.can_run(needs):
            return ""
        asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
        return f"no executor offers {asked}"

    def waits(self, report: Waits, task: int) -> RunWaits:
        nest = self.nests[report.run]
        nest.awaited = tuple([nest.tasks[number][0] for number in report.on if nest.tasks[number][0] != REFUSED])
        return RunWaits(task, report.run, nest.awaited)

    def news(self, run: int) -> tuple[ChildEnd, ...]:
        """What a run has not been told before."""
        nest = self.nests.get(run)
        if nest is None:
            return ()
        ended, nest.news = tuple(nest.news), []
        return ended

    def on_resume(self, effect: ResumeRun) -> None:
        """The node lets a run go on; it does when all that it waited for was heard of here, too."""
        nest = self.nests.get(effect.run)
        if nest is not None:
            self._going_on[effect.run] = nest
            self._go_on(nest)

    def _go_on(self, nest: Nest) -> None:
        if nest.heard.issuperset(nest.awaited):
            del self._going_on[nest.run]
            self._resume(nest.slot, nest.run, self.news(nest.run))

    def on_ended(self, outcomes: list[Any]) -> None:
        """Tasks have ended; some of them may belong to runs of this node."""
        for outcome in outcomes:
            nest, number = self._creators.pop(outcome.task, (None, 0))
            if nest is None:
                continue
            results = tuple([self._input_of(one) for one in outcome.outputs])
            nest.heard.add(outcome.task)
            nest.news.append(ChildEnd(number, results, outcome.state, outcome.error, outcome.failure))
            if nest.run in self._going_on:
                self._go_on(nest)

    def forget(self, run: int) -> None:
        """A run is over."""
        nest = self.nests.pop(run, None)
        if nest is not None:
            self._going_on.pop(run, None)
            for task, _ in nest.tasks:
                self._creators.pop(task, None)
