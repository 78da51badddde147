"""How the processes of a cluster reach each other: one place that knows keys and names."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from socket import create_connection, socket
from typing import Any, TypeVar

from msgspec import msgpack

from daws.model.errors import UnavailableError
from daws.net.address import Unix, parse_address
from daws.net.config import ClusterConfig
from daws.net.door import Door, address_of, dial, listen, serve
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.link import Link

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
        node: int = 0,
    ) -> Link[T]:
        """UnavailableError if nobody is there, or not who should be."""
        return await dial(address, self.keys, self._hello(node), decoder, received, lost)

    async def serve(self, bind: str, accepted: Callable[[Link[Any]], None], node: int = 0) -> Door:
        return await serve(bind, self.keys, self._hello(node), accepted)

    def _hello(self, node: int) -> Hello:
        return Hello(self.config.name, self.role, node)

    # -- streams for objects: blocking, each in a thread of its own ----------------------------------------------------

    def listen_stream(self, bind: str) -> socket:
        return listen(bind, self.keys)

    def address_of(self, sock: socket) -> str:
        return address_of(sock)

    def welcome_stream(self, sock: socket, patience_s: float) -> socket:
        """Whoever has connected, once it has shown its keys."""
        sock.settimeout(patience_s)
        return self.keys.server.wrap_socket(sock, server_side=True)

    def open_stream(self, address: str, patience_s: float) -> socket:
        """OSError if nobody answers within so many seconds, now or later."""
        where = parse_address(address)
        if isinstance(where, Unix):
            raise UnavailableError(f"{address}: objects travel by TCP", retry=False)
        sock = create_connection(where, patience_s)
        try:
            return self.keys.client.wrap_socket(sock)
        except BaseException:
            sock.close()
            raise
