"""Who may run a task, for placements that send tasks away."""

from daws.model.task import Needs, NodeId
from daws.strategy.decisions import Rng, View


def may_run(view: View, node: NodeId, needs: Needs | None) -> bool:
    """Whether the node is a member with an executor for the task."""
    info = view.members.info(node)
    return info is not None and (needs is None or info.can_run(needs))


def draw_able(view: View, needs: Needs | None, rng: Rng) -> NodeId:
    """A random member that can run the task, -1 if there is none."""
    able = view.members.nodes if needs is None else view.members.capable(needs)
    return able[rng.below(len(able))] if able else -1
