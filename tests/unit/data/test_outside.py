import os
import pickle
from collections.abc import Callable
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from daws.data.outside import File, Out, Small, Stored, checked_name, kept_mode, link, small_file
from daws.model.errors import UnavailableError, UsageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("words")
    path.chmod(0o640)
    return path


def umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def test_a_file_is_read_where_it_is(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(path.parent)
    file = File("in.txt")
    assert file.path == path and Path(file).read_text() == "words" and file.size_bytes == 5 and file.name == "in.txt"
    assert file.read_text() == "words" and file.read_bytes() == b"words"
    with file.open() as opened, file.open("r") as text:
        assert (opened.read(), text.read()) == (b"words", "words")
    assert "in.txt" in repr(file) and File(path, name="other").name == "other"
    with pytest.raises(UsageError, match="read, not written"):
        file.open("w")


def test_a_file_that_travels_is_still_the_same_one(path: Path):
    file = File(path)
    there = pickle.loads(pickle.dumps(file))
    assert there.path == path and there.is_same(file) and not there.is_same(path)


@pytest.mark.parametrize("use", [os.fspath, File.read_bytes, lambda file: file.source.place("x")])
def test_a_file_that_has_changed_is_refused(path: Path, use: Callable[[File], object]):
    file = File(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(UsageError, match=r"in\.txt has changed since it was named"):
        use(file)


def test_what_is_not_there_or_not_a_file_is_one_clear_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no file .*absent: No such file"):
        File(tmp_path / "absent")
    with pytest.raises(UsageError, match="is not a file"):
        File(tmp_path)


@pytest.mark.parametrize("name", ["", "/x", "../x", "a/../x", "..", ".", "a/", "x\0y", "x" * 256, "a/" + "ü" * 128])
def test_names_stay_in_the_folder(name: str):
    with pytest.raises(UsageError, match="the output"):
        Out(name)


def test_names_may_have_folders_spaces_and_letters_of_all_kinds():
    assert Out("a b/ü ñ.txt").name == "a b/ü ñ.txt" and checked_name("./a//b", "x") == "a/b"
    assert pickle.loads(pickle.dumps(Out("x"))).name == "x" and repr(Out("x")) == "Out('x')"


def test_links_are_hard_where_that_can_be(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    link(str(path), str(tmp_path / "hard"))
    monkeypatch.setattr(os, "link", refuse)
    link(str(path), str(tmp_path / "soft"))
    assert os.path.samefile(path, tmp_path / "hard") and not os.path.islink(tmp_path / "hard")
    assert os.path.samefile(path, tmp_path / "soft") and os.path.islink(tmp_path / "soft")


def test_nothing_is_overwritten_by_a_link(path: Path, tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        link(str(path), str(tmp_path / "mine"))


def test_a_stored_file_has_its_name_while_somebody_has_it(path: Path, tmp_path: Path):
    file = File.of("folder/right.csv", Stored(str(path), str(tmp_path)))
    named = file.path
    assert named.name == "right.csv" and named.read_text() == "words" and file.path == named
    assert file.size_bytes == 5 and "5 bytes" in repr(file)
    with pytest.raises(UsageError, match="cannot be sent on"):
        pickle.dumps(file)
    del file
    assert not named.parent.exists() and path.exists()


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o700, 0o440, 0o555])
def test_a_small_file_is_written_when_its_path_is_asked_for(tmp_path: Path, mode: int):
    file = File.of("x", Small(small_file(b"words", mode), str(tmp_path)))
    assert file.read_bytes() == b"words" and file.size_bytes == 5 and os.listdir(tmp_path) == []
    assert file.path.read_text() == "words" and os.stat(file).st_mode & 0o777 == mode & ~umask()


def test_a_small_file_of_which_no_mode_is_known_is_as_others_are(tmp_path: Path):
    file = File.of("x", Small(small_file(b"words"), str(tmp_path)))
    assert os.stat(file).st_mode & 0o777 == 0o666 & ~umask()


def test_a_mode_is_kept_as_far_as_it_is_anybody_s_business():
    assert [kept_mode(mode) for mode in (0o100644, 0o104755, 0o100200, 0)] == [0o644, 0o755, 0o600, 0o400]


def test_a_copy_appears_when_it_is_complete(path: Path, tmp_path: Path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "copy"
    target.write_text("before")
    assert File(path).copy_to(target) == target and target.read_text() == "words"
    assert not target.stat().st_mode & 0o111
    for mode in (0o700, 0o755, 0o600, 0o444):
        path.chmod(mode)
        assert File(path).copy_to(target) == target and target.stat().st_mode & 0o777 == mode & ~umask()
    assert File(path).copy_to(tmp_path / "there") == tmp_path / "there" / "in.txt"
    assert File.of("x", Small(small_file(b"tiny"), "")).copy_to(target) == target and target.read_text() == "tiny"
    assert sorted(os.listdir(tmp_path / "there")) == ["copy", "in.txt"]
    with pytest.raises(UnavailableError, match=r"cannot copy in\.txt to .*: No such file"):
        File(path).copy_to(tmp_path / "nowhere" / "x")


def test_a_small_file_is_never_shorter_than_it_was_made(tmp_path: Path):
    """A write may take a part of the bytes before there is no room, as the limit for sizes of files does here."""
    before = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            Small(small_file(b"words", 0o644), str(tmp_path)).place(str(tmp_path / "x"))
    finally:
        setrlimit(RLIMIT_FSIZE, before)
