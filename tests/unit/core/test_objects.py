"""Objects: fetched before a run, kept while they are read, made again when they are lost."""

from typing import Any

from daws.core.effects import CallStore, DropObject, FetchObjects, StartRun
from daws.core.events import ObjectsPut, RunEnded
from daws.core.node import SECOND_NS, NodeConfig
from daws.core.objects import RELEASE_TICKS, RELEASES_MIN, copies_bytes_max
from daws.model.cluster import Members, NodeInfo
from daws.model.states import DONE as STATE_DONE
from daws.model.task import CLIENT, INLINE_BYTES, REMAKE, Input, Ready
from daws.store.memory import MemoryStore
from daws.testing import Driver, created, members_of, ready
from daws.testing.build import BIG, fetched, not_fetched, object_at
from daws.wire.messages import Releases, StopDone, StopOrder, Submission, SubmissionTaken
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    Available,
    Claim,
    Committed,
    Finish,
    Granted,
    Leased,
    Noted,
    Release,
    Remake,
    Satisfy,
    Unready,
    Watch,
)

TICK = 0


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, node.core.executors.token, tasks))
    node.expect(SubmissionTaken)


def node_with(strategy: str = "mlb", cores: int = 1, **more: Any) -> Driver:
    return Driver(strategy, cores=cores, config=NodeConfig(lease_ns=8 * SECOND_NS, **more))


def test_what_a_task_reads_is_fetched_first_and_holds_no_executor():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 1), object_at(9, 2)), ready(2))
        assert {node.expect_fetch(source=1).object, node.expect_fetch(source=2).object} == {8, 9}
        run = node.expect(StartRun, task=2)
        node.give(fetched(8, 1))
        node.give(fetched(9, 2))
        node.give(RunEnded(2, run.run, 50_000_000))
        node.expect(StartRun, task=1)
        node.expect(CallStore)
        assert node.core.objects.moved_bytes == 2 * BIG


def test_small_objects_travel_inside_records():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 1, size_bytes=INLINE_BYTES)))
        node.expect(StartRun, task=1)


def test_what_is_here_is_not_fetched():
    with node_with() as node:
        node.give(ObjectsPut(((8, BIG),)))
        submit(node, ready(1, object_at(8, 0)))
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, 50_000_000))
        node.expect(CallStore)
        assert node.core.objects.local_hits == 1


def test_one_fetch_serves_all_who_wait():
    with node_with(cores=2) as node:
        submit(node, ready(1, object_at(8, 1)), ready(2, object_at(8, 1)))
        node.expect_fetch(8)
        node.give(fetched(8, 1))
        for task in (1, 2):
            node.give(RunEnded(task, node.expect(StartRun, task=task).run, 50_000_000))
            node.expect(CallStore)
        assert node.core.objects.cache_hits == 1


def test_other_places_are_tried_before_an_object_counts_as_lost():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 1, 2)))
        node.expect_fetch(source=1)
        node.give(not_fetched(8, 1))
        node.expect_fetch(source=2)
        node.give(not_fetched(8, 2))
        node.expect_rows(Unready(1, 0, 0, (8,)))


def test_an_executor_that_was_kept_for_what_is_lost_takes_the_next_task():
    """The third task stands behind two that are being fetched for, as many as may be at a time."""
    with node_with("mlb:order=submission", cores=1) as node:
        submit(node, ready(1, object_at(8, 77)), ready(2, object_at(8, 77)), ready(3))
        call = node.expect_rows(Watch(1))
        assert not node.core.executors.running
        node.answer(call, Leased(None))
        node.expect(StartRun, task=3)
        assert {type(row) for row in node.expect(CallStore).rows} == {Unready}


def test_what_was_put_from_outside_comes_from_the_client_at_last():
    with node_with() as node:
        submit(node, ready(1, Input(8, BIG, -1, (2, CLIENT), b"")))
        node.expect_fetch(source=2)
        node.give(not_fetched(8, 2))
        node.expect_fetch(source=CLIENT)


def test_places_that_are_gone_are_not_even_asked():
    with node_with() as node:
        submit(node, ready(1, Input(8, BIG, -1, (77, 0, 1, CLIENT), b"")))
        node.expect_fetch(source=1)
        node.give(not_fetched(8, 1))
        node.expect_fetch(source=CLIENT)
        node.give(fetched(8, CLIENT))
        node.expect(StartRun, task=1)


