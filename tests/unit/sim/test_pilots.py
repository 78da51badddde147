"""All runs are watched by the checkers, which see that nothing is lost and nothing is committed twice."""

import pytest
from msgspec import Struct

from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.model.pilots import PilotRequest
from daws.sim.pilots import PilotReport, simulate_pilots
from daws.sim.resources import parse_queues
from daws.sim.simulate import Settings
from daws.strategy import parse_strategy
from daws.strategy.decisions import PilotView, Reasons, Strategy
from daws.workloads import parse_workload

QUICK, SLOW = "quick:wait-s=100", "slow:wait-s=600"
BAG = "skeleton:tasks=64,input-kb=0"
MINUTE = 60.0


def graph_of(text: str, seed: int = 0) -> Graph:
    return parse_workload(text).build(1, 16, seed)


def run(workload: str, strategy: str | Strategy, *queues: str, seed: int = 0) -> PilotReport:
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    settings = Settings(seed=seed, check=True)
    report, result, kernel = simulate_pilots(
        graph_of(workload, seed), parse_queues(list(queues) or [QUICK, SLOW]), chosen, settings
    )
    assert not kernel.client.waiting_for and not result.failed
    assert 0 < result.efficiency <= 1 and result.efficiency <= result.utilization * 1.001
    return report


class Fixed(Struct, frozen=True):
    """The same pilot again and again; nothing is held back at its end."""

    cores: int
    walltime_s: float

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        return () if sum(view.queued) + sum(view.active) else (PilotRequest(0, self.cores, self.walltime_s),)

    def explain(self, view: PilotView) -> Reasons:
        return {"choice": self.ask(view)}


def with_acquire(name: str, acquire: Fixed) -> Strategy:
    base = parse_strategy(name)
    return Strategy(**{**{field: getattr(base, field) for field in base.__struct_fields__}, "acquire": acquire})


def test_late_binding_starts_with_the_first_pilot():
    report = run(BAG, "aimes")
    assert report.tw_s == 100
    # Half of the cores work from 100 s on, the other half from 600 s on: both have run half of the tasks by 1500 s.
    assert report.ttc_s == pytest.approx(1500, abs=10)
    assert (report.asked, report.active) == (2, 2)
    assert report.waits_s == {"quick": [100], "slow": [600]}


def test_a_pilot_that_comes_too_late_is_not_needed():
    report = run(BAG, "aimes", QUICK, "slow:wait-s=50000")
    assert report.ttc_s == pytest.approx(100 + 2 * 15 * MINUTE, abs=10)
    assert (report.asked, report.active, report.ended) == (2, 1, 0)


def test_early_binding_waits_for_the_last_pilot():
    report = run(BAG, "aimes:bind=early", QUICK, "slow:wait-s=50000")
    assert report.tw_s == 100
    assert report.ttc_s == pytest.approx(50_000 + 15 * MINUTE, abs=10)


def test_early_binding_with_one_pilot_is_all_its_wait_and_its_run():
    report = run(BAG, "aimes:bind=early,pilots=1")
    assert report.ttc_s == pytest.approx(100 + 15 * MINUTE, abs=5)
    assert report.used == pytest.approx(1, abs=0.01)


def test_tied_to_a_resource_tasks_share_its_pilots():
    report = run("skeleton:tasks=128", "swift", QUICK, SLOW)
    assert report.asked >= 8
    assert report.ttc_s == pytest.approx(600 + 15 * MINUTE, abs=20)


def test_small_pilots_are_asked_for_again_until_all_is_done():
    report = run("skeleton:tasks=128", "swift:pilots-each=1", QUICK)
    # 16 tasks at a time: eight pilots one after the other, each of which waits.
    assert report.asked == report.active == 8
    assert report.ttc_s == pytest.approx(8 * (100 + 15 * MINUTE), rel=0.02)


@pytest.mark.parametrize("balance", ["mlb", "adage", "constellation", "master-worker", "random"])
def test_what_runs_when_the_walltime_ends_runs_again(balance: str):
    # Four cores for 250 s, and tasks of 120 s: the second round ends in time, the third is stopped, again and again.
    strategy = with_acquire(balance, Fixed(4, 250))
    report = run("skeleton:tasks=40,length-min=2", strategy, "mine:wait-s=50,cores=2")
    assert 5 <= report.asked <= 9
    assert report.used < 1


def test_a_pilot_that_ends_before_any_task_does_is_refused_in_time():
    with pytest.raises(UsageError, match="200 pilots have ended since another task was done"):
        run("skeleton:tasks=4,length-min=5", with_acquire("mlb", Fixed(4, 120)), "mine:wait-s=50,cores=2")


def test_wide_tasks_go_to_resources_with_wide_nodes():
    report = run(
        "skeleton:tasks=10,task-cores=8", "aimes:pilots=2", "small:wait-s=1,cores=4", "large:wait-s=500,cores=16"
    )
    assert report.waits_s == {"small": [], "large": [500]}
    assert report.tw_s == 500
    with pytest.raises(UsageError, match="no resource can run every task"):
        run("skeleton:tasks=10,task-cores=8", "aimes", "small:wait-s=1,cores=4")


@pytest.mark.parametrize("strategy", ["aimes", "aimes:bind=early", "swift", "swift:bind=late", "adage"])
@pytest.mark.parametrize("workload", ["ensemble:simulations=20", "random:tasks=60,layers=4,length-ms=60000"])
def test_graphs_with_stages(workload: str, strategy: str):
    report = run(workload, strategy, QUICK, "slow:wait-s=300")
    assert report.ttc_s >= report.tw_s + report.tx_s - 1


def test_inputs_come_from_the_client():
    assert 0 < run("skeleton:tasks=16", "aimes").ts_s < 10
    assert run("skeleton:tasks=16,input-kb=1e6", "aimes").ts_s > 20


def test_a_run_is_one_number():
    one, again, other = (run(BAG, "aimes", "stampede", "gordon", seed=seed) for seed in (3, 3, 4))
    assert one == again
    assert one.tw_s != other.tw_s


def test_refusals():
    with pytest.raises(UsageError, match="at least one resource"):
        simulate_pilots(graph_of(BAG), (), parse_strategy("aimes"))
    with pytest.raises(UsageError, match="no pilot at all"):
        simulate_pilots(graph_of(BAG), parse_queues([QUICK]), with_acquire("mlb", _Silent()))


class _Silent(Fixed, frozen=True):
    cores: int = 1
    walltime_s: float = 100.0

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        return ()
