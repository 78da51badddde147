"""A server, or a Cluster of them, that is asked until it answers.

`ask` repeats a request with growing pauses while the server is gone, is being replaced, or is full. It writes one line
into the log at the first failure, and another when all is well again. Several addresses are those of a primary and its
replicas (the one that takes writes is used), or some of a Cluster, whose servers know which of them has which keys.
"""

import asyncio
import logging
import ssl
import time
from binascii import crc_hqx
from collections.abc import Callable
from typing import Any

import hiredis
import msgspec
from msgspec import Struct

from daws.model.errors import ClosedError, UsageError
from daws.store.valkey.attempt import Outage
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.link import Access, ServerAddress, ServerConnection, connect, read_url
from daws.store.valkey.scripts import AGREE, TIME, ServerCommand, ShardKeys, meta_key
from daws.store.valkey.trouble import Trouble, translate
from daws.wire.store import MEMBERSHIP_SHARD

log = logging.getLogger("daws.store")

FORMAT = 3
PAUSE_S, PAUSE_MAX_S = 0.02, 1.0
SLOW_NS = 400_000_000
"""An answer that took this long means that the server was stopped or unreachable."""
SLOTS = 16384
"""The number of parts into which the keys of a Cluster are cut."""
REDIRECTIONS_MAX = 5


class Address(Struct, frozen=True):
    """The address of a store. `urls` are redis://, rediss:// (TLS) or unix://, with user and password if there are
    any."""

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
            read_url(url)
        if not self.name or not self.name.isprintable() or set(self.name) & set("{}: "):
            raise UsageError(f"{self.name!r} cannot name a store: no spaces, colons or braces")

    def targets(self) -> list[tuple[ServerAddress, Access]]:
        """The address of each server, with its credentials."""
        found = []
        for url in self.urls:
            place, access, by_tls = read_url(url)
            context = self._context() if by_tls else None
            found.append(
                (place, msgspec.structs.replace(access, password=self.password or access.password, context=context))
            )
        return found

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:  # of the file, or of its content
            files = " or ".join(file for file in (self.ca_file, self.cert_file, self.key_file) if file)
            raise UsageError(f"cannot read {files}, which are to secure the way to the store: {error}") from error
        return context


