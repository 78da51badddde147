"""Modules of several clients in one process: each finds its own, and what was there before comes back."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daws.model.errors import UnavailableError
from daws.workers.modules import ModulesInUse


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModulesInUse]:
    """Two clients have `shared_name`, and so has this process; each has something of its own."""
    for client in ("one", "two", "here"):
        (tmp_path / client).mkdir()
        (tmp_path / client / "shared_name.py").write_text(f"WHOSE = {client!r}\nSEEN = []\n")
        (tmp_path / client / f"only_{client}.py").write_text("")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path / "here")
    before = set(sys.modules)
    made = ModulesInUse()
    yield made
    made.use("")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def whose() -> str:
    return str(importlib.import_module("shared_name").WHOSE)


def test_taking_turns(modules: ModulesInUse, tmp_path: Path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    path = [*sys.path]
    assert whose() == "here"
    for turn in range(3):
        for folder, name in ((one, "one"), (two, "two"), ("", "here")):
            modules.use(folder)
            assert whose() == name
            seen = importlib.import_module("shared_name").SEEN
            assert len(seen) == turn, "they are as they were when it was their turn before"
            seen.append(turn)
    assert sys.path == path


def test_nobody_sees_what_others_have(modules: ModulesInUse, tmp_path: Path):
    modules.use(str(tmp_path / "one"))
    importlib.import_module("only_one")
    modules.use(str(tmp_path / "two"))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("only_one")
    modules.use("")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("only_two")
    assert "only_one" not in sys.modules


def test_modules_that_could_not_be_unpacked(modules: ModulesInUse, tmp_path: Path):
    with pytest.raises(UnavailableError, match="modules of its client are not on this node"):
        modules.use(str(tmp_path / "none"))
    assert modules.folder == "" and whose() == "here"


def test_what_nobody_needs_any_more_is_let_go_of(modules: ModulesInUse, tmp_path: Path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    for folder in (one, two):
        modules.use(folder)
        whose()
    modules.forget(one)
    assert whose() == "two"
    modules.forget(two)  # which is in use
    assert whose() == "here" and modules.folder == ""
    assert not modules._aside and list(modules._names) == [""]
    assert not {one, two}.intersection(sys.path) and not {one, two}.intersection(sys.path_importer_cache)
    modules.use(one)
    assert whose() == "one", "a client that comes later may have the same"
