"""Rule 11, acknowledged is not yet safe: what is kept of what a store has acknowledged and may yet forget.

A store that is replicated asynchronously (`NodeConfig.replicated`) answers before its replicas know. A node therefore
keeps rows that were acknowledged until its driver says that they are safe, and sends them again if they get lost
(`failover`).

A dead node sends nothing again. Therefore no node does what cannot be taken back before the rows that justify it are
safe (`when_safe`). Until then an intent stays in its outbox, dead nodes are not removed, and inputs are not released. A
task that has created others does not end, and a client is not told that its cancel was received.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from daws.core.effects import CallStore
from daws.wire.store import (
    REFUSED,
    UNKNOWN,
    AnswerType,
    Create,
    Inspect,
    Lease,
    Locate,
    Owned,
    Owners,
    ReadLog,
    Register,
    Row,
    Submit,
    Watch,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore

AnsweredType = Callable[["NodeCore", CallStore, Sequence[AnswerType]], None]
RECONCILES = -1
"""A value of `Owned.look`, in the place of a number of looks: the node does not leave, but takes on what it had not
known of."""
_UNKEPT = frozenset((Inspect, Lease, Locate, Owned, Owners, ReadLog, Watch))


class Said(NamedTuple):
    """A row that is said again, whether its answer was heard before, and what it was answered this time."""

    row: Row
    heard: bool
    answer: AnswerType = None


class Resending:
    """One shard that is told again, in rounds: what is left of this one, what is to be tried in the next, and what new
    rows wait meanwhile."""

    __slots__ = ("answered", "failed", "left", "round", "stuck", "token", "under_way", "waiting")

    def __init__(self, said: list[Said], answered: AnsweredType) -> None:
        self.answered = answered  # how to go on
        self.left = deque(said)
        self.under_way: list[Said] = []
        self.token = 0  # of the call that is under way
        self.failed: list[Said] = []
        self.stuck: set[int] = set()  # tasks about which something failed: nothing else about them counts before that
        self.round = 0
        self.waiting: list[Row] = []

    def go_on_after(self, before: Resending) -> None:
        """Yet another server serves the shard: add what was left to tell the one before."""
        self.left.extend(before.all())
        self.waiting = before.waiting

    def next_rows(self, most: int) -> list[Row]:
        """Take the next rows, which are under way from now on."""
        left = self.left
        self.under_way = [left.popleft() for _ in range(min(len(left), most))]
        return [one.row for one in self.under_way]

    def sent(self, token: int) -> None:
        self.token = token

    def answered_now(self) -> list[Said]:
        """Take out the rows that were under way."""
        said, self.under_way, self.token = self.under_way, [], 0
        return said

    def fail(self, one: Said) -> None:
        """Try this row again in the next round."""
        self.failed.append(one)

    def end_round(self) -> None:
        self.round += 1
        self.stuck = {task for one in self.failed for task in tasks_of(one.row)}

    def give_up(self) -> list[Said]:
        """Take out the rows that still fail."""
        failed, self.failed, self.stuck = self.failed, [], set()
        return failed

    def take_waiting(self) -> list[Row]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def begin_round(self) -> None:
        self.left, self.failed = deque(self.failed), []

    def all(self) -> list[Said]:
        """All rows that have yet to be sent again, or to succeed."""
        return [*self.under_way, *self.failed, *self.left]

    def holds_back(self, row: Row) -> bool:
        """A row that is new: not while anything comes before it."""
        return type(row) is not Lease and (not self.round or not self.stuck.isdisjoint(tasks_of(row)))


def tasks_of(row: Row) -> tuple[int, ...]:
    """The tasks that a row is about."""
    if type(row) is Create or type(row) is Submit:
        return (row.spec.id,)
    if type(row) is Register:
        return (row.task, row.child)
    task = getattr(row, "task", None)
    return () if task is None else (task,)


def is_refused(row: Row, answer: AnswerType) -> bool:
    """Did the store reject this row, so that there is nothing to keep? A refused Create counts as accepted: another
    node created the task, but that write may be lost, and then ours must be resent."""
    return answer.__class__ is int and answer in (REFUSED, UNKNOWN) and type(row) is not Create


class Keeping:
    """The acknowledged rows that are not safe yet, and the actions that wait until they are."""

    __slots__ = ("count", "later", "looks", "order", "resending", "rows")

    def __init__(self) -> None:
        self.count = 0  # calls that were acknowledged so far
        self.rows: dict[int, list[Row]] = {}  # of those that are not safe, by number
        self.order: dict[int, dict[int, int]] = {}  # shard -> their tokens, as they were acknowledged, and numbers
        self.later: deque[tuple[int, Callable[[], None]]] = deque()  # after which call, and what
        self.resending: dict[int, Resending] = {}
        self.looks: dict[
            int, tuple[int, int]
        ] = {}  # shard -> ticks until it is asked what is ours, and how often it was

    def begin_resending(self, shard: int, said: list[Said], answered: AnsweredType) -> Resending:
        """Another server serves this shard, which is told these rows again."""
        before = self.resending.pop(shard, None)
        resending = self.resending[shard] = Resending(said, answered)
        if before is not None:
            resending.go_on_after(before)
        return resending

    def end_resending(self, shard: int, ticks: int) -> None:
        """The shard knows all rows again: ask it what is ours after so many ticks."""
        del self.resending[shard]
        self.looks[shard] = (ticks, 0)
        self.wait_anew()

    def is_look_due(self, shard: int, ticks_between: Sequence[int]) -> bool:
        """On each tick: is it time to ask this shard what is ours?"""
        ticks, looked = self.looks[shard]
        if ticks:
            self.looks[shard] = (ticks - 1, looked)
            return False
        if shard in self.resending:
            return False
        looked += 1
        if looked < len(ticks_between):
            self.looks[shard] = (ticks_between[looked], looked)
        else:
            del self.looks[shard]
        return True

    @property
    def doubts(self) -> bool:
        """The store may give a node for the first time, as far as it knows, what the node has had for long."""
        return bool(self.resending or self.looks)

    def takes(self, core: NodeCore, call: CallStore, answers: Sequence[AnswerType]) -> bool:
        """A call was answered, which is kept from now on. True if it was said again, and all is done about it."""
        resent = self.is_resent(call)
        if resent:
            self.resending[call.shard].answered(core, call, answers)
        else:
            self.keep(call, answers)
        return resent

    def keep(self, call: CallStore, answers: Sequence[AnswerType]) -> None:
        rows = [
            row
            for row, answer in zip(call.rows, answers, strict=True)
            if type(row) not in _UNKEPT and not is_refused(row, answer)
        ]
        if rows:
            self.count += 1
            self.rows[self.count] = rows  # type: ignore[assignment]
            self.order.setdefault(call.shard, {})[call.token] = self.count

    def take(self, shard: int) -> dict[int, list[Row]]:
        """All that is kept of a shard, by the tokens of its calls."""
        return {token: self.rows.pop(number) for token, number in self.order.pop(shard, {}).items()}

    def wait_anew(self) -> None:
        """Let all waiting actions wait for the rows that were sent again, which are as unsafe as the first time."""
        self.later = deque([(self.count, then) for _, then in self.later])

    def forget(self, shard: int, tokens: Sequence[int]) -> None:
        order = self.order.get(shard, {})
        for token in tokens:
            number = order.pop(token, None)
            if number is not None:
                del self.rows[number]

    def is_resent(self, call: CallStore) -> bool:
        resending = self.resending.get(call.shard)
        return resending is not None and resending.token == call.token

    def may_leave(self, call: CallStore) -> bool:
        """A call that was not answered: not while its shard is to hear other things first."""
        resending = self.resending.get(call.shard)
        if resending is None or resending.token == call.token:
            return True
        return not any(map(resending.holds_back, call.rows))

    def hold_back(self, shard: int, rows: list[Row]) -> list[Row]:
        """The rows for a shard that may leave now. The others wait until the shard has received the rows that come
        before them."""
        resending = self.resending.get(shard)
        if resending is None:
            return rows
        resending.waiting += [row for row in rows if resending.holds_back(row)]
        return [row for row in rows if not resending.holds_back(row)]


def when_safe(core: NodeCore, then: Callable[[], None]) -> None:
    """Do this when all that was acknowledged so far is safe: at once, where the store forgets nothing."""
    keeping: Keeping | None = core.keeping
    if keeping is None or not (keeping.rows or keeping.resending):
        then()
    else:
        keeping.later.append((keeping.count, then))


def go_on(core: NodeCore) -> None:
    """Do what waited for what is safe by now."""
    keeping: Keeping = core.keeping
    if keeping.resending:
        return
    oldest = next(iter(keeping.rows), keeping.count + 1)
    while keeping.later and keeping.later[0][0] < oldest:
        keeping.later.popleft()[1]()
