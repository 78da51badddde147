"""The handshake: both ends of a link say who they are before anything else is read. Knows no socket: bytes go in and
come out.

Each side sends a greeting (who it is, and a fresh nonce). Each side answers the other's greeting with the other's nonce
and a refusal, which is empty if the two fit together. The reason of a refusal stands in the same words on both sides.
Greeting and answer have fixed sizes, so nothing that a stranger sends decides how much is read.

Two things may never change: the fields up to `protocol`, and the sizes. They make other versions readable enough to be
refused. That is why they are here and not in `daws.wire`, whose version they bring.
"""

import os
import sys
from collections.abc import Collection
from struct import Struct

import msgspec

from daws.model.errors import PeerError
from daws.wire import PROTOCOL

MAGIC = b"daws"
ROLES = ("node", "client", "store")
MESSAGES = "messages"
OBJECTS = "objects"
NONCE_BYTES = 16

_GREETING = Struct("<4sH2B16sBq16s64s")  # magic, protocol, python, nonce, role, node, purpose, cluster
_ANSWER = Struct("<4s16s236s")  # magic, the other's nonce, the reason of a refusal


class Hello(msgspec.Struct, frozen=True):
    """One end of a link: its cluster, its role, its number, and the purpose of the link. Both ends must have the same
    purpose.

    `node` is the id of a node, which is new with each of its starts, or the number by which the cluster knows a client.
    """

    cluster: str
    role: str
    node: int = 0
    purpose: str = MESSAGES
    protocol: int = PROTOCOL
    python: tuple[int, int] = sys.version_info[:2]

    def __str__(self) -> str:
        return {"node": f"node {self.node}", "client": "a client", "store": "the store"}.get(self.role, self.role)


class Handshake:
    """One end of a handshake.

    Send `greeting()`. Then fill `room`, call `arrived` and send what it returns, until `peer` is set. PeerError says
    why the two ends do not fit together.
    """

    def __init__(
        self,
        ours: Hello,
        roles: Collection[str] = ROLES,
        node: int | None = None,
        nonce: bytes | None = None,
    ) -> None:
        """Prepare one end. `roles` are the roles that the peer may have; `node`, if given, is the node that it must
        be."""
        self.peer: Hello | None = None
        self._ours = ours
        self._roles = roles
        self._node = node
        self._nonce = os.urandom(NONCE_BYTES) if nonce is None else nonce
        self._theirs: Hello | None = None
        self._refusal = ""
        self._part = bytearray(_GREETING.size)
        self._filled = 0

    def greeting(self) -> bytes:
        ours = self._ours
        return _GREETING.pack(
            MAGIC,
            ours.protocol,
            *ours.python,
            self._nonce,
            ROLES.index(ours.role),
            ours.node,
            ours.purpose.encode(),
            ours.cluster.encode(),
        )

    @property
    def room(self) -> memoryview:
        """Space for the missing bytes of the next part, and not a byte more."""
        return memoryview(self._part)[self._filled :]

    def arrived(self, count: int) -> bytes:
        """Take `count` bytes that were put into `room`, and return the bytes to send now (or none)."""
        self._filled += count
        seen = bytes(self._part[: min(self._filled, len(MAGIC))])
        if not MAGIC.startswith(seen):
            raise PeerError("it does not speak the protocol of daws")
        if self._filled < len(self._part):
            return b""
        part = bytes(self._part)
        self._filled = 0
        if self._theirs is None:
            self._part = bytearray(_ANSWER.size)
            return self._on_greeting(part)
        self._on_answer(part, self._theirs)
        return b""

    def ended(self) -> PeerError | ConnectionResetError:
        """The error for a peer that closed the connection during the handshake.

        It is a PeerError if the two ends do not fit together. Otherwise the peer may have been killed, or was too busy
        to finish the handshake: a ConnectionResetError, which is worth a retry.
        """
        return PeerError(self._refusal) if self._refusal else ConnectionResetError()

    def _on_greeting(self, part: bytes) -> bytes:
        _, protocol, major, minor, nonce, role, node, purpose, cluster = _GREETING.unpack(part)
        self._theirs = Hello(
            _text(cluster),
            ROLES[role] if role < len(ROLES) else f"role {role}",
            node,
            _text(purpose),
            protocol,
            (major, minor),
        )
        self._refusal = self._reason(self._theirs)
        return _ANSWER.pack(MAGIC, nonce, self._refusal.encode()[:236])

    def _on_answer(self, part: bytes, theirs: Hello) -> None:
        _, nonce, refusal = _ANSWER.unpack(part)
        if self._refusal:
            raise PeerError(self._refusal)
        if nonce != self._nonce:
            raise PeerError("its answer belongs to another greeting: this handshake was recorded")
        if _text(refusal):
            raise PeerError(f"it refuses: {_text(refusal)}")
        self.peer = theirs

    def _reason(self, theirs: Hello) -> str:
        """Why the two ends do not fit together, in words for both sides. Empty if they do."""
        ours = self._ours
        if theirs.protocol != ours.protocol:
            return (
                f"{theirs} speaks protocol {theirs.protocol}, {ours} protocol {ours.protocol}: "
                "install the same version of daws on both sides"
            )
        if theirs.python != ours.python:
            return (
                f"{theirs} runs Python {_dotted(theirs.python)}, {ours} Python {_dotted(ours.python)}: "
                "use the same version, because values travel pickled"
            )
        if theirs.cluster != ours.cluster:
            return f"{theirs} is of cluster {theirs.cluster!r}, {ours} of {ours.cluster!r}"
        if theirs.role not in self._roles:
            return f"{theirs} has no keys for this role, but those of {' or '.join(sorted(self._roles)) or 'no role'}"
        if self._node is not None and (theirs.role, theirs.node) != ("node", self._node):
            return f"node {self._node} is not here any more, but {theirs}"
        if theirs.purpose != ours.purpose:
            return f"{theirs} is here for {theirs.purpose!r}, {ours} for {ours.purpose!r}"
        return ""


def _text(field: bytes) -> str:
    """Text from a stranger, without characters that do not belong into a log."""
    text = field.rstrip(b"\0").decode(errors="replace")
    return "".join(one if one.isprintable() else "?" for one in text)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
