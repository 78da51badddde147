"""Objects of a cluster's nodes, as a client reads and writes them: on streams of their own, from any thread."""

import threading
import time
from functools import partial

from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.errors import UnavailableError
from daws.model.task import NodeId
from daws.runtime.cluster.reach import Reach
from daws.runtime.objects import ObjectSource

COPIES = 2
"""An object from outside cannot be made again: so many nodes get it."""


class FarObjects:
    """The streams to the nodes, opened when they are needed. `files` is where objects arrive."""

    def __init__(self, reach: Reach, files: ObjectFiles) -> None:
        self._reach = reach
        self._files = files
        self._sources: dict[str, ObjectSource] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def store(self, object_: int, packed: Packed, home: NodeId, members: Members) -> tuple[NodeId, ...]:
        """Write an object to its home, or to another node, and a second copy elsewhere. Returns its places."""
        nodes = list(members.nodes)
        if home in nodes:
            nodes.remove(home)
            first = object_ % len(nodes) if nodes else 0
            nodes = [home, *nodes[first:], *nodes[:first]]
        places: list[NodeId] = []
        for node in nodes:
            source = self.source(node, members)
            if source is not None and source.bring(object_, packed):
                places.append(node)
                if len(places) == COPIES:
                    break
        if not places:
            raise UnavailableError(
                f"no node took an object of {packed.size_bytes:,} bytes: none can be reached, or none has room",
                retry=True,
            )
        return tuple(places)

    def fetch(self, object_: int, places: tuple[NodeId, ...], members: Members) -> None:
        """Copy an object into the client's own files."""
        for place in places:
            source = self.source(place, members)
            if source is not None and source.fetch([object_], self._files):
                return
        raise UnavailableError(f"object {object_} is at none of its places any more: {places}", retry=True)

    def source(self, node: NodeId, members: Members) -> ObjectSource | None:
        """The stream to a node, or None if it is no member or no stream may be opened any more."""
        info = members.info(node)
        if info is None or len(info.addresses) < 2:
            return None
        address = info.addresses[1]
        with self._lock:
            if self._is_closed:
                return None
            if address not in self._sources:
                self._sources[address] = ObjectSource(partial(self._reach.open_stream, address, node))
            return self._sources[address]

    def close_idle(self, idle_s: float, members: Members) -> None:
        """Close streams that were not used for so long. Those to nodes that are gone are forgotten."""
        there = {info.addresses[1] for info in members.infos if len(info.addresses) > 1}
        with self._lock:
            for address, source in [*self._sources.items()]:
                if source.close_if_idle(time.monotonic() - idle_s) and address not in there:
                    del self._sources[address]

    def close(self) -> None:
        with self._lock:
            self._is_closed = True  # nobody would close a stream that is opened from now on
        for source in self._sources.values():
            source.close()
