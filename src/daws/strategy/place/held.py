"""The input bytes of a task that each node has, for placements by data."""

from daws.model.task import NodeId, Ready
from daws.strategy.decisions import View
from daws.strategy.place.able import may_run


def held_bytes(view: View, ready: Ready) -> dict[NodeId, int]:
    """How many of the task's input bytes each node has, among those that can run it."""
    held: dict[NodeId, int] = {}
    for one in ready.inputs:
        for place in one.places:
            held[place] = held.get(place, 0) + one.size_bytes
        if view.node not in one.places and view.has(one.object):
            held[view.node] = held.get(view.node, 0) + one.size_bytes
    return {node: size for node, size in held.items() if size and may_run(view, node, ready.spec.needs)}


def best_holder(view: View, held: dict[NodeId, int]) -> NodeId:
    """The node with most bytes; this one if it has as many as any other, -1 if no node has any."""
    if not held:
        return -1
    best = max(held, key=held.__getitem__)
    return view.node if held.get(view.node) == held[best] else best
