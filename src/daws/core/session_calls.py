"""A session's calls to the store: repeated until they are answered, and kept until they are safe (rule 11).

Where the store is replicated asynchronously, rows that were acknowledged are kept until the driver says that they are
safe. When another server answers for a shard, they are sent again, in order and one call after the other; new rows wait
until that is done. All rows are idempotent, so those that were not lost do no harm.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from daws.core.effects import CallStore
from daws.core.session_events import SessionEffect
from daws.wire.store import (
    OK,
    REFUSED,
    UNKNOWN,
    AnswerType,
    AttachSession,
    DetachSession,
    FindHeld,
    ForgetSession,
    Inspect,
    ListSessions,
    Locate,
    ReadLog,
    Row,
    Satisfy,
    Submit,
    Watch,
    shard_of,
)

ROWS_PER_CALL = 1000
_READS = frozenset((FindHeld, Inspect, ListSessions, Locate, ReadLog, Watch))
_ONCE = frozenset((AttachSession, DetachSession, ForgetSession, Inspect, Locate, ReadLog, Watch))
"""Rows that are not sent while the answer to an equal one is yet to come."""
Heard = tuple[int, Sequence[Row], bool]
"""Rows that were answered: their shard, the rows, and whether they may have taken effect before."""
NOTHING_HEARD: Heard = (0, (), False)


class _Sent:
    __slots__ = ("again", "call", "sent_ns")

    def __init__(self, call: CallStore, sent_ns: int, again: bool) -> None:
        self.call = call
        self.sent_ns = sent_ns
        self.again = again


class SessionCalls:
    """The calls under way, the rows that have yet to leave, and the rows that may yet be lost."""

    __slots__ = (
        "_asked",
        "_graph_calls",
        "_is_replicated",
        "_kept",
        "_renewed",
        "_resending",
        "_resent",
        "_sent",
        "_waiting",
        "token",
    )

    def __init__(self, is_replicated: bool, first_token: int) -> None:
        self.token = first_token
        self._is_replicated = is_replicated
        self._waiting: dict[int, list[Row]] = {}
        self._asked: dict[tuple[int, Row], int] = {}  # shard and row: so many answers are yet to come
        self._sent: dict[int, _Sent] = {}
        self._graph_calls: set[int] = set()
        self._kept: dict[int, dict[int, list[Row]]] = {}  # shard -> token -> rows that are not safe
        self._renewed: list[Row] = []  # attachments that were kept once: the others change nothing but a time
        self._resent: list[int] = []
        self._resending: dict[int, deque[Row]] = {}  # shard -> rows that come before all others

    def ask(self, shard: int, row: Row) -> None:
        self._waiting.setdefault(shard, []).append(row)
        if type(row) in _ONCE:
            self._count(shard, row, 1)

    def ask_plain(self, rows: Iterable[Submit], shard_count: int) -> None:
        """Write tasks, each in its own shard."""
        waiting = self._waiting
        if shard_count == 1:
            waiting.setdefault(0, []).extend(rows)
            return
        for row in rows:
            waiting.setdefault(shard_of(row.spec.id, shard_count), []).append(row)

    def _count(self, shard: int, row: Row, more: int) -> None:
        count = self._asked.pop((shard, row), 0) + more
        if count > 0:
            self._asked[shard, row] = count

    @property
    def writes(self) -> bool:
        """Is there a row that may change something, and was not answered?"""
        sent = [row for one in self._sent.values() for row in one.call.rows]
        waiting = [row for rows in (*self._waiting.values(), *self._resending.values()) for row in rows]
        return any(type(row) not in _READS for row in (*sent, *waiting))

    @property
    def is_safe(self) -> bool:
        """Nothing that was acknowledged can be lost any more."""
        return not any(self._kept.values()) and not self._resending

    def ask_once(self, shard: int, row: Row) -> None:
        """Ask, unless that was asked and the answer is yet to come."""
        if (shard, row) not in self._asked:
            self.ask(shard, row)

    def flush(self, now_ns: int, out: list[SessionEffect]) -> None:
        """Let rows leave that nothing has to come before."""
        for shard in [shard for shard in self._waiting if shard not in self._resending]:
            rows = self._waiting.pop(shard)
            start = 0
            while start < len(rows):
                end = start + ROWS_PER_CALL
                while end < len(rows) and type(rows[end - 1]) is Satisfy:
                    end += 1  # the row that opens its task may follow, and must not come without it
                self._send(shard, rows[start:end], False, now_ns, out)
                start = end

    def _send(self, shard: int, rows: list[Row], again: bool, now_ns: int, out: list[SessionEffect]) -> None:
        self.token += 1
        call = CallStore(self.token, shard, rows)  # type: ignore[arg-type]
        self._sent[self.token] = _Sent(call, now_ns, again)
        out.append(call)

    def send_graph_rows(self, shard: int, rows: list[Row], now_ns: int, out: list[SessionEffect]) -> None:
        """Send rows of a graph at once, as one call, of which only refusals are of interest."""
        self._send(shard, rows, False, now_ns, out)
        self._graph_calls.add(self.token)

    @property
    def graph_call_count(self) -> int:
        """The number of calls with rows of a graph that were not answered."""
        return len(self._graph_calls)

    def repeat(self, now_ns: int, after_ns: int, out: list[SessionEffect]) -> None:
        """Send again what was not answered for so long. Its answer, or the call itself, may have been lost."""
        for one in self._sent.values():
            if now_ns - one.sent_ns >= after_ns:
                one.sent_ns = now_ns
                one.again = True
                out.append(one.call)

    def answered(
        self, token: int, answers: Sequence[AnswerType] | None, now_ns: int, out: list[SessionEffect]
    ) -> Heard:
        """An answer came; None stands for one in which each row was answered with None. Only the first one counts.
        Return the rows whose answers matter."""
        one = self._sent.pop(token, None)
        if one is None:
            return NOTHING_HEARD
        shard, rows = one.call.shard, one.call.rows
        if self._asked:
            for row in rows:
                if type(row) in _ONCE:
                    self._count(shard, row, -1)
        if self._is_replicated:
            self._keep(token, shard, rows, [None] * len(rows) if answers is None else answers)
        if shard in self._resending and one.again:
            self._resend(shard, now_ns, out)
        if token in self._graph_calls:
            self._graph_calls.discard(token)
            if answers is not None and answers.count(OK) == len(answers):
                return NOTHING_HEARD
        return shard, rows, one.again

    def _keep(self, token: int, shard: int, rows: Sequence[Row], answers: Sequence[AnswerType]) -> None:
        said = [
            row
            for row, answer in zip(rows, answers, strict=True)
            if type(row) not in _READS and row not in self._renewed and not _is_refused(answer)
        ]
        if said:
            self._kept.setdefault(shard, {})[token] = said
            self._renewed += [row for row in said if type(row) is AttachSession]

    def safe(self, shard: int, tokens: Sequence[int]) -> None:
        kept = self._kept.get(shard, {})
        for token in tokens:
            kept.pop(token, None)

    def changed(self, shard: int, now_ns: int, out: list[SessionEffect]) -> None:
        """Another server answers for this shard: say all again that may be lost, or was not answered, in order."""
        said = self._kept.pop(shard, {})
        self._renewed.clear()
        for row in [row for rows in said.values() for row in rows if type(row) in _ONCE]:
            self._count(shard, row, 1)
        for token in [token for token, one in self._sent.items() if one.call.shard == shard]:
            said[token] = []
            self._graph_calls.discard(token)
            for row in self._sent.pop(token).call.rows:
                if type(row) is ReadLog:
                    self._count(shard, row, -1)
                else:
                    said[token].append(row)
        rows = [row for token in sorted(said) for row in said[token]]
        self._resending[shard] = deque((*rows, *self._resending.pop(shard, ())))
        self._resend(shard, now_ns, out)

    def _resend(self, shard: int, now_ns: int, out: list[SessionEffect]) -> None:
        left = self._resending[shard]
        if left:
            rows = [left.popleft() for _ in range(min(len(left), ROWS_PER_CALL))]
            self._send(shard, rows, True, now_ns, out)
        elif not any(one.call.shard == shard and one.again for one in self._sent.values()):
            del self._resending[shard]
            self._resent.append(shard)

    def take_resent(self) -> list[int]:
        """Shards that know again all that may have been lost there."""
        resent, self._resent = self._resent, []
        return resent


def _is_refused(answer: AnswerType) -> bool:
    return answer.__class__ is int and answer in (REFUSED, UNKNOWN)
