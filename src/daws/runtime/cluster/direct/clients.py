"""The desk of a client or a tool: its calls, and what it asks beside them."""

import asyncio
from contextlib import suppress
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import NewStrategy
from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.runtime.cluster.direct.desk import STRATEGY, Desk
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.numbers import new_number
from daws.store.valkey.told import forget_unended, stamps_of
from daws.strategy import format_strategy, parse_strategy
from daws.wire.cluster import AskCluster, AskEnds, ClusterIs, Ends
from daws.wire.messages import Submission
from daws.wire.session import Fresh
from daws.wire.store import MEMBERSHIP_SHARD, REFUSED, AnswerType, Leased, Release, UseStrategy, Watch

LOOK_S = 0.05


class ClientDesk(Desk):
    def send(self, word: Any) -> None:
        if isinstance(word, CallStore):
            self._call(word)
        elif isinstance(word, AskCluster):
            self.begin(self._tell_cluster())
        elif isinstance(word, AskEnds):
            self.begin(self._tell_ends(word.tasks))
        elif isinstance(word, NewStrategy):
            self.begin(self._use_strategy(format_strategy(parse_strategy(word.text))))

    def dress(self, node: NodeId, message: Any) -> Any:
        """New tasks travel with the stamps of their cells, which their owner need not fetch then."""
        if isinstance(message, Submission):
            return Fresh(message, stamps_of(self.store.cache_of, message.tasks, node))
        return message

    def _call(self, call: CallStore) -> None:
        released = [row.task for row in call.rows if type(row) is Release]
        if released:
            forget_unended(self.store.cache_of, released)
        self.calls.carry_out(call)

    async def _tell_cluster(self) -> None:
        options = self.store.options
        members, number = await self._members(), await new_number(self.store, "session")
        self.tell(ClusterIs(options.lease_ns, members.strategy or STRATEGY, options.shard_count, members, number))

    async def _use_strategy(self, text: str) -> None:
        answer: AnswerType = REFUSED
        while answer == REFUSED:
            members = await self._members()
            with suppress(StoreChangedError):
                (answer,) = await self.calls.rows(MEMBERSHIP_SHARD, [UseStrategy(text, members.version)])

    async def _members(self) -> Members:
        while True:
            try:
                (answer,) = await self.calls.rows(MEMBERSHIP_SHARD, [Watch(0)])
            except StoreChangedError:
                self.calls.see_change()
                await asyncio.sleep(LOOK_S)
                continue
            return answer.members if isinstance(answer, Leased) and answer.members is not None else Members(0, ())

    async def _tell_ends(self, tasks: list[int]) -> None:
        self.tell(Ends(await self.ends.of(tasks, unknown_are_lost=True)))