def joined_by(*newcomers: int) -> Leased:
    """Beside the three that all know: version 2 if it is one, 3 if they are two."""
    return Leased(Members(1 + len(newcomers), (*members_of(3).infos, *(NodeInfo(one, ()) for one in newcomers))))


def test_who_joined_a_moment_ago_is_asked_for_what_it_has():
    with node_with() as node:
        submit(node, ready(1, Input(8, BIG, -1, (1, 77), b"")))
        node.expect_fetch(source=1)
        node.give(not_fetched(8, 1))
        call = node.expect_rows(Watch(1))
        assert call.shard == MEMBERSHIP_SHARD
        node.answer(call, joined_by(77))
        node.expect_fetch(8, source=77)
        node.give(fetched(8, 77))
        node.expect(StartRun, task=1)


def test_only_what_has_no_place_after_all_is_given_up():
    with node_with(cores=3) as node:
        submit(node, ready(1, object_at(8, 77), object_at(9, 78), object_at(10, 1)))
        node.expect_fetch(10, source=1)
        call = node.expect(CallStore)
        node.give(not_fetched(10, 1))  # whether it is all that is lost is not known yet
        node.answer(call, joined_by(77))
        node.expect_fetch(8, source=77)
        node.expect_rows(Unready(1, 0, 0, (9,)))


def test_what_came_up_since_the_store_was_asked_is_asked_about_again():
    with node_with(cores=2) as node:
        submit(node, ready(1, object_at(8, 77)))
        call = node.expect_rows(Watch(1))
        submit(node, ready(2, object_at(9, 78)))
        node.answer(call, joined_by(77))
        node.expect_fetch(8, source=77)
        node.answer(node.expect_rows(Watch(2)), joined_by(77, 78))
        node.expect_fetch(9, source=78)


def test_what_is_called_off_while_it_is_in_doubt_is_forgotten():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 77)))
        call = node.expect(CallStore)
        assert node.core.fetching.waiting is not None
        node.core.fetching.waiting.clear()
        node.answer(call, Leased(None))
        assert not node.core.fetching.coming and node.core.fetching.doubted is None


def test_a_lost_object_from_outside_fails_its_reader():
    with node_with() as node:
        submit(node, ready(1, Input(8, BIG, -1, (2,), b"")))
        node.expect_fetch(source=2)
        node.give(not_fetched(8, 2))
        row = node.expect(CallStore).rows[0]
        assert isinstance(row, Finish) and "ObjectLost" in row.error and "8" in row.error


def test_a_copy_goes_when_nobody_reads_it_and_the_strategy_keeps_none():
    with node_with("mlb:cache=none") as node:
        submit(node, ready(1, object_at(8, 1)))
        node.expect_fetch()
        node.give(fetched(8, 1))
        run = node.expect(StartRun)
        assert 8 in node.core.objects.sizes
        node.give(RunEnded(1, run.run, 50_000_000))
        node.expect(DropObject, object=8)
        node.expect(CallStore)


def test_copies_are_dropped_when_memory_is_full_but_not_those_in_use():
    with node_with("mlb:cache=all", cores=2, memory_bytes=2 * BIG) as node:
        for task in (1, 2):
            submit(node, ready(task, object_at(10 + task, 1)))
            node.expect_fetch()
            node.give(fetched(10 + task, 1))
        first = node.expect(StartRun, task=1)
        node.expect(StartRun, task=2)
        node.give(RunEnded(1, first.run, 50_000_000))
        node.expect(CallStore)
        submit(node, ready(3, object_at(13, 1)))
        node.expect_fetch()
        node.give(fetched(13, 1))
        node.expect(DropObject, object=11)
        node.expect(StartRun, task=3)
        assert set(node.core.objects.sizes) == {12, 13}


def dropped_third(strategy: str) -> int:
    """Two copies fill the room, the first is read once more, then a third one comes: which one goes?"""
    with node_with(strategy) as node:
        for number, object_ in enumerate((8, 9, 8, 7), 1):
            submit(node, ready(number, object_at(object_, 1)))
            if object_ not in node.core.objects.sizes:
                node.expect_fetch(object_)
                node.give(fetched(object_, 1))
            run = node.expect(StartRun, task=number)
            node.give(RunEnded(number, run.run, 50_000_000))
            node.answer(node.expect(CallStore), Committed(-1))
        gone = node.expect(DropObject).object
        node.drop(object)
        return gone


