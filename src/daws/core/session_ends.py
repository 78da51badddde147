"""How a session's tasks end (rule 10): its client reads the commit log of each shard on from its last number. If
commits were dropped that it has not read, it asks for each task whose end it waits for.

Ends that nodes have told are hints. Each task is told of once: a future keeps its first value, whatever a store that
has forgotten something says later.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from daws.core.session_events import TasksEnded
from daws.model.session import NO_SESSION
from daws.model.states import CANCELLED as CANCELLED_STATE
from daws.model.states import DONE, FAILED
from daws.model.task import Input
from daws.wire.ends import Outcome
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
    LoggedEnd,
    LogRow,
    ReadLog,
    Story,
    logged_task,
    shard_of,
)
from daws.wire.store import DONE as HAS_ENDED
from daws.wire.store import FAILED as HAS_FAILED

if TYPE_CHECKING:
    from daws.core.session import SessionCore


READ_NS = 20_000_000
READ_NS_MAX = 200_000_000
"""The time between two reads of the logs while there are tasks that have not ended. It is short if only the logs tell
of ends, and long if nodes or the server of the store tell of all of them before."""
FALLEN_MAX = 4096
"""The number of tasks that have not ended well and are remembered, for those that need them and are written again."""
NOT_PENDING = 0
"""The answer of `pop` for a task that is not among the pending ones, which have the value None."""


def forgotten(parent: int) -> str:
    return f"task {parent}, which it needs, is not in the store any more: its client was killed before that was safe"


def _session_to_read(core: "SessionCore") -> int:
    """The session whose commits are read. A graph reads those of all sessions: the number of a task that a run has
    created does not tell its session, and a graph counts such tasks."""
    return core.session if core.graph is None else NO_SESSION


class SessionEnds:
    """The tasks that have not ended, as far as the client knows, and how far the logs were read."""

    __slots__ = (
        "_ended",
        "_fallen",
        "_gone",
        "_has_news",
        "_looked_up",
        "_read_every_ns",
        "_read_to",
        "_to_seek",
        "_verified",
        "pending",
        "read_at_ns",
    )

    def __init__(self, shard_count: int) -> None:
        self.pending: dict[int, None] = {}
        self._read_to = [0] * shard_count
        self._looked_up: dict[int, None] = {}  # tasks that have ended, and are asked how, or what they have made
        self._verified: dict[int, None] = {}  # tasks that the store may have lost
        # Tasks whose commits may have been dropped unread, and of which it is not known yet whether the store has them.
        # A store that forgets takes a task that it does not know for one that has ended.
        self._to_seek: dict[int, None] = {}
        self._gone: dict[int, int] = {}  # tasks that the store has forgotten: how often the session was renewed then
        self._ended: list[Outcome] = []
        self._fallen: dict[int, tuple[int, str]] = {}  # tasks that did not end well: their states and errors
        self._has_news = False  # the logs told of an end that nobody else had told
        self._read_every_ns = READ_NS
        self.read_at_ns = 0

    def expect(self, tasks: Iterable[int]) -> None:
        self.pending.update(dict.fromkeys(tasks))

    def forget(self, task: int) -> None:
        """Stop looking for the end of this task."""
        self.pending.pop(task, None)
        self._looked_up.pop(task, None)
        self._gone.pop(task, None)

    def drop_all(self) -> None:
        """The session ends, and with it all futures."""
        self.pending.clear()
        self._looked_up.clear()
        self._verified.clear()
        self._to_seek.clear()
        self._gone.clear()

    def read(self, core: "SessionCore", now_ns: int) -> None:
        """Ask for the ends since the last time, less often while others tell of all ends."""
        if not self.pending and core.graph is not None:
            self._read_every_ns = core.graph.pause_ns(now_ns)
        else:
            self._read_every_ns = READ_NS if self._has_news else min(2 * self._read_every_ns, READ_NS_MAX)
        self._has_news = False
        self.read_at_ns = now_ns + self._read_every_ns
        session = _session_to_read(core)
        for shard, start in enumerate(self._read_to):
            core.calls.ask_once(shard, ReadLog(start, session=session))

    def look_up(self, core: "SessionCore") -> None:
        """Ask again, on each tick, about tasks that had ended but are being made again, or were lost."""
        for task in self._looked_up:
            core.ask_once(task, Locate(task))
        for task in [one for one in self._to_seek if one not in core.writing.unwritten]:
            del self._to_seek[task]
            core.ask(task, Inspect(task, brief=True))

    def on_log(self, core: "SessionCore", shard: int, row: ReadLog, answer: AnswerType) -> None:
        if not isinstance(answer, Log):
            return
        if row.start == LOG_END:
            if core.finding.begins_with(shard):  # else the answer is late, and ends before it would be missed
                self._read_to[shard] = answer.next
            return
        if row.start != self._read_to[shard] or row.session != _session_to_read(core):
            return  # asked before another server answered, or before a graph was handed in
        self._read_to[shard] = answer.next
        if answer.trimmed:
            self._seek(core, shard)
        pending = self.pending
        for one in self.take_commits(core, answer.rows):
            if one.__class__ is int and one not in pending:
                continue
            task, state, error = (one, DONE, "") if isinstance(one, int) else (one.task, one.state, one.error)
            if task in self.pending and task not in self._looked_up:
                self._has_news = True
                if state == DONE:
                    self.find(core, task)
                else:
                    self.over(core, task, state, error)

    def take_commits(self, core: "SessionCore", rows: Sequence[LogRow]) -> Sequence[LogRow]:
        """Count what has ended of a graph. Answers the commits of other tasks."""
        if core.graph is None or not rows:
            return rows
        if core.cancels.has_any:
            for row in rows:
                core.cancels.ended(logged_task(row))
        return core.graph.take_ends(rows, self._ended)

    def _seek(self, core: "SessionCore", shard: int) -> None:
        """Some commits of this shard were dropped before they were read. A question that is under way may have been
        answered before these commits."""
        # Before all is written, a store that forgets takes a task that it does not know for one that has ended.
        graph = core.graph.pending() if core.graph is not None and core.graph.is_written else ()
        for task in chain(self.pending, graph):
            if shard_of(task, core.shard_count) != shard or task in self._looked_up:
                continue
            if task in core.writing.unwritten:
                self._to_seek[task] = None
            else:
                core.ask(task, Inspect(task, brief=True))

    def verify(self, core: "SessionCore", shard: int) -> None:
        """A shard that has forgotten something was told again all that this client knows. Tasks that it does not
        know now were submitted by another client, and are lost."""
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
            self._on_gone(core, task)
        elif answer in (HAS_FAILED, CANCELLED):
            core.ask(task, Inspect(task, brief=True))  # lost, and this is how it ended the second time

    def _on_gone(self, core: "SessionCore", task: int) -> None:
        """Take a task for ended that was let go of by a client before this one, and forgotten. If this client has lost
        its session, another one has let go of the task: then the store refuses the session, and nothing is told."""
        since = self._gone.setdefault(task, core.attach_count)
        if core.attach_count > since + 1:  # the answer to one row that was under way may be older
            self.over(core, task, DONE, "")

    def on_story(self, core: "SessionCore", row: Inspect, answer: AnswerType) -> None:
        task = row.task
        if task not in self.pending:
            if core.graph is not None and core.graph.is_pending(task):
                self._take_story(core, task, answer)
            return
        if isinstance(answer, Story) and answer.state in (FAILED, CANCELLED_STATE):
            self.over(core, task, answer.state, answer.error)
        elif task not in self._looked_up and (answer == HAS_ENDED or (isinstance(answer, Story) and answer.ended)):
            self.find(core, task)

    def _take_story(self, core: "SessionCore", task: int, answer: AnswerType) -> None:
        """Count a task of the graph whose commit was dropped before it was read."""
        if isinstance(answer, Story) and answer.state in (FAILED, CANCELLED_STATE):
            self.take_commits(core, [LoggedEnd(task, answer.state, answer.error, ())])
        elif answer == HAS_ENDED or (isinstance(answer, Story) and answer.ended):
            self.take_commits(core, [task])

    def over(
        self, core: "SessionCore", task: int, state: int, error: str = "", outputs: tuple[Input, ...] = ()
    ) -> None:
        """A task has ended, if that is news."""
        core.cancels.ended(task)
        self._looked_up.pop(task, None)
        self._gone.pop(task, None)
        if task in self.pending:
            del self.pending[task]
            if state != DONE:
                self._note_fallen(task, state, error)
            self._ended.append(Outcome(task, outputs, 0 if state == DONE else state, error))

    def hear(self, core: "SessionCore", ends: Sequence[Outcome]) -> None:
        """Take ends that nodes or the server of the store have told. They may say more than the logs do. A graph is
        counted by the logs alone: ends do not say what tasks have created."""
        ended, looked_up, cancels = self.pending.pop, self._looked_up.pop, core.cancels
        may_be_cancelled = cancels.has_any
        if self._gone:
            for one in ends:
                self._gone.pop(one.task, None)
        for one in ends:
            if may_be_cancelled:
                cancels.ended(one.task)
            looked_up(one.task, None)
            if ended(one.task, NOT_PENDING) is None:
                self._ended.append(one)
                if one.state:
                    self._note_fallen(one.task, one.state, one.error)

    def _note_fallen(self, task: int, state: int, error: str) -> None:
        self._fallen[task] = state, error
        if len(self._fallen) > FALLEN_MAX:
            del self._fallen[next(iter(self._fallen))]

    def fate_of(self, parent: int) -> str:
        """The error of tasks that need a task which the store does not know: empty if that one was cancelled."""
        return self._fallen.get(parent, (FAILED, forgotten(parent)))[1]

    def flush(self, core: "SessionCore") -> None:
        if self._ended:
            core.out.append(TasksEnded(self._ended))
            self._ended = []
