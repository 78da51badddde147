"""One caller and a shard that is a dictionary: conflicts, lost answers, and a server that went back in time."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from daws.model.task import Input, TaskSpec
from daws.store.valkey import caller as module
from daws.store.valkey.attempt import DropEstate, Outage, StoreOptions, Tidy
from daws.store.valkey.caller import DONE, Commit, Fetch, Range, Scan, ShardCaller, StoreChangedError
from daws.store.valkey.cells import node_bytes
from daws.wire.store import (
    CANCELLED,
    CLIENT_HOLDER,
    OK,
    REFUSED,
    SESSION_BITS,
    SHARD_BLOCK_BITS,
    AnswerType,
    Buried,
    Claim,
    Clear,
    CloseSession,
    Create,
    Estate,
    FindHeld,
    Finish,
    ForgetSession,
    Granted,
    HeldTasks,
    Inspect,
    Lease,
    Leased,
    Log,
    Owned,
    ReadLog,
    Release,
    Row,
    Satisfy,
    Submit,
    TakeOver,
    TrimLog,
    shard_of,
)
from daws.wire.store import DONE as HAS_ENDED
from tests.contract.store.desk import info
from tests.valkey import ShardInMemory

ANN, BOB = 1, 2


class Shard(ShardInMemory):
    def run(
        self, caller: ShardCaller, rows: Sequence[Row], now_ns: int = 0, outage: Outage | None = None
    ) -> list[AnswerType]:
        script = caller.carry_out(rows, now_ns, outage)
        request = next(script)
        while True:
            try:
                request = script.send(self.answer(request))
            except StopIteration as end:
                answers: list[AnswerType] = end.value.answers
                return answers


def a_caller(**options: Any) -> ShardCaller:
    return ShardCaller(StoreOptions(**options), 0)


def submit(task: int, node: int = ANN) -> Submit:
    return Submit(TaskSpec(task), (), node)


def test_who_submits_and_finishes_needs_one_round_trip_for_each():
    shard, caller = Shard(), a_caller()
    shard.run(caller, [submit(task) for task in range(10)])
    shard.asked.clear()
    shard.run(caller, [submit(task) for task in range(10, 20)])
    shard.run(caller, [Finish(task, 0, ANN) for task in range(20)])
    assert [type(request) for request in shard.asked] == [Commit, Commit]
    assert len(shard.log) == 20


def test_all_that_is_missing_is_fetched_at_once():
    shard = Shard()
    shard.run(a_caller(), [submit(task) for task in range(10)])
    shard.asked.clear()
    shard.run(a_caller(), [Finish(task, 0, ANN) for task in range(10)])
    assert [type(request) for request in shard.asked] == [Fetch, Fetch, Commit], "who is dead, the tasks, the update"


def test_of_two_who_claim_at_the_same_time_one_is_refused():
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(1)])
    shard.before = lambda: granted.extend(shard.run(bob, [Claim(1, ANN, 0, BOB)]))
    granted: list[AnswerType] = []
    assert shard.run(ann, [Claim(1, ANN, 0, 3)]) == [REFUSED]
    assert isinstance(granted[0], Granted)


def test_what_others_did_meanwhile_to_other_tasks_is_in_nobodys_way():
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(1)])
    shard.run(bob, [submit(2)])
    shard.before = lambda: finished.extend(shard.run(bob, [Finish(2, 0, ANN)]))
    finished: list[AnswerType] = []
    shard.asked.clear()
    assert shard.run(ann, [Finish(1, 0, ANN)]) == [None]
    assert len(shard.asked) == 2
    assert len(shard.log) == 2


def test_an_update_that_is_said_twice_is_carried_out_once():
    shard, caller = Shard(), a_caller()
    shard.run(caller, [submit(1), Finish(1, 0, ANN)])
    last = shard.asked[-1]
    before = copy.deepcopy((shard.cells, shard.log))
    assert shard.commit(last) == (DONE,)
    shard.run(caller, [submit(2)])
    after = copy.deepcopy((shard.cells, shard.log))
    assert shard.commit(last) == (DONE,), "also when it comes very late"
    assert before[1] == after[1]
    assert (shard.cells, shard.log) == after


def test_a_server_that_went_back_in_time_is_told_apart():
    shard, caller = Shard(), a_caller()
    shard.run(caller, [submit(1)])
    past = copy.deepcopy(shard)
    shard.run(caller, [submit(2)])
    name, position = caller.name, caller.position
    assert position == 2
    with pytest.raises(StoreChangedError):
        past.run(caller, [submit(3)])
    assert b"3" not in past.cells, "nothing of the call was carried out"
    assert caller.name != name and caller.position == 0
    assert past.run(caller, [submit(2), submit(3)]) == [None, None], "then all is as usual"


def test_what_was_read_of_a_lost_future_is_not_taken_for_what_came_instead():
    """The stamps of a server that went back in time are never given out again."""
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(1)])
    past = copy.deepcopy(shard)
    shard.run(ann, [Claim(1, ANN, 0, BOB)])
    shard.run(bob, [Claim(1, ANN, 0, 3)])  # bob has seen that it is BOB's, and written nothing
    past.run(a_caller(), [Claim(1, ANN, 0, 7)])
    assert past.run(bob, [Finish(1, 0, BOB)]) == [REFUSED]


def test_a_reader_hears_that_the_log_was_rewritten():
    shard, writer, reader = Shard(), a_caller(), a_caller()
    shard.run(writer, [submit(1), Finish(1, 0, ANN)])
    past = copy.deepcopy(shard)
    shard.run(writer, [submit(2), Finish(2, 0, ANN)])
    (log,) = shard.run(reader, [ReadLog(0)])
    assert log == Log(2, [1, 2])
    (log,) = shard.run(reader, [ReadLog(2)])
    assert log == Log(2, [])
    past.run(a_caller(), [submit(3), Finish(3, 0, ANN)])
    with pytest.raises(StoreChangedError):
        past.run(reader, [ReadLog(2)])
    assert past.run(reader, [ReadLog(0)]) == [Log(2, [1, 3])]


def test_a_reader_hears_that_commits_were_dropped_and_that_the_log_was_rewritten_behind_them():
    shard, writer, reader = Shard(), a_caller(), a_caller()
    for task in (1, 2):
        shard.run(writer, [submit(task), Finish(task, 0, ANN)])
    past = copy.deepcopy(shard)
    shard.run(writer, [submit(3), Finish(3, 0, ANN)])
    assert shard.run(reader, [ReadLog(0)]) == [Log(3, [1, 2, 3])]
    shard.run(writer, [TrimLog(2)])
    assert shard.run(a_caller(), [ReadLog(0)]) == [Log(3, [3], 2)]
    assert shard.run(a_caller(), [ReadLog(1, 1)]) == [Log(3, [3], 1)]
    shard.run(writer, [TrimLog(3)])
    assert shard.run(reader, [ReadLog(3)]) == [Log(3, [])], "the last one that was dropped is still there to compare"
    past.run(a_caller(), [submit(4), Finish(4, 0, ANN)])
    past.run(a_caller(), [TrimLog(3)])
    with pytest.raises(StoreChangedError):
        past.run(reader, [ReadLog(3)])


def test_rows_of_which_one_is_always_contested_get_through_in_parts(monkeypatch: pytest.MonkeyPatch):
    shard, ann, bob = Shard(), a_caller(), a_caller()
    parents = range(100, 130)
    shard.run(ann, [Create(TaskSpec(1), (*parents, *range(50)), owner=ANN)])
    told = iter(range(50))

    def meddle() -> None:
        shard.run(bob, [Satisfy(1, next(told), BOB)])
        shard.before = meddle if sum(type(one) is Commit for one in shard.asked) < 20 else None

    shard.before = meddle
    monkeypatch.setattr(module, "PATIENCE", 1)
    shard.run(ann, [Satisfy(1, parent, ANN) for parent in parents])
    record = a_caller()
    left = shard.run(record, [Inspect(1)])[0]
    assert set(left.edges) == set(told), "every edge was taken away once"  # type: ignore[union-attr]


def test_an_estate_is_looked_for_once_however_many_parts_it_has():
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(task) for task in range(25)])
    shard.asked.clear()
    taken = []
    for part in range(3):
        (estate,) = shard.run(bob, [TakeOver(ANN, BOB, part, 10)])
        assert isinstance(estate, Estate)
        taken += [one.spec.id for one in estate.ready]
        assert estate.more == (part < 2)
    assert taken == list(range(25))
    assert sum(isinstance(request, Scan) for request in shard.asked) == 1
    assert max(len(request.writes) + len(request.others) for request in shard.asked if isinstance(request, Commit)) < 15
    assert node_bytes(ANN) not in b"".join(cell for name, cell in shard.cells.items() if name.isdigit())


def test_only_so_many_cells_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CACHE_MAX", 20)
    shard, caller = Shard(), a_caller()
    for task in range(100):
        shard.run(caller, [submit(task)])
        assert len(caller.cache) <= 21
    assert shard.run(caller, [Finish(task, 0, ANN) for task in range(100)]) == [None] * 100


def test_while_the_store_was_out_of_reach_no_lease_ran_out():
    shard, caller = Shard(), a_caller(lease_ns=1000)
    shard.run(caller, [Lease(ANN, 0, info(ANN)), Lease(BOB, 0, info(BOB))])
    outage = Outage(900, 5900)
    for who in (a_caller(lease_ns=1000), caller):  # whoever says it, and however many do
        (leased,) = shard.run(who, [Lease(ANN, 2)], 5950, outage)
        assert leased == Leased()
    (leased,) = shard.run(caller, [Lease(ANN, 2)], 6050, outage)
    assert isinstance(leased, Leased) and leased.orphans == (BOB,), "who does not come back is missed in the end"


def drive(shard: Shard, caller: ShardCaller, rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Carry rows out; what is left to do in other shards."""
    script = caller.carry_out(rows, 0)
    request = next(script)
    while True:
        try:
            request = script.send(shard.answer(request))
        except StopIteration as end:
            afterwards: list[tuple[int, Row]] = end.value.afterwards
            return afterwards


