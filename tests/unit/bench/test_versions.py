"""Two versions of daws in turns."""

from pathlib import Path

import pytest

from bench import versions
from bench.peers.runner import ROOT, Run, run_one
from bench.peers.workloads import QUICK


def run_of(value: float, error: str = "") -> Run:
    return Run("daws", "trip", 0, 0.0, {} if error else {"value": value}, error)


def test_the_ratio_says_how_many_times_better_this_version_is():
    pairs = [(run_of(2.0), run_of(1.0)), (run_of(3.0), run_of(3.0)), (run_of(1.0), run_of(0.0, "broke"))]
    assert versions.ratios_of("futures", pairs) == [0.5, 1.0]
    assert versions.ratios_of("trip", pairs) == [2.0, 1.0], "less is better"
    assert "1.500" in versions.row("trip", pairs)
    assert "broke" in versions.row("trip", pairs[2:])


def test_what_comes_first_changes_and_each_has_its_source(monkeypatch):
    asked: list[tuple[str, int, str]] = []

    def fake(system, workload, repetition, effort, limit_s, source):
        asked.append((workload, repetition, "now" if source == ROOT / "src" else str(source)))
        return run_of(1.0)

    monkeypatch.setattr(versions, "run_one", fake)
    found = versions.measure(Path("before"), ["trip"], 2, QUICK)
    assert asked == [("trip", 0, "now"), ("trip", 0, "before"), ("trip", 1, "before"), ("trip", 1, "now")]
    assert len(found["trip"]) == 2


def test_the_version_that_is_named_is_the_one_that_runs(tmp_path):
    """A package that cannot be imported stands before the installed one."""
    package = tmp_path / "src" / "daws"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('this is another version')")
    with versions.source_of(str(tmp_path)) as source:
        run = run_one("daws", "argument", 0, QUICK, 60, source)
    assert "this is another version" in run.error


def test_a_small_argument_comes_back(monkeypatch):
    run = run_one("processes", "argument", 0, QUICK, 60)
    assert not run.error and run.figures["value"] > 0


def test_what_is_neither_a_revision_nor_a_folder_is_refused():
    with pytest.raises(SystemExit, match="neither a folder"), versions.source_of("nosuchrevision"):
        pass
