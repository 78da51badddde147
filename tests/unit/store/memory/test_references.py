"""What only the store in memory does: it forgets sinks together with their parent, in whichever shard they are."""

import pytest

from daws.store.memory import MemoryStore
from daws.testing import created
from daws.testing.build import object_at
from daws.wire.store import Clear, Committed, Finish, Release, Satisfy


@pytest.mark.parametrize("one_shard", [True, False])
def test_sinks_are_forgotten_together_with_their_parent(one_shard: bool):
    """Nobody reads what they made, so nobody ever releases them."""
    child = 2 if one_shard else 65
    store = MemoryStore(2)
    for row in created({1: [], child: [1]}, 0):
        store.apply(row.spec.id >> 6, [row], 0)
    given = (object_at(1, 0),)
    (told,) = store.apply(0, [Finish(1, 0, 0, given)], 0)
    assert isinstance(told, Committed)
    store.apply(child >> 6, [Satisfy(child, 1, 0, given)], 0)
    store.apply(0, [Clear(0, (told.key,), (told.mark,)), Release(1)], 0)
    assert store.record(1) is not None, "its child may still need it"
    assert store.apply(child >> 6, [Finish(child, 0, 0, (object_at(child, 0),))], 0) == [Committed(-1)]
    assert store.record(child) is not None
    store.apply(0, [Release(1)], 0)
    assert store.record(1) is None and store.record(child) is None
