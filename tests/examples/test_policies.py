"""The example that compares policies, on a smaller scale."""

import importlib.util
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "policies.py"


def test_it_prints_a_table_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("policies", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "NODES", 4)
    small = {"bot:tasks=40": "bag", "fan-out:tasks=40": "tree", "all-pairs:files=6": "pairs"}
    monkeypatch.setattr(example, "WORKLOADS", small)
    target = tmp_path / "policies.png"
    monkeypatch.setattr(sys, "argv", ["policies.py", str(target)])
    example.main()
    out = capsys.readouterr().out
    assert str(target) in out and "What to see" in out
    assert all(workload in out for workload in small)
    assert target.read_bytes().startswith(b"\x89PNG")
