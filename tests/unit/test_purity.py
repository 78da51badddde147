"""The pure layers stay pure: what the import linter cannot see (`np.random`, say) is read off the AST.

The linter's forbidden contract names packages that exist; this test covers each pure package from its first file on.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "daws"
PURE = ("core", "strategy", "wire", "model")
FORBIDDEN = frozenset(
    [
        "time",
        "datetime",
        "socket",
        "threading",
        "asyncio",
        "logging",
        "random",
        "os",
        "subprocess",
        "multiprocessing",
        "selectors",
        "signal",
        "secrets",
        "uuid",
    ]
)
FILES = sorted(path for package in PURE for path in (SOURCE / package).rglob("*.py"))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _numpy_random(tree: ast.AST) -> Iterator[str]:
    # A Generator that is handed in may be named as a type; anything else would make or use randomness of its own.
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.attr != "Generator":
            inner = node.value
            if inner.attr == "random" and isinstance(inner.value, ast.Name) and inner.value.id in ("np", "numpy"):
                yield f"line {node.lineno}: {inner.value.id}.random.{node.attr}"


def violations(source: str) -> list[str]:
    tree = ast.parse(source)
    names = set(_imported(tree))
    bad = [name for name in names if name.split(".")[0] in FORBIDDEN]
    bad += [name for name in names if name.startswith("numpy.random") and name != "numpy.random.Generator"]
    return sorted(bad) + list(_numpy_random(tree))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_clock_thread_or_randomness(path: Path):
    assert violations(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "def f():\n    from os import path",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy\nx = numpy.random.rand(3)",
        "from numpy.random import default_rng",
        "import numpy.random",
        "from numpy import random",
    ],
)
def test_the_test_sees_it(source: str):
    assert violations(source)


def test_a_generator_may_be_handed_in():
    assert violations("import numpy as np\ndef f(rng: np.random.Generator) -> float: return rng.random()") == []
