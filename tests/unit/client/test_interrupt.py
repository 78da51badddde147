"""Ctrl-C in a real program: it ends at once, says what was lost, and leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sys, time
import daws

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it

def hang(gate):
    with open(gate, "w") as file:
        print(os.getpid(), file=file)
    time.sleep(1000)

def ready(cluster):
    print(cluster._folders.scratch, cluster._folders.memory, flush=True)

gate = sys.argv[1]
"""
WAYS = {
    "result": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    futures = [cluster.submit(hang, gate) for _ in range(3)]
    futures[0].result()
""",
    "gather": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    daws.gather([cluster.submit(hang, gate) for _ in range(3)], progress=True)
""",
    "the block": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    futures = [cluster.submit(hang, gate) for _ in range(3)]
    while True:  # a signal that comes just before a long sleep begins would be seen at its end
        time.sleep(0.05)
""",
    "leaving": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    for _ in range(3):
        cluster.submit(hang, gate)
""",
    "the end": """
cluster = daws.Cluster(1)
ready(cluster)
futures = [cluster.submit(hang, gate) for _ in range(3)]
""",
    "no block": """
cluster = daws.Cluster(1)
ready(cluster)
futures = [cluster.submit(hang, gate) for _ in range(3)]
daws.wait(futures)
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c(way: str, tmp_path: Path):
    script, gate = tmp_path / "script.py", tmp_path / "gate"
    script.write_text(HEAD + WAYS[way])
    os.mkfifo(gate)
    command = [sys.executable, str(script), str(gate)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        folders = [name for name in process.stdout.readline().split() if name != "None"]
        worker = int(gate.read_text())  # the first task runs
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the group hears it
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.count("daws:") == 1 and "daws: 3 tasks were cancelled: KeyboardInterrupt\n" in errors
    assert errors.splitlines()[-1] == "KeyboardInterrupt" or way in ("no block", "the end")
    assert folders and not any(map(os.path.exists, folders))
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
