"""The standard streams of a worker: in a process of their own, for ours are the test's."""

import subprocess
import sys
from pathlib import Path

from daws.workers.output import FILE_MAX_BYTES, KEPT_BYTES

PRINTS_MUCH = """
import os, sys
from daws.workers.output import Output, path_of
from daws.workers.signs import Signs

told, folder = os.dup(1), sys.argv[1]
output = Output(folder, "w", Signs())
for _ in range(40):
    os.write(1, b"y" * (1 << 20))
    output.bound()
os.write(1, b"the end")
room = os.stat(path_of(folder, "w", 1)).st_blocks * 512
(stream, text), *others = output.take()
os.write(told, f"{room} {len(text)} {text[-7:].decode()} {len(others)} {output.take()}".encode())
"""


def test_a_run_that_prints_much_takes_little_room_and_loses_nothing_of_the_end(tmp_path: Path):
    told = subprocess.run([sys.executable, "-c", PRINTS_MUCH, str(tmp_path)], capture_output=True, check=True)
    room, rest = told.stdout.decode().split(" ", 1)
    assert int(room) <= FILE_MAX_BYTES + (1 << 20)
    told_bytes, rest = rest.split(" ", 1)
    said = f"[the first {(40 << 20) + 7 - KEPT_BYTES:,} bytes of output are left out]\n"
    assert int(told_bytes) == len(said) + KEPT_BYTES
    assert rest == "the end 0 []"
