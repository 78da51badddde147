"""Files are told apart by what they contain, and none of them can do harm."""

import gzip
import os

import pytest

from daws.formats import read_workflow, reader
from daws.model.errors import WorkflowError
from tests.unit.formats.samples import DIAMOND, new, new_task, read_in


@pytest.mark.parametrize("content", [DIAMOND, new([new_task("a")])])
@pytest.mark.parametrize("name", ["w", "w.xml", "w.json", "w.txt"])
def test_the_name_does_not_matter(tmp_path, content, name):
    plain = read_in(tmp_path, content, name)
    packed = read_in(tmp_path, gzip.compress(content.encode()), name)
    assert plain.graph == packed.graph
    assert plain.format.split()[0] == ("DAX" if content is DIAMOND else "WfFormat")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_encodings_are_understood(tmp_path, encoding):
    content = new([new_task("größer")])
    assert read_in(tmp_path, content.encode(encoding)).task_ids == ["größer"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xff\xfe{", "it begins as UTF-16, but is not; save it as UTF-8"),
        (b"", "the file is empty"),
        (b" \n\t ", "the file is empty"),
        (b"\0" * 100, "neither DAX nor WfFormat"),
        (b"id,runtime\n1,2\n", "it begins with 'id,runtime\\n1,2\\n'"),
        (gzip.compress(b"hello", mtime=0), "it begins with 'hello'"),
        (gzip.compress(DIAMOND.encode(), mtime=0)[:200], "the gzip data is damaged"),
        (gzip.compress(DIAMOND.encode(), mtime=0)[:-8] + b"12345678", "the gzip data is damaged"),
        (b"\x1f\x8b\x08", "the gzip data is damaged"),
    ],
    ids=range(9),
)
def test_other_files_are_refused(refusal, content, part):
    assert part in refusal(content)


def test_files_that_cannot_be_opened(tmp_path):
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory"), ("a\0b", "null byte")):
        with pytest.raises(WorkflowError, match=why):
            read_workflow(path)


@pytest.mark.parametrize("content", ["{" + " " * 100_000, "<adag>" + " " * 100_000])
def test_what_unpacks_to_too_much_is_given_up(refusal, monkeypatch, content):
    monkeypatch.setattr(reader, "FILE_BYTES_MAX", 50_000)
    monkeypatch.setattr(reader, "CHUNK_BYTES", 1000)
    assert "files as large as this are not read" in refusal(gzip.compress(content.encode()))


def test_small_chunks_give_the_same(tmp_path, monkeypatch):
    whole = read_in(tmp_path, DIAMOND)
    monkeypatch.setattr(reader, "CHUNK_BYTES", 7)
    assert read_in(tmp_path, DIAMOND).graph == whole.graph
    assert read_in(tmp_path, new([new_task("a")])).task_ids == ["a"]


def test_a_pipe_can_be_read(tmp_path):
    ends = os.pipe()
    os.write(ends[1], DIAMOND.encode())
    os.close(ends[1])
    assert read_workflow(f"/dev/fd/{ends[0]}").graph.task_count == 4
    os.close(ends[0])
