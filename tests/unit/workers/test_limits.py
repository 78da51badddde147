import os
import subprocess
import sys

from daws.workers.limits import held_bytes

CHILD = "held = bytearray(b'x' * (64 << 20)); print('ready', flush=True); input()"


def test_memory_of_children_counts():
    before = held_bytes(os.getpid())
    assert before > 0
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert held_bytes(child.pid) > 64 << 20
        assert held_bytes(os.getpid()) > before + (60 << 20)
        child.communicate(b"\n")


def test_who_is_gone_holds_nothing():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert held_bytes(child.pid) == 0
