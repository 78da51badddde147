"""Functions and classes of scripts, of the prompt and of `python -c` travel, on all clusters and versions of Python."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.runtime.cluster.machines import Machines

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("everything.py")
DEADLINE_S = 120
OTHERS = sorted(ROOT.glob(".venv-3.*/bin/python"))
"""Those that `make versions` has made."""

PROMPT = """
import enum, functools, daws
from dataclasses import dataclass
from typing import NamedTuple
class Point(NamedTuple):
    x: int
    y: int = 2

class Mood(enum.Enum):
    GOOD = 1

@dataclass(slots=True)
class Slotted:
    x: int

@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def moved(p, by=1):
    return p._replace(x=p.x + by)

cluster = daws.Cluster(1)
print(cluster.submit(moved, Point(1)).result() == Point(2))
print(cluster.submit(lambda m: m, Mood.GOOD).result() is Mood.GOOD)
print(cluster.submit(Slotted, 3).result() == Slotted(3), cluster.submit(fib, 30).result())
def moved(p, by=1):
    return p._replace(x=p.x + 10)

class Point(NamedTuple):
    x: int
    z: int = 5

print(cluster.submit(moved, Point(1)).result() == Point(11), cluster.submit(lambda: Point(1).z).result())
cluster.close()
"""


def ran(command: list[str], kind: str = "processes", text: str | None = None, folder: Path = ROOT) -> str:
    environment = {**os.environ, "DAWS_TRY": kind, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, input=text, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    return done.stdout + done.stderr


def is_good(said: str) -> bool:
    return re.search(r"^0 of \d+ failed", said, re.MULTILINE) is not None


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with Machines(tmp_path_factory.mktemp("travel")) as machines:
        machines.node(1, "processes")
        machines.node(1, "threads")
        machines.wait_for(2)
        yield machines


@pytest.mark.parametrize("kind", ["processes", "threads", "nodes"])
def test_in_a_script(kind: str):
    said = ran([sys.executable, str(SCRIPT)], kind)
    assert is_good(said), said


def test_on_a_cluster_that_was_there_before(machines: Machines):
    said = ran([sys.executable, str(SCRIPT)], str(machines.folder))
    assert is_good(said), said


@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parents[1].name)
def test_with_other_versions(python: Path):
    said = ran([str(python), str(SCRIPT)])
    assert is_good(said), said


def test_without_a_file(tmp_path: Path):
    text = SCRIPT.read_text()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inside.py").write_text(text)
    ways = {
        "-c": ran([sys.executable, "-c", text]),
        "-m": ran([sys.executable, "-m", "package.inside"], folder=tmp_path),
        "stdin": ran([sys.executable, "-"], text=text),
    }
    for way, said in ways.items():
        assert is_good(said), (way, said)


@pytest.mark.parametrize("python", [Path(sys.executable), *OTHERS], ids=lambda path: path.parents[1].name)
def test_at_the_prompt(python: Path):
    said = ran([str(python), "-q", "-i"], text=PROMPT)
    lines = [line.replace(">>> ", "").replace("... ", "") for line in said.splitlines()]
    lines = [line for line in lines if "True" in line or "rror" in line]
    assert lines == ["True", "True", "True 832040", "True 5"], said
