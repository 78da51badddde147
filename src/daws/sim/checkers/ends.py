"""Checks after all tasks have ended: nothing is left over, nothing was lost or done twice."""

from collections import Counter

import numpy as np

from daws.model.states import FAILED
from daws.model.task import FIRST_SPAWNED_ID, spawned_id
from daws.sim.checkers.known import Known, Sparse
from daws.sim.checkers.runs import Runs
from daws.store.memory.snapshot import commits_in, intents_in, is_trimmed, unfinished_in
from daws.wire.store import logged_task


class EndTruth:
    """A final look at the store, the client and the facts that the checkers have collected."""

    def __init__(self, known: Known, runs: Runs) -> None:
        self.known = known
        self.runs = runs

    def check_log(self, killers_allowed: bool) -> None:
        """Every task of the graph stands in the commit log once, and whatever was committed stands there."""
        known, store = self.known, self.known.kernel.store
        tasks = np.array([row if type(row) is int else logged_task(row) for row in commits_in(store)], np.int64)
        inside = (tasks >= 0) & (tasks < known.count)
        times = np.bincount(tasks[inside], minlength=known.count)
        others = Counter(tasks[~inside].tolist())
        for task in np.flatnonzero(times > 1).tolist():
            known.fail(f"task {task} stands {times[task]} times in the commit log")
        for task, count in others.items():
            if count > 1:
                known.fail(f"task {task} stands {count} times in the commit log")
        for task in np.flatnonzero(times == 0).tolist():
            known.fail(f"task {task} was lost: it never ended")
        committed = known.committed
        for task in [task for task in range(known.count) if committed[task] is None]:
            if task not in known.ended:
                record = store.record(task)
                killed = record is not None and record.state == FAILED and killers_allowed
                if not killed:
                    known.fail(f"task {task} is in the log but no run of it was committed")
        if isinstance(committed, Sparse) and not is_trimmed(store):
            # Otherwise it has the tasks of the graph alone, and they are in the log.
            for task in committed:
                if known.count <= task < FIRST_SPAWNED_ID and task not in others:
                    known.fail(f"task {task} was committed but is not in the log")

    def check_waiting(self) -> None:
        """No record may be left in a state that is not final."""
        for task, record in unfinished_in(self.known.kernel.store):
            self.known.fail(f"task {task} is still in state {record.state} although all has ended")

    def check_starts(self) -> None:
        """Nothing went wrong: what the machines have begun is each task once, beside copies and what was resumed."""
        started = self.known.started
        begun = started.values() if isinstance(started, Sparse) else started
        expected = sum(node is not None for node in begun) + len(self.runs.restarted) + self.runs.more_starts
        if len(self.known.kernel.starts) != expected:
            self.known.fail(f"{len(self.known.kernel.starts)} runs were begun instead of {expected}")

    def check_settled(self) -> None:
        """Long after the end: every record is final, every intent was carried out, the client has been heard."""
        known = self.known
        for task, record in unfinished_in(known.kernel.store):
            if not (record.rare and record.rare.remaking):
                known.fail(f"task {task} is still in state {record.state} although all has ended")
        for key, *intent in intents_in(known.kernel.store):
            known.fail(f"intent {key & 3} of task {key >> 2} was never carried out: {intent}")
        client = known.kernel.client
        if client.cancels:
            known.fail("nobody has carried out a cancel")

    def check_begun_once(self) -> None:
        """Nothing went wrong but that nodes left: no task had to begin again because of it."""
        for task, attempt in self.known.attempts.items():
            self.known.fail(f"task {task} was begun {attempt + 1} times, although nodes only left")

    def check_grown(self) -> None:
        """Check that the tasks which the committed attempt of a task spawned have ended too, and that the client knows
        of them."""
        known, kernel = self.known, self.known.kernel
        todo = [(task, int(known.graph.kind[task])) for task in range(known.count)] if kernel.growth else []
        while todo:
            task, kind = todo.pop()
            growth = kernel.growth.get(kind)
            if growth is None or known.committed[task] is None:
                continue
            for number in range(growth.count):
                name = spawned_id(task, known.first.get(task, 0), number)
                if not known.has_ended(name):
                    known.fail(f"task {task} is done, but its child {name} was lost")
                if name not in kernel.client.spawned:
                    known.fail(f"the client was never told of {name}, a child of task {task}")
                todo.append((name, growth.child_kind))
