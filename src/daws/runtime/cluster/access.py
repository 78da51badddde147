"""The way to a cluster's store, whichever it is: the embedded one's server on a link, or a Valkey server directly."""

import ssl
from collections.abc import Callable
from typing import Any

from daws.model.errors import DawsError, UnavailableError
from daws.net.link import Link
from daws.runtime.cluster.reach import Reach, close_links
from daws.runtime.cluster.words import FROM_STORE
from daws.runtime.ports import StoreLink, StorePeer


class ServerLink:
    """The connection to the server of the embedded store."""

    def __init__(self, link: Link[Any]) -> None:
        self._link = link
        self.send = link.send

    def welcome(self, link: Link[Any]) -> None:
        """Close the connection of a client: clients connect to the server, and to nodes for objects alone."""
        link.close()

    async def close(self) -> None:
        await close_links(self._link)


async def open_store(reach: Reach, peer: StorePeer, lost: Callable[[], None]) -> StoreLink:
    """Connect to the store. Its messages go to `peer`. `lost` is called when the connection is lost; a store that is
    reached directly never calls it. Raise UnavailableError if no server answers, or a wrong one."""
    if reach.is_embedded:
        return await _dial_server(reach, peer.on_store, lost)
    return await _open_desk(reach, peer)


async def open_for_tool(reach: Reach, received: Callable[[list[Any]], None], lost: Callable[[], None]) -> StoreLink:
    """Connect to the store for a tool that asks a question."""
    if reach.is_embedded:
        return await _dial_server(reach, received, lost)
    from daws.runtime.cluster.direct.tools import ToolDesk

    return ToolDesk(reach, await _reach_server(reach), received)


async def _dial_server(reach: Reach, received: Callable[[list[Any]], None], lost: Callable[[], None]) -> ServerLink:
    try:
        return ServerLink(await reach.dial(reach.store_address, FROM_STORE, received, lost))
    except UnavailableError as error:
        if not isinstance(error.__cause__, ssl.SSLCertVerificationError):
            raise
        cure = "if another cluster's store is there, give this one a 'port' of its own in cluster.toml"
        raise UnavailableError(f"{error}; {cure}", error.retry) from error


async def _open_desk(reach: Reach, peer: StorePeer) -> StoreLink:
    from daws.runtime.cluster.direct.clients import ClientDesk  # the client library of the server is an extra
    from daws.runtime.cluster.direct.members import NodeDesk

    store = await _reach_server(reach)
    if reach.role == "client":
        return ClientDesk(reach, store, peer.on_store)
    return NodeDesk(reach, store, peer.on_store, peer.waits_for, peer.tell_node)


async def _reach_server(reach: Reach) -> Any:
    from daws.runtime.cluster.direct.desk import open_store as open_valkey

    try:
        return await open_valkey(reach)
    except UnavailableError:
        raise
    except DawsError as error:
        raise UnavailableError(str(error), retry=False) from error
