"""One node with its store, on a thread of its own inside the client's process: a task costs one hop to a worker and one
back. The client talks to it by lists."""

import asyncio
import os
import threading
from operator import attrgetter
from typing import Any

import uvloop

from daws.core.events import EventType, NewStrategy
from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.task import CLIENT, NodeId, TaskSpec
from daws.runtime.crew import info_of
from daws.runtime.engine import Engine
from daws.runtime.here import NobodyElse, StoreHere
from daws.runtime.journals import journal_path, write_journal
from daws.runtime.loopthread import LoopThread
from daws.runtime.outcomes import NODE, new_store
from daws.runtime.ports import ListenerHere, PlainTask
from daws.strategy.decisions import Strategy
from daws.wire.children import Crew
from daws.wire.columns import once
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, LetGo, NewTasks, PlainTasks
from daws.wire.session import Counters
from daws.wire.store import Submit
from daws.workers.server import ForkServer

TASKS_PER_TURN = 4096
TOGETHER_MIN = 8
"""Fewer tasks are spelled out: columns would take longer."""
TASK, KIND, PAYLOAD = attrgetter("task"), attrgetter("kind"), attrgetter("payload")
"""The columns of plain tasks as the client hands them in."""


class NodeThread(LoopThread):
    """The only node of a cluster."""

    def __init__(
        self,
        crew: Crew,
        strategy: Strategy,
        files: ObjectFiles,
        listener: ListenerHere,
        journal: str = "",
        server: ForkServer | None = None,
    ) -> None:
        super().__init__("daws-node")
        info = info_of(NODE, crew)
        self._journal_path = journal_path(journal, NODE)
        self.store = new_store()
        self.members: Members = self.store.join([info])
        store = StoreHere(self.store, listener)
        peers = NobodyElse(NODE)
        self.node = Engine(
            NODE, crew, strategy, files, store, peers, listener, bool(journal), server, small_finishes=True
        )
        store.nests = self.node.nesting.nests
        self.batches = 0

    # -- from any thread -----------------------------------------------------------------------------------------------

    def learn(self, function: int, pickled: bytes) -> None:
        """Learn a function. This has to be called before the first task of that kind is submitted."""
        self.node.functions.known[function] = pickled

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        """Stop these tasks; with `running=False` only those that no worker has yet."""
        self._call(self._cancel, tasks, running)

    def started(self) -> set[int]:
        found: set[int] = set()
        if self.is_here:
            return self.node.started()
        done = threading.Event()

        def look() -> None:
            found.update(self.node.started())
            done.set()

        self._call(look)
        self._wait_for(done)
        return found

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        self.node.files.put_packed(object_, packed)
        return (NODE,)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        return self.node.files.value(object_)

    def outcome_of(self, task: int) -> Outcome:
        record = self.store.record(task)
        return Outcome(task, () if record is None else record.outputs)

    def use_strategy(self, text: str) -> None:
        used = threading.Event()
        self._call(self._use_strategy, text, used)
        self._wait_for(used)

    def counters(self) -> list[Counters]:
        return [self.node.counters()]

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        files = self.node.files
        os.close(files.open(object_))  # if it is damaged, that is found out now
        return files.path(object_)

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        """Do nothing: the object is in this process already."""

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        loop = self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self.node.on_exception)
        try:
            loop.run_until_complete(self.node.open(loop))
            self.node.begin(self.members)
        except BaseException as error:
            self._broken = error
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
        """Take in what the client has submitted since the last turn."""
        self.awake = False
        # Who is let go of was named by tasks that were submitted before: those first.
        gone = len(self.let_go)
        new_tasks = self.new_tasks
        count = min(len(new_tasks), TASKS_PER_TURN)
        events: list[EventType] = []
        if count:
            take = new_tasks.popleft
            events.append(self._new([take() for _ in range(count)]))
        if new_tasks:
            self.wake()
        elif gone:
            events.append(LetGo(CLIENT, tuple([self.let_go.popleft() for _ in range(gone)])))
        if events:
            self.node.happened(events)

    def _new(self, taken: list[Any]) -> EventType:
        """The event by which the node receives submitted tasks."""
        self.batches += 1
        if len(taken) < TOGETHER_MIN or set(map(type, taken)) != {PlainTask}:
            rows = [_row(one) if one.__class__ is PlainTask else one for one in taken]
            return NewTasks(CLIENT, self.batches, tuple(rows))
        # By column: `zip(*taken)` would make an iterator for each row, and the garbage collector counts these.
        tasks, kinds, payloads = [*map(TASK, taken)], [*map(KIND, taken)], [*map(PAYLOAD, taken)]
        return PlainTasks(CLIENT, self.batches, tasks, once(kinds), once(payloads))

    def _use_strategy(self, text: str, used: threading.Event) -> None:
        try:
            self.node.happened([NewStrategy(text)])
        finally:
            used.set()

    def _cancel(self, tasks: tuple[int, ...], running: bool) -> None:
        while self.new_tasks:
            self._turn()  # the store must know of them first
        if not running:
            started = self.node.started()
            tasks = tuple([task for task in tasks if task not in started])
        self.batches += 1
        self.node.happened([CancelOrder(CLIENT, self.batches, tasks)])


def _row(one: PlainTask) -> Submit:
    """A plain task, spelled out."""
    return Submit(TaskSpec(one.task, one.kind, 0, (), (one.task,), None, 0, 0, NODE, False, one.payload), (), NODE)
