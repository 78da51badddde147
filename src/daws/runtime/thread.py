"""A cluster of one node in the client's process: a task costs one hop to a worker and one back.

The store, the node and the session live on one thread. Messages between the node and the session, and calls to the
store, are calls of functions here.
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from operator import attrgetter
from typing import Any, TypeVar

from daws.core.effects import CallStore
from daws.core.events import EventType, NewStrategy, StoreAnswered
from daws.core.session import SessionCore
from daws.core.session_events import (
    PlainTasksSubmitted,
    SessionEvent,
    SessionRefused,
    TasksLetGo,
    TasksSubmitted,
)
from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.errors import InternalError
from daws.model.task import NodeId, TaskSpec
from daws.runtime.client import SessionDriver
from daws.runtime.crew import config_of, info_of
from daws.runtime.engine import Engine
from daws.runtime.here import NODE, NobodyElse, StoreHere, new_store
from daws.runtime.ports import ListenerHere, PlainTask
from daws.strategy.decisions import Strategy
from daws.wire.columns import once
from daws.wire.crew import Crew
from daws.wire.ends import Outcome
from daws.wire.notes import Counters
from daws.wire.store import Submit
from daws.workers.server import ForkServer

TASKS_PER_TURN = 4096
TOGETHER_MIN = 8
"""Fewer tasks are spelled out: columns would take longer."""
TASK, KIND, PAYLOAD = attrgetter("task"), attrgetter("kind"), attrgetter("payload")
"""The columns of plain tasks as the client hands them in."""
SESSION = 0
"""The number of the only session: its tasks are counted from 0."""

T = TypeVar("T")


class ThreadCluster(SessionDriver):
    """The only node of a cluster, its store, and its client's session."""

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
        self.listener = listener
        self.store = new_store()
        self.members: Members = self.store.join([info])
        store = StoreHere(self.store, listener)
        config = config_of(files.limit_bytes, small_finishes=True)
        self.node = Engine(
            NODE, crew, strategy, files, store, NobodyElse(NODE), listener, journal, server, config=config
        )
        store.nests = self.node.nesting.nests
        self._messages: list[EventType] = []  # to the node, which takes in together what one step has sent

    # -- from any thread -----------------------------------------------------------------------------------------------

    def learn(self, function: int, pickled: bytes) -> None:
        self.node.functions.known[function] = pickled

    def started(self) -> set[int]:
        return self._asked(self.node.started)

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        self.node.files.put_packed(object_, packed)
        return (NODE,)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        return self.node.files.value(object_)

    def outcome_of(self, task: int) -> Outcome:
        record = self.store.record(task)
        return Outcome(task, () if record is None else record.outputs)

    def counters(self) -> list[Counters]:
        return [self._asked(self.node.counters)]

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        files = self.node.files
        os.close(files.open(object_))  # if it is damaged, that is found out now
        return files.path(object_)

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        """Do nothing: the object is in this process already."""

    def _asked(self, question: Callable[[], T]) -> T:
        if self.is_here:
            return question()

        def ask(asked: "Future[T]") -> None:
            try:
                asked.set_result(question())
            except Exception as error:
                asked.set_exception(error)

        answer: T = self._answer(ask)
        return answer

    # -- the thread ----------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        await self.node.open(self.loop)
        self.node.begin(self.members)
        self._begin(SessionCore(self._nonce, self.node.core.config, proposal=SESSION, is_direct=True))

    async def _close(self) -> None:
        await self.node.close()

    def _break(self, error: BaseException) -> None:
        self.node.on_exception(self.loop, {"exception": error})

    def _turn(self) -> None:
        self.awake = False
        # Tasks that are let go of were named by tasks that were submitted before: those first.
        gone = len(self.let_go)
        new_tasks = self.new_tasks
        count = min(len(new_tasks), TASKS_PER_TURN)
        events: list[SessionEvent] = []
        if count:
            take = new_tasks.popleft
            events.append(_submitted([take() for _ in range(count)]))
        if new_tasks:
            self.wake()
        elif gone:
            events.append(TasksLetGo([self.let_go.popleft() for _ in range(gone)]))
        if events:
            self._step(*events)

    _take_in = _turn

    def _cancel_waiting(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks:
            self._take_in()
        started = self.node.started()
        self._cancel(tuple([task for task in tasks if task not in started]))

    # -- between the session, the node and the store -------------------------------------------------------------------

    def _step(self, *events: SessionEvent) -> None:
        super()._step(*events)
        if self._messages:
            messages, self._messages = self._messages, []
            self.node.happened(messages)

    def _send(self, node: NodeId, message: Any) -> None:
        self._messages.append(message)

    def _use_strategy(self, text: str) -> None:
        self.node.happened([NewStrategy(text)])

    def _call_store(self, effect: CallStore) -> None:
        self._step(StoreAnswered(effect.token, self.store.apply(effect.shard, effect.rows, time.monotonic_ns())))

    # -- what the session says -----------------------------------------------------------------------------------------

    def _on_ended(self, outcomes: Sequence[Outcome]) -> None:
        self.listener.on_ended([*outcomes])

    def _on_refused(self, effect: SessionRefused) -> None:
        self._break(InternalError(f"the store has refused the only session: {effect}"))


def _submitted(taken: list[Any]) -> TasksSubmitted | PlainTasksSubmitted:
    """The event for these tasks, which the client has handed in."""
    if len(taken) < TOGETHER_MIN or set(map(type, taken)) != {PlainTask}:
        return TasksSubmitted([_row(one) if one.__class__ is PlainTask else one for one in taken])
    # By column: `zip(*taken)` would make an iterator for each row, and the garbage collector counts these.
    tasks, kinds, payloads = [*map(TASK, taken)], [*map(KIND, taken)], [*map(PAYLOAD, taken)]
    return PlainTasksSubmitted(tasks, once(kinds), once(payloads))


def _row(one: PlainTask) -> Submit:
    """A plain task, spelled out."""
    return Submit(TaskSpec(one.task, one.kind, 0, (), (one.task,), None, 0, 0, NODE, False, one.payload), (), NODE)
