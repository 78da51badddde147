from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.strategy.balance.random_steal import BalanceRandomSteal
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of


def test_one_random_victim_and_one_task():
    balance, view, rng = BalanceRandomSteal(), FakeView(neighbour_count=1), SplitMix64(0)
    targets = [balance.targets(view, rng) for _ in range(50)]
    assert all(len(target) == 1 for target in targets)
    assert {target[0] for target in targets} == {1, 2, 3}
    assert [balance.amount(view, available) for available in (0, 1, 9)] == [0, 1, 1]
    assert BalanceRandomSteal(count=5).amount(view, 9) == 5
    assert (balance.mode, balance.asks_load, balance.from_head) == ("steal", False, True)
    assert balance.targets(FakeView(members=members_of(1)), rng) == []


def test_the_delay_is_constant():
    balance, view = BalanceRandomSteal(delay_ms=7), FakeView(poll_ns=1)
    assert balance.start_poll_ns() == 7_000_000
    assert balance.after_failure(view) == balance.after_success(view) == (7_000_000, 1)


def test_own_cluster_first_then_everywhere_in_turns():
    balance, rng = BalanceRandomSteal(pool="cluster"), SplitMix64(1)
    view = FakeView(node=1, members=members_of(9, clusters=3), neighbour_count=balance.start_neighbours(9))
    reached = []
    for _ in range(4):
        reached.append({balance.targets(view, rng)[0] for _ in range(200)})
        view.neighbour_count = balance.after_failure(view)[1]
    everywhere = set(range(9)) - {1}
    assert reached == [{4, 7}, everywhere, {4, 7}, everywhere]
    view.neighbour_count = 2
    assert balance.after_success(view)[1] == 1


def test_a_cluster_of_one_reaches_out_and_a_rare_neighbour_is_found():
    balance = BalanceRandomSteal(pool="cluster")
    alone = FakeView(node=0, members=members_of(3, clusters=3), neighbour_count=1)
    assert balance.targets(alone, SplitMix64(0))[0] in (1, 2)
    rare = FakeView(node=0, members=members_of(1000, clusters=500), neighbour_count=1)
    assert {balance.targets(rare, SplitMix64(seed))[0] for seed in range(20)} == {500}
    stranger = FakeView(node=77, neighbour_count=1)  # struck from the list, and does not know yet
    assert balance.targets(stranger, SplitMix64(0))[0] in range(4)


def test_named_pools_say_whom_to_ask():
    cores = (ExecutorClass(2),)
    members = Members(
        1,
        (
            NodeInfo(0, cores, pool="cpu"),
            NodeInfo(1, cores, pool="cpu"),
            NodeInfo(2, cores, pool="gpu", steals_from=("gpu", "cpu")),
            NodeInfo(3, cores, pool="gpu", steals_from=("cpu",)),
            NodeInfo(4, cores),
        ),
    )
    balance = BalanceRandomSteal(pool="named")

    def asked(node: int) -> set[int]:
        view = FakeView(node=node, members=members, neighbour_count=1)
        return {target for seed in range(40) for target in balance.targets(view, SplitMix64(seed))}

    assert asked(0) == {1}, "its own pool, without itself"
    assert asked(2) == {0, 1, 3}
    assert asked(3) == {0, 1}
    assert asked(4) == set(), "the only one without a pool"
    assert asked(77) == set(), "struck from the list"


def test_explain_agrees():
    balance = BalanceRandomSteal()
    loads = [(3, 0), (2, 1), (1, 5)]
    assert balance.explain(FakeView(), loads)["choice"] == balance.pick(FakeView(), loads) == 2
    assert balance.pick(FakeView(), [(3, 0)]) == -1
