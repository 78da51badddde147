"""Strategies change while nodes crash and messages get lost: no task is lost, and none is done twice."""

from collections.abc import Callable

import pytest

from daws.core.events import NewStrategy
from daws.core.invariants import check
from daws.core.node import NodeCore
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.worlds import Scenario
from daws.sim.worlds import run as runs
from daws.strategy import PRESETS, format_strategy, parse_strategy
from daws.strategy.rng import SplitMix64

ODD = ("mlb:place=random", "mdl:relax=never", "adage:replicate=given", "mlb:balance=none", "flds:tt=0")
TEXTS = tuple([format_strategy(parse_strategy(name)) for name in (*PRESETS, *ODD)])
SWITCHES = 4
WITHIN_NS = 2_000_000_000


@pytest.mark.parametrize("seed", range(24))
def test_switches_among_faults(seed: int, monkeypatch: pytest.MonkeyPatch):
    rng, make, told = SplitMix64(seed), runs.make_scenario_kernel, []

    def tell(kernel: Kernel) -> None:
        """To all nodes, or to one: what nodes go by may differ for a while."""
        text, living = TEXTS[rng.below(len(TEXTS))], sorted(kernel.seats)
        first = rng.below(2 * len(living)) if living else 0
        for node in living[first : first + 1] or living:
            kernel.push(kernel.now_ns, node, NewStrategy(text))
            told.append(node)

    def with_switches(scenario: Scenario, deep: Callable[[NodeCore], None] | None) -> Kernel:
        kernel = make(scenario, deep)
        for _ in range(SWITCHES):
            kernel.push(rng.below(WITHIN_NS), FATE, tell)
        return kernel

    monkeypatch.setattr(runs, "make_scenario_kernel", with_switches)
    runs.run_scenario(seed, check if seed % 4 == 0 else None)
    assert told
