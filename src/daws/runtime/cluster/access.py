"""The way to a cluster's store, whichever it is: the embedded one's server on a link, or a Valkey server directly."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from typing import Any

from daws.model.errors import DawsError, UnavailableError
from daws.model.task import NodeId
from daws.net.link import Link
from daws.runtime.cluster.reach import Reach, close_links
from daws.runtime.ports import StoreLink, StorePeer
from daws.wire.cluster import FROM_STORE
from daws.wire.session import Fresh, Sealed

DIAL_AGAIN_S = 0.1
DIAL_AGAIN_S_MAX = 2.0


class ServerLink:
    """The connection to the server of the embedded store."""

    def __init__(self, link: Link[Any]) -> None:
        self._link = link
        self.send = link.send

    def dress(self, node: NodeId, message: Any) -> Any:
        return message

    def learn(self, node: NodeId, word: Sealed | Fresh) -> None:
        """Nothing: the server of the store caches no cells."""

    async def close(self) -> None:
        await close_links(self._link)


class StoreConnection:
    """The connection of one process to its cluster's store, made anew whenever it is lost."""

    def __init__(
        self,
        reach: Reach,
        peer: StorePeer,
        log: logging.Logger,
        connected: Callable[[StoreLink], None],
        failed: Callable[[BaseException], None],
        is_away: Callable[[], None] = lambda: None,
    ) -> None:
        """Messages go to `peer`. `connected` is called with each new link, and `failed` if no retry can help. `is_away`
        is called after each attempt that failed: a process that can start the store does so."""
        self.link: StoreLink | None = None
        self.why = ""  # the store was not reached when it was last tried
        self._reach = reach
        self._peer = peer
        self._log = log
        self._connected = connected
        self._failed = failed
        self._is_away = is_away
        self._connecting: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to connect."""
        self._connecting = asyncio.get_running_loop().create_task(self.stay())
        self._connecting.add_done_callback(self._on_ended)

    def _on_ended(self, connecting: "asyncio.Task[None]") -> None:
        """Report an error that is a bug: no attempt to connect will follow."""
        error = None if connecting.cancelled() else connecting.exception()
        if error is not None:
            self._failed(error)

    def send(self, word: Any) -> None:
        """Send a message, if there is a connection. Messages are lost with it."""
        if self.link is not None:
            self.link.send(word)

    def dress(self, node: NodeId, message: Any) -> Any:
        """The message to send to a node in the place of this one (see `StoreLink`)."""
        return message if self.link is None else self.link.dress(node, message)

    def learn(self, node: NodeId, word: Sealed | Fresh) -> None:
        if self.link is not None:
            self.link.learn(node, word)

    async def stay(self) -> None:
        """Connect, and connect again when the connection is lost, for ever."""
        wait_s = DIAL_AGAIN_S
        has_said = was_connected = False
        while True:
            lost = asyncio.Event()
            try:
                link = await open_store(self._reach, self._peer, lost.set)
            except UnavailableError as error:
                if self._reach.is_final(error, was_connected):
                    self._failed(error)
                    return
                self.why = str(error)
                if not has_said and wait_s >= DIAL_AGAIN_S_MAX:  # else it is being started, as by the first node
                    has_said = True
                    self._log.warning("the store does not answer (%s); trying again until it does", error)
                self._is_away()
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, DIAL_AGAIN_S_MAX)
                continue
            if has_said:
                self._log.log(self._reach.loss_level, "the store answers")
            was_connected, since_s = True, time.monotonic()
            self.link, self.why = link, ""
            self._connected(link)
            await lost.wait()
            self.link = None
            has_said = True
            self._log.log(self._reach.loss_level, "the link to the store is lost; trying again until it answers")
            if time.monotonic() - since_s > DIAL_AGAIN_S_MAX:
                wait_s = DIAL_AGAIN_S
            else:  # it hangs up on us as often as we come
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, DIAL_AGAIN_S_MAX)

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        link, self.link = self.link, None
        if link is not None:
            await link.close()


async def open_store(reach: Reach, peer: StorePeer, lost: Callable[[], None]) -> StoreLink:
    """Connect to the store. Its messages go to `peer`. `lost` is called when the connection is lost; a store that is
    reached directly never calls it. Raise UnavailableError if no server answers, or a wrong one."""
    if not reach.is_embedded:
        return await _open_desk(reach, peer)
    try:
        return ServerLink(await reach.dial(reach.store_address, FROM_STORE, peer.on_store, lost))
    except UnavailableError as error:
        if not isinstance(error.__cause__, ssl.SSLCertVerificationError):
            raise
        cure = "if another cluster's store is there, give this one a 'port' of its own in cluster.toml"
        raise UnavailableError(f"{error}; {cure}", error.retry) from error


async def _open_desk(reach: Reach, peer: StorePeer) -> StoreLink:
    from daws.runtime.cluster.direct import desk, members  # the client library of the server is an extra

    try:
        store = await desk.open_store(reach)
    except UnavailableError:
        raise
    except DawsError as error:
        raise UnavailableError(str(error), retry=False) from error
    if reach.role == "client":
        return desk.Desk(reach, store, peer.on_store)
    return members.NodeDesk(reach, store, peer)  # type: ignore[arg-type]
