import os
import pickle
from pathlib import Path
from typing import Literal

import pytest

from daws.data.outside import File
from daws.model.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> File:
    path = tmp_path / "in.txt"
    path.write_text("words")
    path.chmod(0o640)
    return File(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_a_file_is_its_path(file: File):
    assert pickle.loads(pickle.dumps(file)) == file and hash(file) == hash(File(file.path))
    assert Path(file).read_text() == "words" and file.size_bytes == 5 and repr(file) == f"File('{file.path}')"
    assert file.digest() == File(file.place_in(file.path.parent, "again")).digest() and len(file.digest()) == 64
    assert File("x").path == Path.cwd() / "x"


def test_it_is_linked_into_a_folder(file: File, folder: Path):
    placed = file.place_in(folder)
    assert placed.path == folder / "in.txt" and os.path.samefile(placed, file)


def test_it_is_copied_when_asked_for_or_when_links_do_not_work(
    file: File, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    one = file.place_in(folder, "one", how="copy")
    monkeypatch.setattr(os, "link", refuse)
    two = file.place_in(folder, "two")
    for placed in (one, two):
        assert not os.path.samefile(placed, file) and Path(placed).read_text() == "words"
        assert os.stat(placed).st_mode == os.stat(file).st_mode


@pytest.mark.parametrize("how", ["link", "copy"])
def test_nothing_is_overwritten(file: File, folder: Path, how: Literal["link", "copy"]):
    (folder / "in.txt").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        file.place_in(folder, how=how)
    assert (folder / "in.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "..", "."])
def test_names_stay_in_the_folder(file: File, folder: Path, name: str):
    with pytest.raises(UsageError, match="not a plain file name"):
        file.place_in(folder, name)


def test_what_is_not_there_or_not_a_file_is_one_clear_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no file .*absent: No such file"):
        _ = File(tmp_path / "absent").size_bytes
    with pytest.raises(UsageError, match="is not a file"):
        File(tmp_path).digest()
