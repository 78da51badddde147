"""The demo, in a hundredth of its time."""

import importlib.util
import sys
from pathlib import Path

from daws.formats import read_workflow

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_live_and_simulated_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    demo = loaded("demo")
    monkeypatch.setattr(demo, "TIME_SCALE", 0.01)
    target = tmp_path / "demo.png"
    monkeypatch.setattr(sys, "argv", ["demo.py", str(target)])
    demo.main()
    out = capsys.readouterr().out
    assert "live   simulated" in out and "What would more workers bring?" in out
    assert target.read_bytes().startswith(b"\x89PNG")


def test_its_workflow_is_what_the_script_makes():
    made = loaded("make_mosaic").mosaic()
    found = read_workflow(str(EXAMPLES / "mosaic.json"))
    assert found.graph.task_count == made.graph.task_count == 160
    assert (found.graph.length_ns == made.graph.length_ns).all()
    assert sorted(found.graph.object_bytes.tolist()) == sorted(made.graph.object_bytes.tolist())
