"""Notebooks in a real Jupyter kernel: cells that define, redefine, reload, print, wait, and are interrupted."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks.kernel import Kernel

DEFINE = """
import enum, functools, os, time
from dataclasses import dataclass
from typing import NamedTuple
import daws

class Point(NamedTuple):
    x: int
    y: int = 2

@dataclass(slots=True)
class Slotted:
    x: int

class Mood(enum.Enum):
    GOOD = 1
    BAD = 2

@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def helper():
    return "first"

class Model:
    def fit(self):
        return helper()

def moved(p):
    return Point(p.x + 1)

def nested(p):
    return daws.current().submit(moved, p).result()
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with Kernel(tmp_path) as kernel:
        yield kernel


@pytest.mark.parametrize("given", ["2", "2, kind='threads'", "1, nodes=2"])
def test_cells_define_and_redefine(kernel: Kernel, given: str):
    kernel.run(DEFINE)
    kernel.run(f"cluster = daws.Cluster({given})")
    assert kernel.run("cluster.submit(moved, Point(1)).result() == Point(2)").text == "True"
    assert kernel.run("cluster.submit(nested, Point(1)).result() == Point(2)").text == "True"
    assert kernel.run("cluster.submit(lambda m: m, Mood.BAD).result() is Mood.BAD").text == "True"
    assert kernel.run("type(cluster.submit(Slotted, 1).result()) is Slotted").text == "True"
    assert kernel.run("cluster.submit(fib, 40).result()").text == "102334155"
    model = "cluster.submit(Model().fit).result(), cluster.submit(lambda m: m.fit(), Model()).result()"
    assert kernel.run(model).text == "('first', 'first')"
    kernel.run("old = Point(7); kept = Model()")
    kernel.run("def helper():\n    return 'second'")
    assert kernel.run(model).text == "('second', 'second')"
    assert kernel.run("cluster.submit(lambda m: m.fit(), kept).result()").text == "'second'"
    kernel.run("class Point(NamedTuple):\n    x: int\n    z: int = 5")
    assert kernel.run("cluster.submit(moved, Point(1)).result()").text == "Point(x=2, z=5)"
    assert kernel.run("cluster.submit(lambda p: p.y, old).result(), type(old) is Point").text == "(2, False)"
    kernel.run("class Model:\n    def fit(self):\n        return 'new'")
    assert kernel.run(model).text == "('new', 'new')"
    printed = kernel.run("cluster.submit(print, 'from a task').result()")
    assert "from a task" in printed.out
    kernel.run("cluster.close()")


def test_modules_are_edited_and_loaded_anew(kernel: Kernel, tmp_path: Path):
    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)

    write("helping", "def help(x):\n    return x + 1\n\nclass Model:\n    def fit(self):\n        return 1\n")
    write("using", "from helping import help\nimport helping\n\ndef use(x):\n    return help(x), helping.help(x)\n")
    kernel.run("import daws, importlib, helping, using\ncluster = daws.Cluster(2)")
    use = "daws.gather([cluster.submit(using.use, 1) for _ in range(6)])[-1], using.use(1)"
    assert kernel.run(use).text == "((2, 2), (2, 2))"
    write("helping", "def help(x):\n    return x + 20\n\nclass Model:\n    def fit(self):\n        return 22\n")
    assert kernel.run(use).text == "((2, 2), (2, 2))", "it was edited, and not loaded anew"
    assert kernel.run("cluster.submit(helping.Model().fit).result()").text == "1"
    kernel.run("importlib.reload(helping)")
    assert kernel.run(use).text == "((2, 21), (2, 21))", "as in this process"
    assert kernel.run("cluster.submit(lambda: helping.Model().fit()).result()").text == "22"
    kernel.run("%load_ext autoreload\n%autoreload 2")
    for mode, number in (("", 300), ("--full", 4000)):  # the newer way changes functions in place
        kernel.run(f"%autoreload 2 {mode}")
        kernel.run("importlib.reload(using); None")
        write(
            "helping", f"def help(x):\n    return x + {number}\n\nclass Model:\n    def fit(self):\n        return 33\n"
        )
        both = (number + 1, number + 1)
        assert kernel.run(use).text == f"({both}, {both})"
        assert kernel.run("cluster.submit(helping.Model().fit).result()").text == "33"
    kernel.run("%%writefile later.py\ndef here():\n    return 'later'")
    assert kernel.run("import later\ncluster.submit(later.here).result()").text == "'later'"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.py").write_text("def away():\n    return 'far'\n")
    kernel.run(f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\nimport far")
    assert kernel.run("cluster.submit(far.away).result(), cluster.submit(lambda: far.away()).result()").text == (
        "('far', 'far')"
    )
    kernel.run("cluster.close()")


def test_the_last_line_of_a_cell(kernel: Kernel):
    kernel.run("import daws\ncluster = daws.Cluster(1)\ndef fail():\n    raise ValueError('<b>')")
    shown = kernel.run("fs = [cluster.submit(pow, 2, n) for n in range(5)]\ndaws.progress(fs)")
    assert shown.text == "<5 futures: 5 done>" and "5 done" in shown.value["text/html"]
    assert kernel.run("[f.result() for f in daws.progress(fs)]").text == "[1, 2, 4, 8, 16]"
    assert kernel.run("cluster").value["text/html"].count("<tr>") == 5
    assert kernel.run("fs[0]").text.startswith("<Future ")
    assert "&lt;b&gt;" in kernel.run("f = cluster.submit(fail); daws.wait([f]); f").value["text/html"]
    assert "items" in kernel.run("cluster.map(abs, range(9))").value["text/html"]
    kernel.run("cluster.close()")


@pytest.mark.parametrize(
    "wait", ["fs[0].result()", "daws.gather(fs)", "daws.wait(fs)", "for f in daws.as_completed(fs): pass"]
)
def test_an_interrupted_cell_cancels_what_it_submitted(kernel: Kernel, wait: str):
    kernel.run("import daws, time\nfrom pathlib import Path\ncluster = daws.Cluster(1)")
    kernel.run("def hang(path='gate'):\n    while not Path(path).exists():\n        time.sleep(0.01)\n    return 1")
    kernel.run("before = cluster.submit(hang)")
    cell = kernel.interrupt(
        f"fs = [cluster.submit(hang, 'never') for _ in range(3)]\nprint('go', flush=True)\n{wait}", "go"
    )
    assert cell.error == "KeyboardInterrupt"
    assert "3 tasks that it had submitted are cancelled" in cell.err
    assert kernel.run("daws.wait(fs); {f.state for f in fs}").text == "{'cancelled'}"
    kernel.run("open('gate', 'w').close()")
    assert kernel.run("before.result(), cluster.submit(pow, 2, 3).result()").text == "(1, 8)"
    kernel.run("cluster.close()")


def test_a_kernel_that_goes_leaves_nothing(tmp_path: Path):
    with Kernel(tmp_path) as kernel:
        kernel.run("import daws, os, time\ncluster = daws.Cluster(2)\nf = cluster.submit(time.sleep, 1000)")
        pids = [int(kernel.run("cluster.submit(os.getpid).result()").text)]
        pids.append(int(kernel.run("os.getpid()").text))
        folders = kernel.run("cluster._folders.scratch, cluster._folders.memory").text
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert not [name for name in folders.strip("()").replace("'", "").split(", ") if os.path.exists(name)]