def test_what_was_not_read_for_the_longest_time_goes_first_or_what_came_first():
    room = 2 * BIG / 1e9
    assert dropped_third(f"constellation:cache=lru,lru-gb={room:g}") == 9
    with node_with("constellation:cache=all", memory_bytes=2 * BIG) as node:
        assert (copies_bytes_max(node.core), node.core.strategy.traits.cache.by_use) == (2 * BIG, False)
    with node_with("constellation:cache=lru,lru-gb=1", memory_bytes=2 * BIG) as node:
        assert (copies_bytes_max(node.core), node.core.strategy.traits.cache.by_use) == (2 * BIG, True)


def test_an_object_that_arrives_too_late_is_dropped():
    with node_with() as node:
        node.give(fetched(8, 1))
        submit(node, ready(1, object_at(8, 1)))
        node.expect_fetch()


def test_an_object_that_was_made_here_while_a_copy_was_fetched_stays():
    """The file of the copy is the file of the object."""
    with node_with(cores=2) as node:
        submit(node, ready(1, object_at(8, 1)), ready(8, makes=[8]))
        node.expect_fetch(source=1)
        node.give(RunEnded(8, node.expect(StartRun, task=8).run, 50_000_000, (BIG,)))
        node.expect(CallStore)
        node.give(StopOrder(1, 1, 0, 0))
        node.expect(StopDone)
        node.give(fetched(8, 1))
        assert node.core.objects.sizes == {8: BIG} and not node.core.objects.copies


def test_the_places_of_an_input_learn_that_it_was_read():
    """What was put in from outside has two."""
    with node_with() as node:
        submit(node, ready(1, object_at(8, 2, 1)))
        node.expect_fetch()
        node.give(fetched(8, 2))
        node.give(RunEnded(1, node.expect(StartRun).run, 50_000_000))
        node.answer(node.expect(CallStore), Committed(-1))
        for _ in range(RELEASE_TICKS):
            assert not node.effects, "one release alone is not worth a message at once"
            node.fire(TICK)
            node.answer(node.expect(CallStore), Leased())
        for place in (2, 1):
            assert node.expect(Releases, to=place).pairs == ((8, 1),)


def test_many_releases_for_one_place_leave_with_the_next_tick():
    with node_with() as node:
        for task in range(RELEASES_MIN):
            submit(node, ready(task, object_at(100 + task, 2)))
            node.expect_fetch()
            node.give(fetched(100 + task, 2))
            node.give(RunEnded(task, node.expect(StartRun).run, 50_000_000))
            node.answer(node.expect(CallStore), Committed(-1))
        node.fire(TICK)
        assert node.expect(Releases, to=2).pairs == tuple((100 + task, task) for task in range(RELEASES_MIN))
        node.answer(node.expect(CallStore), Leased())


def test_inputs_of_the_next_tasks_are_fetched_while_others_run():
    with node_with() as node:
        submit(node, ready(1, object_at(7, 1)))
        node.expect_fetch(7)
        node.give(fetched(7, 1))
        node.expect(StartRun, task=1)
        submit(node, ready(2, object_at(8, 1)))
        node.expect_fetch(8)


def test_executors_that_fetch_for_themselves_run_nothing_meanwhile():
    with node_with(cores=2, fetches_ahead=False) as node:
        submit(node, *(ready(task, object_at(10 + task, 1)) for task in (1, 2, 3)), ready(4))
        assert [node.expect_fetch(source=1).object for _ in range(2)] == [11, 12]
        node.nothing_left()
        node.give(fetched(11, 1))
        run = node.expect(StartRun, task=1)
        node.give(fetched(12, 1))
        node.expect(StartRun, task=2)
        node.nothing_left()
        node.give(RunEnded(1, run.run, 50_000_000))
        node.expect_fetch(13)
        node.expect(CallStore)


def lost(node: Driver) -> None:
    """Task 1 reads what task 8 made on node 2, which does not have it any more."""
    submit(node, ready(1, object_at(8, 2), move=3))
    node.expect_fetch()
    node.give(not_fetched(8, 2))
    node.answer(node.expect_rows(Unready(1, 0, 3, (8,))), Noted(99, 5))


