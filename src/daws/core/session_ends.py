"""How a session's tasks end (rule 10): its client reads the commit log of each shard on from its last number. If
commits were dropped that it has not read, it asks for each task whose end it waits for.

Ends that nodes have told are hints. Each task is told of once: a future keeps its first value, whatever a store that
has forgotten something says later.
"""

from typing import TYPE_CHECKING

from daws.core.session_events import TaskEnd, TasksEnded
from daws.model.states import CANCELLED as CANCELLED_STATE
from daws.model.states import DONE, FAILED
from daws.model.task import Input
from daws.wire.store import (
    CANCELLED,
    LOG_END,
    REFUSED,
    UNKNOWN,
    AnswerType,
    Available,
    Inspect,
    Locate,
    Log,
    ReadLog,
    Story,
    shard_of,
)
from daws.wire.store import DONE as HAS_ENDED
from daws.wire.store import FAILED as HAS_FAILED

if TYPE_CHECKING:
    from daws.core.session import SessionCore


class SessionEnds:
    """Which tasks have not ended, as far as the client knows, and how far the logs were read."""

    __slots__ = ("_ended", "_looked_up", "_read_to", "_sought", "_verified", "pending")

    def __init__(self, shard_count: int) -> None:
        self.pending: dict[int, None] = {}
        self._read_to = [0] * shard_count
        self._looked_up: dict[int, None] = {}  # tasks that have ended, and are asked how, or what they have made
        self._verified: dict[int, None] = {}  # tasks that the store may have lost
        self._sought: dict[int, None] = {}  # tasks that may stand among the commits that were dropped
        self._ended: list[TaskEnd] = []

    def expect(self, task: int) -> None:
        self.pending[task] = None

    def forget(self, task: int) -> None:
        """Nobody wants to know any more how this task ends."""
        self.pending.pop(task, None)
        self._looked_up.pop(task, None)
        self._sought.pop(task, None)

    def drop_all(self) -> None:
        """The session ends, and with it all futures."""
        self.pending.clear()
        self._looked_up.clear()
        self._verified.clear()
        self._sought.clear()

    def read(self, core: "SessionCore") -> None:
        """Ask for the ends since the last time."""
        for shard, start in enumerate(self._read_to):
            core.calls.ask_once(shard, ReadLog(start, session=core.session))

    def look_up(self, core: "SessionCore") -> None:
        """On each tick: ask again about tasks that had ended, but are being made again, or were lost."""
        for task in self._looked_up:
            core.ask_once(task, Locate(task))

    def on_log(self, core: "SessionCore", shard: int, row: ReadLog, answer: AnswerType) -> None:
        if not isinstance(answer, Log):
            return
        if row.start == LOG_END:
            self._read_to[shard] = answer.next
            return
        if row.start != self._read_to[shard]:
            return  # asked before another server answered
        self._read_to[shard] = answer.next
        if answer.trimmed:
            self._seek(core, shard)
        for one in answer.rows:
            task, state, error = (one, DONE, "") if isinstance(one, int) else one[:3]
            if task in self.pending and task not in self._looked_up:
                if state == DONE:
                    self.find(core, task)
                else:
                    self.over(core, task, state, error)

    def _seek(self, core: "SessionCore", shard: int) -> None:
        """Some commits of this shard were dropped before they were read."""
        for task in self.pending:
            if shard_of(task, core.shard_count) == shard and task not in self._looked_up:
                self._sought[task] = None
                core.ask_once(task, Inspect(task, brief=True))

    def verify(self, core: "SessionCore", shard: int) -> None:
        """A shard that has forgotten something was told again all that this client knows. What it does not know now,
        another client has submitted, and it is lost."""
        for task in self.pending:
            if shard_of(task, core.shard_count) == shard and task not in core.writing.unwritten:
                self._verified[task] = None
                core.ask(task, Locate(task))

    def begin_anew(self, shard: int) -> None:
        """The log of a shard may have lost what was read, and have it again in another order."""
        self._read_to[shard] = 0

    def find(self, core: "SessionCore", task: int, state: int = DONE) -> None:
        """A task has ended: ask what it has made, or by what it failed."""
        self._looked_up[task] = None
        core.ask(task, Locate(task) if state == DONE else Inspect(task, brief=True))

    def on_located(self, core: "SessionCore", row: Locate, answer: AnswerType) -> None:
        task = row.task
        if task in self._verified:
            del self._verified[task]
            if answer == UNKNOWN and task not in core.writing.unwritten:
                self.over(core, task, FAILED, f"the store has lost task {task}, and its client was killed before")
                return
        if task not in self._looked_up:
            return
        if isinstance(answer, Available):
            self.over(core, task, DONE, "", answer.inputs)
        elif answer == REFUSED:
            self.over(core, task, DONE, "")  # let go of by another client, and forgotten
        elif answer in (HAS_FAILED, CANCELLED):
            core.ask(task, Inspect(task, brief=True))  # lost, and this is how it ended the second time

    def on_story(self, core: "SessionCore", row: Inspect, answer: AnswerType) -> None:
        if row.task in self._sought:
            del self._sought[row.task]
            if answer == HAS_ENDED or (isinstance(answer, Story) and answer.ended):
                self._looked_up[row.task] = None
                if not isinstance(answer, Story) or answer.state not in (FAILED, CANCELLED_STATE):
                    core.ask(row.task, Locate(row.task))
        if row.task in self._looked_up and isinstance(answer, Story) and answer.state in (FAILED, CANCELLED_STATE):
            self.over(core, row.task, answer.state, answer.error)

    def over(
        self, core: "SessionCore", task: int, state: int, error: str = "", outputs: tuple[Input, ...] = ()
    ) -> None:
        """A task has ended, if that is news."""
        core.cancels.ended(task)
        self._looked_up.pop(task, None)
        self._sought.pop(task, None)
        if task in self.pending:
            del self.pending[task]
            self._ended.append(TaskEnd(task, state, error, outputs))

    def hear(self, core: "SessionCore", ends: tuple[TaskEnd, ...]) -> None:
        for one in ends:
            self.over(core, one.task, one.state, one.error, one.outputs)

    def flush(self, core: "SessionCore") -> None:
        if self._ended:
            core.out.append(TasksEnded(tuple(self._ended)))
            self._ended.clear()