def tasks_of(answer: AnswerType) -> list[int]:
    assert isinstance(answer, Estate)
    return [one.spec.id for one in answer.ready]


@pytest.mark.parametrize("asks_again", [Owned(ANN), TakeOver(ANN, BOB)])
def test_what_a_node_got_since_the_last_look_is_found(asks_again: Row):
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(1)])
    assert tasks_of(shard.run(bob, [Owned(ANN)])[0]) == [1]
    shard.run(ann, [submit(2)])
    assert tasks_of(shard.run(bob, [asks_again])[0]) == [1, 2]


def test_an_estate_is_looked_for_on_all_pages():
    class Paged(Shard):
        def answer(self, request: Any) -> Any:
            if not isinstance(request, Scan):
                return super().answer(request)
            _, found = super().answer(request)
            start = int(request.cursor)
            after = start + 6
            return [b"%d" % after if after < len(found) else b"0", found[start:after]]

    shard, ann, bob = Paged(), a_caller(), a_caller()
    shard.run(ann, [submit(task) for task in range(10)])
    assert tasks_of(shard.run(bob, [TakeOver(ANN, BOB)])[0]) == list(range(10))


def test_when_a_dead_node_is_buried_every_shard_drops_its_estate():
    shard, bob = Shard(), a_caller(shard_count=3)
    shard.run(bob, [Lease(ANN, 0, info(ANN)), Lease(BOB, 0, info(BOB)), TakeOver(ANN, BOB)])
    assert drive(shard, bob, [Buried(ANN, BOB)]) == [(1, DropEstate(ANN, BOB)), (2, DropEstate(ANN, BOB))]


