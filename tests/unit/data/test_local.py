"""Which modules are the user's own, and what they import."""

import json
import sys
from pathlib import Path

import pytest

from daws.data.local import LocalModules, imports_in, is_local_path


@pytest.mark.parametrize(
    ("text", "package", "expected"),
    [
        ("import a, b.c as d  # e", "", ("a", "b.c")),
        ("from a import b, c as d", "", ("a", "a.b", "a.c")),
        ("from a import (b,  # not x\n    c,\n)", "", ("a", "a.b", "a.c")),
        ("from a.b import *", "", ("a.b",)),
        ("def f():\n    import a\n    from b import c", "", ("a", "b", "b.c")),
        (
            "from . import a\nfrom .b import c\nfrom .. import d",
            "p.q",
            ("p.q", "p.q.a", "p.q.b", "p.q.b.c", "p", "p.d"),
        ),
        ("from . import a\nfrom ... import b", "", ()),
        ("important = 1\nfromage = 2", "", ()),
        ("", "", ()),
    ],
)
def test_imports(text: str, package: str, expected: tuple[str, ...]):
    assert imports_in(text, package) == expected


def test_what_is_local(tmp_path: Path):
    assert is_local_path(str(tmp_path / "own.py"))
    assert is_local_path(__file__)
    assert not is_local_path(json.__file__), "a part of Python"
    assert not is_local_path(pytest.__file__), "installed"
    assert not is_local_path(sys.modules["daws"].__file__ or ""), "daws itself"
    assert not is_local_path(str(tmp_path / "own.so"))
    assert not is_local_path("")


def test_modules_are_found_and_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lonely.py").write_text("import packed.one\nimport json, numpy, no_such_thing\n1 / 0\n")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/__init__.py").write_text("")
    (tmp_path / "packed/one.py").write_text("from spaced.deep import leaf\n")
    (tmp_path / "packed/unused.py").write_text("from . import one\nimport lonely\n")
    (tmp_path / "packed/no-module.py").write_text("")
    (tmp_path / "spaced/deep").mkdir(parents=True)
    (tmp_path / "spaced/deep/leaf.py").write_text("")
    (tmp_path / "spaced/deep/other.py").write_text("")
    modules = LocalModules()
    assert sorted(modules.closure(["lonely"])) == ["lonely", "packed", "packed.one", "spaced.deep.leaf"]
    assert sorted(modules.whole(["lonely"])) == ["lonely", "packed", "packed.one", "packed.unused", "spaced.deep.leaf"]
    assert [modules.get(name) for name in ("json", "numpy", "no_such_thing", "lonely.below", "spaced")] == [None] * 5
    assert "lonely" not in sys.modules
    leaf = modules.get("spaced.deep.leaf")
    assert leaf is not None and leaf.file == "spaced/deep/leaf.py"
