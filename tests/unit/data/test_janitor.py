import os
import subprocess
import sys
from pathlib import Path

import pytest

from daws.data.janitor import Janitor
from tests.unit.workers.crew import gone

SCRIPT = """
import sys
from daws.data.janitor import Janitor
janitor = Janitor(*sys.argv[1:])
print("hired", flush=True)
sys.stdin.read()
"""


def test_who_vanishes_leaves_nothing(tmp_path: Path):
    folders = [tmp_path / "one", tmp_path / "-rf two"]
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, folders)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"hired\n"
        assert all(folder.is_dir() for folder in folders)
        owner.kill()
    assert gone([], folders)


def test_who_was_dismissed_removes_nothing(tmp_path: Path):
    janitor = Janitor(str(tmp_path))
    pid = janitor._pid
    janitor.dismiss()
    janitor.dismiss()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert tmp_path.is_dir()
