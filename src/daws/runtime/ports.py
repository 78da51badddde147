"""The ports of a node's driver: the store, the other nodes and the client, in the same process or behind sockets."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from daws.core.effects import CallStore
from daws.core.events import EventType
from daws.model.task import Input, NodeId, ObjectTransfer
from daws.wire.ends import Outcome
from daws.wire.messages import MessageType
from daws.wire.notes import FactType, News


class PlainTask(msgspec.Struct, frozen=True, gc=False):
    """A new task that has only a function and its arguments. (A tuple would do, but the garbage collector looks at
    tuples.)"""

    task: int
    kind: int
    payload: bytes


class Listener(Protocol):
    """The receiver of all that a client is told of its tasks. Its methods are called on the thread of the loop."""

    def on_ended(self, outcomes: list[Outcome]) -> None: ...

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        """Receive output of a task. `task` is -1 if the task is not known any more."""
        ...

    def on_ran(self, news: News) -> None: ...

    def on_fact(self, fact: FactType) -> None: ...

    def on_broken(self, error: BaseException) -> None: ...


class ListenerHere(Listener, Protocol):
    """A listener in the process of the node and the store."""

    def on_done(self, tasks: list[int], made: list[tuple[Input, ...] | bytes]) -> None:
        """The same as `on_ended` for many tasks that went well, column by column: what each has made, or the value of
        its only object if that is small."""
        ...


class StorePort(Protocol):
    """The store as one node calls it. Answers that are known at once go into `events`; the others come later. The
    events in `deferred` have no effects: the node receives them with its next events."""

    deferred: list[EventType]

    def call(self, effect: CallStore, now_ns: int, events: list[EventType]) -> None: ...

    def settle(self) -> list[Outcome]:
        """End a turn: all of its calls have been made. Return the tasks that have ended by them, if that can be known
        here."""
        ...


class StoreLink(Protocol):
    """A cluster's store, as a node, a client or a tool talks to it, with the messages of `daws.wire.cluster`.
    At the other end is the store's server, or a desk where the store is reached directly."""

    def send(self, word: Any) -> None: ...

    def dress(self, node: NodeId, message: Any) -> Any:
        """The message to send to a node in the place of this one: what it should know of the store besides."""
        ...

    def learn(self, node: NodeId, word: Any) -> None:
        """Take what a node says of the store (`Sealed`), or a client beside its new tasks (`Fresh`)."""
        ...

    async def close(self) -> None:
        """Nothing is left on the loop, and what was not sent yet never is."""
        ...


class StorePeer(Protocol):
    """A process that is connected to a cluster's store. Its methods are called on the thread of the loop."""

    def on_store(self, said: list[Any]) -> None: ...


class NodePeer(StorePeer, Protocol):
    """A node that calls a store directly, and does for others what a server of a store would do."""

    def waits_for(self) -> list[int]:
        """The tasks whose end it has yet to hear of."""
        ...

    def tell_node(self, node: NodeId, message: MessageType) -> None:
        """Send a message to another node, or to this one."""
        ...

    def client_of(self, session: int) -> Any:
        """The link to the client of a session, or None if there is none."""
        ...


class PeersPort(Protocol):
    """All other nodes, and the client."""

    def send(self, to: NodeId, message: MessageType, events: list[EventType]) -> None: ...

    def fetch(self, wanted: Sequence[ObjectTransfer], events: list[EventType]) -> None:
        """Answered by ObjectsFetched, once or in parts."""
        ...
