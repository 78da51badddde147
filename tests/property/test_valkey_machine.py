"""The Valkey store beside the store in memory: whatever is said, in whatever order, by several callers, both answer the
same and hold the same.

The rules are the same code. What is tested here is what lies between: partial views, caches that are out of date, cells
as bytes, and what is done in other shards afterwards.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import settings

from daws.store.memory import MemoryStore
from daws.store.valkey import cells
from daws.store.valkey.caller import Caller, Done
from daws.store.valkey.cells import DEAD, STAMP_BYTES
from daws.store.valkey.view import Options
from daws.wire.store import AnswerType, Estate, Row, TakeOver
from tests.property.test_store_machine import StoreMachine
from tests.valkey import ShardInMemory

CALLERS = 3


class TwinStore(MemoryStore):
    """The store in memory, and beside it one whose callers take turns."""

    def __init__(self, shard_count: int, direct: bool) -> None:
        super().__init__(shard_count, lease_ns=1000, replicas_max=2, direct=direct)
        options = Options(shard_count, 1000, 2, False, direct)
        self.beside = [ShardInMemory() for _ in range(shard_count)]
        self.callers = [[Caller(options, shard) for shard in range(shard_count)] for _ in range(CALLERS)]
        self.turn = 0

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        if isinstance(rows[0], TakeOver):
            # Which tasks a part has, and in which order, is for each store to choose.
            rows = [msgspec.structs.replace(rows[0], limit=1000)]
            self.shards[shard].records = dict(sorted(self.shards[shard].records.items()))
        marks = self.shards[shard].marks
        answers = super().apply(shard, rows, now_ns)
        self.turn += 1
        done = self._drive(self.turn % CALLERS, shard, rows, marks)
        assert [_in_order(one) for one in done.answers] == [_in_order(one) for one in answers]
        todo = done.afterwards
        while todo:
            other, row = todo.pop()
            todo += self._drive(self.turn % CALLERS, other, (row,), 0).afterwards
        self._compare()
        return answers

    def _drive(self, who: int, shard: int, rows: Sequence[Row], marks: int) -> Done:
        caller = self.callers[who][shard]
        caller._marks = marks  # so that both give out the same ones
        script = caller.carry_out(rows, 0)
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as end:
                done: Done = end.value
                return done
            answer = self.beside[request.shard].answer(request)

    def _compare(self) -> None:
        for shard, beside in zip(self.shards, self.beside, strict=True):
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


class TwinMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = TwinStore(2, self.direct)


class DirectTwinMachine(TwinMachine):
    direct = True


TestTwinMachine = TwinMachine.TestCase
TestDirectTwinMachine = DirectTwinMachine.TestCase
TestTwinMachine.settings = TestDirectTwinMachine.settings = settings(max_examples=25, stateful_step_count=40)
