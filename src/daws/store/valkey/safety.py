"""Rule 11, acknowledged is not yet safe: which of our updates could a failover still lose?

Replicas are behind their primary, and logs on disk behind memory. An update is safe when all replicas that are attached
(and as many as were asked for) have all that the primary had when the update was known to be done, and when the time
has passed in which servers write their logs to disk.
"""

from collections import deque

from msgspec import Struct

SETTLE_S = 3.0
"""Servers that keep a log write it to disk every second unless told otherwise, and up to two later on a busy disk."""


class Replicas(Struct, frozen=True):
    """How far a primary is, and how far those are that follow it."""

    offset: int
    followers: tuple[int, ...]


def read_replicas(info: bytes) -> Replicas:
    """From the section `replication` of a server's INFO."""
    offset, followers = 0, []
    for line in info.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        if name == "master_repl_offset":
            offset = int(value)
        elif name.startswith("slave") and "state=" in value:
            said = dict(part.partition("=")[::2] for part in value.split(","))
            followers.append(int(said.get("offset", 0)) if said.get("state") == "online" else 0)
    return Replicas(offset, tuple(followers))


class Safety:
    """Of one shard. `safe` is the number of the last update that no failover can take back."""

    def __init__(self, replicas_min: int) -> None:
        self.safe = 0
        self._replicas_min = replicas_min
        self._waiting: deque[tuple[int, int, float]] = deque()  # update, how far the primary was, when

    def learn(self, acknowledged: int, replicas: Replicas, now_s: float) -> None:
        """`acknowledged` was the last update before the server said this of its replicas."""
        if acknowledged > (self._waiting[-1][0] if self._waiting else self.safe):
            self._waiting.append((acknowledged, replicas.offset, now_s))
        while self._waiting:
            update, offset, since_s = self._waiting[0]
            if now_s - since_s < SETTLE_S or len(replicas.followers) < self._replicas_min:
                return
            if any(follower < offset for follower in replicas.followers):
                return
            self.safe = update
            self._waiting.popleft()

    def begin_anew(self) -> None:
        self.safe = 0
        self._waiting.clear()
