"""Outcomes of tasks as the records of a store tell them: with the task that is to blame for a failure, what it raised,
and the way to it."""

from collections.abc import Callable, Iterable
from itertools import chain, islice

from daws.model.states import CANCELLED, DONE, FAILED
from daws.store.memory.record import Record
from daws.wire.ends import Outcome, Path
from daws.wire.store import LogRow
from daws.workers.roots import GAP, root_in

STEPS_MAX = 8
PARENTS_MAX = 64


Find = Callable[[int], Record | None]


def outcome_of(task: int, record: Record, find: Find) -> Outcome:
    """How a task has ended. `find` finds the records of the tasks that may be to blame."""
    if record.state not in (FAILED, CANCELLED):
        return Outcome(task, record.outputs)
    error = record.rare.error if record.rare is not None else ""
    return Outcome(task, (), record.state, error, raised_of(record, find), path_of(record, find))


def outcomes_of(commits: Iterable[LogRow], find: Find) -> list[Outcome]:
    """The outcomes of tasks from the rows of a log. A task that is not held may be forgotten already: then its row says
    how it failed, and nothing is to be said of one that went well."""
    outcomes: list[Outcome] = []
    for row in commits:
        task = row if isinstance(row, int) else row.task
        record = find(task)
        if record is not None and record.state == DONE:
            outcomes.append(Outcome(task, record.outputs))  # as `outcome_of` would
        elif record is not None:
            outcomes.append(outcome_of(task, record, find))
        elif not isinstance(row, int) and row.state != DONE:
            outcomes.append(Outcome(task, (), row.state, row.error))
    return outcomes


def path_of(record: Record, find: Find) -> Path:
    """Each task between this one (which is the first) and the root that its error names, as far as they are known."""
    error = _error_of(record)
    root = root_in(error)
    steps: list[tuple[int, int]] = []
    at: Record | None = record
    while root >= 0 and at is not None and at.spec.id != root:
        if len(steps) == STEPS_MAX:
            return (*steps, GAP)
        steps.append((at.spec.id, at.spec.kind))
        edges = () if at.edges is None or isinstance(at.edges, int) else at.edges
        parents = [*islice(chain(edges, at.spec.inputs), PARENTS_MAX)]  # the first object of a task has its number
        if root in parents:
            break
        blamed = [one for one in map(find, parents) if one is not None and _error_of(one) == error]
        if not blamed:
            return (*steps, GAP)
        at = blamed[0]
    return tuple(steps)


def blamed_by(record: Record) -> int:
    """The task that a failed task failed because of: the root if its error names that, else the one before; -1 if it
    failed by itself, or has not failed."""
    if record.rare is None or record.state not in (FAILED, CANCELLED):
        return -1
    root = root_in(record.rare.error)
    return root if root not in (-1, record.spec.id) else record.rare.cause


def raised_of(record: Record, find: Find) -> bytes:
    """The exception of a failed task, or of the task that it failed because of; empty if it is not known any more."""
    for _ in range(STEPS_MAX):
        if record.rare is None or record.rare.failure:
            break
        found = find(blamed_by(record))
        if found is None:
            break
        record = found
    return b"" if record.rare is None else record.rare.failure


def _error_of(record: Record) -> str:
    return record.rare.error if record.state == FAILED and record.rare is not None else ""
