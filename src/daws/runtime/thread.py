"""One node with its store, on a thread of its own inside the client's process: a task costs one hop to a worker and one
back. The client talks to it by lists."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvloop

from daws.core.events import EventType
from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.task import CLIENT, NodeId
from daws.runtime.engine import LEASE_NS, Crew, Engine, info_of
from daws.runtime.here import NobodyElse, StoreHere
from daws.runtime.journals import journal_path, write_journal
from daws.runtime.outcomes import RETIRED_MAX
from daws.runtime.ports import Counters, Listener
from daws.store.memory import MemoryStore
from daws.strategy.decisions import Strategy
from daws.wire.messages import CancelOrder, LetGo, NewTasks
from daws.wire.store import Submit
from daws.workers.server import ForkServer

NODE = 0
"""The only node of such a cluster."""
TASKS_PER_TURN = 4096


class NodeThread:
    """Started by `start`; then any thread may append to `new_tasks` and `let_go` and call `wake`."""

    def __init__(
        self,
        crew: Crew,
        strategy: Strategy,
        files: ObjectFiles,
        listener: Listener,
        journal: str = "",
        server: ForkServer | None = None,
    ) -> None:
        self.new_tasks: deque[Submit] = deque()
        self.let_go: deque[int] = deque()
        self.awake = False
        info = info_of(NODE, crew)
        self._journal_path = journal_path(journal, NODE)
        self.store = MemoryStore(lease_ns=LEASE_NS, direct=True, retired_max=RETIRED_MAX)
        self.members: Members = self.store.join([info])
        store = StoreHere(self.store, listener)
        self.node = Engine(NODE, crew, strategy, files, store, NobodyElse(NODE), listener, bool(journal), server)
        self.batches = 0
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    # -- from any thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when the workers can take tasks."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="daws-node", daemon=True)
        self._thread.start()
        ready.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def wake(self) -> None:
        self.awake = True
        self._call(self._turn)

    def _call(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop was closed by another thread, and everybody who waits was told so
            self.loop.call_soon_threadsafe(function, *args)

    @property
    def is_here(self) -> bool:
        """Is this the node's own thread?"""
        return self._thread is not None and self._thread.ident == threading.get_ident()

    def learn(self, function: int, pickled: bytes) -> None:
        """Has to be said before the first task of that kind is submitted."""
        self.node.functions[function] = pickled

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        """Stop these tasks; with `running=False` only those that no worker has yet."""
        self._call(self._cancel, tasks, running)

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> int:
        return self.node.files.put_packed(object_, packed)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        return self.node.files.value(object_)

    def counters(self) -> list[Counters]:
        return [self.node.counters()]

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        return self.node.files.path(object_)

    def stop(self) -> None:
        """End all workers, then the thread. What has not ended never will."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        self._call(self.loop.stop)
        thread.join()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        loop = self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self.node.on_exception)
        try:
            loop.run_until_complete(self.node.open(loop))
            self.node.begin(self.members)
        except BaseException as error:
            self._error = error
            loop.run_until_complete(self.node.close())
            loop.close()
            ready.set()
            return
        ready.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self.node.close())
            loop.close()
            if self.node.journal is not None:
                write_journal(self._journal_path, self.node.journal)

    def _turn(self) -> None:
        """Take in what the client has said since the last turn."""
        self.awake = False
        # Who is let go of was named by tasks that were submitted before: those first.
        gone = len(self.let_go)
        new_tasks = self.new_tasks
        count = min(len(new_tasks), TASKS_PER_TURN)
        events: list[EventType] = []
        if count:
            self.batches += 1
            events.append(NewTasks(CLIENT, self.batches, tuple([new_tasks.popleft() for _ in range(count)])))
        if new_tasks:
            self.wake()
        elif gone:
            events.append(LetGo(CLIENT, tuple([self.let_go.popleft() for _ in range(gone)])))
        if events:
            self.node.happened(events)

    def _cancel(self, tasks: tuple[int, ...], running: bool) -> None:
        while self.new_tasks:
            self._turn()  # the store must know of them first
        if not running:
            started = self.node.started()
            tasks = tuple([task for task in tasks if task not in started])
        self.batches += 1
        self.node.happened([CancelOrder(CLIENT, self.batches, tasks)])
