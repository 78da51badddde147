"""The notebooks for users run from top to bottom, and are kept without results."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "examples"
LAST = {
    "first_steps": {
        3: "144",
        5: "81",
        7: "(Point(x=3.0, y=0.0), True)",
        10: "332833500",
        12: "[124999.5, 374999.5, 624999.5, 874999.5]",
        16: "145",
    }
}
"""By notebook and number of the cell: what its last line is worth."""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path):
    notebook: Any = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs before you save it"
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [_values(cell) for cell in notebook.cells]
    for number, value in LAST.get(path.stem, {}).items():
        assert shown[number] == [value], notebook.cells[number].source


def _values(cell: Any) -> list[str]:
    outputs = cell.get("outputs", [])
    return [one["data"]["text/plain"] for one in outputs if one["output_type"] == "execute_result"]
