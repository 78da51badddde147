"""The desk of a node: its calls to the store, ends that it tells to others, and what is looked after now and then.

The first node of the cluster sweeps sessions. Two nodes that both think that they are the first do no harm.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from daws.core.config import NodeConfig
from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered, StoreChanged
from daws.model.cluster import Members
from daws.model.session import session_of
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NOBODY
from daws.net.link import Link
from daws.runtime.cluster.direct.desk import STRATEGY, Desk
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.sweeping import Sweeper, is_sweepers
from daws.runtime.crew import TICK_NS
from daws.runtime.ports import NodePeer
from daws.store.memory.sessions import is_function
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.numbers import new_number
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import Seal, seal_of
from daws.wire.cluster import AskEnds, AskFunction, Ends, Enrol, Enrolled, Forgotten, OpenSessions
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, Submission, SubmissionTaken
from daws.wire.session import Sealed
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    AnswerType,
    Committed,
    Estate,
    Finish,
    Leased,
    ListSessions,
    Owned,
    SessionList,
    Watch,
)
from daws.wire.worker import Learn

LOOK_S = 0.5
ASK_AGAIN_S = 0.05
ALL = 1 << 40
log = logging.getLogger("daws.node")


class NodeDesk(Desk):
    def __init__(self, reach: Reach, store: ValkeyStore, peer: NodePeer) -> None:
        super().__init__(reach, store, peer.on_store)
        self.node = NOBODY
        self.members = Members(0, ())
        self._peer = peer
        self._sessions: dict[int, bytes] = {}  # those that have a client, with its nonce
        self._open: set[int] = set()  # all that there are
        options = store.options
        config = NodeConfig(
            shard_count=store.shard_count, lease_ns=options.lease_ns, tick_ns_max=TICK_NS, replicated=True
        )
        self._sweeper = Sweeper(config, self.calls.carry_out, peer.tell_node)
        self.begin(self._look_after())
        self.begin(self.ends.follow(lambda: set(peer.waits_for()), lambda outcomes: self.tell(Ends(outcomes))))

    async def close(self) -> None:
        log.info("node %s has asked the store for %s rows", self.node, f"{self.store.rows:,}")
        await super().close()

    def send(self, word: Any) -> None:
        if isinstance(word, CallStore):
            self.calls.carry_out(word)
        else:
            _HEARD[type(word)](self, word)

    # -- one life ------------------------------------------------------------------------------------------------------

    def _on_enrol(self, word: Enrol) -> None:
        if word.node == NOBODY:
            self.calls.begin_life()
            self._sweeper.begin_anew()
            self.begin(self._enrol())

    async def _enrol(self) -> None:
        node = await new_number(self.store, "node")
        with suppress(StoreChangedError):
            (answer,) = await self.calls.rows(MEMBERSHIP_SHARD, [Watch(0)])
            if isinstance(answer, Leased) and answer.members is not None:
                self.members = answer.members
        self.node = node
        self._batches = time.time_ns()  # higher than all that this process has used before
        options = self.store.options
        strategy = self.members.strategy or STRATEGY
        self.tell(Enrolled(node, options.lease_ns, strategy, options.shard_count))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def tell(self, *said: Any) -> None:
        """Tell the node, or the sweeper, which makes calls as well."""
        for word in said:
            if isinstance(word, StoreAnswered | CallFine) and is_sweepers(word.token):
                self._sweeper.hear(word)
                continue
            if isinstance(word, CallsSafe):
                own = [token for token in word.tokens if not is_sweepers(token)]
                if len(own) < len(word.tokens):
                    self._sweeper.hear(word)
                    word = CallsSafe(word.shard, tuple(own))
                if not own:
                    continue
            elif isinstance(word, StoreChanged):
                self._sweeper.hear(word)
            super().tell(word)

    def on_answered(self, call: CallStore, answers: list[AnswerType]) -> None:
        """Tell others at once of ends that they would find out by themselves, but later."""
        if is_sweepers(call.token):
            return
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
                    session, link = whose, self._peer.client_of(whose)
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

    def _on_ask_ends(self, word: AskEnds) -> None:
        self.begin(self._look_up_ends(word))

    async def _look_up_ends(self, word: AskEnds) -> None:
        """Tell at once how those have ended that have. The others are followed anyway."""
        forgotten = await self.ends.forgotten(word.tasks) if word.have_ended else []
        outcomes = await self.ends.of(word.tasks, unknown_are_lost=False)
        if outcomes:
            self.tell(Ends(outcomes))
        if forgotten:
            self.tell(Forgotten(forgotten))

    def _on_ask_function(self, word: AskFunction) -> None:
        self.begin(self._find_function(word.function))

    async def _find_function(self, function: int) -> None:
        """Ask until the function is there: it may be on its way."""
        while not self._is_closed:
            record = (await self.looking.records([function]))[function]
            if record is not None and is_function(record):
                self.tell(Learn(function, record.outputs[0][4]))
                return
            await asyncio.sleep(ASK_AGAIN_S)

    def _on_taken(self, word: SubmissionTaken | CancelTaken) -> None:
        self._sweeper.hear(word)

    # -- now and then --------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self.node == NOBODY:
                continue
            await self._look_at_sessions()
            if self.members.nodes[:1] == (self.node,):
                self._sweeper.look(self.members)

    async def _look_at_sessions(self) -> None:
        """When a client is gone, or has left, it may not have told us of all that is ours."""
        try:
            (answer,) = await self.calls.rows(MEMBERSHIP_SHARD, [ListSessions()])
        except StoreChangedError:
            self.calls.see_change()
            return
        if not isinstance(answer, SessionList):
            return
        before = self._sessions
        self._sessions = {one.number: one.nonce for one in answer.sessions if one.number in answer.attached}
        gone = [number for number, nonce in before.items() if self._sessions.get(number) != nonce]
        ended, self._open = self._open, {one.number for one in answer.sessions}
        ended -= self._open
        if gone:
            await self._take_what_is_ours()
        if ended:  # a failover may hide a session for a while: its functions can be asked for again
            self.tell(OpenSessions([*self._open]))

    async def _take_what_is_ours(self) -> None:
        for shard in range(self.store.shard_count):
            life, node = self.calls.life_of(shard), self.node
            try:
                (answer,) = await self.calls.rows(shard, [Owned(node, 0, ALL)])
            except StoreChangedError:
                self.calls.see_change()
                continue  # the node looks by itself
            if isinstance(answer, Estate) and answer.ready and life == self.calls.life_of(shard) and node == self.node:
                self._batches += 1
                self.tell(Submission(CLIENT, self._batches, answer.ready))


_HEARD: dict[type, Callable[[NodeDesk, Any], None]] = {
    Enrol: NodeDesk._on_enrol,
    AskEnds: NodeDesk._on_ask_ends,
    AskFunction: NodeDesk._on_ask_function,
    CancelTaken: NodeDesk._on_taken,
    SubmissionTaken: NodeDesk._on_taken,
}
