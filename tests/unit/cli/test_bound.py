"""`daws bound` from the outside."""

import json

import pytest

from daws.cli import main


def answer(capsys, *argv):
    assert main(["bound", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def found(capsys, *argv):
    return json.loads(answer(capsys, *argv, "--json"))


def test_json_has_both_with_their_parts(capsys):
    got = found(capsys, "fan-in:per-core=20", "--nodes", "4", "--cores", "2", "--seed", "3")
    assert (got["tasks"], got["nodes"], got["cores"], got["cores_total"], got["seed"]) == (160, 4, 2, 8, 3)
    assert got["bound_s"] == max(got["parts_s"].values()) == got["parts_s"][got["bound_by"]]
    assert set(got["parts_s"]) == {"work", "critical path", "path with costs", "work and paths"}
    assert got["recursion_s"] == got["recursion"]["seconds"] > 0


def test_the_recursion_promises_half_of_what_a_bag_needs(capsys):
    got = found(capsys, "bot:per-core=1000", "--nodes", "8", "--cores", "2")
    assert got["recursion_s"] / got["bound_s"] == pytest.approx(0.5, abs=0.02)


def test_the_table_says_what_is_what(capsys):
    out = answer(capsys, "bot:tasks=40", "--nodes", "2")
    assert "no schedule below" in out and "not a bound" in out and "40 tasks" in out


def test_numbers_of_the_recursion_can_be_set(capsys):
    base = ("pipeline:tasks=40,spread=constant", "--nodes", "2")
    numbers = ("--per-core", "1", "--mean-length-ms", "7", "--bandwidth-mbps", "1", "--task-bytes", "1000000")
    got = found(capsys, *base, *numbers)["recursion"]
    assert got["wait_s"] == 0 and got["bytes_per_s"] == 1e6 and got["length_s"] == 0.007
    assert got["seconds"] == pytest.approx(10 * 0.05 + 9 * 1.0)  # moving a task beats moving 5 MB


def test_clusters_and_costs_are_described_as_for_sim(capsys):
    plain = found(capsys, "bot:tasks=40", "--group", "1x4")
    fast = found(capsys, "bot:tasks=40", "--group", "1x4:speed=2")
    assert fast["parts_s"]["work"] == pytest.approx(plain["parts_s"]["work"] / 2)
    slow = found(capsys, "pipeline:tasks=40", "--nodes", "2", "--set", "latency-us=100000")
    assert slow["bound_by"] == "path with costs"


@pytest.mark.parametrize(
    "argv",
    [
        ("bot:tasks=9", "--nodes", "0"),
        ("bot:tasks=9", "--context", "gpu"),
        ("bot:tasks=9", "--group", "2x2[gpu]"),
        ("bot:tasks=9", "--memory-gb", "1", "--task-memory-gb", "2"),
        ("bot:tasks=9", "--per-core", "0"),
        ("bot:tasks=9", "--task-bytes", "-1"),
        ("bot:tasks=9", "--bandwidth-mbps", "0"),
        ("bot:tasks=9", "--seed", "-1"),
        ("nonsense",),
        ("./not-there.xml",),
    ],
)
def test_nonsense_is_refused_in_one_line(capsys, argv):
    try:
        code: object = main(["bound", *argv])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    assert err.startswith("daws: error: ") and err.count("\n") == 1
