"""A cluster of one client on its own machine: `daws.Cluster(nodes=N)`.

The client starts a store and the nodes as processes. They are those of `daws node` and speak as those do, over unix
sockets in a folder of this user alone, so they need no keys. The cluster lives as long as its client.

The client is the parent of all, so it knows at once when a process has ended. A node that has ended is struck from the
store, so that others take over its tasks, and a new node takes its place. A store that has ended is started again from
its log. No lease ever runs out: a process that is slow, or stopped, is not dead.
"""

import asyncio
import logging
import os
import pickle
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from time import monotonic, sleep

from msgspec.structs import replace

from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.data.folders import remove_tree
from daws.data.segments import Segments
from daws.data.session import SessionFolders as Folders
from daws.model.cluster import Members
from daws.model.errors import StrategyError, UnavailableError
from daws.model.task import NOBODY, NodeId
from daws.runtime.cluster.children import Child, Children
from daws.runtime.cluster.farobjects import COPIES
from daws.runtime.cluster.joined import LAST_WORDS_S, JoinedCluster
from daws.runtime.cluster.reach import PrivateReach
from daws.runtime.ports import Listener
from daws.strategy import format_strategy
from daws.strategy.decisions import Strategy
from daws.wire.children import StartNode, StartStore
from daws.wire.cluster import ClusterIs, NodeDied
from daws.wire.crew import Crew
from daws.workers.failures import exception_of
from daws.workers.server import ForkServer

ANYWHERE = "daws"
"""The store's strategy while nodes use one that cannot be written down."""
DEATHS_S = 60.0
DEATHS_MAX = 8
"""More processes than this, and than there are nodes, do not die within DEATHS_S by chance: the cluster is broken."""
NODES_S, LOOK_S = 30.0, 0.05
"""The time for which an object that is put in waits for a node, and the time between two looks."""
log = logging.getLogger("daws.client")


