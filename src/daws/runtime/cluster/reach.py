"""How the processes of a cluster reach each other: one place that knows keys and names."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Any, TypeVar

from msgspec import msgpack

from daws.model.errors import ClusterError, UnavailableError
from daws.model.task import NodeId
from daws.net.config import EMBEDDED, ClusterConfig
from daws.net.door import Door, dial, serve
from daws.net.handshake import MESSAGES, OBJECTS, Hello
from daws.net.keys import Keys
from daws.net.link import Link
from daws.net.stream import StreamDoor, connect
from daws.runtime.transfer import ObjectGiver

SILENT_S = 15.0
"""Somebody who promised an object and says nothing for so long does not have it."""
T = TypeVar("T")
TURNS_TO_END = 4
"""Of the loop, after which a transport that was aborted is gone."""
KEYS_OF = {"node": "node", "store": "node", "client": "client"}


async def hang_up(*links: Link[Any]) -> None:
    """At the end of a loop: nothing is left on it, and what was not sent yet never is."""
    for link in links:
        link.abort()
    for _ in range(TURNS_TO_END):
        await asyncio.sleep(0)


class Reach:
    """`folder` is the cluster's, `role` what this process is there: node, store or client."""

    def __init__(self, folder: str | Path, role: str) -> None:
        self.folder = Path(folder)
        self.role = role
        self.config = ClusterConfig.load(folder)
        if self.config.store != EMBEDDED:
            raise ClusterError(f"{folder}: store = {self.config.store!r}: nodes can only use {EMBEDDED!r} so far")
        self.keys = Keys(folder, KEYS_OF[role])

    @property
    def store_address(self) -> str:
        host = self.config.hosts[0]
        return f"[{host}]:{self.config.port}" if ":" in host else f"{host}:{self.config.port}"

    @property
    def lease_ns(self) -> int:
        return int(self.config.lease_s * 1e9)

    async def dial(
        self,
        address: str,
        decoder: "msgpack.Decoder[list[T]]",
        received: Callable[[list[T]], None],
        lost: Callable[[], None],
    ) -> Link[T]:
        """UnavailableError if nobody is there, or not who should be."""
        return await dial(address, self.keys, self.hello(), decoder, received, lost)

    async def serve(self, bind: str, accepted: Callable[[Link[Any]], None], node: NodeId = 0) -> Door:
        return await serve(bind, self.keys, self.hello(node), accepted)

    def open_stream(self, address: str, node: NodeId) -> socket:
        """A blocking stream for objects to this node; OSError if it does not answer, now or later."""
        try:
            sock = connect(address, self.keys, self.hello(purpose=OBJECTS), node=node)
        except UnavailableError as error:
            raise ConnectionError(str(error)) from error
        sock.settimeout(SILENT_S)
        return sock

    def serve_streams(self, bind: str, giver: ObjectGiver, node: NodeId) -> StreamDoor:
        """Each on a thread of its own."""
        return StreamDoor(bind, self.keys, self.hello(node, OBJECTS), lambda sock, peer: giver.serve(sock))

    def hello(self, node: NodeId = 0, purpose: str = MESSAGES) -> Hello:
        return Hello(self.config.name, self.role, node, purpose)
