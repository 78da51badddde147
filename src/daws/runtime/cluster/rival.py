"""The other client of a session that this client asks for: is it alive, or does its lease only have to run out?"""

from daws.wire.store import AnswerType, SessionList


class Rival:
    """The other client as it was seen last: its nonce, and the end of its lease. A lease that was renewed tells that
    its client is alive."""

    def __init__(self) -> None:
        self._nonce = b""
        self._until_ns = 0

    def is_alive(self, name: str, answer: AnswerType) -> bool:
        """Whether another client has renewed the lease of this session since the last time."""
        if not isinstance(answer, SessionList):
            return False
        until = dict(zip(answer.attached, answer.until_ns, strict=True))
        for entry in answer.sessions:
            if entry.name == name and not entry.ending and entry.number in until:
                was_seen = self._nonce == entry.nonce and self._until_ns != until[entry.number]
                self._nonce, self._until_ns = entry.nonce, until[entry.number]
                return was_seen
        return False
