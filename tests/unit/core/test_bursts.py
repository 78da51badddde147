"""Many short runs that end together: the same as one by one, only quicker."""

import random

import pytest

from daws.core import bursts as bursts_module
from daws.core import node as node_module
from daws.core.effects import CallStore, EffectType, StartRun
from daws.core.events import EventType, RunDone, RunEnded, StoreAnswered
from daws.core.invariants import check
from daws.model.task import CLIENT
from daws.store.memory import MemoryStore
from daws.testing import Driver, task
from daws.wire.messages import NewTasks
from daws.wire.store import Submit


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
            events.append(RunDone(name, run.run, 1000 + name, b"x" * rng.randrange(9)))
    del runs[:count]
    return events


def history(seed: int, strategy: str) -> tuple[list[list[EffectType]], str]:
    """All effects of a node that is given many short tasks, and how it stands in the end."""
    rng = random.Random(seed)
    with Driver(strategy, cores=3) as node:
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
            events = waiting + events_of(rng, runs)
            waiting = []
            node.now_ns += 1_000_000
            while events:
                out: list[EffectType] = []
                core.step(node.now_ns, events, out)
                check(core)
                told.append(out)
                events = []
                for effect in out:
                    if isinstance(effect, StartRun):
                        runs.append(effect)
                    elif isinstance(effect, CallStore):
                        answers = store.apply(0, effect.rows, node.now_ns)
                        events.append(StoreAnswered(effect.token, answers))
        return told, f"{core} {core.done_count} {core.ahead} {core.inflight} {sorted(core.running)} {core.kinds}"


@pytest.mark.parametrize("strategy", ["daws", "daws:adapt=matrix,period=7", "mlb"])
@pytest.mark.parametrize("seed", range(12))
def test_a_burst_does_what_its_ends_would_do_one_by_one(seed: int, strategy: str, monkeypatch: pytest.MonkeyPatch):
    bursts = 0

    def counted(core: node_module.NodeCore, events: list[EventType]) -> object:
        nonlocal bursts
        rest = end_together(core, events)
        bursts += len(events) - len(rest) > 3
        return rest

    end_together = bursts_module.end_together
    monkeypatch.setattr(node_module, "end_together", counted)
    at_once = history(seed, strategy)
    assert bursts > 2
    monkeypatch.setattr(node_module, "end_together", lambda core, events: events)
    assert history(seed, strategy) == at_once
