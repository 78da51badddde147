"""The Valkey store beside the store in memory: whatever is said to both, by several callers in turns, they answer the
same and hold the same.

The rules are the same code. What is tested here is what lies between: partial views, caches that are out of date, cells
as bytes, and what is done in other shards afterwards.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from daws.model.cluster import Members, NodeInfo
from daws.store.memory import MemoryStore
from daws.store.valkey import cells
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import CallResult, ShardCaller
from daws.store.valkey.cells import DEAD, LEASES, MEMBERS, STAMP_BYTES
from daws.wire.store import AnswerType, Estate, Owned, Row, TakeOver
from tests.valkey import ShardInMemory

CALLERS = 3


class TwinStore(MemoryStore):
    """The store in memory, and beside it one whose callers take turns."""

    compare_every = 1
    """After so many calls all that both hold is compared."""

    def __init__(
        self,
        shard_count: int = 1,
        lease_ns: int = 10_000_000_000,
        replicas_max: int = 2,
        history: bool = False,
        direct: bool = False,
        retired_max: int = 0,
    ) -> None:
        # Neither forgets that there were tasks that have retired: the other one cannot.
        super().__init__(shard_count, lease_ns, replicas_max, history, direct)
        options = StoreOptions(shard_count, lease_ns, replicas_max, history, direct)
        self.beside = [ShardInMemory() for _ in range(shard_count)]
        self.callers = [[ShardCaller(options, shard) for shard in range(shard_count)] for _ in range(CALLERS)]
        self.turn = 0

    def join(self, infos: Iterable[NodeInfo], now_ns: int = 0) -> Members:
        members = super().join(infos, now_ns)
        sheet = cells.MembersSheet(members.version, False, members.infos)
        self.beside[0].cells[MEMBERS] = bytes(STAMP_BYTES) + cells.encode(sheet)
        self.beside[0].cells[LEASES] = bytes(STAMP_BYTES) + cells.encode(tuple(self.leases.items()))
        return members

    def apply_one(self, shard: int, row: Row, now_ns: int) -> AnswerType:
        return self.apply(shard, [row], now_ns)[0]

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        part = self.shards[shard]
        if any(isinstance(row, (TakeOver, Owned)) for row in rows):  # which the other one answers in this order
            part.records = dict(sorted(part.records.items()))
            part.outbox = dict(sorted(part.outbox.items()))
        marks = part.marks
        answers = super().apply(shard, rows, now_ns)
        self.turn += 1
        done = self._drive(shard, rows, now_ns, marks)
        assert [_in_order(one) for one in done.answers] == [_in_order(one) for one in answers]
        todo = done.afterwards
        while todo:
            other, row = todo.pop()
            todo += self._drive(other, (row,), now_ns, 0).afterwards
        if self.turn % self.compare_every == 0:
            self._compare()
        return answers

    def _drive(self, shard: int, rows: Sequence[Row], now_ns: int, marks: int) -> CallResult:
        caller = self.callers[self.turn % CALLERS][shard]
        caller._marks = marks  # so that both give out the same ones
        script = caller.carry_out(rows, now_ns)
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as end:
                done: CallResult = end.value
                return done
            answer = self.beside[request.shard].answer(request)

    def _compare(self) -> None:
        for shard, beside in zip(self.shards, self.beside, strict=True):
            beside.asked.clear()
            intents: dict[int, cells.Intents] = {}
            for key, intent in shard.outbox.items():
                intents.setdefault(key >> 2, {})[key & 3] = intent
            ours = {b"%d" % task: cells.pack(one, intents.get(task)) for task, one in shard.records.items()}
            theirs = {name: cell[STAMP_BYTES:] for name, cell in beside.cells.items() if name.isdigit()}
            assert theirs == ours
            assert [cells.decode_log_row(entry[STAMP_BYTES:]) for entry in beside.log] == shard.log
            dead = beside.cells.get(DEAD, bytes(STAMP_BYTES) + b"\x90")
            assert set(cells.decode_dead(dead[STAMP_BYTES:])) == shard.dead


def _in_order(answer: Any) -> Any:
    if isinstance(answer, Estate):
        return msgspec.structs.replace(answer, outbox=tuple(sorted(answer.outbox, key=lambda one: one.key)))
    return answer
