"""Rows that are served together must do what they do one by one."""

from random import Random

import pytest
from msgspec.structs import asdict

from daws.model.task import INLINE_BYTES, Input, TaskSpec
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.store.memory.store import BURSTS, HANDLERS, MANY_ROWS
from daws.wire.store import CLIENT_HOLDER, Cancel, Finish, FinishSmall, Locate, Release, Retain, Row, Submit

NODE, OTHER = 0, 1


def output(task: int, size_bytes: int) -> tuple[Input, ...]:
    return (Input(task, size_bytes, task, (NODE,), b"" if size_bytes > INLINE_BYTES else b"v"),)


def drawn_rows(rng: Random, tasks: int) -> list[list[Row]]:
    """Calls in which tasks come, end and are let go of, some twice, too early, by others or in unusual ways."""
    calls: list[list[Row]] = []
    for first in range(0, tasks, 40):
        names = range(first, first + 40)
        if rng.random() < 0.4:  # nothing but usual ones, of which the last are let go of later
            calls.append([Submit(TaskSpec(name, outputs=(name,)), (), NODE) for name in names])
            if rng.random() < 0.5:
                calls.append([Finish(name, 0, NODE, output(name, 8)) for name in names])
            else:
                calls.append([FinishSmall(name, 0, NODE, b"v") for name in names])
            calls.append([Release(name, CLIENT_HOLDER) for name in names[:-3]])
            calls.append([Release(name, CLIENT_HOLDER) for name in (*names[-20:], names[-1])])
            continue
        parents = [(name, (rng.randrange(name),) if name and rng.random() < 0.2 else ()) for name in names]
        submits = [Submit(TaskSpec(name, outputs=(name,)), above, NODE) for name, above in parents]
        put = [Submit(TaskSpec(1000 + first, outputs=(1000 + first,)), (), NODE, output(1000 + first, 8))]
        finishes: list[Row] = [
            Finish(name, int(rng.random() < 0.05), OTHER if rng.random() < 0.05 else NODE, output(name, size))
            for name in names
            if (size := rng.choice((8, 8, 8, 8, INLINE_BYTES + 1)))
        ]
        finishes += [Finish(names[4], 0, NODE), rng.choice(finishes)]
        some_names = [name for name in names if rng.random() < 0.3]
        at = rng.randrange(len(finishes))
        finishes[at:at] = [FinishSmall(name, 0, NODE, b"small") for name in some_names]
        if first > tasks // 2:  # what it leaves in the outbox makes all later ones unusual
            finishes.append(Finish(names[3], 0, NODE, (), "no"))
        releases: list[Row] = [Release(names[5], 7), Release(names[6]), Release(99_999)]
        releases += [Release(name, CLIENT_HOLDER) for name in (*names, names[7]) if rng.random() < 0.9]
        some: list[Row] = [Retain(names[8], 7), Locate(names[10])]
        if first > tasks // 2:
            some.append(Cancel(names[9], NODE))
        calls += [[*submits, *put], [*some, *finishes], releases, [*submits[:20], *finishes[:20]]]
    return calls


def state_of(store: MemoryStore) -> tuple[object, ...]:
    shard = store.shards[0]
    records = {task: record and story_of(record) for task, record in shard.records.items()}
    return records, shard.log, shard.outbox, shard.retired


def story_of(record: Record) -> dict[str, object]:
    rare = record.rare
    whole = {**asdict(record), "made": record.outputs}
    return {**whole, "rare": rare and {name: getattr(rare, name) for name in rare.__slots__}}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("retired_max", [0, 5, 1000])
def test_together_is_as_one_by_one(seed, retired_max):
    rng = Random(seed)
    together, alone = (MemoryStore(direct=seed % 2 == 0, retired_max=retired_max) for _ in range(2))
    for rows in drawn_rows(rng, 200):
        assert len(rows) >= MANY_ROWS
        assert together.apply(0, rows, 0) == [alone.apply_one(0, row, 0) for row in rows]
    assert state_of(together) == state_of(alone)


def test_only_what_has_a_handler_is_served_together():
    assert BURSTS.keys() <= HANDLERS.keys()
