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


def test_every_module_can_be_the_first_to_be_imported():
    script = """
import importlib, pkgutil, sys, daws
paths = daws.__path__[:1]  # in `_others` are modules that refuse to be imported
names = [module.name for module in pkgutil.walk_packages(paths, "daws.") if "__main__" not in module.name]
for name in names:
    for known in [known for known in sys.modules if known == "daws" or known.startswith("daws.")]:
        del sys.modules[known]
    importlib.import_module(name)
print(len(names))
"""
    shown = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert int(shown.stdout) > 100
