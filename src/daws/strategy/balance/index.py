"""A dispatcher with an index of cached objects and their nodes, as in data diffusion."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.decisions import Reasons, View


class BalanceIndex(BalanceMasterWorker, frozen=True, dict=True):
    """Idle nodes report to the first member, the dispatcher, which hands each the task of which it has most bytes.

    Data diffusion in Falkon (2008). The dispatcher looks at the first `window` tasks of its queue.
    `policy=max-compute-util` hands over the best of them in any case; `max-cache-hit` only a task of which no other
    node has more bytes (the rest wait for the nodes that have). Idle nodes are remembered and called when there is
    work.

    The index says where objects were made, and which nodes were handed tasks that read them. Nodes do not report
    evictions, so the index is loosely coherent, as in Falkon. Unlike there, the dispatcher runs tasks too, as they
    come. Falkon's policy that changes between the two by the share of busy processors (good-cache-compute) is left out.

    Helps when many tasks read the same data. Hurts at scale: each task passes through one node.
    """

    keeps_index: ClassVar[bool] = True

    policy: Annotated[
        Literal["max-compute-util", "max-cache-hit"], Meta(description="never idle, or never a transfer too many")
    ] = "max-compute-util"
    window: Annotated[int, Meta(ge=1, le=100_000, description="queued tasks that are compared for each request")] = 128

    @property
    def waits_for_best(self) -> bool:
        return self.policy == "max-cache-hit"

    def leaves_name(self, view: View) -> bool:
        return True

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"policy": self.policy, "window": self.window, **super().explain(view, loads)}
