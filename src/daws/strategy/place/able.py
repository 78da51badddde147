"""The nodes that may run a task, for placements that send tasks away.

The check covers tasks without needs too: an executor that offers only `gpu` refuses them.
"""

from daws.model.task import Needs, NodeId
from daws.strategy.decisions import Rng, View


def may_run(view: View, node: NodeId, needs: Needs | None) -> bool:
    """Whether the node is a member with an executor for the task."""
    members = view.members
    if needs is None and len(members.capable(None)) == len(members.infos):  # the usual case, and cheap to know
        return node in members
    info = members.info(node)
    return info is not None and info.can_run(needs)


def draw_able(view: View, needs: Needs | None, rng: Rng) -> NodeId:
    """A random member that can run the task, -1 if there is none."""
    able = view.members.capable(needs)
    return able[rng.below(len(able))] if able else -1
