from statistics import mean, median

from daws.sim.waits import Waits
from daws.strategy.rng import SplitMix64


def test_without_spread_every_job_waits_the_same():
    waits = Waits(100.0)
    assert waits.draw_s(waits.fullness_s(SplitMix64(1)), 16, SplitMix64(2)) == waits.mean_s(16) == 100


def test_draws_follow_the_distribution():
    waits, rng = Waits(100.0, sigma=0.5, jitter=0.2), SplitMix64(1)
    drawn = [waits.draw_s(waits.fullness_s(rng), 1, rng) for _ in range(5000)]
    assert 95 < median(drawn) < 105
    assert abs(mean(drawn) / waits.mean_s(1) - 1) < 0.05


def test_tails_are_cut():
    waits, rng = Waits(100.0, sigma=1.6, most_s=1000.0), SplitMix64(1)
    drawn = [waits.fullness_s(rng) for _ in range(5000)]
    assert max(drawn) == 1000
    assert abs(mean(drawn) / waits.mean_s(1) - 1) < 0.05 < Waits(100.0, sigma=1.6).mean_s(1) / waits.mean_s(1) - 1


def test_jobs_of_a_run_feel_the_same_queue():
    waits, rng = Waits(100.0, sigma=2.0, jitter=0.1), SplitMix64(3)
    fullness_s = waits.fullness_s(rng)
    assert all(0.6 < waits.draw_s(fullness_s, 1, rng) / fullness_s < 1.6 for _ in range(100))


def test_size_matters():
    waits = Waits(100.0, by_cores=((16, 0.5), (64, 3.0)))
    assert [waits.mean_s(cores) for cores in (1, 16, 17, 1000)] == [50, 50, 300, 300]
    assert waits.experience() == ((16, 50.0), (64, 300.0))


def test_recorded_waits_are_drawn_as_they_are():
    waits, rng = Waits(0.0, recorded=(5.0, 7.0, 60.0)), SplitMix64(1)
    assert {waits.fullness_s(rng) for _ in range(100)} == {5.0, 7.0, 60.0}
    assert waits.mean_s(1) == 24
