"""Many short runs that end together: the same as one by one, only quicker."""

import random
from heapq import heapreplace
from itertools import groupby
from typing import Any

import pytest
from msgspec.structs import replace

from daws.core import executors, plain, send_ahead
from daws.core import node as node_module
from daws.core.effects import CallStore, EffectType, StartRun, StartRuns
from daws.core.events import EventType, RunDone, RunEnded, RunsDone, StoreAnswered
from daws.core.invariants import check
from daws.core.lengths import KindLength, own_lengths
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT
from daws.store.memory import MemoryStore
from daws.testing import Driver, ready, task
from daws.wire.messages import NewTasks, PlainTasks
from daws.wire.store import FinishSmall, Submit


def events_of(rng: random.Random, runs: list[StartRun]) -> list[EventType]:
    """Ends of some of these runs: mostly plain ones, some large, some failures, and some of runs that nobody knows."""
    events: list[EventType] = []
    rng.shuffle(runs)
    count = rng.randrange(len(runs) + 1)
    for run in sorted(runs[:count], key=lambda run: (run.slot if count % 3 else 0, run.run)):
        name, what = run.ready.spec.id, rng.randrange(20)
        if what == 0:
            events.append(RunEnded(name, run.run, 1000, (), "bad"))
        elif what == 1:
            events.append(RunEnded(name, run.run, 1000, (100_000,), values=(b"",)))
        elif what == 2:
            events.append(RunDone(name, run.run + 1000, 1000, b"x"))
            runs.append(run)  # it goes on
        else:
            events.append(RunDone(name, run.run, 1000 + name, b"x" * max(1, rng.randrange(9))))
    del runs[:count]
    return events


def in_columns(events: list[EventType], slots: dict[int, int]) -> list[EventType]:
    """The same with ends on one executor that follow each other as one event."""
    found: list[EventType] = []
    for (kind, _), some in groupby(events, lambda one: (type(one), slots.get(getattr(one, "run", -1)))):
        if kind is RunDone:
            ends = [(one.task, one.run, one.duration_ns, one.value) for one in some if isinstance(one, RunDone)]
            found.append(RunsDone(*map(list, zip(*ends, strict=True))))
        else:
            found += some
    return found


def one_by_one(out: list[EffectType]) -> list[EffectType]:
    """The same with an effect for each run that starts, in their order and behind all others."""
    starts = [effect for effect in out if isinstance(effect, StartRun)]
    for effect in out:
        if isinstance(effect, StartRuns):
            starts += [StartRun(run, effect.slot, one) for run, one in zip(effect.runs, effect.tasks, strict=True)]
    starts.sort(key=lambda start: start.run)
    return [*[effect for effect in out if not isinstance(effect, StartRun | StartRuns)], *starts]


def in_full(out: list[EffectType]) -> list[EffectType]:
    """The same with ends of small runs written out; how many there were is in `SMALL`."""
    found = []
    for effect in out:
        if isinstance(effect, CallStore):
            SMALL.extend([row for row in effect.rows if isinstance(row, FinishSmall)])
            rows = [row.in_full() if isinstance(row, FinishSmall) else row for row in effect.rows]
            effect = replace(effect, rows=rows)
        found.append(effect)
    return found


SMALL: list[FinishSmall] = []


