import pytest

from daws.strategy.balance.lifelines import BalanceLifelines
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of


def lifelines(node: int, count: int) -> list[int]:
    return BalanceLifelines(tries=0).targets(FakeView(node=node, members=members_of(count)), SplitMix64(0))


def test_random_nodes_first_then_the_lifelines():
    balance = BalanceLifelines()
    fresh, tired = FakeView(failed_steals=1), FakeView(failed_steals=2)
    assert not balance.leaves_name(fresh) and len(balance.targets(fresh, SplitMix64(0))) == 1
    assert balance.leaves_name(tired) and balance.targets(tired, SplitMix64(0)) == [1, 2]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 64, 100])
def test_work_gets_from_anywhere_to_anywhere_in_few_steps(count: int):
    for node in (0, count // 2, count - 1):
        own = lifelines(node, count)
        assert len(own) == len(set(own)) == (count - 1).bit_length() and node not in own
    reached, steps = {0}, 0
    while len(reached) < count:
        reached |= {other for node in reached for other in lifelines(node, count)}
        steps += 1
    assert steps <= (count - 1).bit_length()


def test_who_is_no_member_has_none():
    assert lifelines(9, 4) == []


def test_half_and_at_a_constant_pace():
    balance, view = BalanceLifelines(), FakeView(failed_steals=1)
    assert [balance.amount(view, available) for available in (1, 9, 10_000)] == [1, 4, 256]
    assert balance.after_failure(view) == balance.after_success(view) == (1_000_000, 1)
    reasons = balance.explain(view, [(1, 0), (2, 5)])
    assert reasons["choice"] == balance.pick(view, [(1, 0), (2, 5)]) == 2
    assert (reasons["failed_steals"], reasons["tries"], reasons["lifelines"]) == (1, 2, [1, 2])
