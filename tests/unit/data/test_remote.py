import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from daws.data import remote
from daws.data.outside import File
from daws.model.errors import UnavailableError, UsageError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def url() -> Iterator[str]:
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/words.txt", b"words")
    yield "memory://bucket/words.txt"
    files.rm("/bucket", recursive=True)


def test_a_file_at_a_url_is_read(url: str, tmp_path: Path):
    file = pickle.loads(pickle.dumps(File(url)))
    assert file.name == "words.txt" and file.size_bytes == 5 and file.read_bytes() == b"words" and url in repr(file)
    file.source.place(str(tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == b"words"
    with pytest.raises(UsageError, match="no path on this machine"):
        file.__fspath__()


def test_local_files_have_urls_too(tmp_path: Path):
    (tmp_path / "x").write_text("words")
    file = File(f"file://{tmp_path}/x")
    assert file.read_text() == "words"
    (tmp_path / "x").write_text("other words")
    with pytest.raises(UsageError, match="has changed"):
        file.read_text()


def test_files_are_copied_to_urls(url: str, tmp_path: Path):
    (tmp_path / "x").write_text("mine")
    assert File(tmp_path / "x").copy_to("memory://bucket/new/x") == "memory://bucket/new/x"
    assert File("memory://bucket/new/x").read_text() == "mine"


def test_a_file_in_memory_that_is_asked_for_elsewhere_says_why_it_is_not_there(url: str):
    file = File(url)
    fsspec.filesystem("memory").rm("/bucket/words.txt")
    with pytest.raises(UnavailableError, match=r"it is not there.*the process alone that wrote"):
        file.read_bytes()
    fsspec.filesystem("memory").pipe("/bucket/words.txt", b"words")


def test_what_cannot_be_had_is_one_clear_line(url: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match="no file memory://bucket/absent"):
        File("memory://bucket/absent")
    with pytest.raises(UsageError, match="nonsense"):
        File("nonsense://x/y")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"install daws\[fsspec\]"):
        remote.Remote(url)
