"""Checks for a store that forgets what it has acknowledged. Only the end can be judged: all tasks are there, once, and
fit together."""

from typing import TYPE_CHECKING

from daws.core import view
from daws.model.states import DONE, FINAL, STATE_NAMES
from daws.model.task import FIRST_SPAWNED_ID
from daws.sim.checkers.known import Violation
from daws.store.memory.record import Record, audience
from daws.store.memory.snapshot import commits_in, intents_in, was_created
from daws.store.memory.store import Others
from daws.wire.store import logged_task

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel


def check_remembered(kernel: "Kernel") -> None:
    _check_records(kernel)
    _check_log(kernel)
    _check_nodes(kernel)


def _check_records(kernel: "Kernel") -> None:
    """Check that every task has ended as its client has heard, that the parents of each done task are done, and that no
    intent is left."""
    cancelled = kernel.faults.injected.get("cancelled")  # perhaps after what the store has forgotten
    for task in range(kernel.graph.task_count):
        record = kernel.store.record(task)
        if record is None:
            continue  # retired: all is well with it
        state = DONE if _was_remade(record) else record.state
        if state not in FINAL:
            _fail(kernel, f"task {task} is {STATE_NAMES[state]} in the end")
        heard, _ = kernel.client.ended.get(task, (DONE, ""))
        if heard != state and not cancelled and not _is_suspected(record):
            _fail(kernel, f"task {task} is {STATE_NAMES[state]}, and its client has heard {STATE_NAMES[heard]}")
        for parent in kernel.graph.parents_of(task) if state == DONE and not cancelled else ():
            above = kernel.store.record(int(parent))
            if above is not None and above.state != DONE and not _was_remade(above):
                _fail(kernel, f"task {task} is done, and task {parent} before it is {STATE_NAMES[above.state]}")
    for key, holder, others in intents_in(kernel.store):
        if not _is_for_lost_tasks(kernel, key >> 2, others):
            _fail(kernel, f"node {holder} does not carry out intent {key & 3} of task {key >> 2}")


def _is_for_lost_tasks(kernel: "Kernel", task: int, others: Others) -> bool:
    """Whether an intent concerns only spawned tasks that were lost, with their node and with the last writes of the
    store."""
    record = kernel.store.record(task)
    names = others if others is not None else audience(record) if record is not None else ()
    tasks = [one if isinstance(one, int) else one[0] for one in names]
    return all(one >= FIRST_SPAWNED_ID and not was_created(kernel.store, one) for one in tasks)


def _is_suspected(record: Record) -> bool:
    """Whether this task was done, the store has forgotten that, and then too many nodes died while they ran it."""
    return record.rare is not None and "nodes when they died" in record.rare.error


def _was_remade(record: Record) -> bool:
    return record.rare is not None and record.rare.remaking


def _check_log(kernel: "Kernel") -> None:
    count = kernel.graph.task_count
    logged = [logged_task(row) for row in commits_in(kernel.store)]
    first = [task for task in logged if task < count]
    if len(logged) != len(set(logged)) or len(first) != count:
        _fail(kernel, f"{len(set(first))} of {count} tasks stand {len(first)} times in the log of commits")


def _check_nodes(kernel: "Kernel") -> None:
    """Check that no node runs a task, or waits for a write to become safe."""
    for node, machine in kernel.seats.items():
        core = machine.core
        if view.runs(core):
            _fail(kernel, f"node {node} still runs tasks {sorted(view.runs(core))[:5]}")
        if view.unsafe_count(core):
            _fail(kernel, f"node {node} waits for its words to become safe")


def _fail(kernel: "Kernel", what: str) -> None:
    raise Violation(f"seed {kernel.seed}: {what}")
