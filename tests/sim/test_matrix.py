"""Each preset finishes each workload on small clusters, and no checker complains; `make matrix` has 1,000 nodes."""

import pytest

from daws.strategy import PRESETS
from tests.sim.matrix import WORKLOADS, cells, main, run_cell


@pytest.mark.parametrize("kind", list(WORKLOADS))
@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_finishes_every_workload(preset, kind):
    for nodes in (1, 2, 7, 64):
        run_cell((preset, kind, nodes))


def test_the_table_is_complete():
    assert len(cells([1, 2])) == 2 * len(PRESETS) * len(WORKLOADS)
    assert len(PRESETS) >= 9


def test_what_goes_wrong_is_named(monkeypatch, capsys):
    def no_pool(jobs):
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1)

    monkeypatch.setattr("tests.sim.matrix.processes", no_pool)
    assert main(["--nodes", "2", "--strategy", "daws", "--workload", "bot"]) == 0
    monkeypatch.setitem(WORKLOADS, "bot", lambda nodes: 1 / 0)
    assert main(["--nodes", "2", "--strategy", "daws", "--workload", "bot"]) == 1
    assert "daws on bot at 2 nodes: ZeroDivisionError" in capsys.readouterr().out
