from daws.strategy.place.held import best_holder, held_bytes
from tests.unit.strategy.fakes import FakeView, members_of, ready_of


def test_bytes_by_node_among_those_that_can_run_it():
    members = members_of(4, contexts={1: "gpu", 2: "gpu"})
    ready = ready_of((1, 5, -1, (1, 3)), (2, 7, -1, (1, 77)), (3, 9, -1, ()), context="gpu")
    assert held_bytes(FakeView(members=members, node=2, objects=frozenset([3])), ready) == {1: 12, 2: 9}


def test_this_node_if_it_has_as_many_as_any():
    assert best_holder(FakeView(), {}) == -1
    assert best_holder(FakeView(), {1: 5, 2: 6, 0: 5}) == 2
    assert best_holder(FakeView(), {1: 5, 0: 5}) == 0
