"""Notes on each run that the driver of a node takes for a timeline, which may be in another process."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from daws.core.events import EventType, ObjectsFetched
from daws.model.task import NODE_INDEX_MASK, NodeId, Ready, spawned_id
from daws.wire.messages import Offer
from daws.wire.notes import News, Phase, Row, RunLinks
from daws.wire.worker import Died, Ended, Raised, Recalled, ReportType, Spawned, WaitReport, Written

if TYPE_CHECKING:
    from daws.runs.watching import StrategyWatch


class RunNotes:
    """The notes of a node. It learns of runs that were sent to executors and of their reports, and gives rows for runs
    that ended by themselves."""

    def __init__(self, node: NodeId, watch: "StrategyWatch | None" = None) -> None:
        """Take notes for a node. A `watch` is told too, task by task."""
        self.watch = watch
        self.node = node & NODE_INDEX_MASK
        self.fetched_bytes = 0
        self._sent: dict[int, tuple[int, Ready]] = {}  # by number of the run: its executor, and the task
        self._loads: dict[int, int] = {}  # number of runs of each executor that has something to do
        self._created: dict[int, _Created] = {}  # by run that creates tasks

    def sent(self, run: int, slot: int, ready: Ready, now_ns: int) -> None:
        self._sent[run] = slot, ready
        self._loads[slot] = self._loads.get(slot, 0) + 1
        if self.watch is not None:
            self.watch.sent(self.node, slot, ready, now_ns)

    def happened(self, events: Iterable[EventType]) -> None:
        """Objects may have come from other nodes, or tasks."""
        for event in events:
            if isinstance(event, ObjectsFetched):
                self.fetched_bytes += sum([transfer.size_bytes for transfer in event.fetched])
            elif self.watch is not None and isinstance(event, Offer):
                self.watch.offered(event)

    def reported(self, reports: Iterable[ReportType]) -> News:
        busy_count = len(self._loads)
        rows: list[Row] = []
        links: list[RunLinks] = []
        for report in reports:
            if isinstance(report, (Ended, Raised)):
                sent = self._back(report.run)
                created = self._created.pop(report.run, None)
                if sent is not None:
                    rows.append(self._row(*sent, report))
                    if created is not None or _has_links(sent[1]):
                        links.append(_links(sent[1], report, created))
            elif isinstance(report, (Died, Recalled)):
                self._back(report.run)
                self._created.pop(report.run, None)
            elif isinstance(report, (Spawned, WaitReport)) and report.run in self._sent:
                self._creates(report)
        return News(self.node, tuple(rows), busy_count, self.fetched_bytes, tuple(links))

    def _creates(self, report: Spawned | WaitReport) -> None:
        """A run creates tasks, or waits for some of them."""
        created = self._created.get(report.run)
        if created is None:
            created = self._created[report.run] = _Created(self._sent[report.run][1])
        if isinstance(report, Spawned):
            created.spawned(len(report.tasks))
        else:
            created.waits(report)

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
            sum([one.size_bytes for one in ready.inputs]),
            sum(map(_size, report.results)) if isinstance(report, Ended) else 0,
            int(isinstance(report, Ended)),
        )


class _Created:
    """The tasks that a run has created so far."""

    __slots__ = ("phases", "ready", "tasks", "told")

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.tasks: list[int] = []
        self.told = 0  # the number of them in phases that are over
        self.phases: list[Phase] = []

    def spawned(self, count: int) -> None:
        first = len(self.tasks)
        parent, attempt = self.ready.spec.id, self.ready.attempt
        self.tasks += [spawned_id(parent, attempt, number) for number in range(first, first + count)]

    def waits(self, report: WaitReport) -> None:
        on = tuple([self.tasks[number] for number in report.on if number < len(self.tasks)])
        self._close(report.used_ns, on)

    def all_phases(self, duration_ns: int) -> tuple[Phase, ...]:
        self._close(duration_ns, ())
        return tuple(self.phases)

    def _close(self, used_ns: int, on: tuple[int, ...]) -> None:
        self.phases.append((used_ns, tuple(self.tasks[self.told :]), on))
        self.told = len(self.tasks)


def _has_links(ready: Ready) -> bool:
    spec = ready.spec
    return bool(ready.inputs) or len(spec.outputs) > 1 or (spec.needs is not None and spec.needs.memory_bytes > 0)


def _links(ready: Ready, report: Ended | Raised, created: _Created | None) -> RunLinks:
    spec = ready.spec
    sizes = list(map(_size, report.results)) if isinstance(report, Ended) else []
    return RunLinks(
        spec.id,
        report.began_ns,
        tuple([(one.object, one.size_bytes) for one in ready.inputs]),
        tuple(zip(spec.outputs, sizes, strict=False)),
        () if created is None else created.all_phases(report.duration_ns),
        0 if spec.needs is None else spec.needs.memory_bytes,
    )


def _size(result: bytes | int | Written) -> int:
    if isinstance(result, Written):
        return result.size_bytes
    return result if isinstance(result, int) else len(result)
