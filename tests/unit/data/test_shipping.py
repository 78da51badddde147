"""Packing modules, and unpacking them on nodes, where things go wrong."""

import os
import zlib
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest

from daws.data import shipping
from daws.data.local import LocalModule
from daws.data.shipping import Shipment, unpack
from daws.data.tags import folder_of, number_in, split
from daws.model.errors import DamagedObjectError, UsageError


def modules() -> list[LocalModule]:
    return [LocalModule("one", "/x/one.py", False, b"ONE = 1"), LocalModule("two.in", "/x/in.py", True, b"TWO = 2")]


def inflated_digest(packed: bytes) -> bytes:
    """As somebody would say it who means harm."""
    try:
        return blake2b(zlib.decompressobj().decompress(packed), digest_size=16).digest()
    except zlib.error:
        return b""


def test_the_same_content_has_the_same_name():
    assert Shipment(modules()).digest == Shipment(reversed(modules())).digest
    assert Shipment(modules()).digest != Shipment(modules()[:1]).digest


def test_a_tag_can_be_told_from_a_function(tmp_path: Path):
    shipment = Shipment(modules())
    tag = shipment.tag(77)
    assert split(tag + b"\x80pickle") == (tag, b"\x80pickle")
    assert split(b"\x80pickle") == (b"", b"\x80pickle")
    assert number_in(tag) == 77
    assert folder_of(tag, str(tmp_path)) == f"{tmp_path}/modules-{shipment.digest.hex()}"


def test_unpacking(tmp_path: Path):
    folder = tmp_path / "modules"
    shipment = Shipment(modules())
    unpack(shipment.packed, str(folder), shipment.digest)
    assert (folder / "one.py").read_text() == "ONE = 1"
    assert (folder / "two/in/__init__.py").read_text() == "TWO = 2"
    unpack(b"not even looked at", str(folder), b"")
    assert sorted(os.listdir(tmp_path)) == ["modules"]


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"nonsense",
        Shipment(modules()).packed[:-9],
        zlib.compress(b"nonsense"),
        zlib.compress(msgspec.msgpack.encode([("one.py", 3)])),
        zlib.compress(msgspec.msgpack.encode([("one.py", b"")]).replace(b"one", b"o\x80e")),
    ],
)
def test_what_is_damaged_is_refused(packed: bytes, tmp_path: Path):
    with pytest.raises(DamagedObjectError, match="modules of a client"):
        unpack(packed, str(tmp_path / "modules"), inflated_digest(packed))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["/etc/own.py", "../own.py", "a/../../own.py", ""])
def test_nothing_is_written_elsewhere(name: str, tmp_path: Path):
    folder = tmp_path / "inner/modules"
    folder.parent.mkdir()
    with pytest.raises(UsageError):
        packed = zlib.compress(msgspec.msgpack.encode([(name, b"")]))
        unpack(packed, str(folder), inflated_digest(packed))
    assert [*tmp_path.rglob("*")] == [folder.parent]


def test_too_much_is_refused_with_a_cure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shipping, "SHIPMENT_BYTES_MAX", 10)
    with pytest.raises(UsageError, match=r"largest is .*modules=False"):
        Shipment(modules())
