"""One node with its store, on a thread of its own inside the client's process: a task costs one hop to a worker and one
back. The client talks to it by lists."""

import asyncio
import threading
from collections import deque
from typing import Any

import uvloop

from daws.core.events import EventType
from daws.core.journal import Journal
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.task import CLIENT, NodeId
from daws.runtime.engine import CONFIG, LEASE_NS, Crew, Engine, info_of
from daws.runtime.here import NobodyElse, StoreHere
from daws.runtime.journals import journal_path, write_journal
from daws.runtime.ports import Listener
from daws.store.memory import MemoryStore
from daws.strategy.decisions import Strategy
from daws.wire.messages import CancelOrder, LetGo, NewTasks
from daws.wire.store import Submit

NODE = 0
"""The only node of such a cluster."""
TASKS_PER_TURN = 4096


class NodeThread:
    """Started by `start`; then any thread may append to `new_tasks` and `let_go` and call `wake`."""

    def __init__(
        self, crew: Crew, strategy: Strategy, files: ObjectFiles, listener: Listener, journal: str = ""
    ) -> None:
        self.new_tasks: deque[Submit] = deque()
        self.let_go: deque[int] = deque()
        self.awake = False
        info = info_of(NODE, crew)
        self.journal = Journal(info, strategy, CONFIG, 0) if journal else None
        self._journal_path = journal_path(journal, NODE)
        self.store = MemoryStore(lease_ns=LEASE_NS, direct=True)
        self.members: Members = self.store.join([info])
        self.node = Engine(
            NODE, crew, strategy, files, StoreHere(self.store, listener), NobodyElse(NODE), listener, self.journal
        )
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
        self.loop.call_soon_threadsafe(self._turn)

    def learn(self, function: int, pickled: bytes) -> None:
        """Has to be said before the first task of that kind is submitted."""
        self.node.functions[function] = pickled

    def cancel(self, tasks: tuple[int, ...]) -> None:
        self.loop.call_soon_threadsafe(self._cancel, tasks)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        return self.node.files.value(object_)

    def stop(self) -> None:
        """End all workers, then the thread. What has not ended never will."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
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
            ready.set()
            loop.close()
            return
        ready.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self.node.close())
            loop.close()
            if self.journal is not None:
                write_journal(self._journal_path, self.journal)

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

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks:
            self._turn()  # the store must know of them first
        self.batches += 1
        self.node.happened([CancelOrder(CLIENT, self.batches, tasks)])
