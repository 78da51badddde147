from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of


def test_workers_ask_the_first_member_and_the_master_asks_nobody():
    balance = BalanceMasterWorker()
    assert balance.targets(FakeView(node=3), SplitMix64(0)) == [0]
    assert balance.targets(FakeView(node=0), SplitMix64(0)) == []
    assert balance.targets(FakeView(members=members_of(0)), SplitMix64(0)) == []
    assert (balance.mode, balance.asks_load, balance.from_head) == ("steal", False, True)


def test_one_task_at_a_constant_pace():
    balance, view = BalanceMasterWorker(), FakeView()
    assert [balance.amount(view, available) for available in (0, 1, 9)] == [0, 1, 1]
    assert balance.start_neighbours(100) == 1
    assert balance.after_failure(view) == balance.after_success(view) == (balance.start_poll_ns(), 1)
    assert balance.start_poll_ns() == 20_000_000


def test_explain_agrees():
    balance = BalanceMasterWorker()
    for loads, choice in (([(0, 3)], 0), ([(0, 0)], -1)):
        assert balance.explain(FakeView(), loads)["choice"] == balance.pick(FakeView(), loads) == choice
