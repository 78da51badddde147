"""A server, or a Cluster of them, that is asked until it answers.

`ask` repeats a request with growing pauses while the server is gone, is being replaced, or is full. The first time it
says so in a line of the log, and again when all is well. Several addresses are those of a primary and its replicas:
whichever takes writes is used.

Beside `trouble`, which has its errors, the one place that knows the client library.
"""

import asyncio
import logging
import time
from typing import Any
from urllib.parse import urlsplit

import hiredis
from msgspec import Struct
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from daws.model.errors import ClosedError, UsageError
from daws.store.valkey.scripts import AGREE, Command, Script, meta_key
from daws.store.valkey.trouble import Trouble, translate

log = logging.getLogger("daws.store")

FORMAT = 1
ANSWER_S = 5.0
"""After so long without an answer a connection counts as broken."""
PAUSE_S, PAUSE_MAX_S = 0.02, 1.0


class _Quick:
    """Packs commands with hundreds of words in C; the library does that only where there is no event loop."""

    def pack_command(self, *words: Any) -> list[bytes]:
        return [hiredis.pack_command(words)]


class _Tcp(_Quick, Connection):
    pass


class _Tls(_Quick, SSLConnection):
    pass


class _Unix(_Quick, UnixDomainSocketConnection):
    pass


_CONNECTIONS = {"redis": _Tcp, "rediss": _Tls, "unix": _Unix}


class Address(Struct, frozen=True):
    """Where a store is. `urls` are redis://, rediss:// (TLS) or unix://, with user and password if there are any."""

    urls: tuple[str, ...]
    name: str = "main"
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    password: str = ""

    def __post_init__(self) -> None:
        if not self.urls:
            raise UsageError("a store needs an address, such as redis://localhost:6379")
        for url in self.urls:
            if urlsplit(url).scheme not in _CONNECTIONS:
                raise UsageError(
                    f"{shown(url)!r} is no address of a store: it begins with redis://, rediss:// or unix://"
                )
        if not self.name or not self.name.isprintable() or set(self.name) & set("{}: "):
            raise UsageError(f"{self.name!r} cannot name a store: no spaces, colons or braces")


def shown(url: str) -> str:
    """An address without what is secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class Server:
    def __init__(self, address: Address, patience_s: float | None = None) -> None:
        """`patience_s`: after so long without an answer a request is given up; None is never."""
        self.address = address
        self.patience_s = patience_s
        self._turn = 0  # whose turn it is among the addresses
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._is_gone = False
        self._closed = False
        self.clock_ns: int | None = None  # the server's, when it last answered
        self._heard_ns = 0

    @property
    def where(self) -> str:
        return shown(self.address.urls[self._turn % len(self.address.urls)])

    def now_ns(self) -> int:
        """The server's clock, or a little less."""
        assert self.clock_ns is not None, "not opened"
        return self.clock_ns + time.monotonic_ns() - self._heard_ns

    def heard(self, seconds: int, micros: int) -> None:
        self.clock_ns = seconds * 1_000_000_000 + micros * 1000
        self._heard_ns = time.monotonic_ns()

    async def open(self, made: str) -> str:
        """Make sure of a server that we can use. Returns what the store was made with: `made` if it is new."""
        answer = await self.ask(("EVALSHA", AGREE, 1, meta_key(self.address.name), made))
        seconds, micros = await self.ask(("TIME",))
        self.heard(int(seconds), int(micros))
        return bytes(answer).decode()

    async def ask(self, command: Command) -> Any:
        pause_s = PAUSE_S
        until = None if self.patience_s is None else time.monotonic() + self.patience_s
        while True:
            if self._closed:
                raise ClosedError("the store was closed")
            client = None
            try:
                client = await self._connected()
                answer = await _ask_once(client, command)
            except Exception as error:
                wrong = translate(error, self.where)
                if not isinstance(wrong, Trouble) or (until is not None and time.monotonic() + pause_s > until):
                    raise wrong from error
                if not self._is_gone:
                    self._is_gone = True
                    log.warning("%s; trying again until it does", wrong)
                if wrong.elsewhere and client is self._client:  # else somebody else has done that already
                    await self._try_elsewhere()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
                continue
            if self._is_gone and pause_s > PAUSE_S:  # other servers of a Cluster may have answered all the time
                self._is_gone = False
                log.warning("the store at %s answers again", self.where)
            return answer

    async def _connected(self) -> Any:
        if self._client is None:
            async with self._opening:
                if self._client is None:
                    self._client = await self._connect(self.address.urls[self._turn % len(self.address.urls)])
        return self._client

    async def _connect(self, url: str) -> Any:
        """A client of one server or, if that is part of one, of a Cluster."""
        options = self._options(url)
        # The library parses addresses, but would take connections that pack slowly.
        known = {**options, **parse_url(url), "connection_class": _CONNECTIONS[urlsplit(url).scheme]}
        client: Any = Redis.from_pool(ConnectionPool(retry=Retry(NoBackoff(), 0), **known))
        try:
            about = await client.execute_command("INFO")
            _check(about, self.where)
        except BaseException:
            await client.aclose()
            raise
        if int(about.get("cluster_enabled", 0)) == 0:
            return client
        await client.aclose()
        return RedisCluster.from_url(url, **options)

    def _options(self, url: str) -> dict[str, Any]:
        options: dict[str, Any] = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S, "protocol": 2}
        if self.address.password:
            options["password"] = self.address.password
        if urlsplit(url).scheme == "rediss":
            files = {
                "ssl_ca_certs": self.address.ca_file,
                "ssl_certfile": self.address.cert_file,
                "ssl_keyfile": self.address.key_file,
            }
            options |= {name: file for name, file in files.items() if file}
        return options

    async def _try_elsewhere(self) -> None:
        if isinstance(self._client, RedisCluster):
            return  # it knows all servers of the Cluster, and finds out by itself who has become a primary
        self._turn += 1
        await self._drop()

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        await client.aclose()
        if isinstance(client, RedisCluster):  # which closes nothing while it looks for a new primary
            for kind in ("nodes_cache", "startup_nodes"):
                await client.nodes_manager.aclose(kind)

    async def close(self) -> None:
        self._closed = True
        await self._drop()


async def _ask_once(client: Any, command: Command) -> Any:
    if len(command) < 2 or not isinstance(command[1], Script):
        return await client.execute_command(*command)
    word, script, *rest = command
    assert isinstance(script, Script)
    try:
        return await client.execute_command(word, script.hash, *rest)
    except NoScriptError:
        return await client.execute_command("EVAL", script.text, *rest)


def _check(about: dict[str, Any], where: str) -> None:
    policy = about.get("maxmemory_policy", "noeviction")
    if int(about.get("maxmemory", 0)) and policy != "noeviction":
        raise UsageError(
            f"the store at {where} throws data away when it is full: set maxmemory-policy noeviction there"
        )
