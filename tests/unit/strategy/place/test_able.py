from daws.model.context import parse_context
from daws.model.task import Needs
from daws.strategy.place.able import draw_able, may_run
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of

GPU = Needs(1, parse_context("gpu"))


def test_may_run():
    view = FakeView(members=members_of(3, contexts={1: "gpu"}))
    assert [may_run(view, node, None) for node in range(4)] == [True, False, True, False]
    assert [may_run(FakeView(), node, None) for node in range(6)] == [True] * 4 + [False] * 2
    assert [may_run(view, node, GPU) for node in range(4)] == [False, True, False, False]
    assert [may_run(view, node, Needs(cores=9)) for node in range(4)] == [False] * 4


def test_draw_able():
    view = FakeView(members=members_of(9, contexts={1: "gpu", 7: "gpu"}))
    rng = SplitMix64(1)
    assert {draw_able(view, GPU, rng) for _ in range(50)} == {1, 7}
    assert {draw_able(view, None, rng) for _ in range(200)} == {0, 2, 3, 4, 5, 6, 8}
    assert draw_able(view, Needs(cores=9), rng) == -1
    assert draw_able(FakeView(members=members_of(0)), None, rng) == -1
