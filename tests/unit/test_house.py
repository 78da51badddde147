"""Facts about the repository itself that are easy to break without noticing."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_lock_file_names_only_the_public_index():
    hosts = set(re.findall(r"(?:https?|file)://[^/\"]*", (ROOT / "uv.lock").read_text()))
    assert hosts <= {"https://pypi.org", "https://files.pythonhosted.org"}


def test_importing_daws_imports_nothing_else():
    script = "import sys; before = set(sys.modules); import daws; print(sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "['daws']"
