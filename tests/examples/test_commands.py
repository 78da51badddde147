"""The example of commands, as a user would start it."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "commands.py"


def test_the_example_counts_words(tmp_path: Path):
    shown = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert shown.split()[:2] == ["8,000", "the"] and len(shown.splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_example_takes_a_file(tmp_path: Path):
    (tmp_path / "my text.txt").write_text("b a\nb c\nb a\n")
    command = [sys.executable, str(EXAMPLE), "my text.txt"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert shown.split()[:4] == ["3", "b", "2", "a"]