def test_a_lost_object_is_made_again_by_whoever_claims_it():
    with node_with() as node:
        lost(node)
        call = node.expect(CallStore)
        (row,) = call.rows
        assert isinstance(row, Remake) and (row.task, row.waiter, row.gone, row.need) == (8, 1, (2,), 5)
        node.answer(call, ready(8, attempt=1, move=7, mode=REMAKE, makes=[8]))
        call = node.expect(CallStore)
        (row,) = call.rows
        assert isinstance(row, Claim) and (row.task, row.owner, row.move) == (8, -1, 7)
        node.answer(call, Granted(8, 1, REMAKE))
        run = node.expect(StartRun, task=8)
        node.give(RunEnded(8, run.run, 50_000_000, (BIG,)))
        node.answer(node.expect(CallStore), Committed(32, (1,), mark=6, needs=(5,), readers=(1,)))
        (row,) = node.expect(CallStore).rows
        assert isinstance(row, Satisfy) and (row.task, row.parent, row.need) == (1, 8, 5)


def test_an_object_that_somebody_else_has_is_told_at_once():
    with node_with() as node:
        lost(node)
        node.answer(node.expect(CallStore), Available((object_at(8, 1),)))
        (row,) = node.expect(CallStore).rows
        assert isinstance(row, Satisfy) and (row.inputs, row.need) == ((object_at(8, 1),), 5)


def test_all_that_was_lost_with_a_node_is_asked_for_at_once():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 5), object_at(9, 5), object_at(7, 2)))
        node.drop(FetchObjects)
        node.answer(node.expect_rows(Watch(1)), Leased(None))
        rows = [row for effect in node.effects if isinstance(effect, CallStore) for row in effect.rows]
        assert [row.producers for row in rows if isinstance(row, Unready)] == [(8, 9)]
        node.drop(CallStore)


def with_copy(node: Driver) -> StartRun:
    """Object 8 is here as a copy, and task 8, which makes it, runs here too."""
    submit(node, ready(1, object_at(8, 1)))
    node.expect_fetch()
    node.give(fetched(8, 1))
    node.give(RunEnded(1, node.expect(StartRun, task=1).run, 50_000_000))
    node.answer(node.expect(CallStore), Committed(-1))
    submit(node, ready(8, attempt=1, mode=REMAKE, makes=[8]))
    run = node.expect(StartRun, task=8)
    node.give(RunEnded(8, run.run, 50_000_000, (BIG,)))
    return run


def test_what_is_made_here_is_a_copy_no_more():
    with node_with("mlb:cache=all") as node:
        with_copy(node)
        node.answer(node.expect(CallStore), Committed(32, (2,), mark=6, needs=(5,), readers=(2,)))
        node.expect(CallStore)
        assert not node.core.objects.copies and node.core.objects.copied_bytes == 0
        node.give(Releases(1, ((8, 2),)))
        node.expect(DropObject, object=8)
        assert not node.core.objects.sizes
        node.expect_rows(Release(8, -1, 1))
        assert not node.core.objects.attempts


def test_a_copy_outlives_a_run_that_made_the_same_in_vain():
    with node_with("mlb:cache=all") as node:
        with_copy(node)
        node.answer(node.expect(CallStore), STATE_DONE)
        assert node.core.objects.sizes == {8: BIG} and node.core.objects.copied_bytes == BIG


def test_a_chain_is_remade_from_where_it_broke():
    """3 reads 2 reads 1; what 1 and 2 made was on a node that is gone."""
    store = MemoryStore()
    store.join(members_of(2).infos)
    graph: dict[int, list[int]] = {1: [], 2: [1], 3: [2]}
    store.apply(0, created(graph, 1), 0)
    child: object = None
    for task in (1, 2):
        store.apply(0, [Finish(task, 0, 1, (object_at(task, 1),))], 0)
        (child,) = store.apply(0, [Satisfy(task + 1, task, 1 if task == 1 else 0, (object_at(task, 1),))], 0)
        assert isinstance(child, Ready)
    assert isinstance(child, Ready)
    node = Driver("mlb", members=Members(2, members_of(1).infos))
    submit(node, child)
    runs = []
    node.serve(store)
    while any(isinstance(effect, StartRun) for effect in node.effects):
        run = node.expect(StartRun)
        runs.append(run.ready.spec.id)
        node.give(RunEnded(run.ready.spec.id, run.run, 50_000_000, (BIG,)))
        node.serve(store)
    assert runs == [1, 2, 3]
    assert [record.state for record in store.shards[0].records.values() if record is not None] == [STATE_DONE] * 3
