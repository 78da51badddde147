"""The examples of the API run, and print what they say they print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "api").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path):
    promised = re.findall(r"# prints: (.*)$", example.read_text(), re.MULTILINE)
    assert promised
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    rest = done.stdout
    for text in promised:
        assert text in rest, f"{text!r} is not in the rest of the output, {rest!r}"
        rest = rest.split(text, 1)[1]
