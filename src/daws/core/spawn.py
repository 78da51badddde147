"""Graphs that grow: tasks that create tasks, and wait for them without holding an executor.

A new task is written with an edge to itself, then registered with each parent, and only then may it lose that edge.
Thus it cannot start before all its parents know of it, and every step can be repeated. Before all that its spawner's
record lists it: if the attempt that spawned it never commits, it is cancelled. Waiting for tasks works the same way,
with the waiting task in the place of the new one.

Functions that a run brings in for its tasks go to the store before these tasks. The run may end when the functions are
as safe as the tasks, because a node that gets such a task asks the store for its function.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from daws.core.events import RunEnded, RunSpawned, RunWaits
from daws.core.executors import Run
from daws.core.handlers import HANDLERS, handles
from daws.core.outbox import wake_here
from daws.core.outliving import outlived_by, own_spawning
from daws.core.placement import accept
from daws.core.store_calls import answers, ask, ask_later
from daws.core.unsafe import when_safe
from daws.model.task import Ready, TaskSpec, spawned_id
from daws.wire.store import (
    OK,
    REFUSED,
    UNKNOWN,
    AnswerType,
    Available,
    Cancel,
    Create,
    Open,
    Register,
    Resume,
    Satisfy,
    Spawn,
    Submit,
    Suspend,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore


class Seedling:
    """A task that is being added to the graph (or a task that is being suspended), on its way through the store."""

    __slots__ = ("held", "opens", "parents", "registering", "run", "spec")

    def __init__(self, spec: TaskSpec, parents: tuple[int, ...], run: Run, held: bool = False) -> None:
        self.spec = spec
        self.parents = parents
        self.run = run
        self.registering: set[int] = set()  # parents that are yet to hear of it
        self.opens = False  # all have, so it loses the edge to itself
        self.held = held


def _seedlings(core: NodeCore) -> dict[tuple[int, bool], Seedling]:
    return own_spawning(core).growing


@handles(RunSpawned)
def on_run_spawned(core: NodeCore, event: RunSpawned) -> None:
    run = core.executors.running.get(event.task)
    if run is None or run.number != event.run:
        return
    for row in event.functions:
        own_spawning(core).bring_in(row.spec.id, run)
        ask(core, row.spec.id, row)
    run.bring_in(len(event.functions))
    if not event.tasks:
        return
    attempt = run.ready.attempt
    names = []
    for number, (spec, parents) in enumerate(event.tasks, run.spawned):
        name = spawned_id(event.task, attempt, number)
        names.append(name)
        spec = msgspec.structs.replace(spec, id=name, home=core.node)
        _seedlings(core)[name, False] = Seedling(spec, parents, run, event.held)
    run.spawn(len(names))
    ask(core, event.task, Spawn(event.task, attempt, core.node, tuple(names)))


def on_function_answer(core: NodeCore, row: Submit, answer: AnswerType) -> None:
    """The store has a function, or (which hardly ever happens) another one with the same number."""
    for run in core.spawning.brought_in(row.spec.id):
        if answer == REFUSED:
            task = run.ready.spec.id
            core.call_off(task, run.ready.attempt)
            ask(core, task, Cancel(task, core.node, f"two functions of its session have the number {row.spec.id}"))
        else:
            _when_known(core, run)


@answers(Spawn)
def on_spawn_answer(core: NodeCore, row: Spawn, answer: AnswerType) -> None:
    if answer != OK:
        core.call_off(row.task, row.attempt)  # it is over, or a mere copy: without its children it must not count
    for name in row.tasks:
        seedling = _seedlings(core).get((name, False))
        if seedling is None:
            continue
        if answer == OK:
            seedling.run.hold(seedling.held)  # not before: a copy spawns under the same names what is not its own
            ask(core, name, Create(seedling.spec, seedling.parents, (), (), core.node, True, seedling.held))
        else:
            seedling.run.end_later(None)  # it will not be committed
            _established(core, name, False)  # the attempt is over: nothing of it may come to life


@answers(Create)
def on_create_answer(core: NodeCore, row: Create, answer: AnswerType) -> None:
    if answer == OK or (answer == REFUSED and core.keeping is not None):
        # Refused: another node had the same attempt, created it, and died; the store has forgotten the former only.
        _register(core, row.spec.id, False)
    else:
        _established(core, row.spec.id, False)


def _register(core: NodeCore, name: int, waits: bool) -> None:
    seedling = _seedlings(core).get((name, waits))
    if seedling is None:
        return
    seedling.registering.update(seedling.parents)
    for parent in dict.fromkeys(seedling.parents):
        ask(core, parent, Register(parent, name, waits))
    if not seedling.parents:
        _open(core, seedling, name, waits)


def _open(core: NodeCore, seedling: Seedling, name: int, waits: bool) -> None:
    seedling.opens = True
    ask(core, name, Open(name, core.node, waits))


@answers(Register)
def on_register_answer(core: NodeCore, row: Register, answer: AnswerType) -> None:
    seedling = _seedlings(core).get((row.child, row.watches))
    if seedling is None or row.task not in seedling.registering:  # another attempt may have asked that
        if core.keeping is not None and answer not in (OK, UNKNOWN):
            tell_child(core, row, answer)
        return
    if answer == UNKNOWN:
        ask_later(core, row)  # the parent itself is still being created
        return
    if answer != OK:
        tell_child(core, row, answer)
    seedling.registering.discard(row.task)
    if not seedling.registering:
        _open(core, seedling, row.child, row.watches)


def wait_again(core: NodeCore, row: Suspend, answer: AnswerType) -> None:
    """The store had forgotten that a task waits. One that it waits for may have ended meanwhile and told it in vain."""
    if answer != OK:
        _may_not_wait(core, row)
        return
    for parent in row.parents:
        ask(core, parent, Register(parent, row.task, True))


def _may_not_wait(core: NodeCore, row: Suspend) -> None:
    """The task has ended elsewhere, or this run is a mere copy: nobody would wake it."""
    core.call_off(row.task, row.attempt)


def tell_child(core: NodeCore, row: Register, answer: AnswerType) -> None:
    """The task had ended before the other said that it waits for it."""
    if isinstance(answer, Available):
        ask(core, row.child, Satisfy(row.child, row.task, core.node, answer.inputs))
    elif row.watches:
        ask(core, row.child, Satisfy(row.child, row.task, core.node))  # whoever waits is told of any end
    else:
        error = f"task {row.task}, which it needs, has failed, was cancelled, or is forgotten with all it made"
        ask(core, row.child, Cancel(row.child, core.node, error))


@answers(Open)
def on_open_answer(core: NodeCore, row: Open, answer: AnswerType) -> None:
    """The store has the whole of it: from now on it is a task like any other."""
    if isinstance(answer, Ready):
        accept(core, answer)
    elif isinstance(answer, Resume):
        wake_here(core, row.task)
    seedling = _seedlings(core).get((row.task, row.waits))
    if seedling is not None and seedling.opens:  # else it waits once more, in another attempt
        _established(core, row.task, row.waits)


def _established(core: NodeCore, name: int, waits: bool) -> None:
    seedling = _seedlings(core).pop((name, waits), None)
    if seedling is not None and not waits:
        _when_known(core, seedling.run)


def _when_known(core: NodeCore, run: Run) -> None:
    if core.shard_count == 1:  # a store that forgets this forgets the end of the run with it
        _is_safe(core, run)
    else:
        when_safe(core, partial(_is_safe, core, run))


def _is_safe(core: NodeCore, run: Run) -> None:
    """One of the tasks that a run has created, or a function, lives as surely as the run's end will. The run may end
    when all do."""
    if run.growing and run.established():  # else it has outlived them
        _end(core, run)


def hear_of_end(core: NodeCore, task: int) -> None:
    """Note the end of a task. If a run has ended, and this was the last of the tasks that it had created, none of them
    need be safe."""
    run = outlived_by(core, task)
    if run is not None:
        run.outlive()
        _end(core, run)


def _end(core: NodeCore, run: Run) -> None:
    outcome = run.take_outcome()
    if outcome is not None:
        HANDLERS[RunEnded](core, outcome)


@handles(RunWaits)
def on_run_waits(core: NodeCore, event: RunWaits) -> None:
    """A task waits for others: its executor is free for them, and what was sent ahead behind it comes back."""
    run = core.executors.running.get(event.task)
    if run is None or run.number != event.run or run.suspended:
        return
    run.suspend()
    core.recall_behind(run)
    core.executors.release(run)
    core.schedule_soon()
    _seedlings(core)[event.task, True] = Seedling(run.ready.spec, event.on, run)
    ask(core, event.task, Suspend(event.task, run.ready.attempt, core.node, event.on))


@answers(Suspend)
def on_suspend_answer(core: NodeCore, row: Suspend, answer: AnswerType) -> None:
    seedling = _seedlings(core).get((row.task, True))
    if seedling is None or seedling.run.ready.attempt != row.attempt:
        return  # that attempt is over
    if answer == OK:
        _register(core, row.task, True)
    else:
        del _seedlings(core)[row.task, True]
        _may_not_wait(core, row)
