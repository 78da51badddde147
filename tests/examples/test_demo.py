"""The demo, on a smaller scale."""

import importlib.util
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_demo_prints_a_table_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None and spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    monkeypatch.setattr(demo, "NODES", 4)
    small = {"bot:tasks=40": "bag", "fan-out:tasks=40": "tree", "all-pairs:files=6": "pairs"}
    monkeypatch.setattr(demo, "WORKLOADS", small)
    target = tmp_path / "demo.png"
    monkeypatch.setattr(sys, "argv", ["demo.py", str(target)])
    demo.main()
    out = capsys.readouterr().out
    assert str(target) in out and "What to see" in out
    assert all(workload in out for workload in small)
    assert target.read_bytes().startswith(b"\x89PNG")
