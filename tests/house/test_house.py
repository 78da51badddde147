"""Rules of the house that hold for all of `src/daws`: names, lengths, the store's door, plain words.

Each rule has a list of exceptions. An exception that is no longer needed fails as well: take it out. No list may grow.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.house.plainwords import SOURCE, broken_rules, findings, package_of, sentences

ROOT = SOURCE.parents[1]

SHARED_NAMES: dict[str, str] = {}
"""Names of classes that two modules still have."""

LINES_MAX = 600
LINES_P90 = 350
LONG_FILES: dict[str, int] = {}
"""Files above the limit, with the length that they may have until they are cut."""

STORE_READERS: dict[str, str] = {}
"""Files outside of `store` that read its shards."""


@cache
def sources() -> dict[str, str]:
    """The text of each source file by its path below `daws`."""
    return {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in sources().items()}


def shared_names() -> dict[str, list[str]]:
    """The files of each class name that more than one class has. Classes inside of functions and classes count too."""
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not path.startswith("_others/"):
                places[node.name].append(path)
    return {name: files for name, files in places.items() if len(files) > 1}


def is_store_inside(node: ast.AST) -> bool:
    """Whether an expression is `….store.shards`, or `.records` of a shard."""
    if not isinstance(node, ast.Attribute):
        return False
    base = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    return (node.attr == "shards" and "store" in name) or (node.attr == "records" and "shard" in name)


def store_readers() -> set[str]:
    return {
        path
        for path, tree in trees().items()
        if not path.startswith("store/") and any(is_store_inside(node) for node in ast.walk(tree))
    }


def long_files() -> dict[str, int]:
    lengths = {path: text.count("\n") for path, text in sources().items()}
    return {path: length for path, length in lengths.items() if length > LINES_MAX}


def test_no_two_classes_share_a_name():
    shared = shared_names()
    assert {name: files for name, files in shared.items() if name not in SHARED_NAMES} == {}
    assert [name for name in SHARED_NAMES if name not in shared] == [], "take these out of SHARED_NAMES"


def test_files_are_short():
    long = long_files()
    assert {path: length for path, length in long.items() if length > LONG_FILES.get(path, 0)} == {}
    assert [path for path in LONG_FILES if path not in long] == [], "take these out of LONG_FILES"


def test_most_files_are_shorter():
    lengths = sorted(text.count("\n") for text in sources().values() if text.count("\n") >= 5)
    assert lengths[len(lengths) * 9 // 10] <= LINES_P90


def test_only_the_store_touches_its_shards():
    readers = store_readers()
    assert readers - set(STORE_READERS) == set()
    assert set(STORE_READERS) - readers == set(), "take these out of STORE_READERS"


@pytest.mark.parametrize(
    ("text", "is_inside"),
    [
        ("self.store.shards[0]", True),
        ("store.shards", True),
        ("self._shard.records", True),
        ("store.shards[0].records", True),
        ("settings.shards", False),
        ("self.looking.records(tasks)", False),
    ],
)
def test_what_counts_as_the_inside_of_a_store(text: str, is_inside: bool):
    assert any(is_store_inside(node) for node in ast.walk(ast.parse(text))) is is_inside


def packages() -> list[str]:
    return sorted({package_of(SOURCE / path) for path in sources()})


@pytest.mark.parametrize("package", packages())
def test_docstrings_are_in_plain_words(package: str):
    assert [
        f"{path}:{one.line}: {one.name}: {one.rule}: {one.sentence}"
        for path, tree in trees().items()
        if package_of(SOURCE / path) == package
        for one in findings(tree)
    ] == []


PAGES = [page for page in sorted(ROOT.glob("docs/**/*.md")) if "studies" not in page.parts] + [ROOT / "README.md"]
"""Pages that people have written; those of the studies are made by programs."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_sentence_of_a_page_begins_with_a_riddle(page: Path):
    assert [sentence for sentence in sentences(page.read_text()) if "opener" in broken_rules(sentence)] == []


def test_lists_of_exceptions_name_what_exists():
    assert all((SOURCE / path).is_file() for path in (*LONG_FILES, *STORE_READERS))


def test_the_source_is_found():
    assert len(sources()) > 300 and Path(SOURCE, "core", "node.py").is_file()
