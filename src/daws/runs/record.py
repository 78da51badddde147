"""When and where each task ran, as columns: a row for each run that ended, some 80 bytes of it.

The driver of a node tells what it sent to its workers and what they reported. Times are of the machine's monotonic
clock. Other threads may read while rows are added: a column only grows, and `count` never promises too much.
"""

from array import array
from collections.abc import Iterable, Sequence

from daws.model.task import Ready
from daws.wire.worker import Died, Ended, Raised, Recalled, ReportType, Written

COLUMNS = ("task", "kind", "node", "slot", "start_ns", "end_ns", "cores", "read_bytes", "written_bytes", "is_good")
"""`kind` is the number of the task's function, `is_good` is 0 for runs that raised."""


class RunRecord:
    """Rows in the order in which runs were reported."""

    def __init__(self) -> None:
        self.task = array("q")
        self.kind = array("q")
        self.node = array("q")
        self.slot = array("q")
        self.start_ns = array("q")
        self.end_ns = array("q")
        self.cores = array("q")
        self.read_bytes = array("q")
        self.written_bytes = array("q")
        self.is_good = array("q")
        self.names: dict[int, str] = {}  # by kind
        self.bytes_total = 0  # read and written
        self._sent: dict[tuple[int, int], tuple[int, Ready]] = {}  # by node and run: the executor, and the task

    @property
    def count(self) -> int:
        return len(self.is_good)  # the last column that grows

    @property
    def busy_count(self) -> int:
        """How many executors have something to do now."""
        return len({(node, slot) for (node, _), (slot, _) in list(self._sent.items())})

    def sent(self, node: int, run: int, slot: int, ready: Ready) -> None:
        """A run is on its way to an executor."""
        self._sent[node, run] = slot, ready

    def reported(self, node: int, reports: Iterable[tuple[int, ReportType]]) -> None:
        """What executors say; only runs that ended by themselves become rows."""
        for _, report in reports:
            if isinstance(report, Ended):
                sent = self._sent.pop((node, report.run), None)
                if sent is not None:
                    written = sum(map(_size, report.results))
                    self._add(node, *sent, report.began_ns, report.duration_ns, written, True)
            elif isinstance(report, Raised):
                sent = self._sent.pop((node, report.run), None)
                if sent is not None:
                    self._add(node, *sent, report.began_ns, report.duration_ns, 0, False)
            elif isinstance(report, (Died, Recalled)):
                self._sent.pop((node, report.run), None)

    def _add(
        self, node: int, slot: int, ready: Ready, began_ns: int, duration_ns: int, written: int, is_good: bool
    ) -> None:
        spec = ready.spec
        read = sum([one[1] for one in ready.inputs])
        self.bytes_total += read + written
        self.task.append(spec.id)
        self.kind.append(spec.kind)
        self.node.append(node)
        self.slot.append(slot)
        self.start_ns.append(began_ns)
        self.end_ns.append(began_ns + duration_ns)
        self.cores.append(1 if spec.needs is None else spec.needs.cores)
        self.read_bytes.append(read)
        self.written_bytes.append(written)
        self.is_good.append(is_good)

    def rows(self) -> Iterable[Sequence[int]]:
        """Each row as a tuple in the order of `COLUMNS`."""
        return zip(*(getattr(self, name)[: self.count] for name in COLUMNS), strict=True)

    def name_of(self, kind: int) -> str:
        return self.names.get(kind) or f"function {kind}"

    def __repr__(self) -> str:
        return f"<RunRecord of {self.count:,} runs>"


def _size(result: bytes | int | Written) -> int:
    if isinstance(result, Written):
        return result.size_bytes
    return result if isinstance(result, int) else len(result)
