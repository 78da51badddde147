"""`daws run script.py`: a script as it would run by itself, with other defaults."""

import subprocess
import sys
from pathlib import Path

import pytest

from daws.cli import main
from daws.formats import read_workflow

ENTRY = [sys.executable, "-m", "daws"]
SCRIPT = """\
import sys
import daws
from beside import OFFSET

def shifted(x):
    return x + OFFSET

if __name__ == "__main__":
    with daws.Cluster() as cluster:
        print(cluster.workers, cluster.strategy.name, cluster.submit(shifted, 1).result(), sys.argv[1:])
"""


def ran(folder: Path, *argv: str) -> tuple[int, str, str]:
    done = subprocess.run([*ENTRY, "run", *argv], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_script_runs_as_main_with_what_was_asked_as_defaults(tmp_path):
    (tmp_path / "beside.py").write_text("OFFSET = 41\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    argv = ["--workers", "1", "--strategy", "mlb", "--trace", "t.json", "script.py", "--workers", "9", "x"]
    assert ran(tmp_path, *argv) == (0, "1 mlb 42 ['--workers', '9', 'x']\n", "")
    assert "shifted" in (tmp_path / "t.json").read_text()


def test_what_a_script_raises_is_shown_without_our_own_lines(tmp_path):
    (tmp_path / "script.py").write_text("def f():\n    raise ValueError('no')\nf()\n")
    code, out, err = ran(tmp_path, "script.py")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback") and "script.py" in err and err.endswith("ValueError: no\n")
    assert "daws" not in err.replace(str(tmp_path), "")


def test_a_script_may_choose_its_exit_code(tmp_path):
    (tmp_path / "script.py").write_text("raise SystemExit(7)\n")
    assert ran(tmp_path, "script.py") == (7, "", "")


@pytest.mark.parametrize(
    ("content", "argv", "message"),
    [
        ("def f(:\n", [], "script.py:1: this is not Python"),
        ("", ["--spin"], "--spin is for workflows, not for a script"),
        ("", ["--time-scale", "2"], "--time-scale is for workflows"),
        ("", ["--trace", "missing/t.json"], "there is no folder"),
        ("", ["--export", "missing/t.json"], "there is no folder"),
        ("", ["--plot", "busy.txt"], "must end in"),
        ("", ["--export", "x.json", "--trace", "x.json"], "this is the file of"),
        ("", ["--keep-going"], "--keep-going is for workflows"),
        ("", ["--dry-run"], "--dry-run is for workflows"),
    ],
)
def test_what_cannot_run_is_one_line(tmp_path, monkeypatch, capsys, content, argv, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(content)
    assert main(["run", *argv, "script.py"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("daws: error: ") and err.count("\n") == 1
    assert message in err


TWO = """\
import os
import daws

def half(x):
    return x / 2

os.chdir("/")
for count in (3, 5):
    with daws.Cluster() as cluster:
        future = cluster.submit(half, 1)
        for _ in range(count - 1):
            future = cluster.submit(half, future)
        future.result()
"""


def test_each_cluster_of_a_script_is_exported_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "script.py").write_text(TWO)
    argv = ["--workers", "1", "--export", "graph.json.gz", "--plot", "busy.svg", "--trace", "t.json", "script.py"]
    assert ran(tmp_path, *argv) == (0, "", "")
    for name, count in (("graph.json.gz", 3), ("graph-2.json.gz", 5)):
        workflow = read_workflow(tmp_path / name)
        assert (workflow.graph.task_count, workflow.graph.edge_count) == (count, count - 1)
        assert workflow.name == "script.py" and set(workflow.task_names) == {"half"}
    assert {"busy.svg", "busy-2.svg", "t.json", "t-2.json"} <= {path.name for path in tmp_path.iterdir()}
    done = subprocess.run(
        [*ENTRY, "sim", "graph-2.json.gz", "--nodes", "64"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "5 tasks, 4 edges" in done.stdout


def test_a_script_without_a_cluster_says_that_nothing_is_written(tmp_path):
    (tmp_path / "script.py").write_text("raise SystemExit(3)\n")
    code, out, err = ran(tmp_path, "--export", "graph.json", "script.py")
    assert (code, out) == (3, "")
    assert err == "daws: 'graph.json' was not written, because the script made no daws.Cluster()\n"


def test_options_for_files_behind_the_script_are_told_unless_it_takes_them(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nopen('own.png', 'w').close()\n")
    code, out, err = ran(tmp_path, "script.py", "--export", "g.json", "--plot=own.png")
    assert (code, out) == (0, "")
    assert err == (
        "daws: 'g.json' is not written: --export behind 'script.py' is an option of the script; "
        "options of daws go before its name\n"
    )
