"""The store in a process of its own: nodes and the client call it through sockets, and the client is told of every end.

All that is known of a task's end travels with it (small values, the exception), so that the client need not ask again.
"""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from socket import socket

from daws.core.effects import CallStore
from daws.core.events import CallFine, StoreAnswered
from daws.model.task import FIRST_SPAWNED_ID, NodeId
from daws.runtime.connection import Connection, accept_on, listen
from daws.runtime.outcomes import Outcomes, new_store
from daws.runtime.ports import Outcome
from daws.runtime.talk import TO_STORE, BeStore, Ends, Hello, ToStore, Up, store_path


class StoreServer:
    def __init__(self, loop: AbstractEventLoop, begin: BeStore, client: socket) -> None:
        self.store = new_store()
        self.store.join(begin.members.infos)
        self.outcomes = Outcomes(self.store)
        self._loop = loop
        self._nodes: set[Connection[ToStore]] = set()
        self._by_node: dict[NodeId, Connection[ToStore]] = {}
        self._client = self._serve(client, "the client", loop.stop)
        accept_on(loop, listen(store_path(begin.run)), self._accept)
        self._client.say(Up())

    def _accept(self, sock: socket) -> None:
        node: Connection[ToStore] = self._serve(sock, "a node", lambda: self._nodes.discard(node))
        self._nodes.add(node)

    def _serve(self, sock: socket, name: str, lost: Callable[[], None]) -> Connection[ToStore]:
        def received(messages: list[ToStore]) -> None:
            self._answer(caller, messages)

        caller: Connection[ToStore] = Connection(self._loop, sock, TO_STORE, received, lost, name)
        return caller

    def _answer(self, caller: Connection[ToStore], messages: list[ToStore]) -> None:
        now_ns = time.monotonic_ns()
        for message in messages:
            if isinstance(message, CallStore):
                answers = self.store.apply(message.shard, message.rows, now_ns)
                fine = answers.count(None) == len(answers)
                caller.say(CallFine(message.token) if fine else StoreAnswered(message.token, answers))
            elif isinstance(message, Hello):
                self._by_node[message.node] = caller
            else:
                self.outcomes.failures[message.task] = message.failure
        if self.outcomes.log:
            self._tell(self.outcomes.news())

    def _tell(self, outcomes: list[Outcome]) -> None:
        """The client hears of its own tasks, and nodes of those that were created there."""
        own = [one for one in outcomes if one.task < FIRST_SPAWNED_ID]
        if own:
            self._client.say(Ends(own))
        if len(own) < len(outcomes):
            for one in outcomes:
                node = self._by_node.get(self.outcomes.creator_of(one.task)) if one.task >= FIRST_SPAWNED_ID else None
                if node is not None:
                    node.say(Ends([one]))
