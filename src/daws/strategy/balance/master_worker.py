"""Workers ask the master."""

from daws.model.task import NodeId
from daws.strategy.balance.thief import PlainThief
from daws.strategy.decisions import Rng, View


class BalanceMasterWorker(PlainThief, frozen=True, dict=True):
    """An idle node asks the first member, the master, for a task, every `delay-ms`. The master asks no other node.

    Constellation (2011), section 3.3; size and delay from its code. Use it with `assign=one` and `place=master`, which
    bring the tasks to the master. If the master dies, the next member is the master.

    Helps with long tasks and few nodes, for its simplicity. Hurts at scale: all requests meet at one node.
    """

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        nodes = view.members.nodes
        return [nodes[0]] if nodes and nodes[0] != view.node else []
