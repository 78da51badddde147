"""A watch that gives up a simulation which comes to rest without an end, with a message about what is missing."""

from typing import Any

from daws.core import view
from daws.core.events import ObjectsFetched, RunEnded
from daws.core.node import SECOND_NS
from daws.model.context import format_context
from daws.model.errors import InternalError, UsageError
from daws.model.states import STATE_NAMES
from daws.model.task import Needs, Ready
from daws.sim.kernel import Kernel, is_end_of_time
from daws.sim.machine import FATE, STORE
from daws.store.memory.snapshot import unfinished_in
from daws.wire.messages import Offer, Submission

STUCK_LEASES = 100
STUCK_LOOKS = 3
_CHANGES = (RunEnded, ObjectsFetched, Offer, Submission)
"""Events after which something may start; timers, renewals and questions for work go on for ever."""


class StallWatch:
    """A look, every hundred leases, whether anything started, ended or moved, or is still to come.

    Nothing starts again if no living node may run the tasks that are left. The same happens if steps, messages or calls
    cost seconds. The queues before nodes or shards then grow faster than they are served, and renewals of leases are
    answered later and later.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.every_ns = STUCK_LEASES * kernel.config.lease_ns
        self.seen: tuple[int, ...] = ()
        self.behind_ns = 0
        self.silent = 0
        kernel.push(self.every_ns, FATE, self.look)

    def look(self, kernel: Kernel) -> None:
        left = kernel.client.waiting_for
        if not left:
            return
        comes = self._comes(kernel)
        if not kernel.seats and not comes:
            raise UsageError(f"all nodes have left, and {left} tasks have not ended: no node is left to run them")
        seen = (len(kernel.starts), len(kernel.ends), kernel.transfers.fetched_bytes, left)
        rests = seen == self.seen and len(kernel.starts) == len(kernel.ends) and bool(kernel.seats)
        may_start = any(view.may_start(machine.core, kernel.now_ns) for machine in kernel.seats.values())
        queues_ns = (*(machine.busy_ns for machine in kernel.seats.values()), *kernel.shard_free_ns)
        behind_ns = max(queues_ns) - kernel.now_ns
        if may_start:
            hopeless = rests and not comes and behind_ns < kernel.config.lease_ns
        else:
            hopeless = rests and behind_ns >= self.behind_ns
        self.silent = self.silent + 1 if hopeless else 0
        self.seen, self.behind_ns = seen, behind_ns
        if self.silent >= STUCK_LOOKS:
            silent_s = self.silent * self.every_ns / SECOND_NS
            before = f"nothing could start for {silent_s:g} simulated seconds with {left} tasks left"
            if may_start:
                raise _unable(kernel, before)
            raise UsageError(
                f"{before}: leases of {kernel.config.lease_ns / SECOND_NS:g} s are renewed too late; "
                f"set lease-s higher, or lower what steps, messages and store calls cost"
            )
        if len(kernel.agenda) > 1:  # something beside the end of time is still to come
            kernel.push(kernel.now_ns + self.every_ns, FATE, self.look)

    def _comes(self, kernel: Kernel) -> bool:
        """Is anything under way, or to happen from outside, from which something may follow?"""
        return any(_matters(to, event) for _, _, to, event in kernel.agenda)


def _matters(to: int, event: Any) -> bool:
    return to == STORE or (to == FATE and not is_end_of_time(event)) or isinstance(event, _CHANGES)


def _unable(kernel: Kernel, before: str) -> UsageError | InternalError:
    """Say which task no node can run; if there is none, something in daws is wrong."""
    for machine in kernel.seats.values():
        for ready in view.stranded(machine.core):
            nodes = f"{len(kernel.seats)} node{'s' * (len(kernel.seats) != 1)}"
            return UsageError(f"{before}: {_wants(kernel, ready)}, which none of the {nodes} left offers")
    for task, record in unfinished_in(kernel.store):
        return InternalError(f"{before}: task {task} is {STATE_NAMES[record.state]} at node {record.owner}")
    return InternalError(f"{before}: all records are final, but the client has not heard of it")


def _wants(kernel: Kernel, ready: Ready) -> str:
    needs = ready.spec.needs or Needs()
    memory = f" and {needs.memory_bytes / 1e9:g} GB of memory" if needs.memory_bytes else ""
    task = ready.spec.id
    name = kernel.graph.name_of(task) if task < kernel.graph.task_count else f"task {task}"
    return f"{name} needs {needs.cores} core(s) with context {format_context(needs.context) or 'any'!r}{memory}"
