"""Pictures: the numbers behind them, and that files appear whole or not at all."""

import builtins
import os
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.errors import UnavailableError, UsageError
from daws.sim.cluster import cluster_of
from daws.sim.kernel import Kernel
from daws.sim.plot import busy_over_time, check_target, draw_panels, figure_of_run, panel_of, write_figure
from daws.sim.simulate import Result, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload


def draw_run(result, kernel, path, title):
    """As `Simulation.plot` does."""
    write_figure(figure_of_run(result, kernel.starts, kernel.ends, title), check_target(path))


@pytest.fixture(scope="module")
def run() -> tuple[Result, Kernel]:
    graph = parse_workload("fan-out:tasks=200").build(4, 2, 0)
    return simulate(graph, cluster_of(4, 2), parse_strategy("flds"))


def naive_busy(spans, low, high):
    return sum(max(0, min(high, end) - max(low, start)) for start, end in spans) / (high - low)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted)),
    st.lists(st.integers(0, 60), min_size=2, unique=True).map(sorted),
)
def test_busy_is_exact_between_any_edges(spans, edges):
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    found = busy_over_time(starts, list(reversed(ends)), np.array(edges, dtype=np.float64))
    assert found == pytest.approx([naive_busy(spans, low, high) for low, high in pairwise(edges)])


def test_panel_has_the_area_of_the_run(run):
    result, kernel = run
    panel = panel_of(result, kernel, "title")
    assert panel.edges_s[-1] == panel.end_s == result.makespan_s
    assert panel.busy.mean() == pytest.approx(panel.busy_mean) == pytest.approx(result.utilization * 8)
    assert panel.busy.max() <= 8 + 1e-9 and panel.busy.min() >= -1e-9
    assert panel_of(result, kernel, "title", until_s=1000.0).edges_s[-1] == 1000.0


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89P")]
)
def test_pictures_are_written(run, tmp_path, suffix, magic):
    target = tmp_path / f"busy{suffix}"
    draw_run(run[0], run[1], target, title="fan-out")
    assert target.read_bytes().startswith(magic)


def test_several_panels_and_empty_places(run, tmp_path):
    target = tmp_path / "panels.svg"
    panels = [panel_of(run[0], run[1], f"panel {number}", until_s=0.01) for number in range(3)]
    draw_panels(panels, target, "heading", columns=2)
    text = target.read_text()
    assert all(part in text for part in ("heading", "panel 0", "panel 2", "goes on to", "busy executors"))


def test_titles_are_not_taken_for_formulas(run, tmp_path):
    draw_run(run[0], run[1], tmp_path / "a.svg", title="costs $\\frac$")
    assert "costs" in (tmp_path / "a.svg").read_text()


def test_files_that_cannot_be_written_are_refused_first(tmp_path):
    assert check_target(tmp_path / "a.png") == tmp_path / "a.png"
    (tmp_path / "folder.png").mkdir()
    for wrong, why in [
        ("a.gif", "must end in"),
        ("a", "must end in"),
        ("no/a.png", "no folder"),
        ("folder.png", "cannot"),
        ("/proc/a.png", "cannot"),
        ("a" * 300 + ".png", "too long"),
    ]:
        with pytest.raises(UsageError, match=why):
            check_target(tmp_path / wrong)
    with pytest.raises(UsageError, match="expected the name of a file"):
        check_target(Path(""))


def test_looking_at_a_target_leaves_it_as_it_is(tmp_path):
    old, link, pipe = tmp_path / "old.png", tmp_path / "link.png", tmp_path / "pipe.png"
    old.write_bytes(b"old")
    link.symlink_to(tmp_path / "new.png")
    os.mkfifo(pipe)
    for target in (old, link, pipe, tmp_path / "none.png"):  # opening the pipe would wait for a reader
        assert check_target(target) == target
    assert sorted(tmp_path.iterdir()) == [link, old, pipe]
    assert old.read_bytes() == b"old" and link.is_symlink()


@pytest.mark.parametrize(
    ("trouble", "told"), [(OSError(28, "No space left"), UnavailableError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_no_half_file_is_left(run, tmp_path, monkeypatch, trouble, told):
    def write_half(path, data):
        with path.open("wb") as file:
            file.write(data[:10])
        raise trouble

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(told):
        draw_run(run[0], run[1], tmp_path / "a.svg", title="bot")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "daws.runs.figure", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install 'daws\[plot\]'"):
        check_target(tmp_path / "a.png")
