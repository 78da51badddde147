"""What users of concurrent.futures, joblib, Dask, Ray and multiprocessing.Pool would write first: it runs, or one
line names the cure.

Snippets are as in these projects' documentation, with the import or the name of the client changed. `### name` begins
one; a last line `!!! text` says that it fails with one line that has this text in it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TIMEOUT_S = 300.0


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(HERE.glob("*.txt")), ids=lambda file: file.stem)
def test_snippets_run_or_name_the_cure(file: Path, tmp_path: Path):
    command = [sys.executable, str(HERE / "run.py"), str(file)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert len(found) == file.read_text().count("### "), ran.stderr
    assert [f"{one['name']}: {one['error'] or one['out']}" for one in found if not is_as_expected(one)] == []


def is_as_expected(one: dict[str, str]) -> bool:
    if one["said"]:
        return one["said"] in one["error"] and "\n" not in one["error"].strip()
    return not one["error"] and bool(one["out"].strip())


def test_there_are_more_than_two_hundred():
    assert sum(file.read_text().count("### ") for file in HERE.glob("*.txt")) > 200
