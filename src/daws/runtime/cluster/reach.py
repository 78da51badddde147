"""How the processes of a cluster reach each other: one place that knows keys and names."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from errno import EADDRINUSE
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import msgpack

from daws.model.errors import ClusterError, PeerError, UnavailableError
from daws.model.task import NodeId
from daws.net.address import LOOPBACK, Tcp, host_towards, parse_address
from daws.net.config import EMBEDDED, ClusterConfig, shown
from daws.net.door import Door, dial
from daws.net.handshake import MESSAGES, OBJECTS, Hello
from daws.net.keys import Keys, check_time
from daws.net.link import Link
from daws.net.listening import ListeningSocket
from daws.net.stream import StreamDoor, connect
from daws.runtime.objects import ObjectGiver

if TYPE_CHECKING:
    from daws.store.valkey.server import Address

PASSWORD = "DAWS_STORE_PASSWORD"
SILENT_S = 15.0
"""Somebody who promised an object and says nothing for so long does not have it."""
T = TypeVar("T")
TURNS_TO_END = 4
"""Turns of the loop after which an aborted transport is gone."""


async def close_links(*links: Link[Any]) -> None:
    """Abort connections at the end of a loop, so that nothing is left on it. Messages that were not sent yet are
    dropped."""
    for link in links:
        link.abort()
    for _ in range(TURNS_TO_END):
        await asyncio.sleep(0)


class Reach:
    """How a process of a cluster reaches the others. `folder` is the cluster's; `role` is node, store or client."""

    keys: Keys | None
    loss_level = logging.WARNING
    """How a lost link to the store is logged."""

    def __init__(self, folder: str | Path, role: str) -> None:
        self.folder = Path(folder)
        self.role = role
        self.config = ClusterConfig.load(folder)
        self.keys = Keys(folder, "client" if role == "client" else "node")
        check_time(folder)  # other processes would close the connection
        if not self.is_embedded:
            self.server_address()  # raises an error at once if it is wrong

    @property
    def is_embedded(self) -> bool:
        return self.config.store == EMBEDDED

    @property
    def store_where(self) -> str:
        """The address of the store, as shown to people. It contains no secret."""
        return self.store_address if self.is_embedded else ", ".join(map(shown, self.config.store_urls))

    def server_address(self) -> "Address":
        """The address of a store that is reached directly."""
        from daws.store.valkey.server import Address  # needs an extra

        config = self.config
        names = (config.store_ca, config.store_cert, config.store_key)
        ca_file, cert_file, key_file = [str(self.folder / one) if one else "" for one in names]
        password = os.environ.get(PASSWORD, "")
        return Address(config.store_urls, config.name, ca_file, cert_file, key_file, password)

    @property
    def store_address(self) -> str:
        return str(Tcp(self.config.hosts[0], self.config.port))

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
        """Connect to an address. Raise UnavailableError if no process answers, or a wrong one."""
        return await dial(address, self.keys, self.hello(), lambda link: link.begin(decoder, received, lost))

    async def serve(self, bind: str, accepted: Callable[[Link[Any]], None], node: NodeId = 0) -> Door:
        return Door(self._listen(bind), self.hello(node), accepted)

    def is_final(self, error: UnavailableError, was_connected: bool) -> bool:
        """Whether no retry can help to reach the store.

        A process that was connected before knows that its address and keys are right: another program may have taken
        the port of the store for a while. Only a member of the cluster that refuses us (a wrong version, a wrong
        cluster), or keys of our own that are too old, end it.
        """
        if error.retry or not was_connected:
            return not error.retry
        if isinstance(error.__cause__, PeerError):
            return True
        try:
            check_time(self.folder)
        except ClusterError:
            return True
        return False

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
        return StreamDoor(self._listen(bind), self.hello(node, OBJECTS), lambda sock, peer: giver.serve(sock))

    def _listen(self, bind: str) -> ListeningSocket:
        """Listen at an address, at the first free one of `node_ports` if it has no port and there are such ports."""
        where = parse_address(bind)
        if not (isinstance(where, Tcp) and not where.port and self.config.node_ports[1]):
            return ListeningSocket(bind, self.keys)
        for one in self.config.binds(where.host):
            try:
                return ListeningSocket(one, self.keys)
            except UnavailableError as error:
                if getattr(error.__cause__, "errno", None) != EADDRINUSE:
                    raise
        first, last = self.config.node_ports
        raise UnavailableError(
            f"no port from {first} to {last} is free at {bind.rpartition(':')[0]}: a node needs two; "
            "widen node_ports in cluster.toml",
            False,
        )

    def host_for_others(self) -> str:
        """The address of this machine at which others reach it: the one by which it reaches the store."""
        urls = self.config.store_urls
        if not urls:
            return host_towards(self.config.hosts[0])
        hosts = [urlsplit(url).hostname for url in urls]
        return host_towards(hosts[0] or LOOPBACK)  # a unix socket has none

    def hello(self, node: NodeId = 0, purpose: str = MESSAGES) -> Hello:
        return Hello(self.config.name, self.role, node, purpose)


class PrivateReach(Reach):
    """The processes of a private cluster: unix sockets in `run`, a folder of this user alone, and no keys."""

    loss_level = logging.INFO

    def __init__(self, run: str, role: str) -> None:
        self.folder = Path(run)
        self.role = role
        self.config = ClusterConfig(name="private")
        self.keys = None

    @property
    def store_address(self) -> str:
        return f"{self.folder}/store.sock"

    async def serve(self, bind: str, accepted: Callable[[Link[Any]], None], node: NodeId = 0) -> Door:
        path = self.store_address if self.role == "store" else f"{self.folder}/node-{node}.sock"
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a store that was killed
        return await super().serve(path, accepted, node)

    def serve_streams(self, bind: str, giver: ObjectGiver, node: NodeId) -> StreamDoor:
        return super().serve_streams(f"{self.folder}/objects-{node}.sock", giver, node)
