"""The desk of a node: its calls to the store, ends that it tells to others, and what is looked after now and then.

The first node of the cluster sweeps sessions. Two nodes that both think that they are the first do no harm.
"""

import asyncio
import logging
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered, StoreChanged
from daws.model.cluster import Members
from daws.model.task import NOBODY
from daws.runtime.cluster.direct.desk import Desk
from daws.runtime.cluster.direct.ends import LogEnds
from daws.runtime.cluster.front import Receiver
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.sweeping import Sweeper, is_sweepers
from daws.runtime.crew import session_config
from daws.runtime.ports import NodePeer
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import Seal, seal_of
from daws.wire.cluster import AskFunction, Ends, Enrol
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, SubmissionTaken
from daws.wire.session import Sealed
from daws.wire.store import AnswerType, Committed, Finish, Leased

LOOK_S = 0.5
ASK_AGAIN_S = 0.05
log = logging.getLogger("daws.node")


class NodeDesk(Desk):
    def __init__(self, reach: Reach, store: ValkeyStore, peer: NodePeer) -> None:
        super().__init__(reach, store, peer.on_store, is_client=False)
        self._peer = peer
        self._members = Members(0, ())
        self._clients: dict[int, bytes] = {}  # the nonces of clients, by session
        self._is_asking = False  # for functions
        self.ends = LogEnds(self, store.shard_count)
        config = session_config(store.options.lease_ns, store.shard_count, True)
        self._sweeper = Sweeper(config, self.calls.carry_out, peer.tell_node)
        self.begin(self._look_after())
        self.begin(self.ends.follow(lambda: set(peer.waits_for()), lambda outcomes: self.tell(Ends(outcomes))))

    async def close(self) -> None:
        log.info("node %s has asked the store for %s rows", self.user.node, f"{self.store.rows:,}")
        await super().close()

    def send(self, word: Any) -> None:
        if isinstance(word, SubmissionTaken | CancelTaken):
            self._sweeper.hear(word)
            return
        if isinstance(word, Enrol):
            if word.node != NOBODY:
                return  # this process keeps its desk, and so has missed nothing
            self.calls.begin_life()
            self._sweeper.begin_anew()
        super().send(word)

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
                self.ends.begin_anew()
                self._sweeper.hear(word)
            super().tell(word)

    # -- ends of tasks -------------------------------------------------------------------------------------------------

    def on_answered(self, call: CallStore, answers: list[AnswerType]) -> None:
        """Tell others at once of ends that they would find out by themselves, but later. Of a failure the store says
        more."""
        if is_sweepers(call.token):
            return
        ended: list[Outcome] = []
        for row, answer in zip(call.rows, answers, strict=True):
            if type(row) is Finish:
                if not row.error and (answer is None or type(answer) is Committed):
                    ended.append(Outcome(row.task, row.outputs))
            elif type(answer) is Leased and answer.members is not None:
                self._members = answer.members
        if ended:
            self.tell_ends(ended)

    def client_of(self, session: int) -> Receiver | None:
        link: Receiver | None = self._peer.client_of(session)
        return link

    def creator_of(self, task: int) -> Receiver | None:
        return self.user  # a run here may wait for it; other nodes read the logs

    def send_ends(self, to: Any, outcomes: list[Outcome]) -> None:
        """Send a client what its caller can cache besides."""
        if to is self.user:
            super().send_ends(to, outcomes)
            return
        sealed: dict[Seal | None, list[Outcome]] = {}
        for one in outcomes:
            seal = seal_of(self.store.cache_of(one.task), one.task, self.user.node, one.outputs)
            sealed.setdefault(seal, []).append(one)
        for seal, some in sealed.items():
            to.send(Ends(some) if seal is None else Sealed(some, seal))

    # -- functions -----------------------------------------------------------------------------------------------------

    async def _on_ask_function(self, asker: Any, word: AskFunction) -> None:
        """Ask until all functions are there: they may be on their way."""
        await super()._on_ask_function(asker, word)
        if self._is_asking:
            return
        self._is_asking = True
        while self._wanted:
            await asyncio.sleep(ASK_AGAIN_S)
            await self.find_functions([*self._wanted])
        self._is_asking = False

    # -- now and then --------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self.user.node == NOBODY:
                continue
            answer = await self._look_at_sessions()
            if self._members.nodes[:1] == (self.user.node,):
                self._sweeper.look(self._members, answer)
            before = self._clients
            self._clients = {one.number: one.nonce for one in answer.sessions if one.number in answer.attached}
            if any(self._clients.get(number) != nonce for number, nonce in before.items()):
                await self.tell_owned(self.user)  # a client that is gone may not have told us of all that is ours
