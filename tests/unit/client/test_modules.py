"""Modules of the client on nodes that do not have them. Real nodes, with workers as processes and as threads."""

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from daws.client.connect import ConnectedCluster, connect
from daws.client.modules import OwnModules
from daws.data.revisions import own as revisions
from daws.model.errors import UsageError
from daws.workers.errors import UnreadableError
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines

Write = Callable[..., ModuleType]


@pytest.fixture(scope="module", params=["processes", "threads"])
def machines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """One node, which was there before there were any modules."""
    with Machines(tmp_path_factory.mktemp("modules")) as machines:
        machines.node(1, request.param)
        machines.wait_for(1)
        yield machines


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module of our own where nodes do not look, and import it; all are forgotten afterwards."""
    folder = tmp_path / "own"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name: str, text: str, load: bool = True) -> ModuleType:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        dotted = name.removesuffix("/__init__").replace("/", ".")
        if not load:
            return ModuleType(dotted)
        return importlib.reload(sys.modules[dotted]) if dotted in sys.modules else importlib.import_module(dotted)

    yield write
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def cluster(machines: Machines) -> Iterator[ConnectedCluster]:
    with machines.connect() as cluster:
        yield cluster


def test_functions_classes_and_errors_of_a_module_that_nodes_do_not_have(cluster: ConnectedCluster, write: Write):
    own = write(
        "own_points",
        """
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: int

        class Trouble(Exception):
            pass

        def moved(point, by):
            return Point(point.x + by)

        def fails(point):
            raise Trouble(f"at {point.x}")
        """,
    )
    moved = cluster.submit(own.moved, own.Point(1), 2)
    assert moved.result(DEADLINE_S) == own.Point(3)
    assert type(cluster.submit(own.moved, moved, 4).result(DEADLINE_S)) is own.Point
    with pytest.raises(own.Trouble, match="at 7") as caught:
        cluster.submit(own.fails, own.Point(7)).result(DEADLINE_S)
    assert "raise Trouble" in str(caught.value.__cause__), "the traceback shows the source"


def test_what_a_module_imports_comes_along(cluster: ConnectedCluster, write: Write):
    write("own_below", "def below(): return 'below'", load=False)
    write("own_later", "from own_below import below", load=False)
    write("own_package/inside", "NAME = 'package'", load=False)
    write("own_package/__init__", "from .inside import NAME")
    write("own_package/never", "VALUE = 'by a name that it made up'", load=False)
    write("own_space/deep/leaf", "LEAF = 'leaf'")
    own = write(
        "own_above",
        """
        import importlib
        from own_space.deep import leaf
        import own_package

        def all_of_it():
            import own_later
            never = importlib.import_module("own_package." + "never")
            return own_package.NAME, leaf.LEAF, own_later.below(), never.VALUE
        """,
    )
    expected = ("package", "leaf", "below", "by a name that it made up")
    assert cluster.submit(own.all_of_it).result(DEADLINE_S) == expected


def test_functions_by_value_find_modules_too(cluster: ConnectedCluster, write: Write):
    own = write("own_by_value", "def twice(x): return 2 * x")
    write("own_inside", "def thrice(x): return 3 * x", load=False)

    def both(x: int) -> tuple[int, int]:
        import own_inside  # type: ignore[import-not-found]

        return own.twice(x), own_inside.thrice(x)

    assert cluster.submit(both, 5).result(DEADLINE_S) == (10, 15)
    assert list(cluster.map(own.twice, range(5))) == [0, 2, 4, 6, 8]


def test_tasks_that_tasks_submit_have_the_same_modules(cluster: ConnectedCluster, write: Write):
    own = write(
        "own_nested",
        """
        import daws

        class Sum:
            def __init__(self, value): self.value = value

        def leaf(x):
            import own_nested_later
            return Sum(own_nested_later.ONE + x)

        def root(count):
            cluster = daws.current()
            return sum(one.value for one in cluster.gather([cluster.submit(leaf, x) for x in range(count)]))
        """,
    )
    write("own_nested_later", "ONE = 1", load=False)
    assert cluster.submit(own.root, 4).result(DEADLINE_S) == 10


def test_a_module_that_is_loaded_anew_is_sent_anew(cluster: ConnectedCluster, write: Write):
    own = write("own_versions", "def version(): return 1")
    assert cluster.submit(own.version).result(DEADLINE_S) == 1
    own = write("own_versions", "def version(): return 22")
    assert cluster.submit(own.version).result(DEADLINE_S) == 22
    later = write("own_came_later", "class Value:\n    number = 5\n\ndef read(value): return value.number")
    assert cluster.submit(later.read, later.Value()).result(DEADLINE_S) == 5


def test_a_module_that_is_changed_in_place_is_sent_anew(cluster: ConnectedCluster, write: Write):
    """As `%autoreload` does it: before the next cell, functions have new code."""
    own = write("own_in_place", "def version(): return 1")
    function = own.version
    assert cluster.submit(function).result(DEADLINE_S) == 1
    text = "def version(): return 22"
    write("own_in_place", text, load=False)
    names: dict[str, Any] = {}
    exec(text, names)
    function.__code__ = names["version"].__code__
    revisions.suspect()
    assert cluster.submit(function).result(DEADLINE_S) == 22


def test_sessions_have_their_own_versions(machines: Machines, write: Write, tmp_path: Path):
    """Also when they take turns in one worker."""
    first = write("own_turns", "VERSION = 1\ndef version(): return VERSION").version
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "own_turns.py").write_text("VERSION = 22\ndef version(): return VERSION")
    script = "import daws, own_turns, sys; print(daws.connect(sys.argv[1]).submit(own_turns.version).result())"
    with machines.connect() as one:
        for _ in range(2):
            assert one.submit(first).result(DEADLINE_S) == 1
            command = [sys.executable, "-c", script, str(machines.folder)]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S)
            assert ran.stdout == "22\n", ran.stderr
        assert one.submit(first).result(DEADLINE_S) == 1


def test_a_function_of_a_module_that_was_loaded_anew_is_what_it_was(cluster: ConnectedCluster, write: Write):
    """As in this process: it has its old code, and the new names of its module."""
    first = write("own_former", "NUMBER = 1\ndef version(): return NUMBER, 'first'").version
    assert cluster.submit(first).result(DEADLINE_S) == (1, "first")
    second = write("own_former", "NUMBER = 22\ndef version(): return NUMBER, 'second'").version
    assert cluster.submit(second).result(DEADLINE_S) == second() == (22, "second")
    assert cluster.submit(first).result(DEADLINE_S) == first() == (22, "first")


def test_what_is_sent_can_be_chosen(machines: Machines, write: Write):
    own = write("own_chosen", "def answer(): return 42")
    write("own_other", "def other(): return 43")
    with connect(machines.folder, modules=False) as cluster, pytest.raises(UnreadableError, match="own_chosen"):
        cluster.submit(own.answer).result(DEADLINE_S)
    with connect(machines.folder, modules=["own_chosen"]) as cluster:
        assert cluster.submit(own.answer).result(DEADLINE_S) == 42
        with pytest.raises(UnreadableError, match="own_other"):
            cluster.submit(sys.modules["own_other"].other).result(DEADLINE_S)
    for wrong in ("own_chosen", ["no_such_module"], ["json"], 3):
        with pytest.raises(UsageError, match="modules"):
            OwnModules(wrong)  # type: ignore[arg-type]


def test_a_script_beside_its_module(machines: Machines, tmp_path: Path):
    """As most people have it, run from elsewhere; and what it leaves behind goes on without it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "beside.py").write_text("def tripled(x):\n    return 3 * x\n")
    (folder / "lazy.py").write_text("def halved(x):\n    return x // 2\n")
    (folder / "script.py").write_text(
        textwrap.dedent(
            """
            import sys
            import beside
            import daws

            def both(x):
                import lazy
                return beside.tripled(x) + lazy.halved(x)

            with daws.connect(sys.argv[1]) as cluster:
                print(cluster.submit(both, 10).result(60), cluster.submit(beside.tripled, 2).result(60))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(machines.folder)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout == "35 6\n", done.stderr
