"""A node that leaves in good order leaves nothing behind."""

from daws.core.events import Leave
from daws.model.task import NodeId
from daws.sim.checkers.known import Known
from daws.store.memory.snapshot import intents_in, unfinished_in


class Leavers:
    """A watcher of the nodes that were told to leave, and of the state in which they left."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.told: dict[NodeId, int] = {}  # who was told to leave, and by when
        self.left: dict[NodeId, str] = {}  # who has left, and what it said it left behind

    def on_told(self, node: NodeId, event: Leave) -> None:
        self.told[node] = min(event.deadline_ns, self.told.get(node, event.deadline_ns))

    def on_left(self, node: NodeId, behind: str) -> None:
        """Check that the store expects nothing more of a node that says that it may go."""
        fail, store = self.known.fail, self.known.kernel.store
        if node not in self.told:
            fail(f"node {node} left although nobody told it to")
        self.left[node] = behind
        if node in store.infos:
            fail(f"node {node} left and is still a member")
        if behind:
            return
        running = self.known.running[node]
        if running:
            fail(f"node {node} left in good order with task {next(iter(running))} running")
        for task, record in unfinished_in(store):
            if record.owner == node:
                fail(f"node {node} left in good order, but task {task} is still its own")
        for key, holder, _ in intents_in(store):
            if holder == node:
                fail(f"node {node} left in good order, but intent {key & 3} of task {key >> 2} is still its own")

    def check_left(self, orderly: bool) -> None:
        """Check, long after the end, that each node that was told to leave has left: in good order if nothing else went
        wrong."""
        for node in self.known.kernel.seats:
            if node in self.told:
                self.known.fail(f"node {node} was told to leave and is still there")
        for node, behind in self.left.items():
            if behind and orderly:
                self.known.fail(f"node {node} had all the time it wanted, but left behind {behind}")
