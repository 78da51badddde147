"""Every study runs in its quick form, and what it leaves behind says what the run has shown."""

import csv

import pytest

from daws.cli import main
from studies import find_studies
from studies.shared.page import page_of, text_of, verdict_of, write, write_index
from studies.shared.runs import Job, run_all, run_job
from studies.shared.study import Asked, Claim, Report, Row, Study, Table

STUDIES = find_studies()


def report(*claims: Claim) -> Report:
    from matplotlib.figure import Figure

    table = Table("Shares", ("graph",), "%", [Row(("a",), 80.0, 100.0), Row(("b",), None, 5.0), Row(("c",), 0.5, 0.52)])
    return Report([table], claims, ["Because."], Figure())


def study(name: str = "one") -> Study:
    return Study(name, "A title", "A paper", "What it shows.", "How.", lambda _: report())


GOOD, BAD = Claim("Good", True, "1"), Claim("Bad", False, "2")


@pytest.mark.parametrize("name", STUDIES)
def test_quick_studies_finish(name, tmp_path, capsys):
    assert main(["study", name, "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert STUDIES[name].title in said
    page = (tmp_path / f"{name}.md").read_text()
    assert "A quick run" in page
    assert f"daws study {name} --quick" in page
    rows = list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
    assert rows and all(float(row["daws"]) >= 0 for row in rows)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"[`{name}`]({name}.md)" in (tmp_path / "index.md").read_text()


def test_differences_are_relative_to_the_paper_and_notable_above_ten_percent():
    above, unknown, close = report().tables[0].rows
    assert (above.percent, unknown.percent) == (25.0, None)
    assert close.percent == pytest.approx(4.0)
    assert [row.is_notable for row in (above, unknown, close)] == [True, False, False]
    page = page_of(study(), report(GOOD))
    assert "More than 10 % away from the paper's:\n\n- Shares: a (+25.0 %)\n" in page
    assert "| b | – | 5.00 |  |" in page


def test_ours_stand_alone_where_no_paper_has_numbers():
    alone = Table("Alone", ("graph",), "s", [Row(("a",), None, 5.0)])
    page = page_of(study(), report(GOOD)._replace(tables=[alone]))
    assert "| graph | daws (s) |\n| --- | ---: |\n| a | 5.00 |\n" in page
    assert "away from" not in page
    assert "  graph  daws (s)" in text_of(study(), report(GOOD)._replace(tables=[alone]))


def test_what_is_no_papers_is_not_called_so():
    beside = Table("Beside", ("graph",), "s", [Row(("a",), 10.0, 5.0)], "best published", "default")
    page = page_of(study(), report(GOOD)._replace(tables=[beside]))
    assert "More than 10 % away from what stands beside it:\n\n- Beside: a (-50.0 %)\n" in page


def test_claims_are_shown_as_they_came_out():
    assert verdict_of(report(GOOD)) == "holds (1 of 1 claims)"
    assert verdict_of(report(GOOD, BAD)) == "holds in part (1 of 2 claims)"
    assert verdict_of(report(BAD)) == "does not hold"
    assert "- **Does not hold.** Bad: 2." in page_of(study(), report(GOOD, BAD))
    assert "DOES NOT HOLD: Bad (2)" in text_of(study(), report(BAD))


def test_the_index_has_the_verdicts_of_the_pages_that_are_there(tmp_path):
    write(study(), report(GOOD, BAD), tmp_path)
    index = write_index([study(), study("other")], tmp_path).read_text()
    assert "| [`one`](one.md) | A paper | What it shows. | holds in part (1 of 2 claims) |" in index
    assert "| `other` | A paper | What it shows. | not run |" in index


def test_a_run_is_made_once_and_is_the_same_in_any_process():
    jobs = [Job("bot:tasks=20", "daws", nodes, seed=7) for nodes in (1, 2)]
    found = run_all([*jobs, jobs[0]], Asked(jobs=2))
    assert list(found) == jobs
    assert found[jobs[1]].result.makespan_s == run_job(jobs[1]).result.makespan_s
    again = run_all(jobs, Asked())
    assert all(again[job] is found[job] for job in jobs)


def test_costs_of_a_job_change_its_run():
    slow, fast = (Job("all-pairs:files=4", "flds", 2, costs=(("net_bytes_per_s", rate),)) for rate in (1e7, 1e9))
    assert run_job(slow).result.makespan_s > run_job(fast).result.makespan_s
