"""What the driver of a node notes of each run, for whoever keeps a timeline: perhaps in another process."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.events import EventType, ObjectsFetched
from daws.model.task import NODE_INDEX_MASK, NodeId, Ready
from daws.wire.messages import Offer
from daws.wire.worker import Died, Ended, Raised, Recalled, ReportType, Written

if TYPE_CHECKING:
    from daws.runs.watching import Watch

Row = tuple[int, int, int, int, int, int, int, int, int, int]
"""A run that ended: (task, kind, node, executor, start, end, cores, bytes read, bytes written, 1 or 0 if it raised).

Times are in nanoseconds of the machine's monotonic clock; the kind is the number of the task's function."""


class News(Struct, frozen=True, array_like=True, gc=False):
    """What a node tells at a time: runs that ended, how many of its executors were busy just before, and how many bytes
    it has fetched from other nodes so far."""

    node: int
    rows: tuple[Row, ...]
    busy_count: int
    fetched_bytes: int


class RunNotes:
    """Is told what was sent to executors and what they reported, and gives rows for runs that ended by themselves."""

    def __init__(self, node: NodeId, watch: "Watch | None" = None) -> None:
        """A `watch` hears of it too, task by task."""
        self.watch = watch
        self.node = node & NODE_INDEX_MASK
        self.fetched_bytes = 0
        self._sent: dict[int, tuple[int, Ready]] = {}  # by number of the run: its executor, and the task
        self._loads: dict[int, int] = {}  # by executor that has something to do: so many runs

    def sent(self, run: int, slot: int, ready: Ready, now_ns: int) -> None:
        self._sent[run] = slot, ready
        self._loads[slot] = self._loads.get(slot, 0) + 1
        if self.watch is not None:
            self.watch.sent(self.node, slot, ready, now_ns)

    def happened(self, events: Iterable[EventType]) -> None:
        """Objects may have come from other nodes, or tasks."""
        for event in events:
            if isinstance(event, ObjectsFetched):
                self.fetched_bytes += sum([transfer[1] for transfer in event.fetched])
            elif self.watch is not None and isinstance(event, Offer):
                self.watch.offered(event)

    def reported(self, reports: Iterable[ReportType]) -> News:
        busy_count = len(self._loads)
        rows: list[Row] = []
        for report in reports:
            if isinstance(report, (Ended, Raised)):
                sent = self._back(report.run)
                if sent is not None:
                    rows.append(self._row(*sent, report))
            elif isinstance(report, (Died, Recalled)):
                self._back(report.run)
        return News(self.node, tuple(rows), busy_count, self.fetched_bytes)

    def _back(self, run: int) -> tuple[int, Ready] | None:
        """The executor that is rid of a run, and its task."""
        if run not in self._sent:
            return None
        slot, ready = self._sent.pop(run)
        self._loads[slot] -= 1
        if not self._loads[slot]:
            del self._loads[slot]
        return slot, ready

    def _row(self, slot: int, ready: Ready, report: Ended | Raised) -> Row:
        spec = ready.spec
        return (
            spec.id,
            spec.kind,
            self.node,
            slot,
            report.began_ns,
            report.began_ns + report.duration_ns,
            1 if spec.needs is None else spec.needs.cores,
            sum([one[1] for one in ready.inputs]),
            sum(map(_size, report.results)) if isinstance(report, Ended) else 0,
            int(isinstance(report, Ended)),
        )


def _size(result: bytes | int | Written) -> int:
    if isinstance(result, Written):
        return result.size_bytes
    return result if isinstance(result, int) else len(result)