class Server:
    def __init__(self, address: Address, patience_s: float | None = None) -> None:
        """Prepare to ask a server. `patience_s`: the time after which a request without an answer fails; None is
        never."""
        self.address = address
        self.patience_s = patience_s
        self.is_quiet = False  # errors are raised to the caller, and not logged
        self._targets = address.targets()
        self._turn = 0  # the index of the one in use
        self._is_cluster = False
        self._slots: dict[int, ServerAddress] | None = None  # of a Cluster: which server has which slots, if known
        self._links: dict[ServerAddress, ServerConnection] = {}
        self._connecting: dict[ServerAddress, asyncio.Task[ServerConnection]] = {}
        self.on_link_lost: Callable[[], None] | None = None
        self._is_gone = False
        self._gone_ns = 0
        self.outage: Outage | None = None  # the last one
        self._closed = False
        self._links_ever = 0
        self._clock_key = ShardKeys(address.name, MEMBERSHIP_SHARD).cells
        self._clock_ns = 0  # of the server with the leases, at its last answer
        self._heard_ns = 0

    @property
    def where(self) -> str:
        return str(self._target[0])

    @property
    def _target(self) -> tuple[ServerAddress, Access]:
        return self._targets[self._turn % len(self._targets)]

    def now_ns(self) -> int:
        """The clock of the server that has the leases, or a little less."""
        return self._clock_ns + time.monotonic_ns() - self._heard_ns

    def heard(self, seconds: int, micros: int) -> None:
        self._clock_ns = seconds * 1_000_000_000 + micros * 1000
        self._heard_ns = time.monotonic_ns()

    async def agree(self, made: str) -> str:
        """Check that the server can be used. Returns the settings that the store was made with: `made` if it is new."""
        answer = await self.ask(ServerCommand(meta_key(self.address.name), (made,), AGREE))
        seconds, micros = await self.ask(ServerCommand(self._clock_key, (TIME,)))
        self.heard(int(seconds), int(micros))
        return bytes(answer).decode()

    async def primaries(self) -> int:
        """The number of servers of a Cluster that have parts of the keys; 1 if there is no Cluster."""
        await self.ask(ServerCommand(self._clock_key, (TIME,)))
        return len(set(self._slots.values())) if self._slots else 1

    async def ask(self, command: ServerCommand) -> Any:
        """The answer to a command, from any server that has the key."""
        return (await self.ask_the_same(command, None))[0]

    async def ask_the_same(
        self, command: ServerCommand, known: ServerConnection | None
    ) -> tuple[Any, ServerConnection]:
        """The answer, and the connection that it came by. Nothing is asked if the server that has the key is no longer
        the one at the other end of the known connection."""
        pause_s = PAUSE_S
        until = None if self.patience_s is None else time.monotonic() + self.patience_s
        while True:
            if self._closed:
                raise ClosedError("the store was closed")
            turn = self._turn
            since_ns = self.now_ns()
            try:
                answer = await self._ask_once(command, known)
            except StoreChangedError:
                self._answered(pause_s)
                raise
            except Exception as error:
                wrong = translate(error, self.where)
                if not isinstance(wrong, Trouble) or (until is not None and time.monotonic() + pause_s > until):
                    raise wrong from error
                if not self._is_gone:
                    self._is_gone = True
                    self._gone_ns = since_ns
                    if not self.is_quiet:
                        log.warning("%s; trying again", wrong)
                if wrong.elsewhere:
                    if turn == self._turn:  # else another request has switched already
                        self._turn += 1
                    self._forget()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
                continue
            self._answered(pause_s)
            if self.now_ns() - since_ns > SLOW_NS:
                self.outage = Outage(since_ns, self.now_ns())  # it seems that no other request was served meanwhile
            return answer

    def _answered(self, pause_s: float) -> None:
        if self._is_gone and pause_s > PAUSE_S:  # other servers of a Cluster may have answered all the time
            self._is_gone = False
            self.outage = Outage(self._gone_ns, self.now_ns())
            if not self.is_quiet:
                log.warning("the store at %s answers again", self.where)

    def close(self) -> None:
        self._closed = True
        for task in self._connecting.values():
            task.cancel()
        for link in self._links.values():
            link.close()

    # -- who is asked ----------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Forget which server has which slots, and close connections to a server that was a primary once."""
        self._slots = None
        if not self._is_cluster:
            links, self._links = self._links, {}
            for link in links.values():
                link.close(ConnectionResetError("we try elsewhere"))

    async def _ask_once(self, command: ServerCommand, known: ServerConnection | None) -> tuple[Any, ServerConnection]:
        place, access = self._target
        link = await self._link_to(place, access)
        slot = -1
        if self._is_cluster:
            slot = _slot_of(command.key)
            if self._slots is None:
                self._slots = _read_slots(await link.ask(("CLUSTER", "SLOTS")), place)
                places = {target for target, _ in self._targets}
                self._targets += [(one, access) for one in dict.fromkeys(self._slots.values()) if one not in places]
            place = self._slots.get(slot, place)
        for _ in range(REDIRECTIONS_MAX):
            link = await self._link_to(place, access)
            if known is not None and known.server != link.server:
                raise StoreChangedError
            try:
                return await command.say(link), link
            except hiredis.ReplyError as error:
                kind, _, rest = str(error).partition(" ")
                if kind != "MOVED":
                    raise
                place = _redirected(rest, place)
                if self._slots is not None:
                    self._slots[slot] = place
        raise ConnectionError("its servers send us from one to the other")

    async def _link_to(self, place: ServerAddress, access: Access) -> ServerConnection:
        link = self._links.get(place)
        if link is not None and link.is_open:
            return link
        # All requests for this address wait for one and the same connection.
        opening = self._connecting.get(place)
        if opening is None:
            opening = self._connecting[place] = asyncio.create_task(self._open_link(place, access))
            opening.add_done_callback(lambda done: self._connected(place, done))
        return await asyncio.shield(opening)

    def _lost(self) -> None:
        if self.on_link_lost is not None:
            self.on_link_lost()

    def _connected(self, place: ServerAddress, done: "asyncio.Task[ServerConnection]") -> None:
        del self._connecting[place]
        if not done.cancelled():
            done.exception()  # perhaps no request waits for it any more

    async def _open_link(self, place: ServerAddress, access: Access) -> ServerConnection:
        try:
            link = await self._open_checked(place, access)
        except Exception as error:
            wrong = translate(error, str(place))
            if isinstance(wrong, Trouble) or not self._links_ever:
                raise
            raise Trouble(str(wrong)) from error  # it was right before: somebody else may be there for a while
        self._links_ever += 1
        self._links[place] = link
        return link

    async def _open_checked(self, place: ServerAddress, access: Access) -> ServerConnection:
        link = await connect(place, access)
        try:
            about = _read_info(await link.ask(("INFO",)))
            _check(about, str(place))
            self._is_cluster = about.get("cluster_enabled") == "1"
            link.server = f"{about.get('run_id')} {about.get('master_replid')}"
            link.on_lost = self._lost
        except BaseException:
            link.close()
            raise
        return link


def _slot_of(key: str) -> int:
    """The slot of a key with a hash tag."""
    tag = key[key.index("{") + 1 : key.index("}")]
    return crc_hqx(tag.encode(), 0) % SLOTS


def _redirected(rest: str, here: ServerAddress) -> ServerAddress:
    """The address in a redirection, `SLOT HOST:PORT`."""
    host, _, port = rest.split()[1].rpartition(":")
    return _beside(host, int(port), here)


def _beside(host: str, port: int, here: ServerAddress) -> ServerAddress:
    """The address of a server. A server that does not know its own name is at the host where we reached the one that
    says so."""
    if host in ("", "?"):
        host = here.host if here.port else "localhost"
    return ServerAddress(host, port)


def _read_slots(said: list[Any], here: ServerAddress) -> dict[int, ServerAddress]:
    found = {}
    for first, last, primary, *_ in said:
        place = _beside(bytes(primary[0] or b"").decode(), int(primary[1]), here)
        found.update(dict.fromkeys(range(first, last + 1), place))
    return found


def _read_info(said: bytes) -> dict[str, str]:
    lines = said.decode("utf-8", "replace").splitlines()
    return dict(line.partition(":")[::2] for line in lines if ":" in line)


def _check(about: dict[str, str], where: str) -> None:
    policy = about.get("maxmemory_policy", "noeviction")
    if about.get("maxmemory", "0") != "0" and policy != "noeviction":
        raise UsageError(f"the store at {where} throws data away when full: set maxmemory-policy noeviction there")
    if about.get("loading", "0") != "0":
        raise Trouble(f"the store at {where} does not answer: it is loading its data")
    if about.get("cluster_enabled") != "1" and about.get("role") == "slave":
        raise Trouble(f"the store at {where} is a replica and takes no writes")
