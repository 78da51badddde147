"""Files of objects that were changed in every way: what is noticed, and what is not looked at."""

import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from daws.data.codec import Packed, dumps, encode, load_file, loads, pack
from daws.data.envelope import ALIGN_BYTES, GAP_BYTES_MIN, MAGIC, opened, stream_parts
from daws.model.errors import DamagedObjectError

LONG = bytes(range(256)) * (GAP_BYTES_MIN // 256)
VALUES: dict[str, Any] = {
    "small": [1, "two", 3.0],
    "array": {"x": np.arange(3000), "y": np.arange(7)},
    "long bytes": [LONG, "between", LONG + b"x", 5],
    "long stream": [str(number) for number in range(60_000)],
}


def written(value: Any, path: Path, object_id: int = 7) -> bytes:
    content = pack(value).as_file(object_id).to_bytes()
    path.write_bytes(content)
    return content


@pytest.mark.parametrize("name", VALUES)
def test_what_was_written_is_read(name: str, tmp_path: Path):
    value = VALUES[name]
    content = written(value, tmp_path / "x")
    assert content.startswith(MAGIC)
    found = load_file(tmp_path / "x", 7)
    assert dumps(found) == dumps(loads(dumps(value)))
    again = Packed.of(opened(memoryview(content), 7)).as_file(8)
    (tmp_path / "y").write_bytes(again.to_bytes())
    assert dumps(load_file(tmp_path / "y", 8)) == dumps(found), "of a value that was packed before"


@pytest.mark.parametrize("name", VALUES)
def test_every_flip_of_what_is_covered_is_noticed(name: str, tmp_path: Path):
    """All of the header and of the first bytes, and so many others."""
    random, path = Random(name), tmp_path / "x"
    content = bytearray(written(VALUES[name], path))
    parts = pack(VALUES[name])
    start = len(content) - parts.size_bytes
    covered, at = [*range(44)], start  # behind that there is only padding, or gaps of their own
    for part in parts.parts[: parts.covered]:
        if len(part) < GAP_BYTES_MIN:
            some = range(at, at + len(part))
            covered += some if len(some) < 200 else random.sample(some, 200)
        at += len(part)
    for offset in [one for one in covered if one < 40 or one >= start]:
        content[offset] ^= 1 << random.randrange(8)
        with pytest.raises(DamagedObjectError):
            opened(memoryview(bytes(content)), 7)
        content[:] = path.read_bytes()


@pytest.mark.parametrize("name", VALUES)
def test_cut_emptied_prolonged_and_exchanged(name: str, tmp_path: Path):
    random, path = Random(name), tmp_path / "x"
    content = written(VALUES[name], path)
    lengths = {0, 1, 39, 40, ALIGN_BYTES - 1, ALIGN_BYTES, len(content) - 1, *random.sample(range(len(content)), 30)}
    for length in lengths:
        path.write_bytes(content[:length])
        with pytest.raises(DamagedObjectError, match="it was cut off"):
            load_file(path, 7)
    path.write_bytes(content + b"\0")
    with pytest.raises(DamagedObjectError, match="overwritten"):
        load_file(path, 7)
    written(VALUES[name], path, 8)
    with pytest.raises(DamagedObjectError, match="object 8 lies where object 7 should be"):
        load_file(path, 7)


def test_long_bytes_and_texts_in_a_stream_are_parts_of_their_own():
    """Of any stream that was pickled in memory; all else is covered, whatever the value."""
    random = Random(5)
    for _ in range(40):
        text, value = "x" * random.randrange(GAP_BYTES_MIN, 2 * GAP_BYTES_MIN), [*range(random.randrange(100_000))]
        some = [LONG, text, value, LONG * 5, bytearray(LONG), "short", 1.5, value * 2, b"y" * random.randrange(300_000)]
        chosen = random.sample(some, k=random.randrange(1, 9))
        stream = pickle.dumps(chosen, 5)
        parts = stream_parts(stream)
        assert b"".join(parts) == stream
        wanted = {id(one): len(one) for one in chosen if isinstance(one, bytes | str | bytearray)}
        gaps = [len(part) for part in parts if len(part) >= GAP_BYTES_MIN]
        assert sorted(gaps) == sorted(size for size in wanted.values() if size >= GAP_BYTES_MIN)


def test_a_value_that_is_pickled_in_memory_is_covered_as_well():
    made = encode([*range(100_000)], 4096)
    assert isinstance(made, Packed)
    content = bytearray(made.as_file(7).to_bytes())
    content[200_000] ^= 1
    with pytest.raises(DamagedObjectError, match="checksum"):
        opened(memoryview(bytes(content)), 7)


def test_rubbish_is_refused(tmp_path: Path):
    random, path = Random(1), tmp_path / "x"
    for number in range(300):
        rubbish = random.randbytes(random.randrange(3000))
        path.write_bytes(rubbish if number % 2 else MAGIC + rubbish)
        with pytest.raises(DamagedObjectError):
            load_file(path, 7)


def test_buffers_and_long_bytes_are_not_looked_at(tmp_path: Path):
    """So large ones cost nothing; what is flipped in them is a wrong value and nothing worse."""
    content = bytearray(written([np.zeros(5000), LONG], tmp_path / "x"))
    content[-3] ^= 1
    content[content.index(LONG) + 10] ^= 1
    (tmp_path / "x").write_bytes(content)
    array, long = load_file(tmp_path / "x", 7)
    assert array.any() and long != LONG and len(long) == len(LONG)


def test_what_has_no_envelope_is_not_unpickled(tmp_path: Path):
    (tmp_path / "x").write_bytes(dumps([1, 2]) + bytes(100))
    with pytest.raises(DamagedObjectError, match="no header of daws"):
        load_file(tmp_path / "x")
    assert loads(dumps([1, 2])) == [1, 2], "inside messages none is needed"
