"""The study of AIMES and Swift reads its files, and its model comes near what was published."""

from pathlib import Path

import pytest

from daws.cli import main
from daws.model.errors import UsageError
from studies.aimes import EXPERIMENTS, Found, jobs_of, published_runs, recorded_waits, with_runs, within
from studies.queues import EARLY, LATE, STRATEGIES, SWIFT
from studies.shared.pilots import AS_RECORDED, BAG, FOUR, PilotJob, Times, queues_of, run_all, times_of
from studies.shared.study import Asked

DAYS = "Wait_Hours__Per_Job__by_Resource_2015-12-01_to_2016-05-18_timeseries.csv"
THREE, INTEGRATED = EXPERIMENTS[2], EXPERIMENTS[4]


def test_late_binding_comes_near_table_two():
    jobs = jobs_of(THREE, 8, 20)
    reports = run_all(jobs, Asked())
    found = Found(THREE, 8, [], [reports[job].ttc_s for job in jobs])
    assert abs(found.percent(found.bare_s) - THREE.paper[8].percent) < 10


def test_late_binding_ends_earlier_than_tied_tasks_on_the_same_queues():
    def times(name: str) -> Times:
        queues = queues_of(FOUR, AS_RECORDED)
        jobs = [PilotJob(STRATEGIES[name], BAG.format(tasks=32), queues, seed) for seed in range(6)]
        return times_of(list(run_all(jobs, Asked()).values()))

    late, early, swift = (times(name) for name in (LATE, EARLY, SWIFT))
    assert late.ttc_s < early.ttc_s < swift.ttc_s
    assert late.deviation_s < early.deviation_s


def test_what_aimes_adds_grows_with_the_tasks_of_a_pilot_or_with_all_that_are_staged():
    one, _, three, four, integrated = (experiment.middleware_s(2048) for experiment in EXPERIMENTS)
    assert one == 0
    assert three == 2 * four == pytest.approx(1024 * 1.54)
    assert integrated == pytest.approx(4351 * 4.85)


def test_a_claim_names_the_number_that_is_farthest_off():
    near, far = Found(THREE, 8, [1450.0], []), Found(THREE, 32, [1800.0, 900.0], [])
    assert far.percent(far.with_s) == pytest.approx(75) and within([near, far], "x").holds
    claim = within([near, Found(THREE, 32, [1800.0], [])], "x")
    assert not claim.holds and claim.seen == "1 of 2 are; farthest off is 3 with 32 tasks, -27.0 points"


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
    assert four.paper[8].percent == pytest.approx(75)


def test_refuses_in_one_line(tmp_path, capsys):
    assert main(["study", "aimes", "--quick", "--files", str(tmp_path), "--out", str(tmp_path)]) != 0
    said = capsys.readouterr().err
    assert "aimes_swift_ttc.csv cannot be read" in said and said.count("\n") == 1
    (tmp_path / DAYS).write_text("title\n")
    with pytest.raises(UsageError, match="there are no days in it"):
        recorded_waits(tmp_path)
    (tmp_path / "aimes_swift_ttc.csv").write_text("a,b\nnothing,x\n")
    with pytest.raises(UsageError, match="is no run"):
        published_runs(tmp_path)
