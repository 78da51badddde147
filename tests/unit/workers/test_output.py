"""The standard streams of a worker: in a process of their own, for ours are the test's."""

import subprocess
import sys
from pathlib import Path

from daws.workers.output import FILE_MAX_BYTES, KEPT_BYTES

BEGIN = """
import os, sys
from types import SimpleNamespace
from daws.workers.output import Output, path_of, unreported
from daws.workers.signs import Signs

told, folder = os.dup(1), sys.argv[1]
said, fields, here = [], [0] * 6, SimpleNamespace(hand=None)
output = Output(folder, "w", Signs(), fields, lambda *all: said.append(all), here)

def look(hand="one"):
    output._quiet_until_ns = 0
    output.look(hand)

def tell(*what):
    os.write(told, (" ".join(map(str, what)) + "\\n").encode())
"""
PRINTS_MUCH = """
for _ in range(40):
    os.write(1, b"y" * (1 << 20))
    output.look("one")
os.write(1, b"the end")
room = os.stat(path_of(folder, "w", 1)).st_blocks * 512
output.end("one")
tell(room, sum(len(text) for _, _, text in said), len(said), said[-1][2][-7:].decode())
tell(said[-1][2].partition(b"\\n")[0].decode())
"""


def told_by(code: str, folder: Path) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", BEGIN + code, str(folder)], capture_output=True, check=False, timeout=60
    )
    assert not run.returncode, run.stderr.decode()
    return run.stdout.decode().splitlines()


def test_a_run_that_prints_much_takes_little_room_and_loses_nothing_of_the_end(tmp_path: Path):
    numbers, shortened = told_by(PRINTS_MUCH, tmp_path)
    room, total, count, end = numbers.split(" ", 3)
    assert int(room) <= FILE_MAX_BYTES + (1 << 20)
    assert int(count) >= 2 and end == "the end"
    assert int(total) <= int(count) * (KEPT_BYTES + 60) and int(count) < 10, "not too much in a second"
    assert shortened.endswith("bytes of output are left out]")


LINE_BY_LINE = """
print("first"); print("half", end=""); sys.stdout.flush()
look(); tell(said)
print(" and half"); look(); tell(said.pop())
os.write(2, b"10%\\r20%"); look(); tell(said.pop())
os.write(1, b"never ends"); output.end("one"); tell(said[-2:], fields[3:5], os.stat(path_of(folder, "w", 1)).st_size)
"""


def test_complete_lines_are_told_at_once_and_the_rest_at_the_end(tmp_path: Path):
    assert told_by(LINE_BY_LINE, tmp_path) == [
        "[('one', 1, b'first\\n')]",
        "('one', 1, b'half and half\\n')",
        "('one', 2, b'10%\\r')",
        "[('one', 1, b'never ends'), ('one', 2, b'20%')] [0, 0] 0",
    ]


TWO_RUNS = """
here.hand = "one"; print("1 begins,", end=" ")
here.hand = "two"; print("2 begins,", end=" ")
here.hand = "one"; print("1 goes on", end="")
here.hand = "two"; print("2 is over")
look(); output.end("two"); tell(said); said.clear()
here.hand = "one"; print(", 1 is over"); output.end("one"); tell(said); said.clear()
here.hand = "one"; print("part", end=""); output.pause("one"); tell(said)
here.hand = "two"; print("other"); output.end("two"); output.end("one"); tell(said)
"""


def test_runs_of_one_process_are_told_apart(tmp_path: Path):
    assert told_by(TWO_RUNS, tmp_path) == [
        "[('two', 1, b'2 begins, 2 is over\\n')]",
        "[('one', 1, b'1 begins, 1 goes on, 1 is over\\n')]",
        "[]",
        "[('two', 1, b'other\\n'), ('one', 1, b'part')]",
    ]


DIES = """
print("reported"); look(); print("not reported", file=sys.stderr); os.write(1, b"nor this")
tell(said, unreported(folder, "w", fields[3:5]))
fields[5] = 1; said.clear(); look(); tell(said)
"""


def test_what_a_dead_worker_did_not_report_is_found(tmp_path: Path):
    assert told_by(DIES, tmp_path) == [
        "[('one', 1, b'reported\\n')] [(1, b'nor this\\n'), (2, b'not reported\\n')]",
        "[]",
    ]
