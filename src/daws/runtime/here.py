"""Store and peers of the only node of a cluster, both in its own process: answers come at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, EventType, ObjectsFetched, StoreAnswered
from daws.model.task import NodeId, ObjectTransfer
from daws.runtime.outcomes import Outcomes
from daws.runtime.ports import DoneListener
from daws.store.memory import MemoryStore
from daws.wire.ends import Outcome
from daws.wire.messages import MessageType

NO_NEWS: list[Outcome] = []
TOGETHER_MIN = 8
"""Fewer ends are told one by one: columns would take longer."""


class StoreHere:
    def __init__(self, store: MemoryStore, listener: DoneListener) -> None:
        self.store = store
        self.listener = listener
        self.outcomes = Outcomes(store)
        self.deferred: list[EventType] = []
        self.nests: Mapping[int, Any] = {}  # runs of the node that want to hear of ends as well

    def call(self, effect: CallStore, now_ns: int, events: list[EventType]) -> None:
        answers = self.store.apply(effect.shard, effect.rows, now_ns)
        if answers.count(None) < len(answers):
            events.append(StoreAnswered(effect.token, answers))
        elif effect.hopes:
            events.append(CallFine(effect.token))
        else:
            self.deferred.append(CallFine(effect.token))

    def settle(self) -> list[Outcome]:
        outcomes = self.outcomes
        if not outcomes.log:
            return NO_NEWS
        if len(outcomes.log) >= TOGETHER_MIN and not self.nests and (done := outcomes.done()) is not None:
            self.listener.on_done(*done)
            return NO_NEWS
        news = outcomes.news()
        self.listener.on_ended(news)
        return news


class NobodyElse:
    """The peers of the only node, whose client is in the same process and needs no receipts."""

    def __init__(self, node: NodeId) -> None:
        self.node = node

    def send(self, to: NodeId, message: MessageType, events: list[EventType]) -> None:
        if to == self.node:
            events.append(message)

    def fetch(self, wanted: Sequence[ObjectTransfer], events: list[EventType]) -> None:
        events.append(ObjectsFetched((), tuple(wanted)))
