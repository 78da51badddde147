"""One connection to one server, on which many requests are under way at once and are answered in order.

Only a handful of commands are needed, and a general client library takes five times as long for each. The protocol
itself is read and written by hiredis.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import hiredis
from msgspec import Struct

from daws.model.errors import UsageError

ANSWER_S = 5.0
"""The time without an answer after which a connection counts as broken."""
SCHEMES = ("redis", "rediss", "unix")
PORT = 6379
Word = bytes | str | int


class ServerAddress(Struct, frozen=True):
    """A server: a host and a port, or the path of a socket."""

    host: str
    port: int = 0

    def __str__(self) -> str:
        if not self.port:
            return f"unix://{self.host}"
        return f"{self.host}:{self.port}" if ":" not in self.host else f"[{self.host}]:{self.port}"


class Access(Struct, frozen=True):
    """The credentials, which are the same for all servers of a Cluster."""

    user: str = ""
    password: str = ""
    database: int = 0
    context: ssl.SSLContext | None = None


def read_url(url: str) -> tuple[ServerAddress, Access, bool]:
    """The address and the credentials in a URL, and whether it asks for TLS."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ValueError
        if parts.scheme == "unix":
            place = ServerAddress(unquote(parts.path))
            database = parse_qs(parts.query).get("db", ["0"])[0]
        else:
            place = ServerAddress(parts.hostname or "localhost", parts.port or PORT)
            database = parts.path.strip("/") or "0"
        access = Access(unquote(parts.username or ""), unquote(parts.password or ""), int(database))
    except ValueError:
        raise UsageError(
            f"{shown(url)!r} is no address of a store: it begins with redis://, rediss:// or unix://"
        ) from None
    return place, access, parts.scheme == "rediss"


def shown(url: str) -> str:
    """An address without its secrets."""
    before, _, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://{after}" if before else after


class ServerConnection(asyncio.Protocol):
    """A connection, made with `connect`. When it breaks, all requests without an answer get the error."""

    def __init__(self) -> None:
        self.is_open = False
        self.server = ""  # identity of the process at the other end, and of its data
        self.on_lost: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader()
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()  # with the time of the request
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, words: Sequence[Word]) -> Any:
        """Send a command and return the server's answer. An error in the answer is raised."""
        if not self.is_open or self._transport is None:
            raise ConnectionResetError("the connection is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((future, self._loop.time()))
        self._transport.write(hiredis.pack_command(tuple(words)))  # type: ignore[arg-type]  # of any length
        if self._timer is None:
            self._timer = self._loop.call_later(ANSWER_S, self._look)
        answer = await future
        if isinstance(answer, hiredis.ReplyError):
            raise answer
        return answer

    def close(self, error: Exception | None = None) -> None:
        was_open, self.is_open = self.is_open, False
        if was_open and error is not None and self.on_lost is not None:
            self.on_lost()
        if self._transport is not None:
            self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, deque()
        for future, _ in waiting:
            if not future.done():
                future.set_exception(error or ConnectionResetError("the connection was closed"))

    # -- what the event loop says ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not False:
                future, _ = self._waiting.popleft()
                if not future.done():
                    future.set_result(answer)
        except (hiredis.ProtocolError, IndexError):
            self.close(ConnectionResetError("what answers there speaks another language"))

    def connection_lost(self, error: Exception | None) -> None:
        self.close(error or ConnectionResetError("the server closed the connection"))

    def _look(self) -> None:
        """Close the connection if a request has waited for too long."""
        self._timer = None
        if self._waiting:
            left_s = self._waiting[0][1] + ANSWER_S - self._loop.time()
            if left_s <= 0:
                self.close(TimeoutError(f"no answer for {ANSWER_S:.0f} s"))
            else:
                self._timer = self._loop.call_later(left_s, self._look)


async def connect(place: ServerAddress, access: Access) -> ServerConnection:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(ANSWER_S):
        if place.port:
            host = place.host if access.context is not None else None
            _, link = await loop.create_connection(
                ServerConnection, place.host, place.port, ssl=access.context, server_hostname=host
            )
        else:
            _, link = await loop.create_unix_connection(ServerConnection, place.host)
    try:
        if access.password:
            who = (access.user, access.password) if access.user else (access.password,)
            await link.ask(("AUTH", *who))
        if access.database:
            await link.ask(("SELECT", access.database))
    except BaseException:
        link.close()
        raise
    return link
