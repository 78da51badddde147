"""The study of the workflow families runs, and what it shows holds."""

import csv
import math
from pathlib import Path

import pytest

from daws.formats import workflow_of, write_wfformat
from daws.workloads import parse_workload
from studies.families import CLASSIC, PAPERS, WHOLE, compare, figures_of, main, totals_of


def test_leaves_table_and_plot(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "new"), "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert "SeismogramSynthesis" in said
    assert "8 | 8" in said
    rows = list(csv.DictReader((tmp_path / "new" / "families.csv").read_text().splitlines()))
    assert len(rows) == 4 * sum(map(len, CLASSIC.values())) + 6 * len(WHOLE | PAPERS)
    assert (tmp_path / "new" / "families.png").read_bytes().startswith(b"\x89PNG")


def test_generated_families_are_like_the_classic_files_of_a_thousand_tasks():
    large = {(family, tasks): totals for (family, tasks), totals in WHOLE.items() if tasks > 900}
    kinds, whole = compare(CLASSIC, large | PAPERS, 3)
    assert len(kinds) == sum(map(len, CLASSIC.values()))
    for family, _, classic, ours in whole:
        assert (ours.levels, math.isnan(classic.widest) or abs(ours.widest / classic.widest - 1) < 0.03) == (
            classic.levels,
            True,
        )
        assert math.isnan(classic.serial_s) or abs(ours.serial_s / classic.serial_s - 1) < 0.05, family
        assert math.isnan(classic.critical_s) or abs(ours.critical_s / classic.critical_s - 1) < 0.15, family
    for family, _, kind, figures, ours_of_kind in kinds:
        # What matters: kinds that make up a hundredth of the time.
        if figures.tasks * figures.length_s > 0.01 * large[family, max(t for f, t in large if f == family)].serial_s:
            assert abs(ours_of_kind.length_s / figures.length_s - 1) < 0.15, kind


def test_figures_add_up_to_totals():
    graph = parse_workload("montage:tasks=100").build(1, 1, 0)
    figures, totals = figures_of(graph), totals_of(graph)
    assert list(figures) == [
        *("mProjectPP", "mDiffFit", "mConcatFit", "mBgModel", "mBackground", "mImgTbl", "mAdd", "mShrink", "mJPEG")
    ]
    assert sum(one.tasks for one in figures.values()) == 100
    assert sum(one.tasks * one.length_s for one in figures.values()) == pytest.approx(totals.serial_s)
    assert sum(one.tasks * one.read_mb for one in figures.values()) == pytest.approx(1000 * totals.read_gb)
    assert sum(one.tasks * one.written_mb for one in figures.values()) == pytest.approx(1000 * totals.written_gb)


def test_reads_files_instead(tmp_path: Path, capsys):
    # The reader tells formats by what is inside, so that a file of ours can stand in for a classic one.
    graph = parse_workload("inspiral:tasks=60").build(1, 1, 7)
    write_wfformat(tmp_path / "Inspiral_60.xml", workflow_of(graph, "inspiral"))
    assert main(["--files", str(tmp_path), "--out", str(tmp_path), "--seeds", "1"]) == 0
    assert "inspiral  60" in capsys.readouterr().out


def test_a_folder_without_files_is_refused_in_one_line(tmp_path: Path, capsys):
    assert main(["--files", str(tmp_path), "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("families: there are no classic files in ")
    assert said.count("\n") == 1
