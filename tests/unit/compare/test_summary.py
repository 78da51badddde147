"""Means, spreads, and the time that is left."""

import pytest

from daws.compare.cases import Case, CaseResult
from daws.compare.summary import cells_of, mean_and_spread, seconds_left


def run_of(strategy: str, nodes: int, seed: int, makespan_s: float, wall_s: float = 1.0) -> CaseResult:
    return CaseResult(strategy, nodes, seed, 10, makespan_s, 1.0, "work", 0.5, 0.5, 100, wall_s)


def test_mean_and_spread():
    assert mean_and_spread([3.0]) == (3.0, 0.0)
    assert mean_and_spread([1.0, 3.0]) == pytest.approx((2.0, 2**0.5))


def test_cells_by_size_and_in_the_order_of_strategies():
    runs = [run_of(name, nodes, seed, 1.0 + seed) for nodes in (4, 1) for seed in (0, 1) for name in ("mdl", "daws")]
    cells = cells_of(runs)
    assert [(cell.nodes, cell.strategy) for cell in cells] == [(1, "mdl"), (1, "daws"), (4, "mdl"), (4, "daws")]
    assert (cells[0].runs, cells[0].makespan_s) == (2, 1.5)
    assert cells[0].bound_share == 0.75 and cells[0].makespan_spread_s == pytest.approx(0.5**0.5)


def test_time_left_goes_by_runs_of_the_same_size_else_by_nodes():
    assert seconds_left([], [Case("daws", 1, 0)], 1) is None
    done = [run_of("daws", 2, 0, 1.0, 3.0), run_of("daws", 2, 1, 1.0, 5.0)]
    assert seconds_left(done, [Case("daws", 2, 2)], 1) == pytest.approx(4.0)
    assert seconds_left(done, [Case("daws", 8, 0)] * 2, 2) == pytest.approx(16.0)
    assert seconds_left(done, [Case("daws", 1, 0)], 1) == pytest.approx(2.0)
    assert seconds_left(done, [], 2) == 0
