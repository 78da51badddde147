"""What a client and a node tell each other of cells: nobody fetches a plain task, and nobody is misled."""

import copy

from daws.model.states import DONE, READY
from daws.model.task import Input, Ready, TaskSpec
from daws.store.memory import MemoryStore
from daws.store.valkey import cells
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import Commit, ShardCaller
from daws.store.valkey.told import CacheOf, Runs, Seal, forget_unended, learn_end, learn_stamps, seal_of, stamps_of
from daws.store.valkey.view import CachedRecord
from daws.wire.store import CLIENT_HOLDER, REFUSED, Claim, Finish, Inspect, Register, Release, Row, Submit
from tests.unit.store.valkey.test_caller import Shard

ANN, BOB = 1, 2
TASKS = range(20)


def of(caller: ShardCaller) -> CacheOf:
    """All is in one shard here."""
    return lambda task: caller.cache


def submits(node: int = ANN) -> list[Row]:
    return [Submit(TaskSpec(task, outputs=(task,), payload=b"arguments"), (), node) for task in TASKS]


def ready(tasks: range = TASKS) -> list[Ready]:
    return [Ready(TaskSpec(task, outputs=(task,), payload=b"arguments"), 0, 0) for task in tasks]


def output(task: int) -> tuple[Input]:
    return (Input(task, 3, task, (ANN,), b"out"),)


def finishes(node: int = ANN) -> list[Row]:
    return [Finish(task, 0, node, output(task)) for task in TASKS]


def a_caller() -> ShardCaller:
    return ShardCaller(StoreOptions(direct=True), 0)


def handed_out() -> tuple[Shard, ShardCaller, ShardCaller, Runs]:
    """A shard, a client that has submitted, the owner that was told, and what it was told."""
    shard, client, node = Shard(), a_caller(), a_caller()
    shard.run(client, submits())
    shard.run(node, [Claim(99, BOB, 0, ANN)])  # who is dead is known
    runs = stamps_of(of(client), ready(), ANN)
    learn_stamps(of(node), ready(), ANN, runs)
    shard.asked.clear()
    return shard, client, node, runs


def sealed(node: ShardCaller) -> dict[int, Seal | None]:
    return {task: seal_of(node.cache, task, ANN, output(task)) for task in TASKS}


def test_a_plain_task_is_never_fetched():
    shard, client, node, runs = handed_out()
    assert [count for count, _ in runs] == [len(TASKS)]
    assert shard.run(node, finishes()) == [None] * len(TASKS)
    for task, seal in sealed(node).items():
        assert seal is not None
        learn_end(client.cache, task, ANN, output(task), seal)
    forget_unended(of(client), TASKS)
    assert shard.run(client, [Release(task, CLIENT_HOLDER) for task in TASKS]) == [None] * len(TASKS)
    assert [type(request) for request in shard.asked] == [Commit, Commit]
    assert all(len(shard.cells[b"%d" % task]) == cells.STAMP_BYTES for task in TASKS), "all have retired"
    assert len(shard.log) == len(TASKS)


def test_what_is_believed_is_what_lies_there():
    shard, client, node, _ = handed_out()

    def agree(caller: ShardCaller) -> None:
        for task in TASKS:
            known, cell = caller.cache[task], shard.cells[b"%d" % task]
            assert isinstance(known, CachedRecord)
            assert cells.pack(known.record, None, known.stamp) == cell
            assert cells.unpack(cell) == (known.record, {})

    agree(node)
    shard.run(node, finishes())
    agree(node)
    for task, seal in sealed(node).items():
        assert seal is not None
        learn_end(client.cache, task, ANN, output(task), seal)
    agree(client)


def test_who_is_told_late_is_told_by_the_server():
    """The task was claimed by another node meanwhile."""
    shard, _, node, _ = handed_out()
    shard.run(a_caller(), [Claim(3, ANN, 0, BOB)])
    answers = shard.run(node, finishes())
    assert answers[3] == REFUSED
    assert answers[:3] + answers[4:] == [None] * 19
    assert sealed(node)[3] is None


