"""The desk of a client: it writes its tasks into the store, hands those that are ready to their owners, and hears how
they end.

What is said is done in order. Rows that were acknowledged are kept until they are safe, and said again when the store
has changed (rule 11).
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import le
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.cluster import Members
from daws.model.errors import StrategyError
from daws.model.states import READY, WAITING
from daws.model.task import AGAIN, CLIENT, NodeId, Ready
from daws.net.links import Links
from daws.runtime.cluster import words
from daws.runtime.cluster.direct.book import OPEN, Entry, decode
from daws.runtime.cluster.direct.desk import Desk, Received
from daws.runtime.cluster.direct.ends import BlamedTasks
from daws.runtime.cluster.direct.words import TO_CLIENT, Batches, Fresh, Here, Sealed, ToClient
from daws.runtime.cluster.direct.writing import Write, Written, complete, write
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.sessions import CANCELLED_AT_ONCE, is_function
from daws.runtime.cluster.words import NOBODY, SESSION_BITS, Count, Counted, Ends, in_use
from daws.store.memory.record import ready_of
from daws.store.memory.sessions import unfinished_of
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.notes import FAILURES, NUMBERS, STRATEGY
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import forget_unended, learn_end, stamps_of
from daws.strategy import format_strategy, parse_strategy
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission, SubmissionTaken
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Leased,
    Release,
    RowType,
    Submit,
    Unheld,
    Watch,
)

LOOK_S = 0.25
AGAIN_S = 1.0
"""After so long a hand-out that was not acknowledged is repeated."""
COUNT_S = 5.0
HERE_S = 2.0
BEAT_S = 1.0
SAFE_S, SAFE_LOOK_S = 8.0, 0.05
ROWS_MAX = 2048
GAP = 1 << 16
"""So many numbers of tasks are left out when a client goes on with a session: of those that the one before it has
given, the store may have forgotten some."""
END_S = 10.0
BEATS = 4
"""Who was seen so often is there; a failover may show a client once more that is gone."""
DOUBT_S = 30.0
"""For so long after a change of the store, a task that it does not know may be on its way back."""
DEFAULT_STRATEGY = "daws"
log = logging.getLogger("daws.node")


class ClientDesk(Desk):
    def __init__(self, reach: Reach, store: ValkeyStore, received: Received) -> None:
        super().__init__(reach, store, received)
        self.session = NOBODY
        self.entry: Entry | None = None
        self._here = Here(NOBODY)
        self.members = Members(0, ())
        self._wanted: set[int] = set()  # tasks whose ends nobody has told yet
        self._blamed = BlamedTasks()
        self._queue: deque[Any] = deque()
        self._wake = asyncio.Event()
        self._kept: deque[_Kept] = deque()  # acknowledged, and not yet safe
        self._has_changed = False
        self._changed_at_s = -DOUBT_S
        self._here_at_s = 0.0
        self._handed: dict[int, tuple[NodeId, Fresh | NewTasks, float]] = {}  # and not acknowledged
        self._cancels: dict[int, tuple[tuple[int, ...], str, float]] = {}  # tasks, by which error, since when
        self._counting: deque[_Counting] = deque()
        self._links: Links[ToClient] = Links(
            reach.keys,
            reach.hello(),
            TO_CLIENT,
            self._address,
            self._on_node,
            lambda node, messages, why: None,  # it is said again, or others take over
            lambda node: None,
            reach.config.idle_s,
        )
        self.begin(self._work())

    async def close(self) -> None:
        self._links.abort()
        await super().close()

    def send(self, word: Any) -> None:
        self._queue.append(word)
        self._wake.set()

    def _address(self, node: NodeId) -> str | None:
        info = self.members.info(node)
        return info.addresses[0] if info is not None and info.addresses else None

    # -- one after the other -------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        queue = self._queue
        while True:
            await self._wake.wait()
            self._wake.clear()
            while queue or self._has_changed:
                if self._has_changed:
                    await self._say_again()
                    continue
                word = queue.popleft()
                if not isinstance(word, CallStore):
                    await _HEARD[type(word)](self, word)
                    continue
                calls, count = [word], len(word.rows)
                while queue and isinstance(queue[0], CallStore) and count + len(queue[0].rows) <= ROWS_MAX:
                    calls.append(queue.popleft())
                    count += len(calls[-1].rows)
                await self._carry_out(calls)

    async def _carry_out(self, calls: list[CallStore]) -> None:
        rows = [row for call in calls for row in call.rows]
        self._wanted.update([row.spec.id for row in rows if type(row) is Submit and not row.outputs])
        forget_unended(self.store.cache_of, [row.task for row in rows if type(row) is Release])
        is_again = False
        while True:
            try:
                written = await write(self.call, self.store.shard_count, rows)
                break
            except StoreChangedError:
                self.see_change()
                is_again = True
                while self._has_changed:
                    await self._say_again()
        self._keep(rows, write)
        answers = await self._hand_out(rows, written.answers, is_again)
        await self._doom(written)
        start = 0
        for call in calls:
            some = answers[start : start + len(call.rows)]
            start += len(call.rows)
            fine = some.count(None) == len(some)
            self.tell(CallFine(call.token) if fine else StoreAnswered(call.token, some))

    async def _say_again(self) -> None:
        """All that may be lost, in order; whoever waits for what it was answered has heard that before."""
        self._has_changed = False
        kept, self._kept = self._kept, deque()
        if self.entry is not None:
            await self.book.restore(self.entry)
        while kept:
            rows, how = kept[0].rows, kept[0].how
            try:
                written = await how(self.call, self.store.shard_count, rows)
            except StoreChangedError:
                self.see_change()
                self._kept.extend(kept)
                return
            kept.popleft()
            self._keep(rows, how)
            await self._hand_out(rows, written.answers, True)
            await self._doom(written)
            self._repeat(rows, written.answers, how)

    def _repeat(self, rows: Sequence[RowType], answers: list[AnswerType], how: Write) -> None:
        """What was said again and could not be done: its node has died since, or a parent is yet to come."""
        left = [
            row
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(row, Submit) and answer in (STRUCK, UNKNOWN)
        ]
        if left:
            self._loop.call_later(LOOK_S, self.send, _Repeat(left, how))

    def _keep(self, rows: Sequence[RowType], how: Write) -> None:
        positions = [self.store.position(shard) for shard in range(self.store.shard_count)]
        self._kept.append(_Kept(positions, rows, how))
        self._drop_safe()  # what has changed nothing may be so already

    def on_changed(self, shard: int) -> None:
        self._has_changed = True
        self._changed_at_s = time.monotonic()
        self._wake.set()

    @property
    def _doubts(self) -> bool:
        """The store may show what was before, and not yet know what was said again."""
        return time.monotonic() - self._changed_at_s < DOUBT_S

    def on_safe(self, shard: int) -> None:
        self._drop_safe()

    def _drop_safe(self) -> None:
        safe = [self.store.safe_position(one) for one in range(self.store.shard_count)]
        while self._kept and not self._has_changed and all(map(le, self._kept[0].positions, safe)):
            self._kept.popleft()

    # -- tasks and their owners ----------------------------------------------------------------------------------------

    async def _hand_out(self, rows: Sequence[RowType], answers: list[AnswerType], is_again: bool) -> list[AnswerType]:
        """Tell nodes of what is theirs now. Returns what the client is to hear."""
        told: list[AnswerType] = [None] * len(rows)
        ready: dict[NodeId, list[Ready]] = {}
        put: dict[NodeId, list[Submit]] = {}
        let_go: dict[NodeId, list[int]] = {}
        again: list[Submit] = []
        for place, (row, answer) in enumerate(zip(rows, answers, strict=True)):
            if isinstance(row, Submit):
                if isinstance(answer, int):
                    told[place] = answer
                elif row.outputs:
                    for node in row.outputs[0][3]:
                        put.setdefault(node, []).append(row)
                elif is_again:
                    again.append(row)
                elif isinstance(answer, Ready):
                    ready.setdefault(row.node, []).append(answer)
                elif not row.parents:
                    ready.setdefault(row.node, []).append(Ready(row.spec, 0, 0))
            elif isinstance(row, Release):
                self._wanted.discard(row.task)
                if isinstance(answer, Unheld):
                    for node in answer.places:
                        let_go.setdefault(node, []).append(row.task)
                if unneeded := self._blamed.let_go(row.task):
                    self.begin(self.notes.drop(FAILURES, unneeded))
        if again:
            await self._find_ready(again, ready)
        for node, objects in put.items():
            self._hand(node, NewTasks(CLIENT, self._batches(), tuple(objects)))
        for node, tasks in ready.items():
            stamps = stamps_of(self.store.cache_of, tasks, node)
            self._hand(node, Fresh(Submission(CLIENT, self._batches(), tuple(tasks)), stamps))
        for node, gone in let_go.items():
            self._links.send(node, LetGo(CLIENT, tuple(gone)))
        return told

    async def _find_ready(self, rows: list[Submit], ready: dict[NodeId, list[Ready]]) -> None:
        """Of tasks that were said before, those that their owners may not have heard of."""
        records = await self.looking.records([row.spec.id for row in rows])
        for row in rows:
            record = records[row.spec.id]
            if record is not None and record.state == READY and record.owner == row.node:
                ready.setdefault(row.node, []).append(ready_of(record, AGAIN))

    def _hand(self, node: NodeId, message: Fresh | NewTasks) -> None:
        batch = message.submission.batch if isinstance(message, Fresh) else message.batch
        self._handed[batch] = (node, message, time.monotonic())
        self._links.send(node, message)

    # -- what nodes say ------------------------------------------------------------------------------------------------

    def _on_node(self, node: NodeId, said: list[ToClient]) -> None:
        for word in said:
            if isinstance(word, Sealed):
                for one in word.outcomes:
                    learn_end(self.store.cache_of(one.task), one.task, node, one.outputs, word.seal)
                self._tell_ends(word.outcomes)
            elif isinstance(word, Ends):
                self._tell_ends(word.outcomes)
            elif isinstance(word, SubmissionTaken):
                self._handed.pop(word.batch, None)
            elif isinstance(word, CancelTaken):
                self._cancels.pop(word.batch, None)
            elif isinstance(word, Counted):
                for counting in self._counting:
                    if counting.answered(node, word):
                        break
                self._end_countings()
            else:
                self.tell(word)

    def _tell_ends(self, outcomes: list[Outcome]) -> None:
        for one in outcomes:
            self._wanted.discard(one.task)
            if one.failure:
                self._blamed.add(one)
        self.tell(Ends(outcomes))

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def _on_attach(self, word: words.Attach) -> None:
        entry = await self._session_for(word)
        if isinstance(entry, str):
            self.tell(words.Refused(entry))
            return
        self.entry = entry
        self.session = number = entry.number
        self._here = Here(number, word.runs, word.decisions)
        self._batches = Batches(number, False)
        await self._see_members()
        low = number << SESSION_BITS
        tasks: list[tuple[int, int]] = []
        left: list[Submit] = []
        next_task = low
        async for task, record in self.looking.between(low, low + (1 << SESSION_BITS)):
            next_task = max(next_task, task + 1 + GAP)
            if record.held and not record.spec.leaf and not is_function(record):
                tasks.append((task, len(record.spec.outputs)))
            if (submit := unfinished_of(task, record, self.store.shard_count)) is not None:
                left.append(submit)
        for start in range(0, len(left), ROWS_MAX):
            self.send(_Repeat(left[start : start + ROWS_MAX], complete))
        _, _, strategy = await self.notes.look()
        strategy = strategy or DEFAULT_STRATEGY
        self.tell(words.Attached(number, entry.name, next_task, self.members, strategy, sorted(tasks)))
        self.begin(self._stay())
        self.begin(self._look_after())
        self.begin(self.ends.follow(lambda: self._wanted, self._tell_ends))

    async def _session_for(self, word: words.Attach) -> Entry | str:
        """The session that is meant, or why there is none. Whether the client before us is gone shows after a while."""
        until_s = ends_until_s = 0.0
        last: object = self
        changes = 0
        while True:
            entry = await self.book.named(word.name) if word.name else None
            if entry is None:
                opened = await self.book.open(word.name, word.kept, time.time(), word.nonce)
                if opened is not None:
                    return opened
                continue
            if entry.state != OPEN:
                ends_until_s = ends_until_s or time.monotonic() + END_S
                if time.monotonic() > ends_until_s:
                    return f"session {word.name!r} is about to end; take another name, or try again"
                await asyncio.sleep(LOOK_S)
                continue
            _, seen, _ = await self.notes.look()
            now = seen.get(entry.number)
            if now != last:
                changes += 1
                if changes == BEATS:
                    return in_use(word.name)
                last = now
                until_s = time.monotonic() + self.patience_s
            if not entry.nonce or entry.nonce == word.nonce or time.monotonic() > until_s:
                changed = await self.book.change(entry, nonce=word.nonce, kept=entry.kept or word.kept)
                if changed is not None:
                    return changed
            await asyncio.sleep(LOOK_S)

    async def _stay(self) -> None:
        """Say that we are there, as long as the session is ours. That it is not counts when it was seen several times:
        a server that has just taken over may show who had it before us."""
        others = 0
        while self.entry is not None:
            mine = self.entry
            noted, has_ended = await self.notes.beat(mine.number)
            if has_ended:
                self.tell(words.Refused("the session has ended meanwhile: its client was away for too long"))
                return
            if not noted:
                await self.book.restore(mine)  # the store has forgotten it
            elif self.entry is mine and (now := decode(noted)).nonce != mine.nonce:
                if (now.nonce or now.state != OPEN) and not self._doubts:  # else that may be of before we came
                    others += 1
                    if others == BEATS:
                        reason = "the session has ended or is another client's: we were away for too long"
                        self.tell(words.Refused(reason))
                        return
                else:
                    await self.book.change(now, nonce=mine.nonce, kept=mine.kept, state=OPEN)  # we were taken for dead
            else:
                others = 0
            await asyncio.sleep(min(self.reach.config.lease_s / 4, BEAT_S))

    async def _on_close(self, word: words.Close) -> None:
        if word.keep:  # nobody else could say again what a failover would lose
            until_s = time.monotonic() + SAFE_S
            while (self._kept or self._has_changed) and time.monotonic() < until_s:
                if self._has_changed:
                    await self._say_again()
                await asyncio.sleep(SAFE_LOOK_S)
        entry, self.entry = self.entry, None
        while entry is not None:
            fields = {"kept": True, "nonce": b""} if word.keep else {"state": 1}
            if await self.book.change(entry, **fields) is not None:
                break
            now = await self.book.entry(entry.number)
            entry = now if now is not None and now.nonce in (entry.nonce, b"") and now.state == OPEN else None
        self.tell(words.Closed())

    # -- what else the client says -------------------------------------------------------------------------------------

    async def _on_ask_ends(self, word: words.AskEnds) -> None:
        doubts = self._doubts
        self._wanted.update(word.tasks)  # before the look: nobody would tell of an end between the two
        outcomes = await self.ends.of(word.tasks, unknown_are_lost=not doubts)
        self._tell_ends(outcomes)
        if doubts:
            known = {one.task for one in outcomes}
            unknown = [task for task in word.tasks if task not in known]
            records = await self.looking.records(unknown)
            lost = [task for task in unknown if records[task] is None]
            if lost:
                self._loop.call_later(AGAIN_S, self.send, words.AskEnds(lost))

    async def _on_repeat(self, word: "_Repeat") -> None:
        """With nodes that are there now."""
        if not self.members:  # nobody could own a task
            self._loop.call_later(LOOK_S, self.send, word)
            return
        rows = [replace(row, node=self._node_for(row)) for row in word.rows]
        try:
            written = await word.how(self.call, self.store.shard_count, rows)
        except StoreChangedError:
            self.see_change()
            self.send(word)
            return
        self._keep(rows, word.how)
        await self._hand_out(rows, written.answers, True)
        await self._doom(written)
        self._repeat(rows, written.answers, word.how)

    def _node_for(self, row: Submit) -> NodeId:
        nodes = self.members.capable(row.spec.needs) or self.members.nodes
        return nodes[row.spec.id % len(nodes)]

    async def _doom(self, written: Written) -> None:
        """Have tasks end as those have ended that they need; the node that is told sees to what needs them in turn."""
        if not written.doomed:
            return
        records = await self.looking.records([*written.doomed, *written.doomed.values()])
        by_error: dict[str, list[int]] = {}
        for task, parent in written.doomed.items():
            mine, above = records[task], records[parent]
            if mine is None or mine.state != WAITING:
                continue  # it had all that it needs before that was forgotten
            if above is not None:
                error = above.rare.error if above.rare is not None else ""
            elif parent in written.missing:
                error = f"task {parent}, which it needs, was never submitted: its client was killed before"
            else:
                error = f"task {parent}, which it needs, is forgotten with all it made"
            by_error.setdefault(error, []).append(task)
        for error, tasks in by_error.items():
            for start in range(0, len(tasks), CANCELLED_AT_ONCE):
                some = tuple(tasks[start : start + CANCELLED_AT_ONCE])
                self._cancels[self._batches()] = (some, error, -1e9)
        self._send_cancels()

    async def _on_cancel(self, word: words.CancelTasks) -> None:
        self._cancels[self._batches()] = (word.tasks, "", -1e9)
        self._send_cancels()

    def _send_cancels(self) -> None:
        """Any node can see to it; one after the other is asked until one has."""
        nodes = self.members.nodes
        now_s = time.monotonic()
        for batch, (tasks, error, since_s) in self._cancels.items():
            if nodes and now_s - since_s > self.reach.config.lease_s / 2:
                self._cancels[batch] = (tasks, error, now_s)
                self._links.send(nodes[int(now_s * 1000) % len(nodes)], CancelOrder(CLIENT, batch, tasks, error))

    async def _on_count(self, word: Count) -> None:
        counting = _Counting(set(self.members.nodes), time.monotonic() + COUNT_S)
        self._counting.append(counting)
        for node in self.members.nodes:
            self._links.send(node, word)
        self._end_countings()

    def _end_countings(self) -> None:
        while self._counting and (not self._counting[0].left or time.monotonic() > self._counting[0].until_s):
            self.tell(words.Counts(self._counting.popleft().counts))

    async def _on_new_strategy(self, word: NewStrategy) -> None:
        try:
            text = format_strategy(parse_strategy(word.text))
        except StrategyError as error:
            log.warning("a strategy that is none: %s", error)
            return
        await self.notes.put(NUMBERS, (STRATEGY, text))
        for node in self.members.nodes:
            self._links.send(node, NewStrategy(text))

    # -- now and then --------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._see_members()
            self._send_cancels()
            self._end_countings()
            now_s = time.monotonic()
            for batch, (node, message, since_s) in list(self._handed.items()):
                if node not in self.members:
                    del self._handed[batch]  # who takes over from it finds them in the store
                elif now_s - since_s > AGAIN_S:
                    self._handed[batch] = (node, message, now_s)
                    self._links.send(node, message)

    async def _see_members(self) -> None:
        with suppress(StoreChangedError):
            (answer,) = await self.call(MEMBERSHIP_SHARD, [Watch(self.members.version)])
            assert isinstance(answer, Leased)
            if answer.members is not None:
                gone = set(self.members.nodes).difference(answer.members.nodes)
                self.members = answer.members
                for node in gone:
                    self._links.forget(node)
                self.tell(words.NowMembers(answer.members))
            if answer.members is not None or time.monotonic() - self._here_at_s > HERE_S:
                self._here_at_s = time.monotonic()
                for node in self.members.nodes:
                    self._links.send(node, self._here)
            return
        self.see_change()
        self.members = Members(0, self.members.infos)


class _Kept(Struct, frozen=True):
    """Rows, how they were written, and how far all shards were after that."""

    positions: list[int]
    rows: Sequence[RowType]
    how: Write


class _Repeat(Struct, frozen=True):
    """Said to ourselves: tasks that are to be written once more."""

    rows: list[Submit]
    how: Write


class _Counting:
    """A question to all nodes; who does not answer in time is left out."""

    def __init__(self, left: set[NodeId], until_s: float) -> None:
        self.left = left
        self.until_s = until_s
        self.counts: list[Counted] = []

    def answered(self, node: NodeId, counted: Counted) -> bool:
        """Is that an answer to this question? Each node answers in the order in which it was asked."""
        if node not in self.left:
            return False
        self.left.discard(node)
        self.counts.append(counted)
        return True


_HEARD: dict[type, Callable[[ClientDesk, Any], Awaitable[None]]] = {
    words.Attach: ClientDesk._on_attach,
    words.AskEnds: ClientDesk._on_ask_ends,
    _Repeat: ClientDesk._on_repeat,
    words.CancelTasks: ClientDesk._on_cancel,
    Count: ClientDesk._on_count,
    NewStrategy: ClientDesk._on_new_strategy,
    words.Close: ClientDesk._on_close,
}
