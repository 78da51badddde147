"""Nothing is read that is not there, and nothing is dropped that will be read."""

from collections import defaultdict
from collections.abc import Sequence

from daws.core import view
from daws.core.effects import DropObject, EffectType
from daws.core.events import ObjectsFetched, ObjectsPut, RunEnded
from daws.core.node import NodeCore
from daws.model.task import INLINE_BYTES, NodeId, Ready, TaskSpec
from daws.sim.checkers.known import NODE_BITS, NODE_MASK, Known
from daws.wire.store import Remake


class Objects:
    """A watcher of objects: which are made, fetched and dropped, and on which node. Objects that travel inside records
    are on no node."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.sizes = known.kernel.sizes
        self.holdings: defaultdict[NodeId, set[int]] = defaultdict(set)
        self.copies: defaultdict[NodeId, set[int]] = defaultdict(set)
        self.fetched_bytes = 0
        self.needs: dict[int, set[tuple[int, int]]] = {}  # task -> for whom and which needs it was last made again
        graph = known.graph
        self.read = len(graph.inputs) > 0
        self.made = graph.object_count > 0
        if self.made:
            # Views, not lists: they give plain integers and take no memory of their own.
            self.producer = graph.producer.data
            self.parent_start, self.parents = graph.parent_start.data, graph.parents.data
            self.child_start, self.children = graph.child_start.data, graph.children.data

    def on_outputs(self, node: NodeId, spec: TaskSpec, event: RunEnded) -> None:
        if not event.error:
            for object_, size in zip(spec.outputs, event.sizes, strict=True):
                if size > INLINE_BYTES:
                    self.holdings[node].add(object_)

    def on_put(self, node: NodeId, event: ObjectsPut) -> None:
        self.holdings[node].update([object_ for object_, _ in event.objects])

    def on_fetched(self, node: NodeId, event: ObjectsFetched) -> None:
        held = self.holdings[node]
        for object_ in [one.object for one in event.fetched]:
            if object_ not in held:
                held.add(object_)
                self.copies[node].add(object_)
            self.fetched_bytes += self.sizes[object_]

    def on_death(self, node: NodeId) -> None:
        self.holdings.pop(node, None)
        self.copies.pop(node, None)

    def on_drop(self, node: NodeId, object_: int) -> None:
        self.holdings[node].discard(object_)
        copies = self.copies[node]
        if object_ in copies:
            copies.discard(object_)
            self._check_not_read(node, object_)
            return
        if not self.made:
            return  # tasks that users submit: which object is read by whom, it does not know
        producer = self.producer[object_]
        if producer < 0:
            return  # it was put in from outside
        committed, ended = self.known.committed, self.known.ended
        won = committed[producer]
        if won is None or won & NODE_MASK != node:
            return  # the object of a run that did not win
        for child in self.children[self.child_start[producer] : self.child_start[producer + 1]].tolist():
            if committed[child] is None and child not in ended:
                self._check_unread(node, object_, child)

    def _check_unread(self, node: NodeId, object_: int, child: int) -> None:
        """A node has dropped its own object before a reader of it has ended, for which there are few excuses."""
        store = self.known.kernel.store
        if node not in store.infos:
            return  # it is dead and does not know it yet
        record = store.record(self.producer[object_])
        if record is not None and not any(one.object == object_ and node in one.places for one in record.outputs):
            return  # it was out of reach for somebody who has it made again
        outputs = record.outputs if record is not None else ()
        places = [place for one in outputs if one.object == object_ for place in one.places]
        if any(place != node for place in places):
            return  # it has left it to another (who may have died since), and the store knows
        self.known.fail(f"node {node} dropped object {object_} although task {child} has not read it yet")

    def check_remake(self, row: Remake, ready: Ready) -> None:
        """The store lets a task be made again. That is wrong for a need that was met, as long as the node which met it
        lives and has the objects: the row was repeated, or was late."""
        known, task = self.known, row.task
        need, attempt = (row.waiter, row.need), known.remade.get(task, 0)
        if ready.attempt == attempt:
            self.needs[task].add(need)  # one more who asks for the same remake
            return
        won = known.committed[task]
        if need in self.needs.get(task, ()) and won is not None and won >> NODE_BITS >= attempt:
            node = won & NODE_MASK
            large = {object_ for object_ in ready.spec.outputs if self.sizes[object_] > INLINE_BYTES}
            if node in known.kernel.store.infos and large and large <= self.holdings[node]:
                known.fail(f"task {task} is made again for task {row.waiter}, though node {node} has made it since")
        self.needs[task] = {need}

    def _check_not_read(self, node: NodeId, object_: int) -> None:
        for started in self.known.running[node].values():
            ready = started.ready
            if any(one.object == object_ for one in ready.inputs):
                self.known.fail(f"node {node} dropped object {object_} while task {ready.spec.id} was reading it")

    def check_inputs(self, node: NodeId, spec: TaskSpec) -> None:
        """All that a task reads was made, and is on the machine."""
        task = spec.id
        committed = self.known.committed
        for parent in self.parents[self.parent_start[task] : self.parent_start[task + 1]].tolist():
            if committed[parent] is None:
                self.known.fail(f"task {task} started on node {node} before its parent {parent} was done")
        self.check_on_machine(node, spec)

    def check_on_machine(self, node: NodeId, spec: TaskSpec) -> None:
        """All large objects that a task reads are on the machine where it starts."""
        here = self.known.kernel.seats[node].objects
        for object_ in spec.inputs:
            if object_ not in here and self.sizes[object_] > INLINE_BYTES:
                self.known.fail(f"task {spec.id} started on node {node} without its input {object_}")

    def check_belief(self, core: NodeCore, out: Sequence[EffectType]) -> None:
        """After a step: a node believes to have nothing that its machine does not have, or is about to drop."""
        machine = self.known.kernel.seats.get(core.node)
        if machine is None or view.is_restarting(core) or not view.objects(core):
            return
        dropped = {effect.object for effect in out if isinstance(effect, DropObject)}
        for object_ in view.objects(core):
            if object_ not in machine.objects or object_ in dropped:
                self.known.fail(f"node {core.node} believes to have object {object_}, which its machine does not have")

    # -- at the end --------------------------------------------------------------------------------------------------

    def check_machines(self) -> None:
        """Each node believes to have exactly those objects that its machine has."""
        for node, machine in self.known.kernel.seats.items():
            if view.is_restarting(machine.core):
                continue
            believed, here = set(view.objects(machine.core)), machine.objects
            if believed != here:
                self.known.fail(
                    f"node {node} believes to have objects {sorted(believed - here)[:5]}, which its machine does not "
                    f"have, and does not know of {sorted(here - believed)[:5]}"
                )

    def check_held(self) -> None:
        """The objects of each machine are those that came to it, and what was sent has arrived or is on its way."""
        kernel, fail = self.known.kernel, self.known.fail
        self.check_machines()
        for node, machine in kernel.seats.items():
            if view.is_restarting(machine.core) or not self.made:
                continue
            here, held = machine.objects, self.holdings[node]
            if here != held:
                fail(f"the machine of node {node} has {sorted(here - held)[:5]} but not {sorted(held - here)[:5]}")
        sent_bytes = kernel.transfers.fetched_bytes
        if self.fetched_bytes > sent_bytes:
            fail(f"{self.fetched_bytes} bytes arrived but only {sent_bytes} were sent")
        if kernel.faults is None and not kernel.departed:
            coming_bytes = sum(
                self.sizes[one.object]
                for _, _, _, event in kernel.agenda
                if type(event) is ObjectsFetched
                for one in event.fetched
            )
            if self.fetched_bytes + coming_bytes != sent_bytes:
                fail(f"{sent_bytes} bytes were sent, {self.fetched_bytes} arrived and {coming_bytes} are under way")

    def check_freed(self) -> None:
        """Long after the end: no node keeps objects for readers that have all finished."""
        for node, machine in self.known.kernel.seats.items():
            for producer, pending, objects in view.made(machine.core):
                if all(map(self.known.has_ended, pending)):
                    self.known.fail(
                        f"node {node} still keeps objects {objects[:3]} of task {producer}, which nobody will read"
                    )
