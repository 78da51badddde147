"""Runs that create tasks and wait for them, between the workers and the node.

Workers number the tasks of a run from zero; here they get their ids. The outcome of a task is kept for the run that
created it until that run asks or goes on. Results on other nodes are fetched when the run waits for them, and stay
until it has ended. A node that has a result may have joined so lately that it is not known here: then the store says
who is a member. A result that cannot be fetched may have been moved. It is requested once more, and if there is no
other place, the run has to begin anew. Nothing here decides anything.
"""

from collections.abc import Callable, Sequence

from daws.core import view
from daws.core.effects import ResumeRun
from daws.core.events import ObjectsFetched, RunSpawned, RunWaits
from daws.core.node import NodeCore
from daws.data.files import ObjectFiles
from daws.model.context import format_context
from daws.model.states import FAILED
from daws.model.task import Input, NodeId, ObjectTransfer, TaskSpec, spawned_id
from daws.wire.ends import Outcome
from daws.wire.worker import ChildEnd, Dropped, ObjectFile, Seed, Spawned, WaitReport

FURTHER_OUTPUT = 1 << 32
"""Replaces the attempt in ids of further outputs of a task, which are computed like ids of tasks that it has
spawned."""
REFUSED = -1
"""Replaces the id of a task that was not created."""


class Nest:
    """A run that has created tasks."""

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
        self.afar: dict[int, tuple[int, Outcome]] = {}  # tasks that have ended, with results that are not here
        self.in_vain: dict[int, set[NodeId]] = {}  # by object: places that did not have it
        self.pinned: list[int] = []  # objects that the run may read


