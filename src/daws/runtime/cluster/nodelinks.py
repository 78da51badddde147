"""The links of a client to the nodes of its cluster: each node knows whose client this is, and is told and asked."""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.net.links import Links
from daws.runtime.cluster.questions import Questions
from daws.runtime.cluster.reach import Reach
from daws.wire.session import TO_CLIENT, Counted, Here, ToClient

AGAIN_S = 0.5
"""A node whose link was lost is told after so long whose client this is."""
log = logging.getLogger("daws.client")


class NodeLinks:
    """All methods belong to the thread of the loop. `received` is given what nodes say, except answers to questions."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, reach: Reach, received: Callable[[NodeId, list[ToClient]], None]
    ) -> None:
        self.members = Members(0, ())
        self._loop = loop
        self._reach = reach
        self._received = received
        self._here: Here | None = None
        self._unreachable: set[NodeId] = set()
        self._links: Links[ToClient] = Links(
            reach.keys,
            reach.hello(),
            TO_CLIENT,
            self._address,
            self._on_node,
            self._on_undelivered,
            self._on_lost,
            reach.config.idle_s,
        )
        self._questions = Questions(loop, self._links.send)
        self._stay_known()

    @property
    def count(self) -> int:
        """How many links are open."""
        return self._links.count

    def send(self, node: NodeId, message: Any) -> None:
        self._links.send(node, message)

    def introduce(self, here: Here) -> None:
        """Say to all nodes, and to those that come, whose client this is: output of its tasks is sent here."""
        self._here = here
        self._tell(self.members.nodes)

    def update(self, members: Members) -> None:
        """Use these members from now on."""
        before, self.members = self.members, members
        for node in set(before.nodes).difference(members.nodes):
            self._links.forget(node)
            self._questions.without(node)
            if node in self._unreachable:
                self._unreachable.discard(node)
                log.log(self._reach.loss_level, "node %s is gone; its tasks run elsewhere", node)
        self._tell([node for node in members.nodes if node not in before])

    def ask(self, asked: "Future[list[Counted]]") -> None:
        """Ask all nodes what they have done, and which tasks their workers have."""
        self._questions.ask(self.members.nodes, asked)

    def abort(self) -> None:
        self._links.abort()

    def _address(self, node: NodeId) -> str | None:
        info = self.members.info(node)
        return info.addresses[0] if info is not None and info.addresses else None

    def _tell(self, nodes: Collection[NodeId]) -> None:
        for node in nodes if self._here is not None else ():
            self._links.send(node, self._here)

    def _stay_known(self) -> None:
        """Tell all nodes now and then, so that links are not closed because they are idle."""
        self._tell(self.members.nodes)
        self._loop.call_later(self._reach.config.idle_s / 2, self._stay_known)

    def _on_lost(self, node: NodeId) -> None:
        self._loop.call_later(AGAIN_S, self._tell_again, node)

    def _tell_again(self, node: NodeId) -> None:
        if node in self.members:
            self._tell((node,))

    def _on_undelivered(self, node: NodeId, messages: list[Any], why: str) -> None:
        """Name a node that the store sees and this client cannot reach. The machine sends again all that matters."""
        if node in self.members and node not in self._unreachable:
            self._unreachable.add(node)
            log.log(self._reach.loss_level, "node %s cannot be reached: %s; trying again", node, why)

    def _on_node(self, node: NodeId, said: list[ToClient]) -> None:
        self._unreachable.discard(node)
        for word in said:
            if isinstance(word, Counted):
                self._received(node, said[: said.index(word)])  # an answer comes after what was said before
                said = said[said.index(word) + 1 :]
                self._questions.answered(node, word)
        self._received(node, said)
