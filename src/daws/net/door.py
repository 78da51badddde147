"""Both ways to a link: `dial` somebody, or `serve` those who come.

TCP always goes by keys, on the loopback too, where other users of the machine could come in; unix sockets go without,
in a folder that is its owner's alone.
"""

import asyncio
import errno
import ssl
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable
from socket import AF_INET, AF_INET6, AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from typing import Any, TypeVar

from msgspec import msgpack

from daws.model.errors import PeerError, UnavailableError, UsageError
from daws.net.address import Tcp, Unix, check_private, parse_address
from daws.net.complaints import COMPLAINTS
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.link import Link
from daws.net.tls import reason_of

HANDSHAKE_S = 10.0
"""From the first byte until both sides know each other."""
FAREWELL_S = 5.0
STRANGERS_MAX = 128
"""How many may be at a door at one time before they have said who they are."""
BREATH_S = 0.5
BACKLOG = 512
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

T = TypeVar("T")


async def dial(
    address: str,
    keys: Keys | None,
    hello: Hello,
    decoder: "msgpack.Decoder[list[T]]",
    received: Callable[[list[T]], None],
    lost: Callable[[], None],
    *,
    node: int | None = None,
    timeout_s: float = HANDSHAKE_S,
) -> Link[T]:
    """A link to who listens there, which has to be this `node` if one is given.

    UnavailableError if nobody answers (`retry`), or if the two cannot talk (which trying again does not cure).
    """
    where = parse_address(address)
    check_keys(where, keys)
    loop = asyncio.get_running_loop()
    link: Link[T] = Link(loop, hello, address, lambda link: link.begin(decoder, received, lost), node)
    try:
        async with asyncio.timeout(timeout_s):
            if isinstance(where, Unix):
                await loop.create_unix_connection(lambda: link, where.path)
            else:
                assert keys is not None
                await loop.create_connection(
                    lambda: link,
                    *where,
                    ssl=keys.client,
                    server_hostname="",
                    ssl_handshake_timeout=timeout_s,
                    ssl_shutdown_timeout=FAREWELL_S,
                )
            await link.ready
    except (OSError, PeerError) as error:
        link.abort()
        is_final = isinstance(error, (ssl.SSLError, PeerError))
        raise UnavailableError(f"{address}: {reason_of(error)}", retry=not is_final) from error
    except BaseException:
        link.abort()
        raise
    return link


async def serve(bind: str, keys: Keys | None, hello: Hello, accepted: Callable[[Link[Any]], None]) -> "Door":
    """Listen; `accepted` is called with each link whose other end is known, and has to call its `begin` at once, or to
    close it. Whoever cannot say who it is gets a line in the log. UsageError or UnavailableError if that cannot be."""
    return Door(asyncio.get_running_loop(), listen(bind, keys), keys, hello, accepted)


class Door:
    """Where others come in. `address` is where they find it, with the port that the system has chosen."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        sock: socket,
        keys: Keys | None,
        hello: Hello,
        accepted: Callable[[Link[Any]], None],
    ) -> None:
        self.address = address_of(sock)
        self._loop = loop
        self._sock = sock
        self._keys = keys
        self._hello = hello
        self._accepted = accepted
        self._strangers: set[Task[None]] = set()
        self._rest: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._on_knock)

    def close(self) -> None:
        """Nobody comes in any more; links that are there stay."""
        if self._sock.fileno() < 0:
            return
        self._loop.remove_reader(self._sock.fileno())
        if self._rest is not None:
            self._rest.cancel()
        self._sock.close()
        for task in self._strangers:
            task.cancel()

    def _on_knock(self) -> None:
        try:
            sock, where = self._sock.accept()
        except OSError as error:
            if error.errno in FULL:
                self._take_a_breath(error)
            return
        name = f"{where[0]}:{where[1]}" if isinstance(where, tuple) else self.address
        if len(self._strangers) >= STRANGERS_MAX:
            sock.close()
            COMPLAINTS.say(f"{name} was turned away: {STRANGERS_MAX} others have not said yet who they are")
            return
        task = self._loop.create_task(self._welcome(sock, name))
        self._strangers.add(task)
        task.add_done_callback(self._strangers.discard)

    def _take_a_breath(self, error: OSError) -> None:
        """Who knocks keeps knocking, and the loop would do nothing else."""
        COMPLAINTS.say(f"nobody can come in at {self.address}: {error.strerror}; raise the limit (ulimit -n)")
        self._loop.remove_reader(self._sock.fileno())
        self._rest = self._loop.call_later(BREATH_S, self._loop.add_reader, self._sock.fileno(), self._on_knock)

    async def _welcome(self, sock: socket, name: str) -> None:
        link: Link[Any] = Link(self._loop, self._hello, name, self._accepted)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                sock.setblocking(False)
                if self._keys is None:
                    await self._loop.connect_accepted_socket(lambda: link, sock)
                else:
                    await self._loop.connect_accepted_socket(
                        lambda: link,
                        sock,
                        ssl=self._keys.server,
                        ssl_handshake_timeout=HANDSHAKE_S,
                        ssl_shutdown_timeout=FAREWELL_S,
                    )
                await link.ready
        except (OSError, PeerError) as error:
            link.abort()
            COMPLAINTS.say(f"{name} was turned away: {reason_of(error)}")
        except BaseException:
            link.abort()
            raise


def listen(bind: str, keys: Keys | None) -> socket:
    where = parse_address(bind)
    check_keys(where, keys)
    if isinstance(where, Tcp):
        family = AF_INET6 if ":" in where.host else AF_INET
    else:
        family = AF_UNIX
    sock = socket(family, SOCK_STREAM)
    try:
        if isinstance(where, Tcp):
            sock.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            sock.bind(tuple(where))
        else:
            sock.bind(where.path)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise UnavailableError(f"cannot listen at {bind}: {error.strerror}", retry=False) from error
    except BaseException:
        sock.close()
        raise
    return sock


def check_keys(where: Tcp | Unix, keys: Keys | None) -> None:
    """UsageError if somebody without keys could come in there."""
    if isinstance(where, Unix):
        check_private(where.path)
    elif keys is None:
        raise UsageError(
            f"{where} needs keys, as only unix sockets go without: make some by 'daws cluster init DIR' and name DIR"
        )


def address_of(sock: socket) -> str:
    """As others dial it."""
    name = sock.getsockname()
    return str(Tcp(name[0], name[1])) if isinstance(name, tuple) else str(name)