class PrivateCluster(JoinedCluster):
    """The nodes, the store, and the session of the client that has started them."""

    def __init__(
        self,
        nodes: int,
        crew: Crew,
        strategy: Strategy,
        folders: Folders,
        limit_bytes: int | None,
        files: ObjectFiles,
        listener: Listener,
        pending: Callable[[], Collection[int]],
        journal: str = "",
        server: ForkServer | None = None,
    ) -> None:
        """`journal` is a folder. The forks of `server`, if it is there already, become `daws.runtime.cluster.child`."""
        super().__init__(
            PrivateReach(str(folders.run), "client"), "", False, files, listener, pending, 0.0, *crew.notes
        )
        limit_bytes = files.limit_bytes if limit_bytes is None else limit_bytes
        self._start = StartNode(
            str(folders.run),
            crew,
            pickle.dumps(strategy),
            str(folders.memory or ""),
            str(folders.scratch),
            limit_bytes // nodes,
            journal,
        )
        self._start_store = StartStore(str(folders.run), str(folders.part("store")[1]), _text_of(strategy))
        self._count_wanted = nodes
        self._folders = folders
        self._server = server
        self._children: Children | None = None
        self._is_store_up = False
        self._segments: dict[NodeId, Segments] = {}
        self._died: set[NodeId] = set()  # of these the store may not know it yet
        self._deaths: deque[float] = deque()

    @property
    def pids(self) -> dict[str, int]:
        """The process of the store and of each node, by name."""
        children = [*self._children.all.values()] if self._children is not None else []
        return {str(child): child.pid for child in children}

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        """Write a file into the folder of one node and link it into that of another, as it cannot be made again."""
        until_s = monotonic() + NODES_S
        while not (places := self._hand_over(object_, packed, home)):
            if self._broken is not None or self._is_closing or self.is_here or monotonic() > until_s:
                raise UnavailableError(f"no node took an object of {packed.size_bytes:,} bytes", retry=True)
            sleep(LOOK_S)  # a new node is about to come
        return places

    def _hand_over(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        nodes = self.members.nodes
        first = nodes.index(home) if home in nodes else 0
        files: list[tuple[NodeId, str]] = []
        which = 0
        for node in (*nodes[first:], *nodes[:first])[:COPIES]:
            segments = self._segments.get(node) or Segments(*self._folders.node_folders(node))
            self._segments[node] = segments
            if not files:
                path = segments.write(packed, object_)
                which = segments.folders_new.index(os.path.dirname(path))
            else:
                path = f"{segments.folders_new[which]}/{os.path.basename(files[0][1])}-{node}"
                try:
                    os.link(files[0][1], path)
                except OSError:  # the node is gone
                    continue
            files.append((node, path))
        return tuple([node for node, path in files if self._adopted(node, object_, path, packed.size_bytes)])

    def _adopted(self, node: NodeId, object_: int, path: str, size_bytes: int) -> bool:
        source = self._objects.source(node, self.members)
        if source is not None and source.adopt(object_, path, size_bytes):
            return True
        with suppress(OSError):
            os.unlink(path)
        return False

    def use_strategy(self, text: str) -> None:
        self._start = replace(self._start, strategy=b"")  # later nodes use the store's
        super().use_strategy(text)

    # -- the thread ----------------------------------------------------------------------------------------------------

    async def _wait_for_all(self) -> None:
        self._full: asyncio.Future[None] = self.loop.create_future()
        if self._server is None:
            self._server = ForkServer(*self._folders.all(), become="daws.runtime.cluster.child")
        self._children = Children(self.loop, self._server, self._on_up, self._on_gone, self._on_server_gone)
        self._children.start(self._start_store)
        await asyncio.gather(self._full, self._attached)  # nodes may be known before the session is open

    async def _end(self) -> None:
        """End the nodes. The session ends with its cluster."""
        if self._children is not None:
            await self._children.close()
            await self._hear_out()

    async def _close(self) -> None:
        await super()._close()
        if self._children is not None:
            await self._children.let_go()
        elif self._server is not None:
            self._server.bury(kill=True)

    async def _hear_out(self) -> None:
        """Read what nodes have sent before they ended: their last output."""
        until_s = self.loop.time() + LAST_WORDS_S
        while self._nodes.count and self.loop.time() < until_s:
            await asyncio.sleep(LOOK_S)

    def _look_around(self) -> None:
        """There are nodes, or there will be soon."""

    def _on_up(self, child: Child) -> None:
        if child.is_store and not self._is_store_up:
            self._is_store_up = True
            self._store.open()
            for place in range(self._count_wanted):
                self._start_node(place)

    def _start_node(self, place: int) -> None:
        assert self._children is not None
        self._children.start(replace(self._start, crew=replace(self._start.crew, place=place)))

    def _on_gone(self, child: Child, how: str) -> None:
        if self._is_closing or self._broken is not None:
            return
        error: BaseException = UnavailableError(f"{child} has ended unexpectedly, {how}", retry=False)
        if child.failure:
            error, how = exception_of(child.failure), f"because of an error ({exception_of(child.failure)})"
        if not self._full.done() or self._die_too_often():
            self._break(error)
            return
        if child.is_store:
            log.warning("the store has ended, %s; it is started again from its log", how)
            assert self._children is not None
            self._children.start(self._start_store)
            return
        assert isinstance(child.start, StartNode)
        log.warning("%s has ended, %s; its tasks run elsewhere, and a new node takes its place", child, how)
        if child.node != NOBODY:  # else it had not joined yet
            self._died.add(child.node)
            self._segments.pop(child.node, None)
            self._store.send(NodeDied(child.node))
            for base in (self._folders.memory, self._folders.scratch):
                if base is not None:
                    remove_tree(base / f"node-{child.node}")
        self._start_node(child.start.crew.place)

    def _die_too_often(self) -> bool:
        now_s = self.loop.time()
        self._deaths.append(now_s)
        while self._deaths[0] < now_s - DEATHS_S:
            self._deaths.popleft()
        return len(self._deaths) > max(DEATHS_MAX, self._count_wanted)

    def _on_server_gone(self) -> None:
        self._break(UnavailableError("the cluster's fork server has ended, and all nodes with it", retry=False))

    def _break(self, error: BaseException) -> None:
        if self._full.done():
            super()._break(error)
        elif not self._is_closing:
            self._full.set_exception(error)  # `start` raises it

    # -- what the store says -------------------------------------------------------------------------------------------

    def _on_cluster(self, word: ClusterIs) -> None:
        super()._on_cluster(word)
        for node in self._died:
            self._store.send(NodeDied(node))

    def _on_members(self, members: Members) -> None:
        super()._on_members(members)
        self._died.intersection_update(members.nodes)
        if len(members) == self._count_wanted and not self._full.done():
            self._full.set_result(None)


def _text_of(strategy: Strategy) -> str:
    """The strategy as the store knows it. Nodes have been given this one as it is."""
    try:
        return format_strategy(strategy)
    except StrategyError:
        return ANYWHERE