def history(
    seed: int, strategy: str, together: bool = False, small: bool = False
) -> tuple[list[list[EffectType]], str]:
    """All effects of a node that is given many short tasks, and how it stands in the end."""
    rng = random.Random(seed)
    config = NodeConfig(lease_ns=8 * SECOND_NS, starts_together=together, small_finishes=small)
    with Driver(strategy, cores=3, config=config) as node:
        store = MemoryStore(1)
        store.join(node.members.infos)
        core = node.core
        names = iter(range(10_000))
        runs: list[StartRun] = []
        told: list[list[EffectType]] = []
        waiting: list[EventType] = []
        for _ in range(60):
            if rng.random() < 0.3:
                rows = []
                for name in [next(names) for _ in range(rng.randrange(40))]:
                    parents = (name - 1,) if name and rng.random() < 0.1 else ()
                    spec = task(name, parents, [name], kind=rng.randrange(8) // 7, leaf=rng.random() < 0.5)
                    rows.append(Submit(spec, parents, core.node))
                waiting.append(NewTasks(CLIENT, next(names), tuple(rows)))
            slots = {start.run: start.slot for start in runs}
            events = waiting + events_of(rng, runs)
            waiting = []
            node.now_ns += 1_000_000
            if together:
                events = in_columns(events, slots)
            while events:
                out: list[EffectType] = []
                core.step(node.now_ns, events, out)
                check(core)
                out = one_by_one(out)
                told.append(in_full(out))
                events = []
                for effect in out:
                    if isinstance(effect, StartRun):
                        runs.append(effect)
                    elif isinstance(effect, CallStore):
                        answers = store.apply(0, effect.rows, node.now_ns)
                        events.append(StoreAnswered(effect.token, answers))
        here, seen = core.executors, core.lengths
        return (
            told,
            f"{core} {seen.done_count} {here.ahead} {here.inflight} {sorted(here.running)} {seen.kinds}",
        )


@pytest.mark.parametrize("strategy", ["daws", "daws:adapt=matrix,period=7", "mlb"])
@pytest.mark.parametrize("seed", range(12))
def test_a_burst_does_what_its_ends_would_do_one_by_one(seed: int, strategy: str, monkeypatch: pytest.MonkeyPatch):
    bursts = 0

    def counted(core: node_module.NodeCore, events: list[EventType]) -> object:
        nonlocal bursts
        rest = end_together(core, events)
        bursts += len(events) - len(rest) > 3
        return rest

    end_together = plain.end_together
    monkeypatch.setattr(node_module, "end_together", counted)
    at_once = history(seed, strategy)
    assert bursts > 2
    monkeypatch.setattr(node_module, "end_together", lambda core, events: events)
    assert history(seed, strategy) == at_once


@pytest.mark.parametrize("strategy", ["daws", "daws:adapt=matrix,period=60", "mlb"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("small", [False, True])
def test_columns_do_what_single_starts_and_ends_would_do(
    seed: int, strategy: str, small: bool, monkeypatch: pytest.MonkeyPatch
):
    columns = 0
    SMALL.clear()

    def counted(core: node_module.NodeCore, event: RunsDone, first: int) -> int:
        nonlocal columns
        ended = end_columns(core, event, first)
        columns += ended > 3
        return ended

    end_columns = plain._end_plain
    monkeypatch.setattr(plain, "_end_plain", counted)
    together = history(seed, strategy, together=True, small=small)
    assert columns
    assert bool(SMALL) == small
    assert history(seed, strategy) == together


@pytest.mark.parametrize("seed", range(20))
def test_tasks_are_dealt_to_who_has_the_fewest(seed: int):
    rng = random.Random(seed)
    slots = [(rng.randrange(1, 12), slot) for slot in range(rng.randrange(1, 6))]
    count = rng.randrange(1, 60)
    sent = {slot: sent for sent, slot in slots if sent > 1}
    heap, expected, known = sorted(slots), [], dict(sent)
    for _ in range(count):
        has, slot = heap[0]
        heapreplace(heap, (has + 1, slot))
        expected.append(slot)
        known[slot] = has + 1
    assert executors.deal(slots, count, sent) == expected
    assert sent == known and list(sent) == list(known)
    assert sorted(heap) == slots


@pytest.mark.parametrize("together", [True, False])
def test_of_a_bag_more_tasks_wait_at_executors_than_of_a_graph(together: bool):
    config = NodeConfig(lease_ns=8 * SECOND_NS, starts_together=together, ahead_count_max=10)
    bag = 10 * (send_ahead.BAG_FACTOR if together else 1)
    with Driver("daws", members=1, cores=2, config=config) as node:
        node.give(PlainTasks(CLIENT, 1, [1000, 1001], [0], [b""]))
        for start in (node.expect(StartRun), node.expect(StartRun)):
            node.give(RunDone(start.ready.spec.id, start.run, 1000, b"x"))
        own_lengths(node.core).kinds[0] = KindLength(100, 100_000, 1000)  # a hundred of them took a microsecond each
        node.give(PlainTasks(CLIENT, 2, [*range(200)], [0], [b""]))
        assert node.core.executors.ahead == 2 * bag
        others = [Submit(ready(task, makes=(task,), kind=1).spec, (), 0) for task in range(300, 310)]
        node.give(NewTasks(CLIENT, 3, tuple(others)))  # other tasks came, so it is no bag any more
        assert node.core.queues.shared.alike is None
        for task, run in [*node.core.executors.running.items()][: 2 * bag]:
            node.give(RunDone(task, run.number, 1000, b"x"))
        assert node.core.executors.ahead == 20
        node.effects.clear()


@pytest.mark.parametrize("odd", [{"timeout_ns": 5}, {"makes": (1, 2)}, {"kind": 1}, {"cores": 2}])
def test_what_is_not_alike_does_not_start_together(odd: dict[str, Any]):
    config = NodeConfig(lease_ns=8 * SECOND_NS, starts_together=True)
    with Driver("daws", members=1, cores=2, config=config) as node:
        node.give(PlainTasks(CLIENT, 1, [1000, 1001], [0], [b""]))
        for start in (node.expect(StartRun), node.expect(StartRun)):
            node.give(RunDone(start.ready.spec.id, start.run, 1000, b"x"))
        own_lengths(node.core).kinds[0] = KindLength(100, 100_000, 1000)  # so many may be sent ahead
        node.give(PlainTasks(CLIENT, 2, [*range(30)], [0], [b""]))
        together = [*node.expect(StartRuns).tasks, *node.expect(StartRuns).tasks]
        alone = [node.expect(StartRun).ready, node.expect(StartRun).ready]
        assert sorted([one.spec.id for one in alone + together]) == [*range(30)]
        others = [ready(task, **({"makes": (task,)} | (odd if task == 40 else {}))) for task in range(31, 60)]
        node.give(NewTasks(CLIENT, 3, tuple([Submit(one.spec, (), 0) for one in others])))
        some = [effect.tasks for effect in node.effects if isinstance(effect, StartRuns)]
        assert not some or odd == {"kind": 1}
        assert all(one.spec.kind == tasks[0].spec.kind for tasks in some for one in tasks)
        assert node.core.queues.shared.alike is None
        node.effects.clear()
