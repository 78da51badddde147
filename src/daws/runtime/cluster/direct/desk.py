"""The desk of a process that calls a store on a Valkey server itself: the front of the store for this process alone."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from daws.core.effects import CallStore
from daws.model.errors import DawsError
from daws.model.task import NOBODY, NodeId
from daws.runtime.cluster.direct.calls import DirectCalls
from daws.runtime.cluster.front import STRATEGY, StoreFront
from daws.runtime.cluster.reach import Reach, close_links
from daws.runtime.crew import COPIES_MAX
from daws.store.memory.record import Record
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.numbers import new_number
from daws.store.valkey.store import ValkeyStore
from daws.store.valkey.told import forget_unended, learn_end, learn_stamps, stamps_of
from daws.wire.cluster import Refused
from daws.wire.messages import Submission
from daws.wire.session import Fresh, Sealed
from daws.wire.store import AnswerType, Release, Row

IDLE_S = 1.0
OPEN_S = 2.0
"""How long each attempt to reach the server lasts."""
AGAIN_S = 0.05
Received = Callable[[list[Any]], None]


async def open_store(reach: Reach) -> ValkeyStore:
    config = reach.config
    options = StoreOptions(config.store_shards, reach.lease_ns, COPIES_MAX, direct=True, losses_max=config.losses_max)
    return await ValkeyStore.open(reach.server_address(), options, OPEN_S, is_trial=True)


class DeskUser:
    """The process itself, as the one that asks."""

    def __init__(self, send: Callable[[Any], None], is_client: bool) -> None:
        self.node: NodeId = NOBODY
        self.is_client = is_client
        self.send = send


class Desk(StoreFront):
    """The store as its user sees it. `received` is called with all messages of one turn of the loop together."""

    def __init__(self, reach: Reach, store: ValkeyStore, received: Received, is_client: bool = True) -> None:
        super().__init__(store.options.lease_ns, store.shard_count, STRATEGY)
        self.reach = reach
        self.store = store
        self.user = DeskUser(self.tell, is_client)
        self.calls = DirectCalls(store, self.tell, self.fail, self.on_answered)
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Any] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    # -- what its user does --------------------------------------------------------------------------------------------

    def send(self, word: Any) -> None:
        if not isinstance(word, CallStore):
            self.begin(self._answers[type(word)](self.user, word))
            return
        if self.user.is_client and (released := [row.task for row in word.rows if type(row) is Release]):
            forget_unended(self.store.cache_of, released)
        self.calls.carry_out(word)

    def dress(self, node: NodeId, message: Any) -> Any:
        """New tasks travel with the stamps of their cells, which their owner need not fetch then."""
        if isinstance(message, Submission):
            return Fresh(message, stamps_of(self.store.cache_of, message.tasks, node))
        return message

    def learn(self, node: NodeId, word: Sealed | Fresh) -> None:
        if isinstance(word, Fresh):
            learn_stamps(self.store.cache_of, word.submission.tasks, node, word.stamps)
            return
        for one in word.outcomes:
            learn_end(self.store.cache_of(one.task), one.task, node, one.outputs, word.seal)

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

    # -- what its user hears -------------------------------------------------------------------------------------------

    def tell(self, *words: Any) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += words

    def _flush(self) -> None:
        words, self._unsent = self._unsent, []
        if not self._is_closed:
            self._received(words)

    def fail(self, error: BaseException) -> None:
        if self._is_closed:
            return
        if isinstance(error, DawsError):
            self.tell(Refused(str(error)))
        else:
            self._loop.call_exception_handler({"message": str(error), "exception": error})

    # -- as a front ----------------------------------------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something meanwhile; if it cannot be done, nothing can."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    async def rows(self, shard: int, rows: Sequence[Row]) -> list[AnswerType]:
        while True:
            try:
                return await self.calls.rows(shard, rows)
            except StoreChangedError:
                self.calls.see_change()
                await asyncio.sleep(AGAIN_S)

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        return await self.store.records(tasks)

    async def new_number(self, what: str) -> int:
        return await new_number(self.store, what)

    def on_answered(self, call: CallStore, answers: list[AnswerType]) -> None:
        """A call was answered."""