class Nesting:
    """All such runs of one node. `bring` asks other nodes for objects, `resume(slot, run, ended)` lets a worker go on
    with a run. `give_up(run, object)` has one begin anew that could not read an object. `ask_members` asks the store
    who is a member. `ask` asks how tasks have ended, of which that is known to the node, but not how."""

    def __init__(
        self,
        core: NodeCore,
        files: ObjectFiles,
        bring: Callable[[Sequence[ObjectTransfer]], None],
        resume: Callable[[int, int, tuple[ChildEnd, ...]], None],
        give_up: Callable[[int, int], object],
        ask_members: Callable[[], object],
    ) -> None:
        self._core = core
        self._files = files
        self._bring = bring
        self._resume = resume
        self._give_up = give_up
        self._ask_members = ask_members
        self.ask: Callable[[list[int]], None] | None = None  # None if all ends are told without asking
        self.nests: dict[int, Nest] = {}  # by run
        self._creators: dict[int, tuple[Nest, int]] = {}  # by task: the run that created it, and its number there
        self._going_on: dict[int, Nest] = {}  # runs that may go on, but do not know all ends yet
        self._coming: dict[int, tuple[Nest, int, list[int]]] = {}  # by object: for whom, of which task, other places
        self._doubted: dict[int, Nest] = {}  # by task: its results are at nodes that are not known here

    # -- tasks that are created ----------------------------------------------------------------------------------------

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
            -1,
            seed.function,
            seed.estimate_ns,
            inputs,
            outputs,
            seed.needs,
            priority,
            seed.rank_ns,
            payload=seed.arguments,
            retries=seed.retries,
            timeout_ns=seed.timeout_ns,
        )
        return spec, parents

    def dropped(self, report: Dropped) -> tuple[int, ...]:
        """A run needs no more what these tasks make: it is not told of them any more, and keeps no files of theirs."""
        nest = self.nests.get(report.run)
        if nest is None:
            return ()
        made = [nest.tasks[number] for number in report.tasks if nest.tasks[number][0] != REFUSED]
        for task, outputs in made:
            self._creators.pop(task, None)
            nest.afar.pop(task, None)
            for object_ in outputs:
                if object_ in nest.pinned:
                    nest.pinned.remove(object_)
                    self._unpin(object_)
        return tuple([task for task, _ in made])

    def _unpin(self, object_: int) -> None:
        self._files.unpin(object_)
        if object_ not in view.objects(self._core):
            self._files.drop(object_)  # it was brought here for a run

    def _refusal(self, nest: Nest, seed: Seed) -> str:
        """The reason why no node could ever run a task, or an empty text."""
        for other, _ in seed.inputs:
            if nest.tasks[other][0] == REFUSED:
                return "a task that it needs was refused"
        needs = seed.needs
        if needs is None or self._core.members.capable(needs):
            return ""
        asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
        return f"no executor offers {asked}"

    # -- waiting for them ----------------------------------------------------------------------------------------------

    def waits(self, report: WaitReport, task: int) -> RunWaits:
        nest = self.nests[report.run]
        nest.awaited = tuple([nest.tasks[number][0] for number in report.on if nest.tasks[number][0] != REFUSED])
        for awaited in nest.awaited:
            if awaited in nest.afar:
                self._fetch(nest, awaited)
        return RunWaits(task, report.run, nest.awaited)

    def news(self, run: int) -> tuple[ChildEnd, ...]:
        """The ends of tasks that a run has not been told before."""
        nest = self.nests.get(run)
        if nest is None:
            return ()
        ended, nest.news = tuple(nest.news), []
        return ended

    def on_resume(self, effect: ResumeRun) -> None:
        """Let a run go on, as soon as all ends that it waited for are known and their results are here."""
        nest = self.nests.get(effect.run)
        if nest is not None:
            self._going_on[effect.run] = nest
            self._go_on(nest)
            unheard = [task for task in nest.awaited if task in self._creators]
            if unheard and self.ask is not None:
                self.ask(unheard)

    def _go_on(self, nest: Nest) -> None:
        if nest.run in self._going_on and nest.heard.issuperset(nest.awaited):
            del self._going_on[nest.run]
            nest.awaited = ()
            self._resume(nest.slot, nest.run, self.news(nest.run))

    # -- what becomes of them ------------------------------------------------------------------------------------------

    def on_ended(self, outcomes: list[Outcome]) -> None:
        """Tasks have ended; some of them may belong to runs of this node."""
        for outcome in outcomes:
            nest, number = self._creators.pop(outcome.task, (None, 0))
            if nest is None:
                continue
            if not self._missing(outcome):
                self._hear(nest, number, outcome)
                continue
            nest.afar[outcome.task] = number, outcome
            if outcome.task in nest.awaited:
                self._fetch(nest, outcome.task)

    def on_forgotten(self, tasks: list[int]) -> None:
        """Give up the runs that created these tasks. The tasks have ended, but their outcome is lost: a store may have
        lost it."""
        for task in tasks:
            nest, _ = self._creators.get(task, (None, 0))
            if nest is not None:
                self._give_up(nest.run, task)

    def unheard(self) -> list[int]:
        """Tasks that runs have created and whose end is not known here; for a node that was cut off."""
        return [*self._creators]

    def _hear(self, nest: Nest, number: int, outcome: Outcome) -> None:
        nest.heard.add(outcome.task)
        if outcome.state:
            end = ChildEnd(number, (), outcome.state, outcome.error, outcome.failure, outcome.task, outcome.path)
        else:
            end = ChildEnd(number, tuple([self._result(nest, one) for one in outcome.outputs]))
        nest.news.append(end)
        self._go_on(nest)

    def _result(self, nest: Nest, one: Input) -> bytes | ObjectFile:
        if one.value:
            return one.value
        self._files.pin(one.object)
        nest.pinned.append(one.object)
        return ObjectFile(self._files.path(one.object), one.object, self._files.size_bytes(one.object))

    def _missing(self, outcome: Outcome) -> list[Input]:
        return [one for one in outcome.outputs if not one.value and one.object not in self._files]

    def _fetch(self, nest: Nest, task: int, knows_members: bool = False) -> None:
        members = self._core.members
        wanted: list[ObjectTransfer] = []
        for one in self._missing(nest.afar[task][1]):
            object_ = one.object
            if object_ in self._coming:
                continue
            tried = nest.in_vain.get(object_, ())
            left = [place for place in one.places if place not in tried]
            if not left:
                self._give_up(nest.run, object_)
                return
            if not knows_members:
                left = [place for place in left if place in members]
            if left:
                self._coming[object_] = nest, task, left[1:]
                wanted.append(ObjectTransfer(object_, one.size_bytes, left[0]))
            else:
                self._doubted[task] = nest
                self._ask_members()
        self._bring(wanted)

    def on_members(self) -> None:
        """The members are known now: fetch results of those that were not known."""
        doubted, self._doubted = self._doubted, {}
        for task, nest in doubted.items():
            if task in nest.afar:
                self._fetch(nest, task, True)

    def on_fetched(self, event: ObjectsFetched) -> None:
        for transfer in event.fetched:
            nest, task, _ = self._coming.pop(transfer.object, (None, 0, []))
            if nest is not None and task in nest.afar and not self._missing(nest.afar[task][1]):
                self._hear(nest, *nest.afar.pop(task))
        for transfer in event.failed:
            object_ = transfer.object
            nest, task, others = self._coming.get(object_, (None, 0, []))
            if nest is None:
                continue
            nest.in_vain.setdefault(object_, set()).add(transfer.source)
            if others:
                self._bring([ObjectTransfer(object_, transfer.size_bytes, others.pop(0))])
                continue
            del self._coming[object_]
            if task not in nest.afar:
                continue
            if self.ask is None:
                self._give_up(nest.run, object_)
            else:
                self._creators[task] = nest, nest.afar.pop(task)[0]
                self.ask([task])

    def forget(self, run: int) -> None:
        """A run is over."""
        nest = self.nests.pop(run, None)
        if nest is None:
            return
        self._going_on.pop(run, None)
        nest.afar.clear()
        for task, _ in nest.tasks:
            self._creators.pop(task, None)
        for object_ in nest.pinned:
            self._unpin(object_)
