"""What only the store in memory does for sessions: how often it looks at its records."""

from typing import Any

from daws.model.task import TaskSpec, spawned_id
from daws.store.memory import MemoryStore
from daws.store.memory.sessions import FOUND_MAX
from daws.wire.store import (
    CLIENT_HOLDER,
    OK,
    SESSION_BITS,
    Cancel,
    CloseSession,
    Create,
    FindHeld,
    Finish,
    ForgetSession,
    HeldTasks,
    Release,
    Submit,
)

FIRST = 1 << SESSION_BITS


class CountedRecords(dict[int, Any]):
    """Records that count how often all of them are looked at."""

    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()


def store_with(tasks: int, session: int = 1) -> tuple[MemoryStore, CountedRecords]:
    store = MemoryStore(retired_max=1000)
    store.shards[0].records = records = CountedRecords()
    first = session << SESSION_BITS
    store.apply(0, [Submit(TaskSpec(first + number), (), 0) for number in range(tasks)], 0)
    return store, records


def part(store: MemoryStore, start: int, session: int = 1, limit: int = 10) -> HeldTasks:
    answer = store.apply_one(0, FindHeld(session, start, limit), 0)
    assert isinstance(answer, HeldTasks)
    return answer


def all_parts(store: MemoryStore, limit: int = 10) -> list[int]:
    found, start = list[int](), 0
    while True:
        answer = part(store, start, limit=limit)
        found += [one.task for one in answer.tasks]
        if not answer.more:
            return found
        start = answer.tasks[-1].task + 1


def test_a_session_is_searched_once_however_many_parts_are_asked_for():
    store, records = store_with(95)
    assert all_parts(store) == list(range(FIRST, FIRST + 95))
    assert records.walks == 1
    assert not store.shards[0].found, "nothing is kept when all parts were asked for"


def test_parts_say_how_the_tasks_are_when_they_are_asked_for():
    store, _ = store_with(30)
    assert part(store, 0).more
    gone = range(FIRST + 10, FIRST + 25)
    store.apply(0, [Cancel(task, 0) for task in gone], 0)
    for task in gone:
        store.shards[0].outbox.clear()
        store.apply_one(0, Release(task, CLIENT_HOLDER), 0)
    rest = part(store, FIRST + 10)
    assert [one.task for one in rest.tasks] == list(range(FIRST + 25, FIRST + 30))
    assert not rest.more


def test_a_search_that_begins_again_sees_what_has_come_meanwhile():
    store, records = store_with(20)
    assert part(store, 0).more
    store.apply_one(0, Submit(TaskSpec(FIRST + 20), (), 0), 0)
    assert all_parts(store) == list(range(FIRST, FIRST + 21))
    assert records.walks == 2


def test_a_part_that_is_asked_for_after_a_restart_is_found_all_the_same():
    store, records = store_with(30)
    answer = part(store, FIRST + 10)
    assert [one.task for one in answer.tasks] == list(range(FIRST + 10, FIRST + 20))
    assert answer.more and records.walks == 1


def test_searches_of_askers_that_have_died_do_not_add_up():
    store, _ = store_with(20)
    for session in range(1, 3 * FOUND_MAX):
        store.apply(0, [Submit(TaskSpec((session << SESSION_BITS) + number), (), 0) for number in range(20)], 0)
        assert part(store, 0, session).more
    assert len(store.shards[0].found) == FOUND_MAX


def test_nothing_is_left_of_the_tasks_of_a_session_that_was_forgotten():
    store, records = store_with(30)
    store.apply(0, [Submit(TaskSpec((2 << SESSION_BITS) + number), (), 0) for number in range(3)], 0)
    for task in range(FIRST, FIRST + 30):
        store.apply(0, [Finish(task, 0, 0), Release(task, CLIENT_HOLDER)], 0)
    created = spawned_id(FIRST, 0, 1)
    store.apply(0, [Create(TaskSpec(created, FIRST + 1), owner=0), Finish(created, 0, 0)], 0)
    assert store.apply(0, [CloseSession(1), ForgetSession(1)], 0) == [OK, OK]
    left = [task for task in records if task >> SESSION_BITS != 2]
    assert left == [created], "its number does not say of which session it is, so it might be created again"
