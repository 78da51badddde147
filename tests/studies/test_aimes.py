"""The study of AIMES and Swift runs, and what it shows holds."""

import csv
from pathlib import Path

import pytest

from daws.sim.resources import KNOWN
from studies.aimes import (
    BAG_15,
    EQUAL,
    EXPERIENCED,
    EXPERIMENTS,
    FOUR,
    main,
    measure,
    published_runs,
    queues_of,
    recorded_waits,
    with_runs,
)

FITTED = {name: queue.waits for name, queue in KNOWN.items()}
DAYS = "Wait_Hours__Per_Job__by_Resource_2015-12-01_to_2016-05-18_timeseries.csv"


def test_leaves_table_and_plots(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("studies.aimes.EXPERIMENTS", EXPERIMENTS[2:4])
    monkeypatch.setattr("studies.aimes.EQUAL_TASKS", (8, 32))
    assert main(["--out", str(tmp_path / "new"), "--seeds", "1", "--tasks-max", "256"]) == 0
    said = capsys.readouterr().out
    assert "Table II" in said and "62% |" in said and "late binding, 3 pilots" in said
    rows = list(csv.DictReader((tmp_path / "new" / "aimes.csv").read_text().splitlines()))
    assert len(rows) == 2 * 3 + 2 * len(EQUAL) * 2
    for name in ("aimes.png", "aimes-equal.png"):
        assert (tmp_path / "new" / name).read_bytes().startswith(b"\x89PNG")


def test_late_binding_comes_near_table_two_and_beats_swift_on_the_same_queues():
    three = EXPERIMENTS[2]
    queues = queues_of(three.resources, EXPERIENCED)
    ours = measure(three.strategy, three.workload, 8, queues, 900, 20)
    assert abs(ours.performance - three.paper[8].performance) < 0.10
    slow = queues_of(FOUR, FITTED)
    late, early, swift = (
        measure(EQUAL[name], BAG_15, 32, slow, 900, 6)
        for name in ("late binding, 2 pilots", "early binding, 2 pilots", "swift, experiment 1")
    )
    assert late.ttc_s < early.ttc_s < swift.ttc_s
    assert late.deviation_s < early.deviation_s


def test_reads_recorded_waits_and_runs(tmp_path: Path):
    (tmp_path / DAYS).write_text("title\nDay,Gordon,Stampede,,x,y\n12/1/2015,0.5,2,,7,4\n12/2/2015,1,3,,,\n")
    waits = recorded_waits(tmp_path)
    assert [list(waits[name].recorded) for name in ("gordon", "comet")] == [[1800, 3600], [7200, 10_800]]
    lines = ["experiment,source_folder,tasks,ttc_seconds"]
    lines += [f"swift_exp1,x,8,{1000 + number}" for number in range(20)]
    lines += ["aimes_4res,analysis_1_v2,8,1800", "aimes_4res,analysis_1_v2,8,900", "aimes_4res,analysis_1_v3,8,1"]
    (tmp_path / "aimes_swift_ttc.csv").write_text("\n".join(lines))
    runs = published_runs(tmp_path)
    assert runs == {("1", 8): [1016, 1017, 1018, 1019], ("4", 8): [1800, 900]}
    four = with_runs(EXPERIMENTS, runs)[3]
    assert four.paper[8].performance == pytest.approx(0.75)


def test_refuses_in_one_line(tmp_path, capsys):
    assert main(["--files", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("aimes: ")
    (tmp_path / DAYS).write_text("title\n")
    assert main(["--files", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "there are no days in it" in capsys.readouterr().err
