"""The user's own modules on their way to nodes that do not have them.

A client packs them into one *shipment*, which is kept in the store like a function, under a number. Functions that need
it begin with a tag that names it. A node unpacks it into a folder, and workers have that folder on their path while
they run tasks of that client. A shipment is named by its content, so an unchanged one is not sent or unpacked again.
"""

import os
import zlib
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from daws.data.folders import remove_tree
from daws.data.local import LocalModule
from daws.data.outside import checked_name
from daws.data.tags import tag_of
from daws.model.errors import DamagedObjectError, UsageError

SHIPMENT_BYTES_MAX = 64 << 20
_Files = list[tuple[str, bytes]]


class Shipment:
    """Packed modules: their bytes, and a digest of their content."""

    __slots__ = ("digest", "packed")

    def __init__(self, modules: Iterable[LocalModule]) -> None:
        files = sorted([(one.file, one.source) for one in modules])
        size_bytes = sum([len(source) for _, source in files])
        if size_bytes > SHIPMENT_BYTES_MAX:
            name, largest = max(files, key=lambda file: len(file[1]))
            raise UsageError(
                f"your own modules have {size_bytes:,} bytes of source, more than the {SHIPMENT_BYTES_MAX:,} that are "
                f"sent to nodes (the largest is {name}, {len(largest):,} bytes); install them on the nodes and give "
                "daws.connect(…, modules=False), or the names of those that tasks need"
            )
        content = msgspec.msgpack.encode(files)
        self.digest = blake2b(content, digest_size=16).digest()
        self.packed = zlib.compress(content, 3)

    def tag(self, number: int) -> bytes:
        """The tag at the beginning of functions that need the shipment; `number` is its number in the store."""
        return tag_of(number, self.digest)


def unpack(packed: bytes, folder: str, digest: bytes) -> None:
    """Make the folder, unless it exists; it appears when it is complete. The digest is that of the tag."""
    if os.path.isdir(folder):
        return
    inflating = zlib.decompressobj()
    try:
        content = inflating.decompress(packed, 2 * SHIPMENT_BYTES_MAX)
        if blake2b(content, digest_size=16).digest() != digest:
            raise DamagedObjectError("the modules of a client cannot be unpacked: they were damaged on the way")
        files = msgspec.msgpack.decode(content, type=_Files)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedObjectError(f"the modules of a client cannot be unpacked: {error}") from error
    partial = f"{folder}.part"
    try:
        os.makedirs(partial, 0o700)
        for name, source in files:
            path = os.path.join(partial, checked_name(name, "the module"))
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            with open(path, "wb") as file:
                file.write(source)
        os.rename(partial, folder)
    finally:
        remove_tree(partial)
