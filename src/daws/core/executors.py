"""Starting a run on an executor of this node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daws.core.effects import StartRun
from daws.core.empty import EMPTY
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
    growing: int = 0  # spawned tasks that are not yet safely in the store
    outcome: Any = None  # the RunEnded that waits for them

    def spawn(self, count: int) -> None:
        """Note that the run has created so many tasks, which are on their way to the store."""
        self.spawned += count
        self.growing += count

    def established(self) -> bool:
        """One of these tasks is safe. True if it was the last."""
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


class Group:
    """Executors of this node that offer the same context."""

    __slots__ = ("context", "count", "free")

    def __init__(self, context: Any, slots: range) -> None:
        self.context = context
        self.count = len(slots)
        self.free = list(reversed(slots))

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


def start(core: NodeCore, ready: Ready, slot: int, more_slots: tuple[int, ...] = ()) -> None:
    """Everything it reads is here."""
    number = core.next_token()
    if core.running is EMPTY:
        core.running = {}
    core.running[ready.spec.id] = run = Run(number, ready, slot, more_slots)
    if core.lengths is not None:
        run.since_ns = core.now_ns
    core.out.append(StartRun(number, slot, ready, more_slots))


def release_slot(core: NodeCore, run: Run) -> None:
    """An executor falls free (or loses one of the runs that were sent to it)."""
    slot, inflight = run.slot, core.inflight
    if inflight is not None:
        sent = inflight.get(slot)
        if sent is not None:
            core.ahead -= 1
            if sent > 2:
                inflight[slot] = sent - 1
            else:
                del inflight[slot]
            return
    group = core.groups[0] if len(core.groups) == 1 else group_of(core, slot)
    group.free.append(slot)
    if run.more_slots:
        group.free.extend(run.more_slots)
        run.more_slots = ()


def group_of(core: NodeCore, slot: int) -> Group:
    """The executors among which this one is."""
    first = 0
    for group in core.groups:
        if slot < first + group.count:
            return group
        first += group.count
    raise AssertionError(f"node {core.node} has no executor {slot}")
