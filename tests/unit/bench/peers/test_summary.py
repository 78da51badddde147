from bench.peers.report import Report, as_markdown, as_text, duration, value
from bench.peers.runner import Run
from bench.peers.summary import Spread, summarise


def runs(workload: str, **values: list[float]) -> list[Run]:
    return [
        Run(system.replace("_", "-"), workload, repetition, 0.0, {"value": one})
        for system, found in values.items()
        for repetition, one in enumerate(found)
    ]


def met(found: list[Run]) -> dict[str, bool]:
    (row,) = summarise(found)
    return {verdict.aim.against: verdict.is_met for verdict in row.verdicts}


def test_ratios_are_taken_within_repetitions():
    (row,) = summarise(runs("futures", daws=[100.0, 300.0, 20.0], processes=[10.0, 100.0, 4.0]))
    assert row.against_best == Spread(5.0, 3.0, 10.0)
    assert row.against_floor is None


def test_the_best_peer_is_the_fastest_that_has_worker_processes():
    (row,) = summarise(runs("trip", daws=[1.0], floor=[0.5], ray=[3.0], processes=[2.0], parsl_threads=[0.1]))
    assert row.best == "processes"
    assert "parsl-threads" in row.systems


def test_aims_against_each_other_side():
    found = runs("futures", daws=[150_000.0], floor=[400_000.0], processes=[7_000.0], ray=[7_000.0], dask=[600.0])
    assert met(found) == {"nothing": True, "floor": True, "processes": True, "graph": False}


def test_where_less_is_better_aims_are_limits():
    assert met(runs("trip", daws=[100e-6], floor=[60e-6], processes=[150e-6], ray=[90e-6])) == {
        "floor": True,
        "processes": False,
        "peers": False,
    }


def test_points_of_efficiency_are_taken_from_the_floor():
    assert met(runs("spin-1ms", daws=[0.91], floor=[0.99])) == {"nothing": True, "floor": False}


def test_fewer_bytes_count_beside_less_time():
    made = runs("objects", daws=[1.0], ray=[2.0], dask=[3.0])
    for run, moved in zip(made, (1e9, 1.5e9, 0.9e9), strict=True):
        run.figures["moved_bytes"] = moved
    (row,) = summarise(made)
    assert [(verdict.other, verdict.is_met) for verdict in row.verdicts] == [("ray", True), ("dask", False)]


def test_reports_name_what_failed_what_is_missing_and_a_machine_that_was_not_calm():
    made = runs("futures", daws=[150_000.0, 160_000.0], processes=[7_000.0, 8_000.0])
    made[0].others_share = made[1].others_share = made[2].others_share = 0.9
    made.append(Run("dask", "futures", 0, 0.0, error="it broke"))
    report = Report("a machine", False, 2, {"dask": "1.2"}, {"ray": "not installed (ray)"}, made)
    for text in (as_text(report), as_markdown(report)):
        assert "ray: not installed (ray)" in text
        assert "dask, no-op futures, one by one: failed: it broke" in text
        assert "NOT calm" in text
    assert "| no-op futures, one by one | 155,000/s (-3% +3%) |" in as_markdown(report)


def test_figures_have_units():
    assert [duration(one) for one in (2.5, 0.0123, 0.000_09)] == ["2.5 s", "12.3 ms", "90 µs"]
    assert value("spin-1ms", 0.987) == "98.7%"
    assert value("memory", 345.6) == "346 B"
