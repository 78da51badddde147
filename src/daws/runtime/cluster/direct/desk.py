"""The base class of nodes, clients and tools that call a store on a Valkey server themselves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from daws.model.errors import DawsError
from daws.runtime.cluster.direct.book import SessionBook
from daws.runtime.cluster.direct.ends import Ends
from daws.runtime.cluster.reach import Reach, close_links
from daws.runtime.cluster.words import Refused
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.looking import Looking
from daws.store.valkey.notes import ClusterNotes
from daws.store.valkey.store import Answers, ValkeyStore
from daws.wire.store import Row

COPIES_MAX = 100
IDLE_S = 1.0
OPEN_S = 2.0
"""How long each attempt to reach the server lasts."""
SILENCE_S = 3.0
"""A client that was not seen for this long beyond a lease is gone. A client that could not reach the server retries
within a second or so."""
Received = Callable[[list[Any]], None]


async def open_store(reach: Reach) -> ValkeyStore:
    options = StoreOptions(reach.config.store_shards, reach.lease_ns, COPIES_MAX, direct=True)
    return await ValkeyStore.open(reach.server_address(), options, OPEN_S, is_trial=True)


class Desk:
    """The store as its user sees it. `received` is called with all messages of one turn of the loop together."""

    def __init__(self, reach: Reach, store: ValkeyStore, received: Received) -> None:
        self.reach = reach
        self.store = store
        self.notes = ClusterNotes(store)
        self.looking = Looking(store)
        self.book = SessionBook(self.notes)
        self.ends = Ends(self.looking, self.notes)
        self.identities = [store.identity(shard) for shard in range(store.shard_count)]
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        store.on_changed = lambda shard: self.see_change()
        store.on_safe = self.on_safe

    @property
    def patience_s(self) -> float:
        """How long a client may be silent before it counts as gone."""
        return self.reach.config.lease_s + SILENCE_S

    def send(self, word: Any) -> None:
        raise NotImplementedError

    def welcome(self, link: Any) -> None:
        """Close a connection that a client has opened. The desk of a node overrides this."""
        link.close()

    async def close(self) -> None:
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self.store.idle()  # what is left to be done in other shards
        await self.store.close()
        await close_links()

    def tell(self, *words: Any) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += words

    def _flush(self) -> None:
        words, self._unsent = self._unsent, []
        if not self._is_closed:
            self._received(words)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something meanwhile; if it cannot be done, nothing can."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if self._is_closed:
            return
        if isinstance(error, DawsError):
            self.tell(Refused(str(error)))
        else:
            self._loop.call_exception_handler({"message": str(error), "exception": error})

    def call(self, shard: int, rows: Sequence[Row]) -> Answers:
        """Call a shard. The call fails with `StoreChangedError` if another server answers for the shard than the last
        one that we know of."""
        return self.store.call(shard, rows, identity=self.identities[shard])

    # -- rule 11 -------------------------------------------------------------------------------------------------------

    def see_change(self) -> None:
        """Call `on_changed` for each shard that is served by another server now, or by one that has lost something."""
        if self._is_closed:
            return
        for shard, known in enumerate(self.identities):
            identity = self.store.identity(shard)
            if identity != known:
                self.identities[shard] = identity
                self.ends.begin_anew()
                self.on_changed(shard)

    def on_changed(self, shard: int) -> None:
        pass

    def on_safe(self, shard: int) -> None:
        pass