def test_after_a_failover_nothing_that_was_told_is_written():
    shard, client, node, _ = handed_out()
    shard.cells = {name: cell for name, cell in shard.cells.items() if not name.isdigit()}  # it has forgotten them
    assert set(shard.run(node, finishes())) != {None}
    assert not shard.log
    shard.run(client, submits())
    learn_stamps(of(node), ready(), ANN, stamps_of(of(client), ready(), ANN))
    assert shard.run(node, finishes()) == [None] * len(TASKS)


def test_only_new_tasks_without_anything_else_are_told_of():
    shard, client = Shard(), a_caller()
    shard.run(client, [*submits(), Submit(TaskSpec(50, inputs=(4,)), (4,), ANN)])
    shard.run(client, [Claim(7, ANN, 0, BOB)])
    told = [stamp for count, stamp in stamps_of(of(client), ready(), ANN) for _ in range(count)]
    assert [task for task in TASKS if not told[task]] == [4, 7], "one has a child, one was moved"
    assert not any(stamp for _, stamp in stamps_of(of(client), ready(), BOB)), "they are another node's"


def test_an_end_is_not_believed_of_a_task_that_was_changed_meanwhile():
    shard, client, node, _ = handed_out()
    shard.run(node, finishes())
    seals = sealed(node)
    before = copy.copy(client.cache)
    learn_end(client.cache, 2, BOB, output(2), seals[2] or (b"", b""))
    learn_end(client.cache, 3, ANN, output(3), (b"another", (seals[3] or (b"", b""))[1]))
    assert client.cache == before
    shard.run(client, [Register(5, 50)])
    learn_end(client.cache, 5, ANN, output(5), seals[5] or (b"", b""))
    shard.run(client, [Release(5, CLIENT_HOLDER)])
    assert len(shard.cells[b"5"]) > cells.STAMP_BYTES, "it has a child, and stays"


def test_a_failed_or_moved_task_has_no_seal():
    shard, _, node, _ = handed_out()
    shard.run(node, [Claim(1, ANN, 0, BOB), Finish(1, 0, BOB, output(1)), Finish(2, 0, ANN, (), "no")])
    assert [seal_of(node.cache, task, node_, output(task)) for task, node_ in ((1, BOB), (1, ANN), (2, ANN))] == [
        None
    ] * 3


def test_rows_about_one_task_in_one_call_are_carried_out_in_order():
    """Also where the first of them is served in one go with others."""
    memory, shard, caller = MemoryStore(direct=True), Shard(), a_caller()
    calls: list[list[Row]] = [
        [*submits(), *finishes(), *finishes(), Submit(TaskSpec(30), (3,), ANN), *submits()],
        [Release(task, CLIENT_HOLDER) for task in (*TASKS, *TASKS)],
        [*finishes(), Inspect(3), Finish(30, 0, ANN), Release(30, CLIENT_HOLDER)],
        [Submit(TaskSpec(40), (), ANN), Claim(40, ANN, 0, BOB), Finish(40, 0, ANN), Finish(40, 0, BOB), Inspect(40)],
    ]
    for rows in calls:
        assert shard.run(caller, rows) == memory.apply(0, rows, 0)
    for task in (*TASKS, 30, 40):
        cell = shard.cells[b"%d" % task]
        assert cells.unpack(cell)[0] == memory.record(task)
        assert memory.record(task) is None or memory.record(task).state in (READY, DONE)  # type: ignore[union-attr]
    assert [cells.decode_log_row(entry[cells.STAMP_BYTES :]) for entry in shard.log] == memory.shards[0].log


def test_what_a_node_knows_by_itself_is_not_replaced_by_what_it_is_told():
    shard, _client, node, runs = handed_out()
    shard.run(node, finishes())
    known = dict(node.cache)
    learn_stamps(of(node), ready(), ANN, runs)
    assert node.cache == known
