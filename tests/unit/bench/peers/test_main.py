import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def peers(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.peers", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_quick_run_leaves_tables_figures_and_a_picture(tmp_path):
    workloads = ["futures", "map", "trip", "random", "objects", "spin-1ms", "commands", "script", "memory"]
    done = peers(
        *("--quick", "--repeat", "1", "--systems", "daws,floor,processes"),
        *("--only", ",".join(workloads), "--out", str(tmp_path)),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "figures.json").read_bytes())
    assert [run["error"] for run in found["runs"] if run["error"]] == []
    assert {(run["system"], run["workload"]) for run in found["runs"]} == {
        (system, workload)
        for system in ("daws", "floor", "processes")
        for workload in workloads
        if system != "floor" or workload not in ("random", "objects")
    }
    assert all(run["figures"]["value"] > 0 for run in found["runs"] if run["workload"] != "memory")
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")
    assert "random graph of tiny tasks" in done.stdout

    again = peers("--read", str(tmp_path / "figures.json"), "--markdown")
    assert again.stdout.startswith("| workload | daws | floor | best peer |")
    assert again.stdout.strip() == (tmp_path / "figures.md").read_text().strip()


@pytest.mark.parametrize(
    "args", [("--systems", "spark"), ("--only", "sorting"), ("--repeat", "0"), ("--read", "nowhere.json")]
)
def test_bad_options_are_named_in_one_line(args, tmp_path):
    done = peers(*args, *(("--out", str(tmp_path)) if args[0] != "--read" else ()))
    assert done.returncode == 2
    assert args[1] in done.stderr.splitlines()[-1] or args[0] in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