def test_each_update_has_marks_of_its_own():
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [Create(TaskSpec(task), (), (task + 10,), (), ANN) for task in (1, 2)])
    shard.run(ann, [Create(TaskSpec(task + 10), (task,)) for task in (1, 2)])
    for task in (1, 2):
        shard.run(ann, [Finish(task, 0, ANN)])
    (estate,) = shard.run(bob, [TakeOver(ANN, BOB)])
    assert isinstance(estate, Estate)
    marks = [entry.mark for entry in estate.outbox]
    assert len(marks) == 2 and len(set(marks)) == 2


def test_a_node_that_was_struck_strikes_nobody():
    shard, ann, bob = Shard(), a_caller(), a_caller()
    shard.run(ann, [submit(1), submit(2, BOB)])
    shard.run(ann, [TakeOver(BOB, ANN)])
    shard.run(bob, [TakeOver(ANN, BOB)])
    assert shard.run(ann, [submit(3)]) == shard.run(ann, [submit(4, 3)]), "it can own tasks as any node can"


def test_a_parent_in_another_shard_is_looked_at_when_its_last_child_has_retired():
    options = StoreOptions(2, direct=True)
    child = 1 << SHARD_BLOCK_BITS
    assert shard_of(1, 2) == 0 and shard_of(child, 2) == 1
    first, second = Shard(), Shard()

    def run(shard: int, *rows: Row) -> list[tuple[int, Row]]:
        script = callers[shard].carry_out(rows, 0)
        request = next(script)
        while True:
            try:
                request = script.send((first, second)[request.shard].answer(request))
            except StopIteration as end:
                left: list[tuple[int, Row]] = end.value.afterwards
                return left

    callers = [ShardCaller(options, 0), ShardCaller(options, 1)]
    run(0, Create(TaskSpec(1, outputs=(1,)), (), (child,), (), ANN))
    run(1, Create(TaskSpec(child, inputs=(1,), leaf=True), (1,)))
    run(0, Finish(1, 0, ANN, (Input(1, 5, 1, (ANN,), b""),)))
    run(1, Satisfy(child, 1, ANN, (Input(1, 5, 1, (ANN,), b""),)))
    (entry,) = first.run(ShardCaller(options, 0), [Owned(ANN, intents=True)])[0].outbox  # type: ignore[union-attr]
    run(0, Clear(ANN, (entry.key,)), Release(1))
    left = run(1, Finish(child, 0, ANN)) + run(1, Release(child))
    assert left == [(0, Tidy(1))]


