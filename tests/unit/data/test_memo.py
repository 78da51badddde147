"""The folder of results: whatever is wrong with an entry, it is taken for none."""

import os
import random
import threading
from pathlib import Path

import pytest

from daws.data.memo import MemoFolder, Note, read_head
from daws.model.errors import UsageError

KEY = "0123456789abcdef" * 2


@pytest.fixture
def folder(tmp_path: Path) -> MemoFolder:
    return MemoFolder(tmp_path / "memo")


def test_entries_come_back_as_they_were(folder: MemoFolder):
    outputs = [b"one", b"", bytes(range(256)) * 999]
    assert folder.find(KEY) == (None, "")
    folder.keep(KEY, "mine.f", outputs)
    entry, wrong = folder.find(KEY)
    assert entry is not None and wrong == ""
    assert [bytes(one) for one in entry.outputs] == outputs
    assert entry.head.name == read_head(folder.entry_path(KEY)).name == "mine.f"
    assert [*folder.paths()] == [folder.entry_path(KEY)]
    assert os.stat(folder.path).st_mode & 0o777 == 0o700


def test_damage_of_every_kind_is_noticed(folder: MemoFolder):
    """By seed: cut off anywhere, one bit turned anywhere but in the padding, something appended."""
    outputs = [b"small", bytes(300)]
    folder.keep(KEY, "mine.f", outputs)
    path = folder.entry_path(KEY)
    good = path.read_bytes()
    draw = random.Random(7)
    wrongs = [good[: draw.randrange(len(good))] for _ in range(100)]
    wrongs += [b"", good + b"x", b"nonsense" * 50]
    for at in range(len(good)):
        wrongs.append(good[:at] + bytes([good[at] ^ (1 << draw.randrange(8))]) + good[at + 1 :])
    for wrong in wrongs:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(wrong)
        entry, why = folder.find(KEY)
        if entry is not None:
            assert [bytes(one) for one in entry.outputs] == outputs and entry.head.name == "mine.f", "only padding"
        else:
            assert why, "it is said what was wrong"
            assert not path.exists(), "and it is out of the way"


def test_two_write_the_same_at_one_time(folder: MemoFolder):
    def keep() -> None:
        for _ in range(50):
            MemoFolder(folder.path).keep(KEY, "mine.f", [b"x" * 5000])
            assert folder.find(KEY)[0] is not None

    threads = [threading.Thread(target=keep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.listdir(folder.entry_path(KEY).parent) == [f"{KEY}.memo"], "nothing is left over"


def test_notes(folder: MemoFolder):
    notes = [Note(str(at), {"the function": "a"}, [("argument 1", str(at))]) for at in range(3)]
    for note in notes[:2]:
        folder.note("mine.f", note)
    with open(next((folder.path / "calls").iterdir()), "ab") as file:
        file.write(b'{"cut off\n\xff\n')
    folder.note("mine.f", notes[2])
    assert [*folder.notes("mine.f")] == notes
    assert [*folder.notes("mine.g")] == []


def test_clearing_touches_nothing_else(folder: MemoFolder):
    for at in range(3):
        folder.keep(f"{at}{KEY[1:]}", "mine.f", [b"x"])
    folder.note("mine.f", Note("k", {}, []))
    (folder.path / "mine.txt").write_text("mine")
    assert folder.clear([folder.entry_path(KEY)]) == 1
    assert folder.clear() == 2
    assert os.listdir(folder.path) == ["mine.txt"]


def test_folders_that_cannot_be_used(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="memo="):
        MemoFolder(tmp_path / "file")
    with pytest.raises(UsageError, match="memo="):
        MemoFolder(tmp_path / "file/below")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(UsageError, match="chmod go-w"):
        MemoFolder(open_to_all)
