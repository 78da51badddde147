"""The fast lane has the same effects as the general way. Of two nodes that get the same events, one has no lane."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from daws.core import plain
from daws.core.effects import CallStore, EffectType, RecallRun, StartRun, StartRuns
from daws.core.events import EventType, Pressure, RunDone, RunEnded, RunRecalled, RunsDone, StoreAnswered
from daws.core.invariants import check
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT, Needs
from daws.store.memory import MemoryStore
from daws.testing import Driver, task
from daws.wire.messages import NewTasks, PlainTasks
from daws.wire.store import FinishSmall, Submit

SHORT_NS, MIDDLE_NS, LONG_NS = 1_000, 12_000_000, 900_000_000
LARGE_BYTES = 100_000
STRATEGIES = ("daws", "mlb", "flds", "matrix", "mlb:order=critical-path", "adage")

bags = st.tuples(st.just("bag"), st.integers(1, 40), st.integers(0, 2))
graphs = st.tuples(
    st.just("graph"),
    st.lists(st.tuples(st.booleans(), st.sampled_from((0, 0, 0, 0, 1, 2)), st.booleans()), min_size=1, max_size=8),
    st.integers(0, 2),
)
ends = st.tuples(st.just("ends"), st.integers(0, 50), st.integers(1, 12))
pressure = st.tuples(st.just("pressure"), st.booleans(), st.just(0))
steps = st.lists(st.one_of(bags, graphs, ends, ends, ends, ends, pressure), min_size=5, max_size=60)


class History:
    """A node that is given many tasks, a store that answers it, and all that the node says."""

    def __init__(self, strategy: str, together: bool, in_bursts: bool) -> None:
        config = NodeConfig(
            lease_ns=8 * SECOND_NS, next_ns=2 * MIDDLE_NS, starts_together=together, small_finishes=together
        )
        self.node = Driver(strategy, members=1, cores=3, config=config)
        self.store = MemoryStore(1)
        self.store.join(self.node.members.infos)
        self.in_bursts, self.together = in_bursts, together
        self.tasks = self.batches = self.started_together = 0
        self.runs: list[StartRun] = []
        self.told: list[list[str]] = []
        self.in_all: set[str] = set()

    def give(self, events: Sequence[EventType]) -> None:
        """Let the node take these events, and then what follows from its effects."""
        waiting = list(events)
        while waiting:
            batch = waiting if self.in_bursts else waiting[:1]
            waiting = waiting[len(batch) :]
            out: list[EffectType] = []
            self.node.now_ns += 1_000_000
            self.node.core.step(self.node.now_ns, batch, out)
            check(self.node.core)
            self.started_together += sum(isinstance(effect, StartRuns) for effect in out)
            said = [one for effect in out for one in in_full(effect)]
            self.told.append(sorted(map(repr, said)))
            for effect in said:
                if isinstance(effect, StartRun):
                    self.runs.append(effect)
                    self.in_all.add(f"start of {effect.ready}")
                elif isinstance(effect, RecallRun):
                    self.runs = [run for run in self.runs if run.run != effect.run]
                    waiting.append(RunRecalled(effect.task, effect.run))
                elif isinstance(effect, CallStore):
                    self.in_all.update(map(repr, effect.rows))
                    answers = self.store.apply(0, effect.rows, self.node.now_ns)
                    waiting.append(StoreAnswered(effect.token, answers))

    def bag(self, count: int, kind: int) -> None:
        tasks = [*range(self.tasks, self.tasks + count)]
        self.tasks += count
        self.batches += 1
        self.give([PlainTasks(CLIENT, self.batches, tasks, [kind], [b"x"])])

    def graph(self, shapes: list[tuple[bool, int, bool]], kind: int) -> None:
        """Tasks that may read what the task before them makes, be urgent, or need two cores."""
        rows = []
        for has_parent, what, leaf in shapes:
            name = self.tasks
            self.tasks += 1
            parents = (name - 1,) if name and has_parent else ()
            needs = Needs(cores=2) if what == 2 else None
            spec = task(name, parents, [name], kind=kind, leaf=leaf, priority=what % 2)
            rows.append(Submit(replace(spec, needs=needs), parents, self.node.core.node))
        self.batches += 1
        self.give([NewTasks(CLIENT, self.batches, tuple(rows))])

    def ends(self, first: int, count: int) -> None:
        """The ends of some runs, which may be those of one executor in a row."""
        count = count if self.in_bursts else 1
        self.runs.sort(key=lambda run: run.ready.spec.id)
        first %= len(self.runs) or 1
        ended = self.runs[first : first + count]
        del self.runs[first : first + count]
        self.give(self.columns(ended) if self.together else [self.end(run) for run in ended])

    def end(self, run: StartRun) -> EventType:
        spec = run.ready.spec
        if spec.id % 11 == 3:
            return RunEnded(spec.id, run.run, SHORT_NS, (LARGE_BYTES,), values=(b"",))
        if spec.id % 23 == 5:
            return RunEnded(spec.id, run.run, SHORT_NS, (), "it failed")
        return RunDone(spec.id, run.run, (SHORT_NS, MIDDLE_NS, LONG_NS)[spec.kind], b"x" * (1 + spec.id % 5))

    def columns(self, runs: list[StartRun]) -> list[EventType]:
        found: list[EventType] = [self.end(run) for run in runs]
        done: list[Any] = [end for end in found if isinstance(end, RunDone)]
        rest: list[EventType] = [end for end in found if not isinstance(end, RunDone)]
        columns = [[getattr(end, name) for end in done] for name in ("task", "run", "duration_ns", "value")]
        return [RunsDone(*columns), *rest] if done else rest

    def finish(self) -> None:
        self.give([Pressure(False)])
        while self.runs:
            self.ends(0, 5)


def in_full(effect: EffectType) -> list[EffectType]:
    """An effect as the general way says it."""
    if isinstance(effect, StartRuns):
        return [StartRun(run, effect.slot, ready) for run, ready in zip(effect.runs, effect.tasks, strict=True)]
    if isinstance(effect, CallStore):
        rows = [row.in_full() if isinstance(row, FinishSmall) else row for row in effect.rows]
        return [replace(effect, rows=rows)]
    return [effect]


def history(strategy: str, together: bool, in_bursts: bool, moves: list[Any], lane: bool) -> History:
    plain.IS_USED = lane
    try:
        told = History(strategy, together, in_bursts)
        for name, first, second in moves:
            if name == "pressure":
                told.give([Pressure(first)])
            else:
                getattr(told, name)(first, second)
        told.finish()
    finally:
        plain.IS_USED = True
    return told


@settings(max_examples=40)
@given(strategy=st.sampled_from(STRATEGIES), together=st.booleans(), moves=steps)
def test_each_step_has_the_same_effects(strategy: str, together: bool, moves: list[Any]):
    """One event in each step, so that there is one order in which things can be done."""
    lane, general = [history(strategy, together, False, moves, lane) for lane in (True, False)]
    assert lane.told == general.told


@settings(max_examples=40)
@given(strategy=st.sampled_from(STRATEGIES), together=st.booleans(), moves=steps)
def test_the_same_tasks_run_and_are_committed_if_many_runs_end_together(
    strategy: str, together: bool, moves: list[Any]
):
    """An executor that falls free may get another task than in the general way, which has them all to choose from."""
    lane, general = [history(strategy, together, True, moves, lane) for lane in (True, False)]
    assert lane.tasks == general.tasks
    assert ends_of(lane) == ends_of(general)


def ends_of(told: History) -> tuple[set[str], list[Any]]:
    """What started (a run that is recalled starts twice), what was said to the store, and what became of the tasks."""
    rows = {row for row in told.in_all if row.startswith(("start", "Finish", "Submit"))}
    records = [told.store.record(task) for task in range(told.tasks)]
    return rows, [record and (record.state, record.attempt, record.made) for record in records]


def test_the_lane_is_used():
    bag = [("bag", 40, 0), *[("ends", 0, 8)] * 30]
    assert history("daws", True, True, bag, True).started_together
    assert not history("daws", True, True, bag, False).started_together
