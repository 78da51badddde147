"""What goes wrong, and when: a list of blows drawn from a seed."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

KINDS = {
    "kill-node": "kill -9 of a node with all its workers; it comes back after a while as a new one",
    "kill-worker": "kill -9 of one worker of a node",
    "pause-node": "a node is stopped (SIGSTOP) for longer or shorter than its lease, then goes on",
    "cut-node": "a node's link is cut, then healed",
    "slow-node": "a node gets a tenth of its time for a while",
    "fill-disk": "a node's disk is full for a while",
    "kill-store": "kill -9 of the store, which is started again",
    "pause-store": "the store is stopped for a while",
    "promote-replica": "the store's server dies and a replica that lags takes over",
    "kill-client": "the client is killed; another one goes on with its session",
    "drain-node": "a node leaves in good order; another one joins",
}
NEEDS_LINKS = frozenset(["cut-node"])
NEEDS_DISKS = frozenset(["fill-disk"])
NEEDS_REPLICAS = frozenset(["promote-replica"])


class Blow(NamedTuple):
    """When this share of the tasks has ended, this happens to that host, for so many seconds where it lasts."""

    share: float
    kind: str
    host: int
    lasts_s: float


def blows_of(seed: int, kinds: Sequence[str], hosts: int, count: int, lease_s: float) -> list[Blow]:
    """Every kind comes in turn, over many seeds equally often. Host 0 is spared what would leave no node at all."""
    random = Random(f"blows {seed}")
    first = seed * count
    blows = []
    for number in range(count):
        kind = kinds[(first + number) % len(kinds)]
        lasts_s = random.choice((0.3, 0.8, 1.5, 2.5)) * lease_s if "pause" in kind or "cut" in kind else lease_s
        blows.append(Blow(random.uniform(0.05, 0.85), kind, random.randrange(hosts), lasts_s))
    return sorted(blows)
