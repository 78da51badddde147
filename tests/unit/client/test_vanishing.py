"""A client ends in every way there is: no process and no file is left, whoever the nodes are."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.workers.crew import gone
from tests.unit.workers.test_vanishing import descendants

SCRIPT = """
import os, signal, sys, time
import daws

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
gate, form, way = sys.argv[1:]
options = {"thread": {}, "process": {"node": "process"}, "nodes": {"nodes": 2},
           "threads": {"kind": "threads"}}[form]

def hang(gate, value):
    with open(gate, "w") as file:
        print(os.getpid(), file=file)
    time.sleep(1000)

with daws.Cluster(1, memory_bytes=8_000_000, **options) as cluster:
    values = [cluster.submit(bytearray, 3_000_000) for _ in range(8)]  # some of them are spilled
    daws.wait(values)
    print(*cluster._folders.all(), flush=True)
    future = cluster.submit(hang, gate, cluster.put(bytes(1_000_000)))
    sys.stdin.readline()
    if way == "raises":
        raise SystemExit("that was all")
    if way == "exits":
        os._exit(1)
    if way == "signal":
        future.result()
    cluster.close(cancel=True)
"""


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def interrupt_twice(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)
    os.killpg(pid, signal.SIGINT)


def nothing(pid: int) -> None:
    """It ends by itself."""


@pytest.mark.parametrize(
    ("form", "way", "act"),
    [
        ("thread", "leaves", nothing),
        ("thread", "raises", nothing),
        ("thread", "exits", nothing),
        ("thread", "signal", kill),
        ("thread", "signal", end),
        ("thread", "signal", interrupt_twice),
        ("threads", "leaves", nothing),
        ("threads", "exits", nothing),
        ("threads", "signal", kill),
        ("threads", "signal", interrupt_twice),
        ("process", "signal", kill),
        ("nodes", "signal", kill),
        ("nodes", "signal", interrupt_twice),
    ],
)
def test_nothing_is_left(form: str, way: str, act: Callable[[int], None], tmp_path: Path):
    script, gate = tmp_path / "script.py", tmp_path / "gate"
    script.write_text(SCRIPT)
    os.mkfifo(gate)
    scratch = tmp_path / "scratch"  # where no other cluster sweeps
    scratch.mkdir()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, str(script), str(gate), form, way],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
        start_new_session=True,
    ) as client:
        assert client.stdout is not None and client.stdin is not None
        folders = [Path(name) for name in client.stdout.readline().split()]
        gate.read_text()  # the last task runs
        family = descendants(client.pid)
        assert len(family) >= 2 and all(one.is_dir() for one in folders)
        assert [one.parent for one in folders].count(scratch) == 1
        client.stdin.write("go on\n")
        client.stdin.flush()
        act(client.pid)
        try:
            client.communicate(timeout=60)
        finally:
            client.kill()
    assert gone(family, folders)
    assert list(scratch.iterdir()) == []
