"""Two ways to a link: `dial` an address, or open a `Door` for the peers that connect.

All of it happens on the event loop; `daws.net.stream` has the same for threads.
"""

import asyncio
from asyncio import Task
from collections.abc import Callable
from socket import socket
from typing import Any, TypeVar

from daws.model.errors import PeerError
from daws.net.address import Unix, parse_address
from daws.net.complaints import COMPLAINTS
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.link import Link
from daws.net.listening import (
    BREATH_S,
    HANDSHAKE_S,
    STRANGERS_MAX,
    TOO_MANY,
    ListeningSocket,
    check_keys,
    reaching,
    refusal_of,
)

TLS_LIMITS: dict[str, Any] = {
    "ssl_handshake_timeout": 2 * HANDSHAKE_S,  # ours is earlier, and the same for all
    "ssl_shutdown_timeout": 5.0,
}
T = TypeVar("T")


async def dial(
    address: str,
    keys: Keys | None,
    hello: Hello,
    greeted: Callable[[Link[T]], None],
    *,
    node: int | None = None,
) -> Link[T]:
    """Connect to an address and return the link. If a `node` is given, the peer must be that node. Raise
    UnavailableError as `reaching` does.

    `greeted` is called with the link when the handshake is over. It must call the link's `begin`.
    """
    where = parse_address(address)
    check_keys(where, keys)
    loop = asyncio.get_running_loop()
    link: Link[T] = Link(loop, hello, address, greeted, node)
    with reaching(address, link.abort):
        async with asyncio.timeout(HANDSHAKE_S):
            if isinstance(where, Unix):
                await loop.create_unix_connection(lambda: link, where.path)
            else:
                assert keys is not None
                await loop.create_connection(lambda: link, *where, ssl=keys.client, server_hostname="", **TLS_LIMITS)
            await link.ready
    return link


class Door:
    """Listens on the event loop. `address` is where peers find it.

    `accepted` is called with each link whose handshake succeeded. It must call the link's `begin` at once, or close the
    link. A peer that fails the handshake gets a line in the log.
    """

    def __init__(self, listener: ListeningSocket, hello: Hello, accepted: Callable[[Link[Any]], None]) -> None:
        self.address = listener.address
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._fd = listener.sock.fileno()
        self._hello = hello
        self._accepted = accepted
        self._strangers: set[Task[None]] = set()
        self._rest: asyncio.TimerHandle | None = None
        listener.sock.setblocking(False)
        self._loop.add_reader(self._fd, self._on_knock)

    def close(self) -> None:
        """Stop listening. Links that exist stay open."""
        if self._listener.sock.fileno() < 0:
            return
        self._loop.remove_reader(self._fd)
        if self._rest is not None:
            self._rest.cancel()
        self._listener.close()
        for task in self._strangers:
            task.cancel()

    def _on_knock(self) -> None:
        try:
            sock, name = self._listener.accept()
        except OSError as error:
            if self._listener.warn_if_full(error):
                self._take_a_breath()
            return
        if len(self._strangers) >= STRANGERS_MAX:
            sock.close()
            COMPLAINTS.warn(refusal_of(name, PeerError(TOO_MANY)))
            return
        task = self._loop.create_task(self._welcome(sock, name))
        self._strangers.add(task)
        task.add_done_callback(lambda task: self._on_welcomed(task, sock))

    def _on_welcomed(self, task: Task[None], sock: socket) -> None:
        self._strangers.discard(task)
        if task.cancelled():
            sock.close()  # it may have been cancelled before its first step

    def _take_a_breath(self) -> None:
        """Accept nothing for BREATH_S. A peer that is not accepted keeps the socket readable, so the loop would do
        nothing else."""
        self._loop.remove_reader(self._fd)
        self._rest = self._loop.call_later(BREATH_S, self._loop.add_reader, self._fd, self._on_knock)

    async def _welcome(self, sock: socket, name: str) -> None:
        link: Link[Any] = Link(self._loop, self._hello, name, self._accepted)
        context = self._listener.context
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                sock.setblocking(False)
                limits = {} if context is None else TLS_LIMITS
                await self._loop.connect_accepted_socket(lambda: link, sock, ssl=context, **limits)
                await link.ready
        except (OSError, PeerError) as error:
            link.abort()
            COMPLAINTS.warn(refusal_of(name, error))
        except BaseException:
            link.abort()
            raise
