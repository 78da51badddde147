"""The studies of ADAGE: what their runs are made of, and that they take classic files instead."""

import csv
from pathlib import Path

import numpy as np
import pytest

from daws.cli import main
from daws.formats import workflow_of, write_wfformat
from daws.model.errors import UsageError
from daws.strategy import parse_strategy
from daws.strategy.fitting import check_fitting
from daws.workloads import parse_workload
from studies import adage_failures, adage_locality
from studies.adage6 import peak_of, until
from studies.adage_pairs import BALANCERS, PLANNERS, strategy_of
from studies.shared.adage import (
    ADAGE,
    BYTES_PER_S,
    FAMILIES,
    MATRIX,
    SPEED,
    SYSTEMS,
    Case,
    Found,
    files_of,
    on_shared_files,
    run_case,
    spread,
    workload_of,
)
from studies.shared.study import Asked

SMALL = "montage:tasks=60"


def found(*ends_s: float) -> Found:
    return Found(Case(SMALL, ADAGE, 1), len(ends_s), ends_s[-1], 1.0, 0, 0, 0, 0, ends_s)


def test_every_strategy_is_one_whose_answers_go_together():
    pairs = [strategy_of(planner, balancer) for planner in PLANNERS for balancer in BALANCERS]
    others = [*SYSTEMS, *adage_failures.COMPARED, *adage_locality.COMPARED, *adage_locality.BLIND]
    for strategy in [*pairs, *others, *adage_locality.PLACED]:
        check_fitting(parse_strategy(strategy))
    assert len(set(pairs)) == len(PLANNERS) * len(BALANCERS)


def test_on_a_shared_file_system_reading_takes_as_long_everywhere():
    graph = parse_workload(SMALL).build(1, 1, 0)
    shared = on_shared_files(graph)
    more_s = (shared.length_ns - graph.length_ns) / 1e9 / SPEED
    assert np.allclose(more_s, graph.task_input_bytes / BYTES_PER_S, atol=1e-6)
    assert not shared.object_bytes.any()
    assert run_case(Case(SMALL, "random", 4, has_shared_files=True)).bytes_moved == 0


def test_crashes_and_slow_nodes_cost_time_and_no_task():
    healthy, crashed, slowed = (
        run_case(case)
        for case in (Case(SMALL, ADAGE, 4), Case(SMALL, ADAGE, 4, crashed=2), Case(SMALL, ADAGE, 4, slowed=2))
    )
    assert healthy.makespan_s < min(crashed.makespan_s, slowed.makespan_s)
    assert healthy.bound_s == crashed.bound_s <= healthy.makespan_s
    assert healthy.failed == crashed.failed == slowed.failed == 0
    assert run_case(crashed.case) == crashed


def test_times_of_completion():
    one = found(1.0, 4.0, 4.1, 4.2, 9.0)
    assert [until(one, share) for share in (20, 50, 100)] == [1.0, 4.1, 9.0]
    assert peak_of(one, 10.0) == pytest.approx(4.25)


def test_spread_is_a_share_of_the_mean():
    assert spread([9.0, 11.0]) == "± 14.1 %"
    assert spread([5.0]) == "one seed"


def test_takes_classic_files_instead(tmp_path: Path, capsys):
    # The reader tells formats by what is inside, so that files of ours can stand in for classic ones.
    for family, name in FAMILIES.items():
        for tasks in (60, 100):
            graph = parse_workload(f"{family}:tasks={tasks}").build(1, 1, 0)
            write_wfformat(tmp_path / f"{name}_{tasks}.xml", workflow_of(graph, family))
    (tmp_path / "Montage_few.xml").write_text("not one of them")
    assert list(files_of(tmp_path, "montage")) == [60, 100]
    assert workload_of(Asked(files=tmp_path), "sipht") == str(tmp_path / "Sipht_100.xml")
    out = tmp_path / "out"
    assert main(["study", "adage4", "--quick", "--jobs", "1", "--files", str(tmp_path), "--out", str(out)]) == 0
    rows = list(csv.DictReader((out / "adage4.csv").read_text().splitlines()))
    assert {row["what"].split("; ")[1] for row in rows} == {"60", "100"}
    capsys.readouterr()


def test_a_folder_without_files_is_refused(tmp_path: Path, capsys):
    with pytest.raises(UsageError, match=r"no classic files of Sipht .* Sipht_\*\.xml"):
        files_of(tmp_path, "sipht")
    assert main(["study", "adage3", "--files", str(tmp_path), "--out", str(tmp_path)]) != 0
    assert capsys.readouterr().err.count("\n") == 1


def test_systems_meet_the_same_graph():
    bounds = {run_case(Case(SMALL, strategy, 4, seed=3)).bound_s for strategy in (ADAGE, MATRIX)}
    assert len(bounds) == 1
