"""Objects on their way: small ones as messages between nodes, large ones on streams.

A request on a stream is a list of object ids. Each id is answered in turn by the object's size and its bytes, or by
MISSING. Above the size are the permission bits of a file that a command made, so that programs stay programs; they are
zero for values. Clients also bring objects in: the bytes (BRINGS), or on one machine the path of a file that they have
written into a folder of the node (ADOPTS). Both are answered by the object's size, or by MISSING if the node did not
take it.
"""

from struct import Struct as Layout

from msgspec import Struct, msgpack

from daws.wire.messages import MessageType

COUNT = Layout("<I")
SIZE = Layout("<Q")
BROUGHT = Layout("<QQ")
ADOPTED = Layout("<QQH")
MISSING = (1 << 64) - 1
BRINGS = (1 << 32) - 1
"""Replaces the number of requested objects: an object follows with its id, its size and its bytes."""
ADOPTS = BRINGS - 1
"""Replaces it for an object in a file: its id, its size, the length of the path and the path follow."""
IDS_MAX = 1 << 20
SIZE_MAX = 1 << 46
MODE_SHIFT = 48


class AskObjects(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """A request for objects. It is answered by GiveObjects, once or in parts."""

    objects: tuple[int, ...]


class GiveObjects(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """Objects that were requested, and ids of those that have to be requested by stream."""

    given: tuple[tuple[int, bytes], ...]
    withheld: tuple[int, ...] = ()


BetweenNodes = MessageType | AskObjects | GiveObjects
BETWEEN_NODES: msgpack.Decoder[list[BetweenNodes]] = msgpack.Decoder(list[BetweenNodes])
