"""The executors of a node, and the runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daws.core.effects import StartRun
from daws.core.empty import EMPTY
from daws.model.cluster import NodeInfo
from daws.model.task import Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore


class Run(Struct, gc=False):
    """A task on an executor (or suspended, or sent ahead behind another)."""

    number: int
    ready: Ready
    slot: int
    more_slots: tuple[int, ...] = ()  # of a task that needs several cores
    since_ns: int = 0  # when it was started, under strategies that look at that
    suspended: bool = False
    recalled: bool = False  # it was sent ahead and asked for again
    spawned: int = 0
    holds: bool = False  # they are its own, and it may ask for what they have made
    growing: int = 0  # spawned tasks, and functions for them, that are not yet safely in the store
    outcome: Any = None  # the RunEnded that waits for them

    def spawn(self, count: int) -> None:
        """Note that the run has created so many tasks, which are on their way to the store."""
        self.spawned += count
        self.growing += count

    def bring_in(self, count: int) -> None:
        """Note that the run has brought in so many functions, which are on their way to the store."""
        self.growing += count

    def established(self) -> bool:
        """Note that one of these tasks (or functions) is safe in the store. True if it was the last."""
        self.growing -= 1
        return not self.growing

    def outlive(self) -> None:
        """All tasks that the run has created have ended: none of them need be safe."""
        self.growing = 0

    def hold(self, holds: bool) -> None:
        """Note whether the tasks that the run has created are its own."""
        self.holds = holds

    def end_later(self, outcome: Any) -> None:
        """Keep the end of the run until all that it has created is safe (None: it will not be committed)."""
        self.outcome = outcome

    def take_outcome(self) -> Any:
        """The end that was kept, if there is one."""
        outcome, self.outcome = self.outcome, None
        return outcome

    def recall(self) -> None:
        """Note that the run was asked for again."""
        self.recalled = True

    def replace(self, ready: Ready) -> None:
        """Let the run of a copy count as one of the task itself."""
        self.ready = ready

    def suspend(self) -> None:
        """The run waits for other tasks: it has no executor meanwhile."""
        self.suspended = True

    def resume(self, slot: int, more_slots: tuple[int, ...]) -> None:
        """Note the executors that the run has got again."""
        self.slot, self.more_slots, self.suspended = slot, more_slots, False


class Group(Struct, gc=False):
    """Executors of this node that offer the same context."""

    context: Any
    count: int
    free: list[int]

    def take_one(self) -> int:
        return self.free.pop()

    def take(self, count: int) -> tuple[int, ...]:
        """Take this many more executors, for a task that needs several."""
        if not count:
            return ()
        taken = tuple(self.free[-count:])
        del self.free[-count:]
        return taken

    def take_for(self, run: Run) -> int:
        """An executor for a run that goes on: the one that it had, if that is free, because its memory is there."""
        if run.slot in self.free:
            self.free.remove(run.slot)
            return run.slot
        return self.free.pop()


class Executors:
    """The executors of a node, and the runs on them."""

    __slots__ = (
        *("ahead", "groups", "inflight", "one_group", "plain_free", "recall_armed", "resumable", "running"),
        *("token", "waits_until_ns"),
    )

    def __init__(self, groups: tuple[Group, ...], one_group: bool, plain_free: list[int]) -> None:
        self.groups = groups
        self.one_group = one_group
        # Idle executors, if there is one group: for a node that knows only plain tasks, this and one queue say all.
        self.plain_free = plain_free
        self.running: dict[int, Run] = EMPTY  # by task
        self.inflight: dict[int, int] | None = None  # runs on a slot, where more than one was sent
        self.token = 0  # the last number of a run, a call, an offer or an intent
        self.ahead = 0  # runs that wait at executors
        self.resumable: list[Run] | None = None  # suspended runs that may go on
        self.recall_armed = False  # the timer is set after which runs are asked back
        self.waits_until_ns = 0  # an executor is kept for a more critical task; 0 if none is

    def next_token(self) -> int:
        """A number for a run, a call, an offer or an intent. (Runs are most of them, so it is counted here.)"""
        self.token = token = self.token + 1
        return token

    def send_all(self, tasks: list[Ready], slots: list[tuple[int, int]]) -> tuple[range, list[int]]:
        """Add runs of these tasks, dealt to executors that run something already; their numbers and executors."""
        count = len(tasks)
        numbers = range(self.token + 1, self.token + 1 + count)
        self.token += count
        self.ahead += count
        dealt = deal(slots, count, self.queues())
        self.running.update(zip([ready.spec.id for ready in tasks], map(Run, numbers, tasks, dealt), strict=True))
        return numbers, dealt

    def remove_run(self, task: int) -> None:
        del self.running[task]

    def queues(self) -> dict[int, int]:
        """The number of runs on each slot to which more than one is sent, to change something."""
        if self.inflight is None:
            self.inflight = {}
        return self.inflight

    def send(self, slot: int, sent: int) -> None:
        """One more run waits at this executor, which has so many with it."""
        self.queues()[slot] = sent
        self.ahead += 1

    def end_all(self, slot: int, sent: int, tasks: list[int]) -> None:
        """Remove the runs of these tasks from this executor, which `sent` runs are left to."""
        running = self.running
        for task in tasks:
            del running[task]
        self.queues()[slot] = sent
        self.ahead -= len(tasks)

    def arm_recall(self, armed: bool) -> None:
        self.recall_armed = armed

    def wait_until(self, until_ns: int) -> None:
        """Keep an executor for a more critical task until then (0: do not)."""
        self.waits_until_ns = until_ns

    def wake(self, run: Run) -> bool:
        """Note that a suspended run may go on. False if that was noted before."""
        if self.resumable is None:
            self.resumable = []
        if run in self.resumable:
            return False
        self.resumable.append(run)
        return True

    def wait_longer(self, runs: list[Run]) -> None:
        """Keep the runs that may go on and for which there are no executors."""
        self.resumable = runs or None

    def release(self, run: Run) -> None:
        """Free the executor of a run, or count one run less if others were sent to it."""
        slot, inflight = run.slot, self.inflight
        if inflight is None and self.one_group and not run.more_slots:  # the usual case, in few steps
            self.plain_free.append(slot)
            return
        if inflight is not None:
            sent = inflight.get(slot)
            if sent is not None:
                self.ahead -= 1
                if sent > 2:
                    inflight[slot] = sent - 1
                else:
                    del inflight[slot]
                return
        group = self.groups[0] if self.one_group else self.group_of(slot)
        group.free.append(slot)
        if run.more_slots:
            group.free.extend(run.more_slots)
            run.more_slots = ()

    def group_of(self, slot: int) -> Group:
        """The executors among which this one is."""
        first = 0
        for group in self.groups:
            if slot < first + group.count:
                return group
            first += group.count
        raise AssertionError(f"there is no executor {slot}")


def deal(slots: list[tuple[int, int]], count: int, inflight: dict[int, int]) -> list[int]:
    """Deal `count` tasks to executors, each task to the one that has the fewest runs by then. `slots` and `inflight`
    are brought up to date; the result has the executor of each task."""
    dealt: list[int] = []
    while len(dealt) < count:
        slots.sort()
        level = slots[0][0]
        turn = [slot for sent, slot in slots if sent == level]
        left = count - len(dealt)
        rounds = left // len(turn)
        if len(turn) < len(slots):
            rounds = min(rounds, slots[len(turn)][0] - level)
        if not rounds:  # the last ones, which are not enough for all
            rounds, turn = 1, turn[:left]
        dealt += turn * rounds
        slots[: len(turn)] = [(level + rounds, slot) for slot in turn]
    slots.sort()
    sent_to = {slot: sent for sent, slot in slots}
    for slot in dict.fromkeys(dealt):
        inflight[slot] = sent_to[slot]
    return dealt


def executors_of(info: NodeInfo) -> Executors:
    """The executors of a node, all of them idle."""
    first = 0
    groups: list[Group] = []
    for executors in info.executors:
        slots = range(first, first + executors.count)
        groups.append(Group(executors.context, len(slots), list(reversed(slots))))
        first += executors.count
    return Executors(tuple(groups), len(groups) == 1, groups[0].free if len(groups) == 1 else [])


def start(core: NodeCore, ready: Ready, slot: int, more_slots: tuple[int, ...] = ()) -> None:
    """Start a task on this executor. Everything it reads is here."""
    executors = core.executors
    executors.token = number = executors.token + 1
    since_ns = 0 if core.lengths.last is None else core.now_ns
    if executors.running is EMPTY:
        executors.running = {}
    executors.running[ready.spec.id] = Run(number, ready, slot, more_slots, since_ns)
    core.out.append(StartRun(number, slot, ready, more_slots))
