"""Values as the client gets them: small ones came inside a record, large ones lie in a file of this machine."""

from typing import Any

from msgspec import Struct

from daws.data.codec import load_file, loads


class Ref(Struct, frozen=True, array_like=True, gc=False):
    """Where one object's value is: in `data`, or in the file at `path`."""

    object_id: int
    size_bytes: int
    data: bytes = b""
    path: str = ""


def value_of(ref: Ref, copy: bool = False) -> Any:
    """The value. Arrays that came inside are the caller's own; those in files are mapped, read-only, unless `copy`."""
    if ref.path:
        return load_file(ref.path, copy)
    return loads(ref.data, copy=True)
