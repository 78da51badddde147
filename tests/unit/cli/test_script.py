"""`daws run script.py`: a script as it would run by itself, with other defaults."""

import subprocess
import sys
from pathlib import Path

import pytest

from daws.cli import main

ENTRY = [sys.executable, "-m", "daws.cli"]
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
        ("", ["--spin"], "--spin goes with workflows, not with a script"),
        ("", ["--time-scale", "2"], "--time-scale goes with workflows"),
        ("", ["--trace", "missing/t.json"], "there is no folder"),
    ],
)
def test_what_cannot_run_is_one_line(tmp_path, monkeypatch, capsys, content, argv, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(content)
    assert main(["run", *argv, "script.py"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("daws: error: ") and err.count("\n") == 1
    assert message in err
