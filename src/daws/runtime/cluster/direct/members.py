"""The desk of a node: its calls to the store, the clients that have come to it, and what is looked after now and then.

A node is told what becomes of its calls as the embedded store's server would tell it, and beside that (rule 11) which
of them are safe, and when the store has changed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, NewStrategy, StoreAnswered, StoreChanged
from daws.data.tags import root_of
from daws.model.cluster import Members
from daws.model.states import FINAL
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NodeId
from daws.net.link import Link
from daws.runtime.cluster import words
from daws.runtime.cluster.direct.book import decode
from daws.runtime.cluster.direct.desk import Desk, Received
from daws.runtime.cluster.direct.sweeping import Sweeper
from daws.runtime.cluster.direct.words import TO_NODE, Batches, Fresh, Here, Sealed, ToNode
from daws.runtime.cluster.ends import FAILURES_MIN
from daws.runtime.cluster.noting import NO_NOTES, asked_by
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.sessions import is_function
from daws.runtime.cluster.words import NOBODY, Count, Counted, Ends, KeepFailure, session_of
from daws.store.memory.record import is_held
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.notes import ENDED, FAILURES, FUNCTIONS, NOTES_SHARD
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import Seal, learn_stamps, seal_of
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, MessageType, NewTasks, Submission, SubmissionTaken
from daws.wire.store import AnswerType, Committed, Estate, Finish, Leased, Owned
from daws.wire.worker import Learn

LOOK_S = 0.5
ASK_AGAIN_S = 0.05
ALL = 1 << 40
STRATEGY = "daws"
log = logging.getLogger("daws.node")


class NodeDesk(Desk):
    def __init__(
        self,
        reach: Reach,
        store: ValkeyStore,
        received: Received,
        waits_for: Callable[[], list[int]],
        send: Callable[[NodeId, MessageType], None],
    ) -> None:
        """`waits_for` says of which tasks the node waits for the end, `send` brings messages to other nodes."""
        super().__init__(reach, store, received)
        self.node = NOBODY
        self.members = Members(0, ())
        self.send_to_node = send
        shards = range(store.shard_count)
        self._lives = [0 for _ in shards]  # answers to calls of the one before are not for this one
        self._under_way: list[set[int]] = [set() for _ in shards]
        self._failures: list[tuple[int, bytes]] = []  # to be noted
        self._failures_told = self._failures_noted = 0  # so many so far
        self._unclaimed: list[int] = []  # tasks that runs have created, of which a failure is noted
        self._sweep_at = FAILURES_MIN
        self._held: deque[tuple[int, int, CallStore]] = deque()  # when so many were noted; of which life
        self._unsafe: list[deque[tuple[int, int]]] = [deque() for _ in shards]  # up to which update, and the call
        self._strategy = STRATEGY
        self._taught: dict[int, bytes] = {}
        self._links: set[Link[Any]] = set()
        self._clients: dict[int, Link[Any]] = {}  # by session
        self._heres: dict[int, Here] = {}  # of clients that want notes, by session
        self._senders: dict[int, Link[Any]] = {}  # by batch, until it was taken
        self._askers: deque[Link[Any]] = deque()
        self._seen: dict[int, _Seen] = {}
        self._sweeper = Sweeper(self)
        self.begin(self._look_after())
        self.begin(self.ends.follow(lambda: set(waits_for()), lambda outcomes: self.tell(Ends(outcomes))))

    async def close(self) -> None:
        log.info("node %s has asked the store for %s rows", self.node, f"{self.store.rows:,}")
        for link in self._links:
            link.flush()
            link.abort()
        await super().close()

    def send(self, word: Any) -> None:
        if isinstance(word, CallStore):
            self._call(word)
        else:
            _HEARD[type(word)](self, word)

    # -- one life ------------------------------------------------------------------------------------------------------

    def _on_enrol(self, word: words.Enrol) -> None:
        if word.node == NOBODY:
            for shard in range(self.store.shard_count):
                self._begin_life(shard)
            self._close_links()
            self.begin(self._enrol())

    def _begin_life(self, shard: int) -> None:
        self._lives[shard] += 1
        self._under_way[shard].clear()
        self._unsafe[shard].clear()

    async def _enrol(self) -> None:
        node = await self.notes.new_number("node")
        _, _, strategy = await self.notes.look()
        self.node = node
        self.batches = Batches(node, True)
        self._strategy = strategy or STRATEGY
        options = self.store.options
        self.tell(words.Enrolled(node, options.lease_ns, self._strategy, options.shard_count))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: CallStore) -> None:
        under_way = self._under_way[call.shard]
        if call.token in under_way:
            return  # the store says it again by itself
        under_way.add(call.token)
        life = self._lives[call.shard]
        if self._failures_told > self._failures_noted:
            self._held.append((self._failures_told, life, call))
        else:
            self._carry_out(life, call)

    def _carry_out(self, life: int, call: CallStore) -> None:
        answers = self.call(call.shard, call.rows)
        answers.add_done_callback(partial(self._answered, life, call))

    def _answered(self, life: int, call: CallStore, answered: "asyncio.Future[list[AnswerType]]") -> None:
        error = None if answered.cancelled() else answered.exception()
        if answered.cancelled() or life != self._lives[call.shard]:
            return
        self._under_way[call.shard].discard(call.token)
        if error is None:
            answers = answered.result()
            self._unsafe[call.shard].append((self.store.position(call.shard), call.token))
            fine = answers.count(None) == len(answers)
            self.tell(CallFine(call.token) if fine else StoreAnswered(call.token, answers))
            self.on_safe(call.shard)  # what has changed nothing rests on what may be safe by now
            self._note(call, answers)
        elif isinstance(error, StoreChangedError):
            self.see_change()
        else:
            self.fail(error)

    def on_changed(self, shard: int) -> None:
        """Before anything that the new server answers. The node says again what was not safe."""
        self._begin_life(shard)
        self.tell(StoreChanged(shard))
        if shard == NOTES_SHARD:
            for function, pickled in self._taught.items():
                self.begin(self.notes.put(FUNCTIONS, (function, pickled)))

    def on_safe(self, shard: int) -> None:
        safe, unsafe = self.store.safe_position(shard), self._unsafe[shard]
        tokens: list[int] = []
        while unsafe and unsafe[0][0] <= safe:
            tokens.append(unsafe.popleft()[1])
        if tokens:
            self.tell(CallsSafe(shard, tuple(tokens)))

    def _note(self, call: CallStore, answers: list[AnswerType]) -> None:
        """What others should hear at once: they would find out by themselves, but later."""
        ends: dict[tuple[Link[Any], Seal | None], list[Outcome]] = {}
        here: list[Outcome] = []
        cache_of, node = self.store.cache_of, self.node
        session, link = NOBODY, None
        for row, answer in zip(call.rows, answers, strict=True):
            if type(row) is Finish:
                if row.error or not (answer is None or type(answer) is Committed):
                    continue
                if row.task >= FIRST_SPAWNED_ID:
                    here.append(Outcome(row.task, row.outputs))
                    continue
                if session != (whose := session_of(row.task)):
                    session, link = whose, self._clients.get(whose)
                if link is not None:
                    seal = seal_of(cache_of(row.task), row.task, node, row.outputs)
                    ends.setdefault((link, seal), []).append(Outcome(row.task, row.outputs))
            elif type(answer) is Leased and answer.members is not None:
                self.members = answer.members
        if here:
            self.tell(Ends(here))
        for (link, seal), outcomes in ends.items():
            link.send(Ends(outcomes) if seal is None else Sealed(outcomes, seal))

    # -- what else the node says ---------------------------------------------------------------------------------------

    def _on_keep_failure(self, word: KeepFailure) -> None:
        """Said before the end of that task is. Whoever reads of the end is to find why, so that waits for this."""
        if self._failures_told == self._failures_noted:
            self.begin(self._note_failures())
        self._failures.append((word.task, word.failure))
        self._failures_told += 1

    async def _note_failures(self) -> None:
        while self._failures:
            some, self._failures = self._failures, []
            await self.notes.put(FAILURES, *some)
            self._failures_noted += len(some)
            self._unclaimed += [task for task, _ in some if task >= FIRST_SPAWNED_ID]
            while self._held and self._held[0][0] <= self._failures_noted:
                _, life, call = self._held.popleft()
                if life == self._lives[call.shard]:
                    self._carry_out(life, call)

    async def _sweep_failures(self) -> None:
        """Of tasks that runs have created nobody says here that they are let go of."""
        noted, self._unclaimed = self._unclaimed, []
        records = await self.looking.records(noted)
        gone = {task for task, one in records.items() if one is None or (one.state in FINAL and not is_held(one))}
        self._unclaimed += [task for task in noted if task not in gone]
        self._sweep_at = max(FAILURES_MIN, 2 * len(self._unclaimed))
        await self.notes.drop(FAILURES, gone)

    def _on_ask_ends(self, word: words.AskEnds) -> None:
        self.begin(self._look_up_ends(word))

    async def _look_up_ends(self, word: words.AskEnds) -> None:
        """At once; what has not ended yet is followed anyway."""
        forgotten = await self.ends.forgotten(word.tasks) if word.have_ended else []
        outcomes = await self.ends.of(word.tasks, unknown_are_lost=False)
        if outcomes:
            self.tell(Ends(outcomes))
        if forgotten:
            self.tell(words.Forgotten(forgotten))

    def _on_learn(self, word: Learn) -> None:
        self._taught[word.function] = word.pickled
        self.begin(self.notes.put(FUNCTIONS, (word.function, word.pickled)))

    def _on_ask_function(self, word: words.AskFunction) -> None:
        self.begin(self._find_function(word.function))

    async def _find_function(self, function: int) -> None:
        """It may be on its way still."""
        while not self._is_closed:
            record = (await self.looking.records([function]))[function]
            if record is not None and is_function(record):
                self.tell(Learn(function, record.outputs[0][4]))
                return
            (pickled,) = await self.notes.get(FUNCTIONS, [function])
            if pickled:
                self.tell(Learn(function, pickled))
                return
            await asyncio.sleep(ASK_AGAIN_S)

    def _on_printed(self, word: words.Printed) -> None:
        link = self._clients.get(session_of(word.task))
        if link is not None:
            link.send(word)

    def _on_notes(self, word: words.Ran | words.Learnt) -> None:
        link = self._clients.get(word.session)
        if link is not None:
            link.send(word)

    def _ask_notes(self, here: Here) -> None:
        """Tell the node if the notes change that the client of a session wants."""
        if here == self._heres.get(here.session, Here(here.session)):
            return
        self._heres[here.session] = here
        if not here.runs and not here.decisions:
            del self._heres[here.session]
        self.tell(asked_by([(one.session, one.runs, one.decisions) for one in self._heres.values()]))

    def _on_counted(self, word: Counted) -> None:
        if self._askers:
            self._askers.popleft().send(word)

    def _on_taken(self, word: SubmissionTaken | CancelTaken) -> None:
        link = self._senders.pop(word.batch, None)
        if link is not None:
            link.send(word)
        elif isinstance(word, CancelTaken):
            self._sweeper.on_cancel_taken(word.batch)

    # -- clients -------------------------------------------------------------------------------------------------------

    def welcome(self, link: "Link[Any]") -> None:
        self._links.add(link)
        link.begin(TO_NODE, lambda said: self._on_client(link, said), lambda: self._forget(link))

    def _on_client(self, link: "Link[Any]", said: list[ToNode]) -> None:
        for word in said:
            if isinstance(word, Here):
                self._clients[word.session] = link
                self._ask_notes(word)
                continue
            if isinstance(word, Fresh):
                stamps, word = word.stamps, word.submission
                learn_stamps(self.store.cache_of, word.tasks, self.node, stamps)
            if isinstance(word, Submission | NewTasks | CancelOrder):
                self._senders[word.batch] = link
            elif isinstance(word, Count):
                self._askers.append(link)
            self.tell(word)

    def _forget(self, link: "Link[Any]") -> None:
        self._links.discard(link)
        for number in [number for number, known in self._clients.items() if known is link]:
            del self._clients[number]
            self._ask_notes(Here(number))
        for batch in [batch for batch, known in self._senders.items() if known is link]:
            del self._senders[batch]

    def _close_links(self) -> None:
        links, self._links = self._links, set()
        for link in links:
            link.close()
        self._clients.clear()
        self._heres.clear()
        self.tell(NO_NOTES)
        self._senders.clear()

    # -- now and then --------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        outage = None
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(LOOK_S)
            entries, seen, strategy = await self.notes.look()
            if self.node == NOBODY:
                continue
            if strategy and strategy != self._strategy:
                self._strategy = strategy
                self.tell(NewStrategy(strategy))
            now_s = time.monotonic()
            # If the store was away, or we ourselves, nobody else can be blamed.
            was_away = now_s - began_s > 2 * LOOK_S or outage is not self.store.server.outage
            outage = self.store.server.outage
            before = self._seen.keys()
            await self._look_at_clients(entries, seen, now_s, was_away)
            if before - entries.keys():
                await self._forget_functions(entries.keys())
            if len(self._unclaimed) >= self._sweep_at:
                await self._sweep_failures()
            if self.members.nodes[:1] == (self.node,):
                await self._sweeper.sweep([decode(one) for one in entries.values()], self._is_alive)

    async def _look_at_clients(
        self, entries: dict[int, bytes], seen: dict[int, bytes], now_s: float, was_away: bool
    ) -> None:
        """When a client is gone, it may not have told us of all that is ours."""
        known, self._seen = self._seen, {}
        is_gone = False
        for number, noted in entries.items():
            nonce = decode(noted).nonce
            one = self._seen[number] = known.get(number) or _Seen(nonce, now_s)
            count = seen.get(number, b"")
            if one.count != count or was_away:
                one.count, one.since_s, one.is_alive = count, now_s, True
            if one.nonce != nonce:
                one.nonce = nonce
                is_gone = True
            elif one.is_alive and now_s - one.since_s > self.patience_s:
                one.is_alive = False
                is_gone = is_gone or bool(nonce)
        if is_gone:
            await self._take_what_is_ours()

    async def _forget_functions(self, open_: Collection[int]) -> None:
        """Some session has ended. A failover may hide one for a while: what the node forgets it can ask for again, but
        what nobody else has must stay."""
        owners = {one: session_of(root_of(one, pickled)) for one, pickled in self._taught.items()}
        away = sorted({owner for owner in owners.values() if owner not in open_})
        ended = {owner for owner, note in zip(away, await self.notes.get(ENDED, away), strict=True) if note}
        self.tell(words.OpenSessions([*open_, *[owner for owner in away if owner not in ended]]))
        gone = [one for one, owner in owners.items() if owner in ended]
        for function in gone:
            del self._taught[function]
        await self.notes.drop(FUNCTIONS, gone)

    async def _take_what_is_ours(self) -> None:
        for shard in range(self.store.shard_count):
            life, node = self._lives[shard], self.node
            try:
                (answer,) = await self.call(shard, [Owned(node, 0, ALL)])
            except StoreChangedError:
                self.see_change()
                continue  # the node looks by itself
            if isinstance(answer, Estate) and answer.ready and life == self._lives[shard] and node == self.node:
                self.tell(Submission(CLIENT, self.batches(), answer.ready))

    def _is_alive(self, session: int) -> bool:
        one = self._seen.get(session)
        return one is None or one.is_alive


class _Seen:
    """A session's client, as it was last seen, and since when nothing was heard of it."""

    def __init__(self, nonce: bytes, now_s: float) -> None:
        self.nonce = nonce
        self.count = b""
        self.since_s = now_s
        self.is_alive = True


_HEARD: dict[type, Callable[[NodeDesk, Any], None]] = {
    words.Enrol: NodeDesk._on_enrol,
    KeepFailure: NodeDesk._on_keep_failure,
    words.AskEnds: NodeDesk._on_ask_ends,
    words.AskFunction: NodeDesk._on_ask_function,
    Learn: NodeDesk._on_learn,
    words.Printed: NodeDesk._on_printed,
    words.Ran: NodeDesk._on_notes,
    words.Learnt: NodeDesk._on_notes,
    Counted: NodeDesk._on_counted,
    CancelTaken: NodeDesk._on_taken,
    SubmissionTaken: NodeDesk._on_taken,
}
