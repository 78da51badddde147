"""A client's tasks in several shards: each runs once, after all that it needs, wherever a client dies meanwhile."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from daws.model.states import DONE, READY, WAITING
from daws.model.task import NodeId, Ready, TaskSpec
from daws.runtime.cluster.direct.writing import complete, write
from daws.runtime.cluster.words import NOBODY
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.store.memory.sessions import unfinished_of
from daws.testing.build import BIG
from daws.wire.store import (
    CLIENT_HOLDER,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Committed,
    Finish,
    Release,
    Row,
    RowType,
    Satisfy,
    Submit,
    Unheld,
    shard_of,
)

ANN, BOB = 1, 2
SHARDS = 4
BLOCK = 64
"""So many neighbours share a shard."""


class Killed(Exception):
    pass


class Site:
    """A store, and a node that runs whatever is its own."""

    def __init__(self) -> None:
        self.store = MemoryStore(SHARDS, direct=True)
        self.calls_left = 1 << 30
        self.ran: dict[int, tuple[int, ...]] = {}  # what each task was given

    async def call(self, shard: int, rows: Sequence[Row]) -> list[AnswerType]:
        if not self.calls_left:
            raise Killed
        self.calls_left -= 1
        return self.store.apply(shard, rows, 0)

    def write(self, *rows: RowType) -> list[AnswerType]:
        written = asyncio.run(write(self.call, SHARDS, rows))
        assert not written.doomed
        return written.answers

    def go_on(self) -> dict[int, int]:
        """As the next client of the session does. Returns what is doomed."""
        found = [unfinished_of(task, one, SHARDS) for task, one in self.records().items()]
        rows = [Submit(one.spec, one.parents, ANN) for one in found if one is not None]
        return asyncio.run(complete(self.call, SHARDS, rows)).doomed

    def records(self) -> dict[int, Record]:
        return {task: one for shard in self.store.shards for task, one in shard.records.items() if one is not None}

    def run_one(self, node: NodeId = ANN) -> bool:
        for task, record in self.records().items():
            if record.state == READY and record.owner == node:
                self._run(task, node)
                return True
        return False

    def _run(self, task: int, node: NodeId) -> None:
        assert task not in self.ran
        record = self.records()[task]
        self.ran[task] = tuple(sorted(one[0] for one in record.inputs))
        made = ((task, BIG, task, (node,), b""),)
        (answer,) = self.store.apply(shard_of(task, SHARDS), [Finish(task, record.attempt, node, made)], 0)
        for child in answer.children if isinstance(answer, Committed) else ():
            self.store.apply(shard_of(child, SHARDS), [Satisfy(child, task, node, made)], 0)


def submit(task: int, *parents: int, node: NodeId = ANN) -> Submit:
    return Submit(TaskSpec(task, 1, inputs=parents, outputs=(task,)), parents, node)


def some_graph(seed: int, count: int = 40) -> list[Submit]:
    """Tasks far apart from each other, so that most have parents in other shards."""
    rng = random.Random(seed)
    names = [BLOCK * number // 2 for number in range(count)]
    rows: list[Submit] = []
    for number, name in enumerate(names):
        parents = rng.sample(names[:number], min(number, rng.randrange(4)))
        rows.append(submit(name, *parents))
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_every_task_runs_once_with_all_that_it_needs(seed: int):
    site, rng = Site(), random.Random(seed)
    rows = some_graph(seed)
    left = list(rows)
    while left:
        size = rng.randrange(1, 8)
        some, left = left[:size], left[size:]
        site.write(*some)
        for _ in range(rng.randrange(4)):
            site.run_one()
    while site.run_one():
        pass
    assert site.ran == {row.spec.id: tuple(sorted(row.parents)) for row in rows}


@pytest.mark.parametrize("seed", range(40))
def test_who_goes_on_completes_what_a_client_has_left_half_written(seed: int):
    site, rng = Site(), random.Random(seed)
    rows = some_graph(seed)
    first = rng.randrange(len(rows))
    site.write(*rows[:first])
    for _ in range(rng.randrange(10)):
        site.run_one()
    site.calls_left = rng.randrange(1, 12)
    with suppress(Killed):
        site.write(*rows[first:])
    site.calls_left = 1 << 30
    doomed = site.go_on()
    assert site.go_on() == doomed, "twice does no harm"
    known = site.records()
    assert all(parent not in known for parent in doomed.values()), "only for what was never written"
    while site.run_one():
        pass
    waiting = {task for task, one in site.records().items() if one.state == WAITING}
    hopeless = set(doomed)
    for row in rows:
        if row.spec.id in known and hopeless.intersection(row.parents):
            hopeless.add(row.spec.id)
    assert waiting == hopeless, "nothing else is left to wait"
    site.write(*rows)  # the whole of it once more: nothing is run again
    while site.run_one():
        pass
    assert site.ran == {row.spec.id: tuple(sorted(row.parents)) for row in rows}


def test_what_is_let_go_of_in_the_same_breath_is_held_by_those_who_need_it():
    site = Site()
    site.write(submit(0))
    site.run_one()
    let_go, _ = site.write(Release(0, CLIENT_HOLDER), submit(BLOCK, 0))
    assert isinstance(let_go, Unheld) and let_go.readers == (BLOCK,)
    assert site.run_one() and site.ran[BLOCK] == (0,)


def test_a_task_that_is_ready_at_once_is_answered_to_be_handed_out():
    site = Site()
    site.write(submit(0))
    site.run_one()
    (answer,) = site.write(submit(BLOCK, 0))
    assert isinstance(answer, Ready) and [one[0] for one in answer.inputs] == [0]
    assert site.records()[BLOCK].owner == ANN


def test_a_node_that_is_dead_gets_nothing_and_another_one_does():
    site = Site()
    site.write(submit(0))
    site.run_one()
    site.store.shards[shard_of(BLOCK, SHARDS)].dead.add(BOB)
    assert site.write(submit(BLOCK, 0, node=BOB)) == [STRUCK]
    (answer,) = site.write(submit(BLOCK, 0))
    assert isinstance(answer, Ready) and site.records()[BLOCK].owner == ANN


def test_a_parent_that_is_not_known_yet_is_waited_for_by_saying_it_again():
    site = Site()
    assert site.write(submit(BLOCK, 0)) == [UNKNOWN]
    assert site.write(submit(0), submit(BLOCK, 0)) == [None, None]
    while site.run_one():
        pass
    assert site.ran == {0: (), BLOCK: (0,)}


def test_children_of_what_has_failed_are_told_of_so_that_somebody_stops_them():
    site = Site()
    site.write(submit(0), submit(2 * BLOCK))
    site.store.apply(0, [Finish(0, 0, ANN, (), "no")], 0)
    rows = [submit(BLOCK, 0, 2 * BLOCK), submit(3 * BLOCK, 2 * BLOCK)]
    written = asyncio.run(write(site.call, SHARDS, rows))
    assert written.doomed == {BLOCK: 0} and written.answers == [None, None]
    site.run_one()
    assert set(site.ran) == {2 * BLOCK}
    assert site.records()[BLOCK].state == WAITING, "it waits for itself, so it never starts"
    assert site.go_on() == {BLOCK: 0}


def test_a_child_that_a_shard_has_forgotten_still_reads_what_is_let_go_of():
    """It is written once more, by whoever keeps what was not safe."""
    site = Site()
    site.write(submit(0))
    site.run_one()
    site.write(submit(BLOCK, 0))
    site.store.shards[shard_of(BLOCK, SHARDS)].records.clear()
    (let_go,) = site.write(Release(0, CLIENT_HOLDER))
    assert isinstance(let_go, Unheld) and let_go.readers == (BLOCK,)


def test_a_task_in_one_piece_is_one_row():
    site = Site()
    site.write(submit(0), submit(1, 0), submit(2, 0, 1))
    assert site.store.calls == 1
    assert unfinished_of(2, site.records()[2], SHARDS) is None
    assert unfinished_of(0, site.records()[0], SHARDS) is None
    site.write(submit(BLOCK, 0))
    left = unfinished_of(BLOCK, site.records()[BLOCK], SHARDS)
    assert left is not None and left.parents == (0,) and left.node == NOBODY
    while site.run_one():
        pass
    assert all(one.state == DONE for one in site.records().values())


def test_a_parent_of_very_many_is_told_of_each_once():
    """However they come, and in no time."""
    site, rng = Site(), random.Random(1)
    site.write(submit(0))
    children = [BLOCK * number for number in range(1, 3000) if number % SHARDS]
    rng.shuffle(children)
    for _ in range(2):
        site.write(*[submit(one, 0) for one in children])
    assert sorted(site.records()[0].children) == sorted(children)
