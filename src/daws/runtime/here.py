"""Store and peers of the only node of a cluster, both in its own process: answers come at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, EventType, ObjectsFetched, StoreAnswered
from daws.model.task import Input, NodeId, ObjectTransfer
from daws.runtime.blame import outcomes_of
from daws.runtime.crew import COPIES_MAX, LEASE_NS
from daws.runtime.ports import ListenerHere
from daws.store.memory import MemoryStore
from daws.store.memory.commits import CommitReader
from daws.wire.ends import Outcome
from daws.wire.messages import MessageType
from daws.wire.store import small_output

NODE = 0
"""The only node of a cluster whose node is in the client's process."""
RETIRED_MAX = 1 << 14
"""How many tasks that are not needed any more the store of a live session remembers. On one machine messages are not
lost and come soon, so there are no messages about older tasks."""
NO_NEWS: list[Outcome] = []
TOGETHER_MIN = 8
"""Fewer ends are told one by one: columns would take longer."""


def new_store() -> MemoryStore:
    """The store of a live session."""
    return MemoryStore(lease_ns=LEASE_NS, replicas_max=COPIES_MAX, direct=True, retired_max=RETIRED_MAX)


def ended_here(task: int, made: tuple[Input, ...] | bytes) -> Outcome:
    """The outcome of a task that ended well on the only node, from what `ListenerHere.on_done` is told."""
    return Outcome(task, made if isinstance(made, tuple) else small_output(task, NODE, made))


class StoreHere:
    """A store of one shard. Ends that were passed on are removed from its log, which has no other reader: a session may
    go on for days."""

    def __init__(self, store: MemoryStore, listener: ListenerHere) -> None:
        self.store = store
        self.listener = listener
        self.commits = CommitReader(store)
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
        commits = self.commits
        if not commits.rows:
            return NO_NEWS
        if len(commits.rows) >= TOGETHER_MIN and not self.nests and (done := commits.take_plain()) is not None:
            self.listener.on_done(*done)
            return NO_NEWS
        news = outcomes_of(commits.take(), commits.record_of)
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
