import functools
import gc
import os.path
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from daws.client.mapping import Chunked
from daws.client.tasks import Task
from daws.data import codec, functions
from daws.data.codec import loads
from daws.data.functions import dumps_function, is_settled, name_of
from daws.data.tags import name_in, named, pickle_in, tag_of
from daws.model.errors import UnpicklableError, UsageError
from daws.workers.commands import RunCommand
from daws.workflows.emulated import Emulated


def importable(x: int) -> int:
    return x + 1


def made(n: int) -> Callable[[], int]:
    return lambda: n


@pytest.mark.parametrize(
    "function, name",
    [
        (len, "len"),
        (made(1), "made.<locals>.<lambda>"),
        (Chunked(abs), "abs"),
        (functools.partial(functools.partial(importable, 1), 2), "importable"),
        (Task(importable, {})._sent, "importable"),
        (Emulated("project"), "project"),
        (RunCommand("sort"), "sort"),
        ("a".join, "str.join"),
    ],
)
def test_functions_have_the_names_that_people_know(function: Callable[..., Any], name: str):
    assert name_of(function) == name


def test_functions_travel_with_their_names_and_without():
    tag = tag_of(7, b"digest of modules")
    for name in ("importable", "größer" * 20):
        function = named(name, b"\x80code")
        assert name.startswith(name_in(function)) and len(name_in(function)) >= min(len(name), 70)
        assert name_in(tag + function) == name_in(function)
        assert pickle_in(function) == b"\x80code"
    assert (name_in(b"\x80code"), pickle_in(b"\x80code")) == ("", b"\x80code")


def test_importable_functions_travel_by_reference():
    assert loads(dumps_function(os.path.join)) is os.path.join
    assert loads(dumps_function(importable)) is importable
    assert len(dumps_function(importable)) < 100


def test_other_functions_travel_by_value():
    assert loads(dumps_function(made(3)))() == 3
    assert loads(dumps_function(lambda: 4))() == 4


def test_all_kinds_of_callables_travel():
    assert loads(dumps_function(functools.partial(importable, 1)))() == 2
    assert loads(dumps_function(len))("abc") == 3
    assert loads(dumps_function("a".join))(["b", "c"]) == "bac"
    assert loads(dumps_function(dict))() == {}


def test_a_function_is_pickled_once_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch):
    function = made(3)
    first = dumps_function(function)
    gc.collect()  # functions of earlier tests
    count = len(functions._kept)
    monkeypatch.setattr(codec, "_by_value_pickler", None)  # nothing can be pickled by value now
    assert dumps_function(function) is first
    del function
    gc.collect()
    assert len(functions._kept) == count - 1


def test_only_what_can_never_change_is_settled():
    local = made(3)
    for function in (importable, local, len):
        dumps_function(function)
    assert is_settled(importable)
    assert not is_settled(local) and not is_settled(len)
    main: dict[str, Any] = {"__name__": "__main__"}
    exec("def alone(): pass\ndef uses(): return other\nother = 1", main)
    for name in ("alone", "uses"):
        sys.modules["__main__"].__dict__[name] = main[name]
        try:
            dumps_function(main[name])
            assert is_settled(main[name]) is (name == "alone")
        finally:
            del sys.modules["__main__"].__dict__[name]
        assert not is_settled(main[name])


def test_a_new_binding_of_what_it_uses_is_noticed():
    limit = 1

    def helper() -> int:
        return limit

    def function() -> int:
        return helper() + 1

    assert loads(dumps_function(function))() == 2
    limit = 10
    assert loads(dumps_function(function))() == 11


def test_a_new_global_of_main_is_noticed_also_through_another_function():
    script = """
from daws.data.functions import dumps_function
from daws.data.codec import loads
N = 1
def inner(): return N
def outer(): return [inner() for _ in range(1)]
first = dumps_function(outer)
assert dumps_function(outer) is first
N = 2
assert loads(dumps_function(outer))() == [2]
def inner(): return 3
assert loads(dumps_function(outer))() == [3]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_modules_registered_by_value_are_respected():
    module = sys.modules[importable.__module__]
    functions._kept.clear()
    cloudpickle.register_pickle_by_value(module)
    try:
        assert len(dumps_function(importable)) > 200
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        functions._kept.clear()


def test_the_error_names_the_global_or_cell():
    lock = threading.Lock()
    with pytest.raises(UnpicklableError, match=r"the function cannot be pickled: _thread.lock \(in <lambda>: lock\)"):
        dumps_function(lambda: lock)


@pytest.mark.parametrize("value", [3, "len", None, [len] * 1000])
def test_what_cannot_be_called_is_refused(value: Any):
    with pytest.raises(UsageError, match=r"^the function: .{1,110} cannot be called$"):
        dumps_function(value)
