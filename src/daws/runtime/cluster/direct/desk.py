"""The base class of nodes, clients and tools that call a store on a Valkey server themselves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from daws.core.effects import CallStore
from daws.model.errors import DawsError
from daws.model.task import NodeId, Ready
from daws.runtime.cluster.direct.calls import DirectCalls
from daws.runtime.cluster.direct.ends import LogEnds
from daws.runtime.cluster.reach import Reach, close_links
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.looking import Looking
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import learn_end, learn_stamps
from daws.wire.cluster import Refused
from daws.wire.session import Sealed
from daws.wire.store import AnswerType

COPIES_MAX = 100
IDLE_S = 1.0
OPEN_S = 2.0
"""How long each attempt to reach the server lasts."""
STRATEGY = "daws"
"""The strategy of a cluster for which none was chosen."""
Received = Callable[[list[Any]], None]


async def open_store(reach: Reach) -> ValkeyStore:
    options = StoreOptions(reach.config.store_shards, reach.lease_ns, COPIES_MAX, direct=True)
    return await ValkeyStore.open(reach.server_address(), options, OPEN_S, is_trial=True)


class Desk:
    """The store as its user sees it. `received` is called with all messages of one turn of the loop together."""

    def __init__(self, reach: Reach, store: ValkeyStore, received: Received) -> None:
        self.reach = reach
        self.store = store
        self.looking = Looking(store)
        self.ends = LogEnds(self.looking)
        self.calls = DirectCalls(store, self.tell, self.fail, self.on_changed, self.on_answered)
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def send(self, word: Any) -> None:
        raise NotImplementedError

    def dress(self, node: NodeId, message: Any) -> Any:
        return message

    def learn_ends(self, node: NodeId, word: Sealed) -> None:
        for one in word.outcomes:
            learn_end(self.store.cache_of(one.task), one.task, node, one.outputs, word.seal)

    def learn_stamps(self, node: NodeId, tasks: Sequence[Ready], stamps: Sequence[tuple[int, bytes]]) -> None:
        learn_stamps(self.store.cache_of, tasks, node, tuple(stamps))

    async def close(self) -> None:
        self._is_closed = self.calls.is_closed = True
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

    def on_changed(self, shard: int) -> None:
        """Another server answers for a shard, or one that has lost something."""
        self.ends.begin_anew()

    def on_answered(self, call: CallStore, answers: list[AnswerType]) -> None:
        """A call was answered."""
