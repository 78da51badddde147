"""Several processes at one shard: every claim has one winner, every task one commit, every edge one end."""

import asyncio
import multiprocessing
import random
from collections import Counter

from daws.model.task import Input, Ready, TaskSpec
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.blocking import BlockingValkeyStore
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import (
    AnswerType,
    Claim,
    Committed,
    Create,
    Finish,
    Granted,
    Inspect,
    Log,
    ReadLog,
    Row,
    Satisfy,
    Story,
    Submit,
)
from tests.valkey import LocalServer

CALLERS = 3
TASKS = 60
SINK = 1000


def _made(task: int) -> Input:
    return Input(task, 1, task, (), b"x")


async def _claim_and_finish(url: str, name: str, me: int) -> tuple[list[int], list[int]]:
    """Claim all tasks in an order of one's own, some calls at a time, and finish what was won."""
    store = await ValkeyStore.open(Address((url,), name))
    order = list(range(TASKS))
    random.Random(me).shuffle(order)
    won: list[int] = []
    ready: list[int] = []
    for start in range(0, TASKS, 20):
        rows: list[Row] = [Claim(task, 0, 0, me) for task in order[start : start + 20]]
        answers = [one for part in await asyncio.gather(*(store.call(0, [row]) for row in rows)) for one in part]
        mine = [task for task, answer in zip(order[start:], answers, strict=False) if isinstance(answer, Granted)]
        won += mine
        committed = await store.call(0, [Finish(task, 0, me, (_made(task),)) for task in mine])
        assert all(isinstance(answer, Committed) for answer in committed)
        told = await store.call(0, [Satisfy(SINK, task, me, (_made(task),)) for task in mine])
        ready += [SINK for answer in told if isinstance(answer, Ready)]
    await store.close()
    return won, ready


def _claim(job: tuple[str, str, int]) -> tuple[list[int], list[int]]:
    return asyncio.run(_claim_and_finish(*job))


def test_tasks_that_all_want_are_won_once_and_a_child_of_all_becomes_ready_once(shared: LocalServer, name: str):
    store = BlockingValkeyStore(Address((shared.url,), name))
    store.apply(0, [Create(TaskSpec(task, outputs=(task,)), children=(SINK,), owner=0) for task in range(TASKS)])
    every = tuple(range(TASKS))
    store.apply(0, [Create(TaskSpec(SINK, inputs=every), parents=every)])
    with multiprocessing.get_context("spawn").Pool(CALLERS) as pool:
        results = pool.map(_claim, [(shared.url, name, me) for me in range(1, CALLERS + 1)], 1)
    assert sorted(task for won, _ in results for task in won) == list(every)
    assert sum(len(ready) for _, ready in results) == 1
    (log,) = store.apply(0, [ReadLog(0)])
    assert isinstance(log, Log) and Counter(log.rows) == Counter(every)
    (story,) = store.apply(0, [Inspect(SINK)])
    assert isinstance(story, Story) and story.edges == ()
    store.close()


def test_calls_of_several_stores_on_one_loop_are_in_each_others_way_and_all_get_through(shared: LocalServer, name: str):
    """Commits that tell their children in the same update, all of them the same child."""

    async def run() -> list[AnswerType]:
        address = Address((shared.url,), name)
        stores = [await ValkeyStore.open(address, StoreOptions(direct=True)) for _ in range(4)]
        parents = tuple(range(40))
        await stores[0].call(0, [Submit(TaskSpec(task, outputs=(task,)), (), 0) for task in parents])
        await stores[0].call(0, [Submit(TaskSpec(SINK, inputs=parents), parents, 0)])
        calls = [stores[task % 4].call(0, [Finish(task, 0, 0, (_made(task),))]) for task in parents]
        answers = [answer for part in await asyncio.gather(*calls) for answer in part]
        for store in stores:
            await store.close()
        return answers

    answers = asyncio.run(run())
    ready = [one for answer in answers if isinstance(answer, Committed) for one in answer.ready]
    assert [(one.spec.id, sorted(made.object for made in one.inputs)) for one in ready] == [(SINK, list(range(40)))]
