"""Objects under way between simulated machines."""

from functools import partial
from typing import TYPE_CHECKING

from daws.core.effects import FetchObjects
from daws.core.events import ObjectsFetched
from daws.model.task import CLIENT, NodeId, ObjectTransfer
from daws.sim.fair import FairNetwork
from daws.sim.machine import FATE, Machine

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel


class Transfers:
    """The fetches of a simulation, on links that carry one transfer after the other or, with a `network`, share them.

    It has no reference to its kernel, which is handed in: a cycle would keep a simulation in memory after its end.
    """

    __slots__ = ("fetched_bytes", "network")

    def __init__(self) -> None:
        self.network: FairNetwork | None = None
        self.fetched_bytes = 0

    def fetch(self, kernel: "Kernel", machine: Machine, node: NodeId, leaves_ns: int, effect: FetchObjects) -> None:
        """Bring objects to a node.

        Objects that were asked for together are reported together, when the last of them is here. Those that cannot be
        had are reported as soon as that is known.
        """
        if self.network is not None:
            self._fetch_fairly(kernel, machine, node, leaves_ns, effect)
            return
        costs, faults, seats, one_cluster = kernel.costs, kernel.faults, kernel.seats, kernel.one_cluster
        latency_ns, speed = costs.latency_ns, costs.net_bytes_per_s
        last_ns = sent_ns = leaves_ns + costs.message_ns
        asked_ns = sent_ns + latency_ns
        fetched_bytes = 0
        failed: list[ObjectTransfer] = []
        for transfer in effect.wanted:
            object_, size_bytes, source = transfer.object, transfer.size_bytes, transfer.source
            there = seats.get(source)
            if there is None or object_ not in there.objects or (faults and kernel.is_cut(node, source)):
                if source != CLIENT:
                    at_ns = sent_ns + 2 * kernel.latency_ns(machine, source)
                    kernel.push(at_ns, node, ObjectsFetched((), (transfer,)))
                    failed.append(transfer)
                    continue
                there = kernel.client_machine
            if not one_cluster and source != CLIENT and there.info.cluster != machine.info.cluster:
                far_ns = costs.cluster_latency_ns
                end_ns = there.transfer(machine, size_bytes, sent_ns + far_ns, costs.cluster_bytes_per_s) + far_ns
            else:
                end_ns = there.transfer(machine, size_bytes, asked_ns, speed) + latency_ns
            if end_ns > last_ns:
                last_ns = end_ns
            fetched_bytes += size_bytes
        self.fetched_bytes += fetched_bytes
        kernel.message_count += len(effect.wanted) - len(failed)
        coming = effect.wanted if not failed else tuple([one for one in effect.wanted if one not in failed])
        if not coming:
            return
        if faults is not None:
            kernel.push(last_ns, FATE, lambda kernel: self._end(kernel, node, coming))
        else:
            kernel.push(last_ns, node, ObjectsFetched(coming))

    def _fetch_fairly(
        self, kernel: "Kernel", machine: Machine, node: NodeId, leaves_ns: int, effect: FetchObjects
    ) -> None:
        """The same where links are shared: the end of a transfer is known only when it has come."""
        network, costs = self.network, kernel.costs
        assert network is not None
        sent_ns = leaves_ns + costs.message_ns
        coming: list[tuple[ObjectTransfer, Machine, int, float]] = []
        for transfer in effect.wanted:
            object_, size_bytes, source = transfer.object, transfer.size_bytes, transfer.source
            latency_ns = kernel.latency_ns(machine, source)
            there = kernel.seats.get(source) if source != CLIENT else kernel.client_machine
            lacks = there is None or (source != CLIENT and object_ not in there.objects)
            if there is None or lacks or (source != CLIENT and kernel.is_cut(node, source)):
                kernel.push(sent_ns + 2 * latency_ns, node, ObjectsFetched((), (transfer,)))
                continue
            near = source == CLIENT or kernel.one_cluster or there.info.cluster == machine.info.cluster
            coming.append((transfer, there, latency_ns, costs.net_bytes_per_s if near else costs.cluster_bytes_per_s))
            self.fetched_bytes += size_bytes
            kernel.message_count += 1
        transfers = tuple([one[0] for one in coming])
        left = len(coming)

        def ended(now_ns: int, latency_ns: int) -> None:
            nonlocal left
            left -= 1
            if not left:
                kernel.push(now_ns + latency_ns, FATE, lambda kernel: self._end(kernel, node, transfers))

        for transfer, there, latency_ns, most in coming:
            begin = partial(network.begin, there, machine, transfer.size_bytes, most)
            done = partial(ended, latency_ns=latency_ns)
            kernel.push(sent_ns + latency_ns, FATE, lambda kernel, begin=begin, done=done: begin(kernel.now_ns, done))

    def _end(self, kernel: "Kernel", node: NodeId, transfers: tuple[ObjectTransfer, ...]) -> None:
        """Report transfers. With faults about, a source may have died meanwhile."""
        failed = tuple([one for one in transfers if one.source != CLIENT and _is_gone(kernel, node, one.source)])
        fetched = tuple([one for one in transfers if one not in failed])
        kernel.push(kernel.now_ns, node, ObjectsFetched(fetched, failed))


def _is_gone(kernel: "Kernel", node: NodeId, source: NodeId) -> bool:
    return source not in kernel.seats or kernel.is_cut(node, source)
