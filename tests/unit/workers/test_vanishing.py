"""The process that owns the workers ends in every way there is: nothing is left of them."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.workers.crew import gone

ROOT = Path(__file__).parents[3]


def descendants(pid: int) -> list[int]:
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):  # who ends meanwhile has none
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in map(int, (task / "children").read_text().split()):
                    found += [child, *descendants(child)]
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left(tmp_path: Path, number: signal.Signals):
    session = tmp_path / "session"
    for slot in (0, 1):
        os.mkfifo(tmp_path / f"begun{slot}")
    command = [sys.executable, str(Path(__file__).with_name("owner.py")), str(session), str(tmp_path / "begun")]
    with subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as owner:
        for slot in (0, 1):
            (tmp_path / f"begun{slot}").read_text()
        family = descendants(owner.pid)
        assert len(family) >= 6  # the fork server, three workers, a child and a daemon
        assert session.exists()
        if number == signal.SIGINT:
            os.killpg(owner.pid, number)  # as a terminal does
        else:
            owner.send_signal(number)
        said, _ = owner.communicate(timeout=60)
    assert owner.returncode == (130 if number == signal.SIGINT else -number)
    assert said == b""
    assert gone(family, [session])
