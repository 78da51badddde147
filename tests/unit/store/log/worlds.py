"""A small world that talks to a store, by seed: calls of all kinds, and what a state looks like."""

import random
from collections.abc import Iterator

import msgspec

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.task import Input, TaskSpec, spawned_id
from daws.store.log.state import parts_of
from daws.store.memory import MemoryStore
from daws.wire.store import (
    ANNOUNCE,
    MOVE,
    REPLICATE,
    RETRY,
    AddPlace,
    Buried,
    Cancel,
    Claim,
    Clear,
    Create,
    DropPlace,
    EnrolNode,
    Finish,
    Inspect,
    Lease,
    Locate,
    Open,
    Owned,
    ReadLog,
    Register,
    Release,
    Remake,
    Retain,
    Row,
    Satisfy,
    Spawn,
    Submit,
    Suspend,
    TakeOver,
    TrimLog,
    Unready,
    UseStrategy,
    Watch,
    outbox_key,
    shard_of,
)

TASKS = 40
NODES = (1, 2, 3)
SHARDS = 2
LEASE_NS = 500
Call = tuple[int, list[Row], int]


def info(node: int) -> NodeInfo:
    return NodeInfo(node, (ExecutorClass(2),))


def made(task: int, node: int) -> tuple[Input, ...]:
    return (Input(task, 10_000, task, (node,), b""),)


def calls(seed: int, count: int, tasks: int = TASKS) -> Iterator[Call]:
    """Any rows in any order: most are refused, and the others reach every corner of the state."""
    rng = random.Random(seed)
    yield 0, [Lease(node, 0, info(node)) for node in NODES], 0
    for task in range(tasks):
        parents = tuple(sorted({rng.randrange(task) for _ in range(rng.choice((0, 1, 2, 12)))})) if task else ()
        held = rng.random() < 0.5
        spec = TaskSpec(task * 32, inputs=tuple(one * 32 for one in parents), outputs=(task * 32,))
        above = tuple(one * 32 for one in parents)
        owner = -1 if parents else rng.choice(NODES)
        yield shard_of(task * 32, SHARDS), [Create(spec, above, (), (), owner, held=held)], task
        for parent in above:
            yield shard_of(parent, SHARDS), [Register(parent, task * 32)], task
    for number in range(count):
        task = rng.randrange(tasks) * 32
        rows = [_row(rng, task, number, tasks) for _ in range(rng.choice((1, 1, 2, 5)))]
        shard = 0 if type(rows[0]) in (Lease, Watch, Buried) else shard_of(task, SHARDS)
        yield shard, rows, 100 + 3 * number


def _row(rng: random.Random, task: int, number: int, tasks: int) -> Row:
    node, other = rng.choice(NODES), rng.choice((*NODES, -1))
    attempt, move = rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 1, 2, 3, 4))
    parent = rng.randrange(tasks) * 32
    key = outbox_key(task, rng.randrange(3))
    kinds: list[Row] = [
        *[Finish(task, attempt, node, made(task, node))] * 6,
        Finish(task, attempt, node, (), "bad", b"Bad()"),
        *[Satisfy(task, parent, node, made(parent, other))] * 6,
        *[Claim(task, other, move, node, why) for why in (MOVE, MOVE, ANNOUNCE, RETRY, REPLICATE)],
        Clear(node, (key,)),
        Cancel(task, node, rng.choice(("", "bad")), rng.choice((-1, parent))),
        Unready(task, node, move, (parent,)),
        Remake(task, parent, node, NODES),
        Spawn(task, attempt, node, (spawned_id(task, attempt, number),)),
        Suspend(task, attempt, node, (parent,)),
        Open(task, node),
        Register(task, parent, rng.random() < 0.5),
        Retain(task, rng.choice((0, 7))),
        *[Release(task, holder, attempt) for holder in (0, 0, 7, -1)],
        AddPlace(task, task, node),
        DropPlace(task, task, node),
        Submit(TaskSpec(10_000 + number, outputs=(10_000 + number,)), (), node),
        *[Lease(node, 0)] * 3,
        Lease(number << 32 | node, 0, info(number << 32 | node)),
        Watch(0),
        TakeOver(rng.choice(NODES), node, 0, 3),
        Buried(rng.choice(NODES), node),
        *[Inspect(task), Locate(task), Owned(node), ReadLog(0)],
        TrimLog(number // 8),
        EnrolNode(b"%d" % rng.randrange(5)),
        UseStrategy(rng.choice(("flds", "rlds")), rng.randrange(10)),
    ]
    return rng.choice(kinds)


def image(store: MemoryStore) -> bytes:
    """All that a store keeps, to the byte."""
    return b"".join(map(msgspec.msgpack.encode, parts_of(store, 0)))
