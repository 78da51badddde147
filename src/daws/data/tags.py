"""What functions begin with that need modules of their client (see `shipping`); apart, because all workers look."""

from struct import Struct

TAG = b"\0"
"""No pickle begins so."""
_HEAD = Struct("<1sQ16s")


def tag_of(number: int, digest: bytes) -> bytes:
    return _HEAD.pack(TAG, number, digest)


def split(function: bytes) -> tuple[bytes, bytes]:
    """The tag of a function (empty if it has none) and the rest."""
    return (function[: _HEAD.size], function[_HEAD.size :]) if function[:1] == TAG else (b"", function)


def number_in(tag: bytes) -> int:
    number: int = _HEAD.unpack(tag)[1]
    return number


def digest_in(tag: bytes) -> bytes:
    digest: bytes = _HEAD.unpack(tag)[2]
    return digest


def folder_of(tag: bytes, scratch: str) -> str:
    """Where a node has the modules that a tag names."""
    return f"{scratch}/modules-{digest_in(tag).hex()}"
