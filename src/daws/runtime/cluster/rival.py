"""The other client of a session that this client asks for: is it alive, or does its lease only have to run out?"""

from daws.model.session import SWEEPER
from daws.wire.store import AnswerType, SessionList

RENEWALS = 3
"""A client whose lease was renewed so often while it was looked at is alive. After a pause, a restart or a failover of
the store, the lease of a client that is gone may become longer as well."""


class Rival:
    """The other client as it was seen last: its nonce, the end of its lease, and how often that was renewed."""

    def __init__(self) -> None:
        self._nonce = b""
        self._until_ns = 0
        self._renewals = 0

    def is_alive(self, name: str, answer: AnswerType) -> bool:
        """Whether another client has renewed the lease of this session several times since it was first seen."""
        if not isinstance(answer, SessionList):
            return False
        until = dict(zip(answer.attached, answer.until_ns, strict=True))
        for entry in answer.sessions:
            if entry.name == name and not entry.ending and entry.number in until:
                if self._nonce != entry.nonce or entry.nonce.endswith(SWEEPER):
                    self._renewals = 0
                elif self._until_ns != until[entry.number]:
                    self._renewals += 1
                self._nonce, self._until_ns = entry.nonce, until[entry.number]
                return self._renewals >= RENEWALS
        return False
