"""The desk of a client after a failover of one shard: whatever was not safe is said again until it is done."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.states import FAILED, READY
from daws.model.task import NodeId, TaskSpec
from daws.runtime.cluster.direct import clients
from daws.runtime.cluster.direct.clients import ClientDesk
from daws.runtime.cluster.direct.ends import UNNEEDED_MAX, BlamedTasks
from daws.runtime.cluster.direct.words import Fresh
from daws.runtime.cluster.direct.writing import write
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.testing.build import object_at
from daws.wire.ends import Outcome
from daws.wire.store import AnswerType, Finish, Row, RowType, Submit, TakeOver, shard_of

SHARDS = 4
BLOCK = 64
ANN, BOB = 1, 2


class Store(MemoryStore):
    """As far as a desk asks a store on a server; nothing is ever safe."""

    def position(self, shard: int) -> int:
        return 1

    def safe_position(self, shard: int) -> int:
        return 0

    def cache_of(self, task: int) -> dict[Any, Any]:
        return {}


class Desk(ClientDesk):
    """Without sockets: what is handed out is kept."""

    def __init__(self) -> None:
        self.store = Store(SHARDS, direct=True)  # type: ignore[assignment]
        self.looking = self  # type: ignore[assignment]
        self.entry = None
        self.members = Members(1, (NodeInfo(ANN, (ExecutorClass(1),)),))
        self.handed: dict[NodeId, list[int]] = {}
        self._loop = asyncio.get_running_loop()
        self._links = self  # type: ignore[assignment]
        self._kept = deque()
        self._queue = deque()
        self._wake = asyncio.Event()
        self._has_changed = False
        self._wanted, self._blamed, self._handed, self._cancels = set(), BlamedTasks(), {}, {}
        self._batches = iter(range(1000)).__next__  # type: ignore[assignment]
        self.begin(self._work())

    def begin(self, work: Any) -> None:
        self.work = self._loop.create_task(work)

    async def call(self, shard: int, rows: Sequence[Row]) -> list[AnswerType]:  # type: ignore[override]
        return self.store.apply(shard, rows, 0)  # type: ignore[attr-defined,no-any-return]

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        return {task: self.store.record(task) for task in tasks}  # type: ignore[attr-defined]

    def tell(self, *words: Any) -> None:
        pass

    def send(self, *words: Any) -> None:
        """To itself, or to a node."""
        if len(words) == 1:
            super().send(words[0])
        elif isinstance(words[1], Fresh):
            self.handed.setdefault(words[0], []).extend([one.spec.id for one in words[1].submission.tasks])

    async def submit(self, *rows: RowType) -> None:
        await write(self.call, SHARDS, rows)
        self._keep(rows, write)

    async def see_to_it(self, *tasks: int) -> None:
        """The store has changed; returns when these are somebody's."""
        self._has_changed = True
        self._wake.set()
        async with asyncio.timeout(30):
            while not all(task in self.handed.get(ANN, ()) for task in tasks):
                await asyncio.sleep(0)
        self.work.cancel()


def submit(task: int, *parents: int, node: NodeId = ANN) -> Submit:
    return Submit(TaskSpec(task, 1, inputs=parents, outputs=(task,)), parents, node)


def test_a_task_whose_node_died_before_it_was_said_again_gets_another(monkeypatch: Any):
    """The shard has lost it, and the heir of its node came first."""
    monkeypatch.setattr(clients, "LOOK_S", 0.0)

    async def run() -> None:
        desk = Desk()
        await desk.submit(submit(BLOCK, node=BOB), submit(BLOCK + 1, BLOCK), submit(2 * BLOCK, BLOCK, node=BOB))
        shard: Any = desk.store.shards[1]  # type: ignore[attr-defined]
        shard.records.clear()
        desk.store.apply(1, [TakeOver(BOB, ANN)], 0)  # type: ignore[attr-defined]
        await desk.see_to_it(BLOCK)
        record: Any = desk.store.record(BLOCK)  # type: ignore[attr-defined]
        assert (record.state, record.owner) == (READY, ANN)
        assert sorted(record.children) == [BLOCK + 1, 2 * BLOCK]

    asyncio.run(run())


def test_a_child_that_is_ready_while_its_node_is_dead_gets_another(monkeypatch: Any):
    """Its parent ended before it had heard of the child once more."""
    monkeypatch.setattr(clients, "LOOK_S", 0.0)

    async def run() -> None:
        desk = Desk()
        await desk.submit(submit(0), submit(BLOCK, 0, node=BOB))
        store: Any = desk.store
        store.shards[shard_of(BLOCK, SHARDS)].dead.add(BOB)
        store.record(0).children = ()
        store.apply(0, [Finish(0, 0, ANN, (object_at(0, ANN),))], 0)
        await desk.see_to_it(BLOCK)
        record = store.record(BLOCK)
        assert (record.state, record.owner, [one[0] for one in record.inputs]) == (READY, ANN, [0])

    asyncio.run(run())


def test_a_failure_stays_noted_while_somebody_may_ask_for_it():
    blamed = BlamedTasks()
    error = "task 1 (load) failed on node 0: ValueError: bad"
    for task in (1, 2, 3, 3):
        blamed.add(Outcome(task, (), FAILED, error, b"why"))
    assert blamed.let_go(1) == blamed.let_go(2) == blamed.let_go(77) == []
    for task in range(100, 100 + UNNEEDED_MAX):
        blamed.add(Outcome(task, (), FAILED, "no", b"why"))
        assert blamed.let_go(task) == []
    assert blamed.let_go(3) == [100], "the oldest that nobody needs; 1 was needed until now"
