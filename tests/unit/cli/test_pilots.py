"""`daws sim --pilots`."""

import json
from types import SimpleNamespace

import msgspec
import pytest

from daws.cli import main, pilots
from daws.sim.pilots import simulate_pilots
from daws.sim.resources import KNOWN

QUEUES = ["--pilots", "quick:wait-s=100", "--pilots", "slow:wait-s=600"]


def test_the_times_are_taken_apart(capsys):
    assert main(["sim", "skeleton:tasks=64", "--strategy", "aimes:pilots=1", *QUEUES]) == 0
    said = capsys.readouterr().out
    assert "pilots on quick, slow" in said
    assert "TTC" in said and "1,000 s" in said
    assert "waits at quick" in said and "waits at slow" not in said


def test_as_json(capsys):
    assert main(["sim", "skeleton:tasks=64", "--strategy", "aimes", "--json", "--check", *QUEUES]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tw_s"] == 100 and found["ttc_s"] == pytest.approx(found["tw_s"] + found["makespan_s"])
    assert found["waits_s"] == {"quick": [100], "slow": [600]}
    assert "digest" not in found


def test_tasks_that_fail_are_told_and_exit_code_1(capsys, monkeypatch):
    def failing(*asked):
        report, result, _ = simulate_pilots(*asked)
        kernel = SimpleNamespace(client=SimpleNamespace(ended={3: (None, "no")}))
        return report, msgspec.structs.replace(result, failed=1), kernel

    monkeypatch.setattr(pilots, "simulate_pilots", failing)
    assert main(["sim", "skeleton:tasks=4", "--strategy", "aimes", "--quiet", *QUEUES]) == 1
    assert capsys.readouterr() == ("", "daws: error: 1 task failed, first task 3: no\n")


def test_workloads_that_grow_with_the_cluster_count_one_node_of_each(capsys):
    assert main(["sim", "bot:per-core=2,length-ms=60000", "--json", *QUEUES]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 2 * (16 + 16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pilots", "nowhere"], "the waits of 'nowhere' are not known"),
        (["--pilots", "gordon:cores=many"], "cores='many' is not a whole number"),
        (["--pilots", "gordon", "--pilots", "gordon"], "'gordon' is given twice"),
        (["--pilots", "gordon", "--nodes", "4"], "--pilots cannot be used with --nodes"),
        (["--pilots", "gordon", "--group", "4x4"], "--pilots cannot be used with --group"),
        (["--pilots", "gordon", "--export", "x.json"], "--pilots cannot be used with --export"),
        (["--pilots", "gordon", "--set", "clusters=2"], "--set clusters goes with --nodes"),
        (["--pilots", "gordon:cores=2,nodes=1,walltime-h=0.1"], "no resource can run every task"),
        (["--pilots", "gordon", "--context", "gpu"], "cannot run on them yet"),
    ],
)
def test_refusals_are_one_line(capsys, options: list[str], message: str):
    assert main(["sim", "skeleton:tasks=4", "--strategy", "aimes", *options]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out


def test_the_help_names_the_known_resources(capsys):
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in KNOWN)
