"""Each task ends once; only a remake is committed after that, and it changes nothing but places."""

from daws.model.states import DONE
from daws.model.task import NodeId, TaskSpec
from daws.sim.checkers.known import NODE_BITS, NODE_MASK, Known, run_key
from daws.store.memory.snapshot import commits_in
from daws.wire.store import Finish, Spawn, logged_task

ORPHAN_LEASES = 4
"""The number of leases for which a task may live on after its spawner was lost."""


class Commits:
    """A watcher of the rows that the store accepts: commits, failures, cancels, and spawned tasks."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.after = {growth.child_kind: growth.after for growth in known.graph.growth if growth.after >= 0}
        self.spawners: dict[int, tuple[int, int]] = {}  # spawned task -> who spawned it, in which attempt
        self.remade_ns: dict[tuple[int, int], int] = {}  # (task, attempt) of remakes -> when they were committed

    def on_commit(self, row: Finish) -> None:
        """Check a commit. The checker itself handles the commit of a first attempt, as long as nothing unusual has
        happened."""
        known = self.known
        task, attempt = row.task, row.attempt
        run = run_key(row.node, attempt)
        before = known.committed[task]
        if before is None:
            known.committed[task] = run
            if attempt:
                known.first[task] = attempt
            if task in known.ended:
                known.fail(f"task {task} was committed by node {row.node} after it had failed or been cancelled")
        elif before != run:
            if not before >> NODE_BITS < known.remade.get(task, 0) <= attempt:
                won = (before & NODE_MASK, before >> NODE_BITS)
                known.fail(f"task {task} was committed twice: by {won} and by {row.node, attempt} (node, attempt)")
            known.committed[task] = run  # a remake: checked against the record
            self.remade_ns[task, attempt] = known.kernel.now_ns
            self._check_remake(task)
        if task in self.spawners:
            self._check_spawner(task)
        latest = known.attempts.get(task, 0)
        if attempt < latest:
            known.fail(f"task {task}: an outdated run {row.node, attempt} was committed, attempt {latest} is under way")

    def _check_spawner(self, task: int) -> None:
        """Check that a task which is committed late still has a reason to run.

        The tasks of an attempt that never committed must be cancelled, and those of a remake when the remake ends. Some
        of them may end before they hear of that.
        """
        known = self.known
        spawner, attempt = self.spawners[task]
        if known.committed[spawner] is not None and attempt == known.first.get(spawner, 0):
            return  # it was committed, and what it spawned stands on its own feet
        kernel = known.kernel
        over_ns = self.remade_ns.get((spawner, attempt))
        if over_ns is None and attempt < known.attempts.get(spawner, 0):
            over_ns = known.attempted_ns[spawner]
        if over_ns is not None and kernel.faults:
            over_ns = max(over_ns, kernel.faults.plan.horizon_ns)
            if kernel.now_ns > over_ns + kernel.config.lease_ns * ORPHAN_LEASES:
                known.fail(
                    f"task {task} was committed long after attempt {attempt} of task {spawner}, which spawned it"
                )

    def _check_remake(self, task: int) -> None:
        entries = sum(logged_task(row) == task for row in commits_in(self.known.kernel.store))
        if entries > 1:
            self.known.fail(f"task {task} stands {entries} times in the commit log")

    def on_end(self, task: int, state: int) -> None:
        known = self.known
        if known.committed[task] is not None:
            record = known.kernel.store.record(task)
            if record is not None and record.state != DONE and not known.may_be_lost(task):
                known.fail(f"task {task} failed or was cancelled after it had been committed")
            return
        known.eventful = True
        known.ended[task] = state

    def on_spawn(self, row: Spawn) -> None:
        self.spawners.update(dict.fromkeys(row.tasks, (row.task, row.attempt)))

    def check_spawned(self, node: NodeId, spec: TaskSpec) -> None:
        """Check that a spawned task begins only when the task that it waits for is done."""
        parent = self.after.get(spec.kind)
        if parent is not None and self.known.committed[parent] is None:
            self.known.fail(f"task {spec.id} started on node {node} before its parent {parent} was done")

    def on_remake(self, task: int, attempt: int) -> None:
        if self.known.committed[task] is None:
            self.known.fail(f"task {task} is made again although it was never done")
        self.known.remade[task] = attempt
