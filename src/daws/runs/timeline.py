"""When and where each task ran, as columns: a row for each run that ended, 80 bytes of it.

Other threads may read while rows are added: columns only grow, and `count` never promises too much.
"""

from array import array
from collections.abc import Iterable

from daws.wire.notes import News, Row, RunLinks

NAMES_SHOWN_MAX = 10


class Timeline:
    """Rows in the order in which runs were reported; the columns are those of `Row`.

    With `keeps_links` it keeps the graph as well: what each run read, and which tasks it has created.
    """

    def __init__(self, keeps_links: bool = False) -> None:
        self.keeps_links = keeps_links
        self.links: list[RunLinks] = []
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
        self._columns = (
            *(self.task, self.kind, self.node, self.slot, self.start_ns, self.end_ns),
            *(self.cores, self.read_bytes, self.written_bytes, self.is_good),
        )
        self._names: dict[int, str] = {}  # by kind
        self.bytes_total = 0  # read and written
        self._busy: dict[int, int] = {}  # by node
        self._fetched: dict[int, int] = {}

    @property
    def count(self) -> int:
        return len(self.is_good)  # the last column that grows

    @property
    def busy_count(self) -> int:
        """The number of executors that had something to do, by the last message of each node."""
        return sum(list(self._busy.values()))

    @property
    def moved_bytes(self) -> int:
        """The number of bytes that nodes have fetched from each other."""
        return sum(list(self._fetched.values()))

    def add(self, news: News) -> None:
        """Add a message of a node."""
        if self.keeps_links:
            self.links += news.links
        for row in news.rows:
            self.bytes_total += row[7] + row[8]
            for column, value in zip(self._columns, row, strict=True):
                column.append(value)
        self._busy[news.node] = news.busy_count
        self._fetched[news.node] = news.fetched_bytes

    def rows(self) -> Iterable[Row]:
        count = self.count
        return zip(*(column[:count] for column in self._columns), strict=True)

    def learn(self, kind: int, name: str) -> None:
        """Set the name of tasks of this kind."""
        self._names[kind] = name

    def name_of(self, kind: int) -> str:
        return self._names.get(kind) or f"function {kind}"

    def __repr__(self) -> str:
        return f"<Timeline of {self.count:,} runs>"

    def _repr_html_(self) -> str:
        from collections import Counter

        from daws.model.html import size, table

        count = self.count
        failed = count - sum(self.is_good[:count])
        lasted_s = (max(self.end_ns[:count]) - min(self.start_ns[:count])) / 1e9 if count else 0.0
        kinds = Counter([self.name_of(kind) for kind in self.kind[:count]]).most_common(NAMES_SHOWN_MAX)
        rows: list[tuple[str, object]] = [("runs", f"{count:,}"), ("failed", f"{failed:,}" if failed else "")]
        rows += [("from first to last", f"{lasted_s:,.3f} s"), ("read and written", size(self.bytes_total))]
        rows += [("moved between nodes", size(self.moved_bytes)), *[(name, f"{ran:,}") for name, ran in kinds]]
        return table("Timeline", rows)
