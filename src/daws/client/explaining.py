"""Where a task ran and why, in a few lines of words and numbers."""

from contextlib import suppress
from typing import Any

from msgspec import Struct

from daws.client.future import CANCELLED, FAILED, INLINE, STORED, Future
from daws.model.errors import DawsError
from daws.model.html import text
from daws.model.task import NodeId
from daws.runtime.here import NODE
from daws.strategy.decisions import DEDICATED, SHARED
from daws.wire.messages import COPY, GIVEN, LEAVING, PUSH, STOLEN
from daws.wire.notes import Decided, FactType, Handed, RunFact, Sent

HANDED = {
    PUSH: "got it from node {}, whose `place` chose this node",
    STOLEN: "had nothing to do and stole it from node {}",
    GIVEN: "was given it by node {}, which had more to do",
    COPY: "got a copy of it from node {}",
    LEAVING: "got it from node {}, which is about to leave",
}
NOT_RECORDED = "how it was placed was not recorded; daws.Cluster(explain=True) does that"

NOTHING_TOLD = "nothing is recorded of it: it was put in, it never became ready, or it was long ago"


class Explanation(Struct, frozen=True):
    """The facts that are known of a task. Print it, or take it apart.

    `outputs` are sizes in bytes, and nodes that have them if they do not travel with messages. `facts` are the
    decisions, moves and runs in the order of their times (see `daws.runs.facts`), None if nobody recorded them.
    `memo` says whether a task with `memo=` was reused, or why it ran.
    """

    task: int
    state: str
    error: str = ""
    outputs: tuple[tuple[int, tuple[NodeId, ...]], ...] = ()
    facts: tuple[FactType, ...] | None = None
    memo: str = ""

    @property
    def node(self) -> NodeId | None:
        """Where it ran last, or is about to: a worker there has it."""
        sent = self._last(Sent)
        return None if sent is None else sent.node

    @property
    def worker(self) -> int | None:
        sent = self._last(Sent)
        return None if sent is None else sent.slot

    @property
    def waited_s(self) -> float | None:
        """The seconds from the first fact about the task to the beginning of its last run."""
        ran = self._last(RunFact)
        return None if ran is None or not self.facts else (ran.start_ns - self.facts[0].at_ns) / 1e9

    @property
    def ran_s(self) -> float | None:
        ran = self._last(RunFact)
        return None if ran is None else (ran.at_ns - ran.start_ns) / 1e9

    @property
    def reasons(self) -> dict[str, dict[str, Any]]:
        """The numbers that were compared by each decision when it was made last for this task, and the choice."""
        return {fact.decision: fact.reasons for fact in self.facts or () if isinstance(fact, Decided)}

    def _last(self, kind: type) -> Any:
        return next((fact for fact in reversed(self.facts or ()) if isinstance(fact, kind)), None)

    def __str__(self) -> str:
        lines = [f"task {self.task}: {self.state}{', ' if self.error else ''}{self.error}"]
        if self.memo:
            lines.append(self.memo)
        for size, places in self.outputs:
            where = f" on node {', '.join(map(str, places))}" if places else ""
            lines.append(f"its result: {size:,} bytes{where}")
        if self.facts is None:
            lines.append(NOT_RECORDED)
        elif not self.facts:
            lines.append("no node has told of it yet" if self.state == "pending" else NOTHING_TOLD)
        else:
            first_ns = self.facts[0].at_ns
            lines += [f"+{(fact.at_ns - first_ns) / 1e6:.1f} ms  {_line(fact)}" for fact in self.facts]
        return "\n  ".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title, _, rest = str(self).partition("\n")
        return text(title, "\n".join([line.removeprefix("  ") for line in rest.splitlines()]))


def explain(future: Future[Any]) -> Explanation:
    """Say where a task ran and why, as far as that is known to its session."""
    session = future._session
    facts, is_alone = session.facts, session._is_alone
    if facts is not None and not is_alone and session._closed is None and not session.engine.is_here:
        with suppress(DawsError):
            session.engine.counters()  # behind their answers nothing is on its way that nodes said before
    outputs = tuple([(output.size_bytes, output.places) for output in session.stored.get(future.task, ())])
    if future._state == INLINE:
        outputs = ((len(future._what), ()),)
    elif is_alone and future._state == STORED and future.object in session.files:
        outputs = ((session.files.size_bytes(future.object), (NODE,)),)
    error = ""
    if future._state in (FAILED, CANCELLED):
        raised = session.exception_of(future)
        error = f"{type(raised).__name__}: {raised}"
    found = None if facts is None else facts.of(future.task)
    return Explanation(future.task, future.state, error, outputs, found, session.memo_notes.get(future.task, ""))


def _line(fact: FactType) -> str:
    if isinstance(fact, Decided):
        numbers = ", ".join([_number(name, value) for name, value in fact.reasons.items() if name != "choice"])
        where = "the client" if fact.decision == "assign" else f"node {fact.node}"
        chose = f"{where}: {fact.decision}={fact.answer} {_choice(fact)}"
        return f"{chose} ({numbers})" if numbers else chose
    if isinstance(fact, Handed):
        how = HANDED.get(fact.why, "got it from node {}").format(fact.sender)
        loads = ", ".join([f"{load:,} on node {node}" for node, load in fact.loads])
        return f"node {fact.node} {how}" + (f" (to be stolen: {loads})" if loads else "")
    if isinstance(fact, Sent):
        again = f", attempt {fact.attempt + 1}" if fact.attempt else ""
        read = f"; it reads {fact.read_bytes:,} bytes, {fact.moved_bytes:,} of them from other nodes"
        return f"node {fact.node}: sent to worker {fact.slot}{again}{read if fact.read_bytes else ''}"
    how = "ran" if fact.is_good else "raised after"
    wrote = f", wrote {fact.written_bytes:,} bytes" if fact.is_good else ""
    return f"node {fact.node}: {how} {_time(fact.at_ns - fact.start_ns)} on worker {fact.slot}{wrote}"


def _choice(fact: Decided) -> str:
    choice = fact.reasons.get("choice")
    if fact.decision == "assign":
        return f"chose node {choice}"
    if fact.decision == "order":
        return f"gave it the key {choice:,.15g}" if isinstance(choice, int | float) else f"gave it the key {choice}"
    if choice == SHARED:
        return "shared it: any node may take it"
    if choice == DEDICATED or choice == fact.node:
        return "kept it for this node"
    return f"chose node {choice}"


def _number(name: str, value: object) -> str:
    """A number with the unit that ends its name."""
    words, _, unit = name.rpartition("_")
    if unit == "ns" and isinstance(value, int | float):
        return f"{words.replace('_', ' ')} {_time(value)}"
    if unit == "bytes" and isinstance(value, int | float):
        return f"{words.replace('_', ' ')} {value:,.0f} bytes"
    if isinstance(value, dict):
        value = " ".join([f"{key}: {one:,}" if isinstance(one, int) else f"{key}: {one}" for key, one in value.items()])
    elif isinstance(value, list):
        value = " ".join(map(str, value))
    return f"{name.replace('_', ' ')} {'none' if value == '' else value}"


def _time(time_ns: float) -> str:
    if time_ns < 1e6:
        return f"{time_ns / 1e3:.0f} µs"
    return f"{time_ns / 1e6:.1f} ms" if time_ns < 1e9 else f"{time_ns / 1e9:.2f} s"
