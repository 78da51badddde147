"""The tool that measures many live nodes: its tables, what it counts, and that a small cluster really runs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.scale import killing, page
from bench.scale.cases import bag, cases_of, killed_case
from bench.scale.counting import Counts
from bench.scale.ground import Ground
from bench.scale.killing import Loss, Round, kill_some
from bench.scale.runs import Figures, run

FIGURES = Figures(
    name="bag",
    tasks=1000,
    makespan_s=11.0,
    efficiency=0.91,
    bound_share=0.91,
    simulated_s=10.0,
    submitted_s=0.1,
    busy=1.5,
    node_us=200.0,
    store_us=100.0,
    client_us=50.0,
    frames=2.0,
    messages=3.0,
    calls=1.0,
    rows=3.0,
    simulated_rows=2.0,
    expiries=0,
    stolen=7,
    moved_mb=0.0,
    aim=0.9,
    published="90 % and more",
)
ROUNDS = (Round(5.0, 12.5, 6.5, 40), Round(6.0, 13.0, 6.0, 30), Round(5.5, 20.0, 6.6, 90))
LOSS = Loss(10_000, ROUNDS, task_s=0.1, path_s=1.2)


def test_aims_are_for_efficiency_and_for_no_false_expiry():
    assert FIGURES.is_good
    assert not replace(FIGURES, efficiency=0.89).is_good
    assert not replace(FIGURES, expiries=1).is_good
    assert FIGURES.off == pytest.approx(0.1)


def test_live_and_simulated_are_to_be_near_to_each_other_where_that_is_an_aim():
    assert replace(FIGURES, off_max=0.11).is_good
    assert not replace(FIGURES, off_max=0.09).is_good
    assert not replace(FIGURES, makespan_s=8.9, off_max=0.1).is_good


def test_a_killed_node_may_cost_its_detection_and_what_is_done_again():
    assert [one.cost_s for one in ROUNDS] == [7.5, 7.0, 14.5]
    assert LOSS.median("cost_s") == 7.5 and LOSS.rerun_work_s == 4.0
    assert LOSS.is_good
    assert not replace(LOSS, path_s=0.9).is_good
    assert not replace(LOSS, rounds=(Round(5.0, 12.5, 10.5, 40),)).is_good


def test_cases_have_work_for_as_long_as_was_asked():
    for case in cases_of(slots=8, bag_s=2.0, graph_s=3.0).values():
        graph = case.graph(4, 2)
        wanted_s = 2.0 if case.name.startswith("bag") else 3.0
        assert graph.total_length_ns / 1e9 / 8 == pytest.approx(wanted_s, rel=0.25), case.name
    assert killed_case(50).graph(4, 2).task_count == 50


def test_the_page_gets_the_tables_in_their_place(tmp_path: Path):
    path = tmp_path / "page.md"
    path.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write(page.tables([FIGURES, replace(FIGURES, expiries=2)], LOSS, ["Two nodes.", "One node."]), path)
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{page.END}\nafter\n")
    assert "old" not in text
    assert "| bag | 1,000 | 11.0 | 10.0 | +10.0% | 91.0% | 90% | 91.0% | 90 % and more |" in text
    assert "bag (2 false expiries)" in text
    assert text.index("Two nodes.") < text.index("| bag |") < text.index("One node.") < text.index("A node killed")
    assert "it cost 7.5 s (7.0 to 14.5)**. At most it should be 7.7 s" in text


def test_the_page_in_docs_has_such_a_place():
    text = page.PAGE.read_text("utf-8")
    assert text.count(page.BEGIN) == text.count(page.END) == 1


def test_counts_can_be_added_and_taken_off():
    some, more = Counts(1, 2, 3, 4), Counts(10, 20, 30, 40)
    assert some + more - some == more


def test_a_small_cluster_runs_a_bag():
    with Ground(2, 2, lease_s=6.0) as ground:
        found = run(ground, bag("bag", slots=4, length_ms=10, seconds=1.0, strategy="daws", aim=0.0, published=""))
        assert len(ground.members()) == 2
    assert found.tasks == 400
    assert found.makespan_s > 1.0
    assert found.expiries == 0
    assert found.rows >= 2, "each is submitted and committed"
    assert found.messages > 0
    assert found.node_us > 0 < found.store_us


def test_nodes_are_killed_in_turns_with_undisturbed_runs():
    with Ground(3, 1, lease_s=1.0) as ground:
        loss = kill_some(ground, killed_case(30), rounds=2)
        assert len(ground.members()) == 1
    assert loss.tasks == 30 and len(loss.rounds) == 2
    assert all(one.killed_s > 0 and one.detected_s > 0 and one.rerun >= 0 for one in loss.rounds)


def test_a_run_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(killing, "LIMIT_S", 0.0)
    with (
        Ground(1, 1, lease_s=6.0) as ground,
        pytest.raises(TimeoutError, match=r"of 30 tasks have ended after 0 s; 1 nodes are there, and 1 should be"),
    ):
        kill_some(ground, killed_case(30), rounds=1)
