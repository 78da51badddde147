"""Modules that are edited, loaded anew or found later, with workers of this machine."""

import importlib
import importlib.util
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import daws
from daws.data.revisions import own

DEADLINE_S = 60
Write = Callable[..., ModuleType]
KINDS: dict[str, dict[str, Any]] = {"processes": {}, "threads": {"kind": "threads"}, "nodes": {"nodes": 2}}


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[daws.Cluster]:
    with daws.Cluster(1, **KINDS[request.param]) as cluster:
        cluster.submit(os.getpid).result(DEADLINE_S)
        yield cluster


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module, and import it if it is not loaded."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in [name for name in sys.modules if name.startswith("reload_")]:
        del sys.modules[name]
        own.revisions.pop(name, None)


def results(cluster: daws.Cluster, function: Callable[..., Any], *args: Any) -> Any:
    """What all workers say."""
    found = {repr(cluster.submit(function, *args).result(DEADLINE_S)) for _ in range(6)}
    assert len(found) == 1
    return found.pop()


def test_loaded_anew(cluster: daws.Cluster, write: Write):
    low = write("reload_low", "def low(): return 1")
    high = write(
        "reload_high",
        """
        import daws, reload_low
        from reload_low import low
        def high(): return low(), reload_low.low()
        def nested(): return daws.current().submit(high).result()
        """,
    )
    assert results(cluster, high.high) == results(cluster, high.nested) == "(1, 1)"
    write("reload_low", "def low(): return 22")
    assert results(cluster, high.high) == "(1, 1)", "it was edited, and not loaded anew"
    importlib.reload(low)
    assert results(cluster, high.high) == results(cluster, high.nested) == repr(high.high()) == "(1, 22)"
    importlib.reload(high)
    assert results(cluster, high.high) == results(cluster, high.nested) == "(22, 22)"
    assert results(cluster, lambda: high.high()) == "(22, 22)"


def test_changed_in_place(cluster: daws.Cluster, write: Write):
    """As `%autoreload` does it: functions and classes stay, and have new code. So whoever has imported them has it."""
    low = write("reload_place", "def low(): return 1\nclass Low:\n    def low(self): return 1")
    high = write("reload_above", "from reload_place import Low, low\ndef high(): return low(), Low().low()")
    assert results(cluster, high.high) == "(1, 1)"
    text = "def low(): return 22\nclass Low:\n    def low(self): return 22"
    write("reload_place", text)
    names: dict[str, Any] = {}
    exec(text, names)
    low.low.__code__ = names["low"].__code__
    low.Low.low.__code__ = names["Low"].low.__code__
    own.suspect()  # a cell begins
    assert results(cluster, high.high) == repr(high.high()) == "(22, 22)"


def test_a_former_function_is_what_it_is_here(cluster: daws.Cluster, write: Write):
    module = write("reload_former", "def former(): return 1")
    former = module.former

    def use() -> Any:
        return former()

    assert results(cluster, use) == "1"
    write("reload_former", "def former(): return 22")
    importlib.reload(module)
    assert results(cluster, use) == results(cluster, former) == repr(use()) == "1"
    assert results(cluster, module.former) == "22"


def test_edited_before_a_worker_imports_it(cluster: daws.Cluster, write: Write):
    """What this process runs is what workers run, whatever lies on the disk meanwhile."""
    late = write("reload_late", "def late(): return 'loaded'")
    cluster.submit(os.getpid).result(DEADLINE_S)
    cluster.submit(lambda: 0).result(DEADLINE_S)
    write("reload_late", "def late(): return 'edited and not loaded'")
    own.suspect()  # as a cell does
    assert results(cluster, late.late) == "'loaded'"


def test_the_path_changes_later(cluster: daws.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "later"
    folder.mkdir()
    (folder / "reload_far.py").write_text("def far(): return 'far'")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])

    def inside() -> str:
        import reload_far  # type: ignore[import-not-found]

        return str(reload_far.far())

    assert results(cluster, inside) == "'far'"
    far = importlib.import_module("reload_far")
    assert results(cluster, far.far) == "'far'"
    del sys.modules["reload_far"]


def test_a_module_that_is_on_no_path(cluster: daws.Cluster, tmp_path: Path):
    """As pytest and plugins do it."""
    path = tmp_path / "some.py"
    path.write_text("class Value:\n    x = 1\n\ndef made(): return Value()")
    spec = importlib.util.spec_from_file_location("reload_by_hand", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["reload_by_hand"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        assert type(cluster.submit(module.made).result(DEADLINE_S)) is module.Value
    finally:
        del sys.modules["reload_by_hand"]
        own.revisions.pop("reload_by_hand", None)


def test_nothing_is_left_in_the_import_system():
    before = [*sys.meta_path]
    with daws.Cluster(1) as cluster:
        assert len(sys.meta_path) == len(before) + 1
        with daws.Cluster(1, kind="threads") as other:
            assert other.submit(pow, 2, 3).result(DEADLINE_S) == cluster.submit(pow, 2, 3).result(DEADLINE_S)
        assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path == before


def test_functions_are_not_sent_again_without_need(write: Write):
    module = write("reload_once", "def once(): return 1")
    with daws.Cluster(1) as cluster:
        session = cluster._open()
        for _ in range(3):
            cluster.submit(module.once).result(DEADLINE_S)
        assert len(session.functions.by_content) == 1 and module.once in session._settled
        importlib.reload(module)
        for _ in range(3):
            cluster.submit(module.once).result(DEADLINE_S)
        assert len(session.functions.by_content) == 2 and module.once in session._settled
