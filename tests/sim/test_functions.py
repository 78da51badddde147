"""Runs that bring in functions for their tasks, while everything fails: what is committed has its functions."""

from typing import Any

import pytest

from daws.core.events import RunSpawned
from daws.model.session import brought_id
from daws.model.states import DONE
from daws.sim import runs
from daws.sim.kernel import Kernel
from daws.sim.worlds import GROWN
from daws.sim.worlds import run as worlds
from daws.store.memory.snapshot import was_created
from daws.wire.store import function_row


@pytest.mark.parametrize("seed", range(GROWN, GROWN + 40))
def test_functions_are_as_safe_as_the_tasks_that_need_them(seed: int, monkeypatch: pytest.MonkeyPatch):
    kernels: list[Kernel] = []
    brought: dict[int, int] = {}  # by the task whose run has brought it in
    make = worlds.make_scenario_kernel

    def keep(*args: Any) -> Kernel:
        kernels.append(make(*args))
        return kernels[-1]

    def bring_in(task: int, run: int, seeds: Any, held: bool) -> RunSpawned:
        kind = seeds[0][0].kind if seeds else 0
        row = function_row(brought_id(1, bytes([kind % 7, task % 3])), b"%d" % kind)
        brought[task] = row.spec.id
        return RunSpawned(task, run, seeds, held, (row,))

    monkeypatch.setattr(runs, "RunSpawned", bring_in)
    monkeypatch.setattr(worlds, "make_scenario_kernel", keep)
    worlds.run_scenario(seed)
    (kernel,) = kernels
    for task, function in brought.items():
        record = kernel.store.record(task)
        if was_created(kernel.store, task) and (record is None or record.state == DONE):
            assert kernel.store.record(function) is not None
    assert brought or not kernel.growth
