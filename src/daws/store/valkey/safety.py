"""Rule 11, acknowledged is not yet safe: which of our updates could a failover still lose?

Replicas are behind their primary, and logs on disk behind memory. An update is safe under two conditions. All attached
replicas (and as many as were asked for) have received the data that the primary had when it acknowledged the update.
And the time has passed in which servers write their logs to disk.
"""

from collections import deque

from msgspec import Struct

SETTLE_S = 3.0
"""Servers with a log write it to disk every second unless configured otherwise, and up to two later on a busy disk."""


class ReplicaOffsets(Struct, frozen=True):
    """The replication offsets of a primary and of its replicas."""

    offset: int
    followers: tuple[int, ...]


def read_replicas(info: bytes) -> ReplicaOffsets:
    """The offsets in the section `replication` of a server's INFO."""
    offset, followers = 0, []
    for line in info.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        if name == "master_repl_offset":
            offset = int(value)
        elif name.startswith("slave") and "state=" in value:
            said = dict(part.partition("=")[::2] for part in value.split(","))
            followers.append(int(said.get("offset", 0)) if said.get("state") == "online" else 0)
    return ReplicaOffsets(offset, tuple(followers))


class Safety:
    """The safe position of one shard: `safe` is the number of the last update that no failover can take back."""

    def __init__(self, replicas_min: int) -> None:
        self.safe = 0
        self._replicas_min = replicas_min
        self._waiting: deque[tuple[int, int, float]] = deque()  # update, the primary's offset, time

    def learn(self, acknowledged: int, replicas: ReplicaOffsets, now_s: float) -> None:
        """Take note of offsets. `acknowledged` was the last update before the server reported them."""
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
