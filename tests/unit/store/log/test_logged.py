"""Calls that were noted, carried out again, give the same state; and what of it is noted at all."""

import msgspec
import pytest

from daws.model.errors import StoreFullError
from daws.store.log.logged import LoggedCall, LoggedStore, StoreSettings, carry_out, go_on, set_up
from daws.store.memory import MemoryStore
from daws.wire.store import STRUCK, Inspect, Lease, Leased, Owned, ReadLog, Watch
from tests.unit.store.log.worlds import LEASE_NS, SHARDS, calls, image, info

SETTINGS = StoreSettings(SHARDS, LEASE_NS, direct=True)


class Notes(list[LoggedCall]):
    """A log that may be full."""

    is_full = False

    def check(self) -> None:
        if self.is_full:
            raise StoreFullError("full")


def again(notes: Notes, settings: StoreSettings, now_ns: int) -> MemoryStore:
    """From the notes as they would come back from a file."""
    store = MemoryStore(settings.shard_count)
    set_up(store, settings)
    carry_out(store, msgspec.msgpack.decode(msgspec.msgpack.encode(list(notes)), type=list[LoggedCall]))
    go_on(store, settings, now_ns)
    return store


@pytest.mark.parametrize("seed", range(12))
def test_what_was_noted_gives_the_same_state_at_any_time(seed):
    settings = StoreSettings(
        SHARDS, LEASE_NS, history=seed % 3 == 0, direct=seed % 2 == 0, retired_max=5 if seed % 4 < 2 else 0
    )
    notes = Notes()
    store = LoggedStore(settings, notes)
    for number, call in enumerate(calls(seed, 300)):
        store.apply(*call)
        if number % 50 == 49:
            assert image(again(notes, settings, 0)) == image(store)
    assert image(again(notes, settings, 0)) == image(store)


@pytest.mark.parametrize("direct", [True, False])
def test_it_answers_as_the_store_in_memory_does(direct):
    store = LoggedStore(StoreSettings(SHARDS, LEASE_NS, direct=direct), Notes())
    plain = MemoryStore(SHARDS, LEASE_NS, direct=direct)
    for shard, rows, now_ns in calls(99, 300):
        assert store.apply(shard, rows, now_ns) == plain.apply(shard, rows, now_ns)
    assert image(store) == image(plain)


def test_reading_and_renewing_is_not_noted():
    notes = Notes()
    store = LoggedStore(SETTINGS, notes)
    store.join([info(1), info(2)])
    assert len(notes) == 1
    store.apply(0, [Lease(1, 0), Lease(2, 0, info(2)), Watch(0), ReadLog(0), Inspect(1), Owned(1)], 100)
    assert len(notes) == 1
    assert store.leases == {1: 100 + LEASE_NS, 2: 100 + LEASE_NS}


def test_whoever_lost_its_lease_before_a_restart_stays_struck_and_the_others_get_a_fresh_one():
    notes = Notes()
    store = LoggedStore(SETTINGS, notes)
    store.join([info(1), info(2)])
    store.apply(0, [Lease(1, 0)], 400)
    store.apply(0, [Watch(0)], 600)  # which finds out that the lease of 2 has run out
    restarted = again(notes, SETTINGS, 1_000_000)
    assert restarted.leases == {1: 1_000_000 + LEASE_NS}
    assert restarted.apply(0, [Lease(2, 0)], 1_000_001) == [STRUCK]
    assert restarted.members.version == store.members.version, "else a node might miss the next change"
    assert restarted.apply(0, [Lease(1, store.members.version)], 1_000_001) == [Leased(None, (2,))]


def test_a_store_whose_log_is_full_changes_nothing_and_still_can_be_read():
    notes = Notes()
    store = LoggedStore(SETTINGS, notes)
    store.join([info(1), info(2)])
    before = image(store)
    notes.is_full = True
    for rows in ([Lease(3, 0, info(3))], [Lease(1, 0, leaving=True)], [ReadLog(0), Lease(3, 0, info(3))]):
        with pytest.raises(StoreFullError):
            store.apply(0, rows, 100)
    assert store.apply(0, [ReadLog(0), Lease(1, 0), Lease(2, 0)], 400)
    with pytest.raises(StoreFullError):
        store.apply(0, [Watch(0)], 400 + LEASE_NS)  # somebody's lease has run out, which would be a change
    assert image(store) == before
    notes.is_full = False
    store.apply(0, [Watch(0)], 400 + LEASE_NS)
    assert [*store.orphans] == [1, 2]


def test_one_row_is_noted_too():
    notes = Notes()
    store = LoggedStore(SETTINGS, notes)
    store.apply_one(0, Lease(1, 0, info(1)), 0)
    assert len(notes) == 1


def test_a_version_of_the_members_is_the_same_after_a_replay_if_a_renewal_saw_it_first():
    settings, notes = StoreSettings(lease_ns=100), Notes()
    store = LoggedStore(settings, notes)
    store.apply(0, [Lease(1, 0, info(1))], 0)
    store.apply(0, [Lease(2, 0, info(2))], 50)
    answers = store.apply(0, [Lease(2, 0), Lease(3, 0, info(3))], 100)
    assert [answer.members.nodes for answer in answers] == [(2,), (2, 3)]  # type: ignore[union-attr]
    assert again(notes, settings, 0).members == store.members
