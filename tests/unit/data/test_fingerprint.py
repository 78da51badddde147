"""Digests of values and of code: the same where the same is meant, in every process; others where it is not."""

import enum
import functools
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daws.data.fingerprint import Fingerprint, Unknown, Versions
from daws.data.outside import File
from daws.model.errors import UnpicklableError


class Later:
    """In the place of a future."""

    def __init__(self, known: Any) -> None:
        self.known = known


def of_later(later: Later) -> Any:
    if later.known is None:
        raise Unknown
    return later.known


def digest(value: Any) -> str:
    return Fingerprint(of_later, Later).digest(value, "argument 1")


def made(text: str, name: str = "f", **names: Any) -> Any:
    """A function of __main__, as in a script of this text."""
    names = {"__name__": "__main__", **names}
    exec(text, names)
    return names[name]


@dataclass
class Point:
    x: int
    y: object = None


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_values_that_are_the_same():
    text = "".join(["a", "b"])
    same: list[tuple[Any, Any]] = [
        (["ab", text], ["ab", "ab"]),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        ([0.5] * 40, [0.5] * 40),
        (Point(1, [2]), Point(1, [2])),
        (np.arange(12).reshape(3, 4), np.array(np.arange(12).reshape(3, 4), order="F")),
        (Colour.RED, Colour(1)),
        (Path("a/b"), Path("a") / "b"),
        (functools.partial(pow, 2), functools.partial(pow, 2)),
    ]
    for one, other in same:
        assert digest(one) == digest(other), one


def test_values_that_are_not_the_same():
    values: list[Any] = [
        None, False, True, 0, 1, -1, 1 << 80, 0.0, -0.0, 1.0, float("inf"), 1j, "", "1", b"1", bytearray(b"1"), ..., (),
        [], {}, set(), frozenset(), [1], (1,), [[1]], [1, 1], ["1"], {1}, {1: 2}, {2: 1}, {1: 2, 3: 4}, {3: 4, 1: 2},
        [1] * 40, (1,) * 40, [1.0] * 40, ["1"] * 40, [b"1"] * 40, [True] * 40, [[1]] * 40, [1 << 80] * 40,
        Point(1), Point(2), Point(1, Point(1)), Colour.RED, Colour.BLUE, Path("a"), Path("b"), len, abs, [].append,
        [1].append, int, str, Point, np.arange(3), np.arange(3.0), np.arange(3)[:, None], np.zeros(3), np.float64(1),
        np.int64(1), np.array([None, 1]), np.array([None, 2]), "1".upper, functools.partial(pow, 2),
        functools.partial(pow, 3), os,
    ]  # fmt: skip
    digests = [digest(value) for value in values]
    for at, one in enumerate(digests):
        assert one not in digests[:at], (values[at], values[digests.index(one)])


def test_something_that_contains_itself():
    loop: list[Any] = [1]
    loop.append(loop)
    assert digest(loop) == digest(loop) != digest([1, [1]])


def test_what_cannot_be_told_from_others_is_refused_by_name():
    with pytest.raises(UnpicklableError, match=r"argument 1 \(lock\).*memo="):
        digest(threading.Lock())
    with pytest.raises(UnpicklableError, match="argument 1"):
        digest([1, (number for number in range(3))])
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UnpicklableError, match="nested too deeply"):
        digest(deep)


def test_futures():
    assert digest([Later("key")]) == digest([Later("key")]) != digest([Later("other")])
    assert digest([Later((5,))]) == digest([5])
    with pytest.raises(Unknown):
        digest([Later(None)])


def test_files_by_content(tmp_path: Path):
    path = tmp_path / "data"
    path.write_text("one")
    one = digest(File(path))
    os.utime(path, (1, 1))
    assert digest(File(path)) == one, "only touched"
    path.write_text("two")
    assert digest(File(path)) != one
    assert digest(str(path)) == digest(str(path)), "a path in text is text"


def test_code_without_its_lines():
    f = made("def f(x):\n    return x + K", K=1)
    assert digest(f) == digest(made("# moved\n\n\ndef f(x):\n    # said\n    return (x +\n        K)", K=1))
    for text, k in (
        ("def f(x):\n    return x - K", 1),
        ("def f(x, y=1):\n    return x + K", 1),
        ("def f(x):\n    return x + K", 2),
    ):
        assert digest(f) != digest(made(text, K=k)), text


def test_code_that_code_calls():
    text = "def g(x): return x * 2\ndef f(x): return g(x)"
    assert digest(made(text)) == digest(made(text)) != digest(made(text.replace("2", "3")))
    text = "class C:\n    def m(self): return 2\ndef f(x): return C().m()"
    assert digest(made(text)) == digest(made(text)) != digest(made(text.replace("2", "3")))
    assert digest(made("def f(): return f()")) == digest(made("def f(): return f()"))
    closure = "def outer(k):\n    def inner(x): return x + k\n    return inner\nf = outer({})"
    assert digest(made(closure.format(1))) == digest(made(closure.format(1))) != digest(made(closure.format(2)))
    unused = "lock = __import__('threading').Lock()\ndef f(x): return x.lock"
    assert digest(made(unused)) == digest(made(unused))


def test_digests_do_not_depend_on_the_process():
    """Above all not on the order of sets."""
    text = (
        "from daws.data.fingerprint import Fingerprint\n"
        "def f(x): return x in {'a', 'b', 'c'}\n"
        "print(Fingerprint(None, type(Ellipsis)).digest([f, {'d', 'e', 'f'}, {'g': 1}, 1.5], 'it'))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_versions_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "print_above.py").write_text("import numpy\nfrom print_below import X\n")
    (tmp_path / "print_below.py").write_text("X = 1\n")
    first = Versions().of(["print_above"])
    assert sorted(first) == ["module print_above", "module print_below", "package numpy"]
    assert first["package numpy"] == np.__version__
    (tmp_path / "print_below.py").write_text("# a remark\n\nX = 1\n")
    assert Versions().of(["print_above"]) == first
    (tmp_path / "print_below.py").write_text("X = 2\n")
    second = Versions().of(["print_above"])
    assert [name for name in first if first[name] != second[name]] == ["module print_below"]
    (tmp_path / "print_below.py").write_text("this is no Python\n")
    assert Versions().of(["print_above"]) != second
    print_ = Fingerprint(of_later, Later)
    print_.digest([np.linalg.norm, Point(1), os.path.join], "it")
    assert __name__ in print_.needs and any(name.startswith("numpy") for name in print_.needs)
    assert not print_.needs & {"posixpath", "os", "builtins"}
