"""Rules of the house that hold for all of `src/daws`: names, lengths, the store's door, plain words.

Each rule has a list of exceptions. An exception that is no longer needed fails as well: take it out. No list may grow.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.house.plainwords import SOURCE, broken_rules, findings, has_dialect, messages, package_of, sentences

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


NEW_RULES = (": dialect: ", ": pronoun: ")
"""Rules of the lint that came last."""

UNREVISED = {
    *("_others", "bounds", "client", "compare", "core", "data", "futures", "logs", "net", "runs", "runtime", "sim"),
    *("store", "workers", "workflows", "wire"),
}
"""Packages whose docstrings still break new rules."""


UNREVISED_MESSAGES = {"client", "core", "runtime", "sim", "testing"}
"""Packages whose messages still have words of `DIALECT`."""


def complaints(path: str, tree: ast.Module) -> list[str]:
    return [f"{path}:{one.line}: {one.name}: {one.rule}: {one.sentence}" for one in findings(tree)]


def is_new(complaint: str) -> bool:
    return any(rule in complaint for rule in NEW_RULES)


def of_package(package: str) -> list[str]:
    """The findings in the docstrings of a package."""
    paths = [path for path in trees() if package_of(SOURCE / path) == package]
    return [one for path in paths for one in complaints(path, trees()[path])]


@pytest.mark.parametrize("package", packages())
def test_docstrings_are_in_plain_words(package: str):
    assert [one for one in of_package(package) if package not in UNREVISED or not is_new(one)] == []


def test_unrevised_packages_still_are():
    revised = [package for package in UNREVISED if not any(map(is_new, of_package(package)))]
    assert revised == [], "take these out of UNREVISED"


def test_messages_are_in_plain_words():
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees().items():
        found[package_of(SOURCE / path)] += [
            f"{path}:{line}: {text}" for line, text in messages(tree) if has_dialect(text)
        ]
    assert [one for package, these in found.items() if package not in UNREVISED_MESSAGES for one in these] == []
    assert [package for package in UNREVISED_MESSAGES if not found[package]] == [], "take these out"


@pytest.mark.parametrize("folder", ["studies", "examples", "docs", "tests/house", "tests/examples"])
def test_docstrings_outside_of_the_package_are_in_plain_words(folder: str):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    assert [one for path in paths for one in complaints(str(path), ast.parse(path.read_text()))] == []


PAGES = [page for page in sorted(ROOT.glob("docs/**/*.md")) if "studies" not in page.parts]
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
"""Pages that people have written; those of the studies are made by programs."""

LONG_SENTENCES = {
    "docs/internals/live.md": 5,
    "docs/internals/rules.md": 22,
    "docs/internals/speed.md": 20,
    "docs/internals/store-log.md": 5,
    "docs/internals/valkey.md": 8,
    "docs/scale.md": 2,
    "docs/simulate.md": 1,
    "docs/strategies.md": 2,
    "docs/workflow-files.md": 1,
}
"""Pages with sentences that are too long, and how many there may be."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_are_in_plain_words(page: Path):
    broken = [(rule, sentence) for sentence in sentences(page.read_text()) for rule in broken_rules(sentence)]
    assert [one for one in broken if one[0] in ("opener", "dialect")] == []
    long = [sentence for rule, sentence in broken if rule == "length"]
    allowed = LONG_SENTENCES.get(str(page.relative_to(ROOT)), 0)
    assert long == [] or len(long) <= allowed, "\n".join(long)
    assert long != [] or allowed == 0, "take this page out of LONG_SENTENCES"


def test_lists_of_exceptions_name_what_exists():
    assert set(packages()) >= UNREVISED | UNREVISED_MESSAGES
    assert set(LONG_SENTENCES) <= {str(page.relative_to(ROOT)) for page in PAGES}
    assert all((SOURCE / path).is_file() for path in (*LONG_FILES, *STORE_READERS))


def test_the_source_is_found():
    assert len(sources()) > 300 and Path(SOURCE, "core", "node.py").is_file()
