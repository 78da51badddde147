"""Random neighbours, and other things that several balancers need."""

from math import isqrt

from daws.model.task import NodeId
from daws.strategy.decisions import Rng, View

NS_PER_MS = 1_000_000


def draw(view: View, rng: Rng, count: int) -> list[NodeId]:
    """`count` distinct members other than this node (all of them if there are no more), in random order.

    The cost grows with `count`, not with the number of members, unless most of them are wanted.
    """
    nodes = view.members.nodes
    total = len(nodes)
    node = view.node
    if 2 * count >= total:
        return _shuffled([other for other in nodes if other != node], rng, count)
    drawn: list[NodeId] = []
    while len(drawn) < count:
        other = nodes[rng.below(total)]
        if other != node and other not in drawn:
            drawn.append(other)
    return drawn


def _shuffled(nodes: list[NodeId], rng: Rng, count: int) -> list[NodeId]:
    count = min(count, len(nodes))
    for i in range(count):
        j = i + rng.below(len(nodes) - i)
        nodes[i], nodes[j] = nodes[j], nodes[i]
    del nodes[count:]
    return nodes


def root(member_count: int) -> int:
    """The integer square root of the number of members, at least one."""
    return max(1, isqrt(member_count))


def part(available: int, share: float) -> int:
    """A share of the available tasks, rounded down, but at least one if there is any."""
    return min(available, max(1, int(available * share)))
