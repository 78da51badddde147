"""How the suites talk to a store: as one caller after the other, each of whom says everything twice.

Nodes are called ANN, BOB and CAT; tasks have ids in three different shards.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.task import AGAIN, REMAKE, Input, NodeId, Ready, TaskSpec
from daws.store.port import Store
from daws.wire.store import (
    OK,
    REMAKE_FOR,
    AnswerType,
    Claim,
    Clear,
    Committed,
    Create,
    Estate,
    Finish,
    Granted,
    Inspect,
    Lease,
    Leased,
    Log,
    LogRow,
    Noted,
    OutboxEntry,
    ReadLog,
    Remake,
    Row,
    Satisfy,
    Story,
    Submit,
    TakeOver,
    Unready,
    outbox_key,
    shard_of,
)

ANN, BOB, CAT, DAN = 1, 2, 3, 1 << 32 | 1  # DAN is Ann's second incarnation
PARENT, CHILD, OTHER, FAR = 1, 65, 130, 150
BIG = 1_000_000


def made(object_: int, producer: int, *places: NodeId) -> Input:
    return Input(object_, BIG, producer, places, b"")


def info(node: NodeId) -> NodeInfo:
    return NodeInfo(node, (ExecutorClass(2),))


def same(one: AnswerType, other: AnswerType) -> bool:
    """None says that all is well and nothing follows, as `Committed(-1)` does; who gives a task again says so."""
    if isinstance(one, Ready) and one == other and one.mode & REMAKE:
        return True  # whoever asks for a remake has yet to claim it
    if isinstance(one, (Granted, Ready)) and isinstance(other, (Granted, Ready)):
        return msgspec.structs.replace(one, mode=one.mode | AGAIN) == other
    if isinstance(one, Committed) and isinstance(other, Committed) and len(one.ready) == len(other.ready):
        if not all(same(*pair) for pair in zip(one.ready, other.ready, strict=True)):
            return False
        one, other = (msgspec.structs.replace(answer, ready=()) for answer in (one, other))
    fine = (None, Committed(-1))
    return one == other or (one in fine and other in fine)


def bare(answer: Any) -> Any:
    """Without the marks of intents, which are any numbers that differ where intents do."""
    if isinstance(answer, Estate):
        return msgspec.structs.replace(answer, outbox=tuple(map(bare, answer.outbox)))
    if isinstance(answer, Granted) and answer.stop is not None:
        return msgspec.structs.replace(answer, stop=bare(answer.stop))
    return msgspec.structs.replace(answer, mark=0) if hasattr(answer, "mark") else answer


class Desk:
    """A store as one caller after the other sees it. Each row is sent twice."""

    def __init__(self, store: Store, snapshot: Callable[[Any], object]) -> None:
        self.store = store
        self.snapshot = snapshot
        self.now_ns = 0
        self.mark = 0  # of the last intent that was heard of

    def shard(self, row: Row) -> int:
        if isinstance(row, Create | Submit):
            task = row.spec.id
        elif isinstance(row, Clear):
            task = row.keys[0] >> 2 if row.keys else 0
        elif isinstance(row, TakeOver):
            return row.shard
        else:
            task = getattr(row, "task", 0)
        return shard_of(task, self.store.shard_count)

    def __call__(self, row: Row) -> AnswerType:
        (answer,) = self.store.apply(self.shard(row), [row], self.now_ns)
        before = self.snapshot(self.store)
        (again,) = self.store.apply(self.shard(row), [row], self.now_ns)
        assert same(answer, again), f"{row} was answered by {answer}, and when repeated by {again}"
        assert self.snapshot(self.store) == before, f"repeating {row} changed something"
        self.mark = getattr(answer, "mark", self.mark)
        return bare(answer)  # type: ignore[no-any-return]

    def once(self, row: Row) -> AnswerType:
        """As a caller who heard the answer at once, with marks."""
        (answer,) = self.store.apply(self.shard(row), [row], self.now_ns)
        return answer

    def create(
        self,
        task: int,
        parents: Sequence[int] = (),
        children: Sequence[int] = (),
        owner: NodeId = ANN,
        outputs: Sequence[int] = (),
        inputs: Sequence[int] = (),
        **more: Any,
    ) -> TaskSpec:
        spec = TaskSpec(task, inputs=tuple(inputs), outputs=tuple(outputs))
        assert self(Create(spec, tuple(parents), tuple(children), (), owner, **more)) == OK
        return spec

    def pair(self, owner: NodeId = ANN) -> None:
        """A task that makes object 7, and one that reads it."""
        self.create(PARENT, children=[CHILD], outputs=[7], owner=owner)
        self.create(CHILD, parents=[PARENT], inputs=[7])

    def finish(self, task: int, node: NodeId = ANN, attempt: int = 0, *outputs: Input, error: str = "") -> AnswerType:
        return self(Finish(task, attempt, node, outputs, error))

    def done(self, task: int, node: NodeId = ANN, attempt: int = 0, *outputs: Input) -> Committed | None:
        answer = self.finish(task, node, attempt, *outputs)
        assert answer is None or isinstance(answer, Committed)
        return answer

    def story(self, task: int) -> Story:
        answer = self(Inspect(task))
        assert isinstance(answer, Story)
        return msgspec.structs.replace(answer, history=())  # a store may keep one or not

    def state(self, task: int) -> int:
        return self.story(task).state

    def log(self) -> list[LogRow]:
        rows: list[LogRow] = []
        for shard in range(self.store.shard_count):
            (answer,) = self.store.apply(shard, [ReadLog(0)], self.now_ns)
            assert isinstance(answer, Log) and answer.next == answer.trimmed + len(answer.rows)
            rows += answer.rows
        return rows

    def join(self, *nodes: NodeId) -> None:
        for node in nodes:
            assert isinstance(self(Lease(node, 0, info(node))), Leased)

    def bury(self, dead: NodeId, heir: NodeId, limit: int = 1000) -> tuple[list[Ready], list[OutboxEntry]]:
        """Take over every shard, part by part."""
        ready: list[Ready] = []
        outbox: list[OutboxEntry] = []
        for shard in range(self.store.shard_count):
            part = 0
            while True:
                answer = self(TakeOver(dead, heir, part, limit, shard))
                assert isinstance(answer, Estate)
                ready += answer.ready
                outbox += answer.outbox
                part += 1
                if not answer.more:
                    break
        return sorted(ready, key=lambda one: one.spec.id), sorted(outbox, key=lambda one: one.key)

    def remake(self, task: int, waiter: int, node: NodeId, need: int = 0) -> Granted:
        """Have a task remade, and claim it."""
        ready = self(Remake(task, waiter, node, (), 0, need))
        assert isinstance(ready, Ready) and ready.mode & REMAKE
        assert self.story(task).owner == -1
        granted = self(Claim(task, -1, ready.move, node))
        assert isinstance(granted, Granted)
        return granted

    def lose(self) -> int:
        """PARENT ran on Ann, who is dead; Bob owns CHILD, finds out that object 7 is gone, and CHILD waits again.
        Returns what it needs."""
        self.pair()
        self.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        self.bury(ANN, CAT)
        ready = self(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        assert self(Unready(CHILD, BOB, ready.move, (PARENT,))) == Noted(outbox_key(CHILD, REMAKE_FOR), 0)
        return self.mark


class Contract:
    """What all suites have in common. A backend says how to `make` a store (`shards` may be given), and what a
    `snapshot` of all of its state is: anything that compares equal for equal states."""

    lease_ns: ClassVar[int] = 1000

    def make(self, **options: Any) -> Store:
        raise NotImplementedError

    def snapshot(self, store: Any) -> object:
        raise NotImplementedError

    @pytest.fixture
    def desk(self) -> Desk:
        return Desk(self.make(), self.snapshot)
