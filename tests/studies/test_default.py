"""The study of the default strategy: what it says of a run follows from its numbers."""

import json

import pytest

from daws.cli import main
from daws.strategy import DEFAULT
from studies.default import (
    CLASSIC,
    PUBLISHED,
    STRATEGIES,
    Cell,
    claims_of,
    csv_of,
    of_files,
    read_cells,
    saved_percent,
    shares_of,
    workflow_files,
)


def cell(default_s: float, other_s: float = 10.0, bound_s: float = 5.0, nodes: int = 4) -> Cell:
    """All published strategies take the same time."""
    seconds = {name: [other_s, other_s] for name in STRATEGIES} | {DEFAULT: [default_s, default_s]}
    return Cell("some", nodes, seconds, bound_s, "work")


def test_within_two_percent_of_the_best_is_still_as_good():
    assert claims_of("", [cell(10.1)])[0].holds
    late = claims_of("", [cell(9.0), cell(10.3, nodes=16)])[0]
    assert not late.holds
    assert late.seen == f"it is in 1 of 2 cases; not so: some on 16 nodes +3.0 % ({PUBLISHED[0]})"


def test_savings_are_means_beside_what_the_bound_leaves():
    cells = [cell(8.0), cell(9.0, bound_s=8.0)]
    assert saved_percent(cells, "adage") == pytest.approx(15.0)
    row = shares_of("", cells).rows[0]
    assert row.keys == (PUBLISHED[0], "35.0 %")
    claim = next(one for one in claims_of("", cells) if "adage" in one.text)
    assert claim.holds
    assert claim.seen == "15.0 % below, where the provable bound leaves 35.0 % to be saved"
    assert not next(one for one in claims_of("", [cell(9.5)]) if "adage" in one.text).holds


def test_missing_files_are_known_before_anything_is_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("studies.default.run_cells", lambda *_: pytest.fail("it was run"))
    assert main(["study", "default", "--quick", "--files", str(tmp_path), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "CyberShake_1000.xml" in said
    assert said.count("\n") == 1


def test_numbers_of_files_come_back_as_they_were_kept():
    cells = [cell(8.25, nodes=16), cell(9.5, bound_s=8.0)]
    assert read_cells(csv_of(cells).splitlines()) == cells


def test_files_are_found_below_a_folder_and_small_ones_are_not_chosen(tmp_path):
    workflow = '<adag><job id="a" name="some" runtime="1.0"/></adag>'
    for name in CLASSIC:
        (tmp_path / "dax").mkdir(exist_ok=True)
        (tmp_path / "dax" / f"{name}.xml").write_text(workflow)
    for count in (99, 100):
        tasks = [{"name": "some", "id": str(number), "parents": [], "runtimeInSeconds": 1} for number in range(count)]
        (tmp_path / f"run-{count}.json").write_text(json.dumps({"name": "some", "workflow": {"tasks": tasks}}))
    chosen, others = workflow_files(tmp_path)
    assert list(chosen) == [*CLASSIC, "run-100"] and list(others) == ["run-99"]


def test_files_that_nobody_chose_count_too():
    chosen = [cell(9.0, nodes=nodes) for nodes in (1, 16, 64)]
    odd = cell(20.0, nodes=16)._replace(name="odd")
    tables, claims = of_files([*chosen, odd])
    assert [row.keys[0] for row in tables[-1].rows] == ["odd", "some"], "the farthest behind first"
    assert {row.keys[0] for table in tables[:2] for row in table.rows} == {"some"}
    of_all = next(
        one for one in claims if one.text.startswith("On all 2 recorded files, 16 nodes: the default is within")
    )
    assert not of_all.holds and of_all.seen.startswith("it is in 1 of 2 cases; not so: odd on 16 nodes +100.0 %")
