"""The headers before a function that travels, in a module of their own because all workers read them.

- its root, if a run has brought it in;
- a tag, if it needs modules of its client (see `shipping`);
- its name, so that a node, which never loads it, can say what failed;
- the levels of its client's loggers, if they are not those of a new process.
"""

from struct import Struct

TAG = b"\0"
NAME = b"\1"
ROOT = b"\2"
LEVELS = b"\3"
"""No pickle begins with one of these."""
NAME_MAX_BYTES = 100
_HEAD = Struct("<1sQ16s")
_ROOT = Struct("<1sQ")


def rooted(root: int, function: bytes) -> bytes:
    """A function that a run has brought in. It is dropped with its root: the function of a client whose runs, or whose
    runs' runs, brought it in. `root` is the number of that function."""
    return _ROOT.pack(ROOT, root) + function


def root_of(number: int, function: bytes) -> int:
    """The number of the function that it goes with: its own if a client has brought it in."""
    return _ROOT.unpack_from(function)[1] if function[:1] == ROOT else number


def tag_of(number: int, digest: bytes) -> bytes:
    return _HEAD.pack(TAG, number, digest)


def split(function: bytes) -> tuple[bytes, bytes]:
    """The tag of a function (empty if it has none) and the rest."""
    start = _ROOT.size if function[:1] == ROOT else 0
    if function[start : start + 1] != TAG:
        return b"", function[start:]
    return function[start : start + _HEAD.size], function[start + _HEAD.size :]


def number_in(tag: bytes) -> int:
    number: int = _HEAD.unpack(tag)[1]
    return number


def digest_in(tag: bytes) -> bytes:
    digest: bytes = _HEAD.unpack(tag)[2]
    return digest


def folder_of(tag: bytes, scratch: str) -> str:
    """Where a node has the modules that a tag names."""
    return f"{scratch}/modules-{digest_in(tag).hex()}"


def named(name: str, function: bytes) -> bytes:
    """A function with its name before it."""
    said = name.encode(errors="replace")[:NAME_MAX_BYTES]
    return NAME + bytes((len(said),)) + said + function


def name_in(function: bytes) -> str:
    """The name of a function, with or without root and tag; empty if it was sent without."""
    _, rest = split(function)
    return rest[2 : 2 + rest[1]].decode(errors="ignore") if rest[:1] == NAME else ""


def leveled(levels: bytes, function: bytes) -> bytes:
    """A function with the levels of its client's loggers before it, if there are any; they are less than 64 kB."""
    return LEVELS + len(levels).to_bytes(2, "little") + levels + function if levels else function


def levels_in(function: bytes) -> bytes:
    """The levels of a function, with or without its name; it has no tag any more."""
    rest = _unnamed(function)
    return rest[3 : 3 + int.from_bytes(rest[1:3], "little")] if rest[:1] == LEVELS else b""


def pickle_in(function: bytes) -> bytes:
    """The pickle of a function without its name and levels; its tag is gone already."""
    rest = _unnamed(function)
    return rest[3 + int.from_bytes(rest[1:3], "little") :] if rest[:1] == LEVELS else rest


def _unnamed(function: bytes) -> bytes:
    return function[2 + function[1] :] if function[:1] == NAME else function
