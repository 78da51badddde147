"""Real files, where they are at hand: tasks, edges and bytes as their descriptions say."""

from pathlib import Path

import pytest

from daws.formats import read_workflow

FOLDER = Path(__file__).parents[4] / "shared" / "workloads"
FILES = sorted([*FOLDER.glob("dax/*.xml"), *FOLDER.glob("wfformat/*.json")])


def told() -> dict[str, list[str]]:
    """The rows of the tables in the folders' descriptions, by file."""
    rows = [line.split("|") for page in FOLDER.glob("*/README.md") for line in page.read_text().splitlines()]
    return {row[1].strip(): [cell.strip() for cell in row[2:]] for row in rows if len(row) > 10}


@pytest.mark.skipif(not FILES, reason="there are no shared workloads here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files(path):
    graph = read_workflow(path).graph
    row = told()[path.name]
    assert (graph.task_count, graph.edge_count) == (int(row[0]), int(row[1]))
    assert graph.total_length_ns / 1e9 == pytest.approx(float(row[5]), rel=1e-4, abs=0.51)
    assert graph.critical_path_ns() / 1e9 == pytest.approx(float(row[6]), abs=0.51)
    assert int(graph.levels().max()) + 1 == int(row[7])