def test_a_session_is_searched_once_however_many_parts_are_asked_for():
    shard, caller = Shard(), a_caller()
    first = 1 << SESSION_BITS
    shard.run(caller, [submit(first + number) for number in range(40)])
    shard.asked.clear()
    found: list[int] = []
    start = 0
    for more in (True, True, True, False):
        (answer,) = shard.run(caller, [FindHeld(1, start, 12)])
        assert isinstance(answer, HeldTasks) and answer.more == more
        found += [one.task for one in answer.tasks]
        start = found[-1] + 1
    assert found == list(range(first, first + 40))
    assert [type(one) for one in shard.asked].count(Range) == 1
    (again,) = shard.run(caller, [FindHeld(1, first + 30, 12)])
    assert isinstance(again, HeldTasks) and len(again.tasks) == 10, "a part that is asked for without those before it"


def test_nothing_is_left_of_the_tasks_of_a_session_that_was_forgotten():
    shard, caller, other = Shard(), a_caller(), a_caller()
    first = 1 << SESSION_BITS
    tasks = [*range(first, first + 5)]
    shard.run(caller, [submit(task) for task in tasks])
    shard.run(other, [Finish(task, 0, ANN) for task in tasks])
    shard.run(caller, [submit(2 << SESSION_BITS), CloseSession(1)])
    shard.run(caller, [Release(task, CLIENT_HOLDER) for task in tasks])
    assert shard.run(caller, [ForgetSession(1)]) == [OK]
    assert [int(name) for name in shard.cells if name.isdigit()] == [2 << SESSION_BITS]
    assert shard.run(other, [submit(task) for task in tasks]) == [CANCELLED] * 5, "what it has cached is out of date"
    assert shard.run(other, [Finish(first, 0, ANN)]) == [HAS_ENDED]
