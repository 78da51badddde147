"""A node is told to go by another strategy: what waits is placed and ordered anew, what runs goes on."""

import pytest

from daws.core.effects import EffectType, Send, StartRun
from daws.core.events import EventType, NewStrategy, ObjectsPut, RunEnded, Started
from daws.core.invariants import check
from daws.core.journal import Journal, replay
from daws.core.node import NodeConfig, NodeCore
from daws.model.task import CLIENT, REPLICA, Ready
from daws.strategy import format_strategy, parse_strategy
from daws.strategy.presets import PRESETS
from daws.testing import members_of, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import PUSH, LoadQuery, Offer, StopOrder, Submission

MEMBERS = members_of(2, cores=1)


class Noted:
    """A node whose steps are noted."""

    def __init__(self, strategy: str) -> None:
        self.journal = Journal(MEMBERS.infos[0], parse_strategy(strategy), NodeConfig(lease_ns=1 << 60), 3)
        self.core = NodeCore(self.journal.info, self.journal.strategy, self.journal.config, 3)
        self.now_ns = 0
        self.step(Started(MEMBERS))
        self.core.membership.leased_until_ns = 1 << 60

    def step(self, *events: EventType) -> list[EffectType]:
        out: list[EffectType] = []
        self.now_ns += 1000
        self.core.step(self.now_ns, events, out)
        self.journal.note(self.now_ns, events, out)
        check(self.core)
        return out

    def submit(self, *tasks: Ready) -> list[EffectType]:
        return self.step(Submission(CLIENT, self.now_ns, tasks))

    def switch(self, strategy: str) -> list[EffectType]:
        return self.step(NewStrategy(format_strategy(parse_strategy(strategy))))

    def runs(self) -> list[int]:
        """In which order tasks would run from here on, the one that runs already first."""
        order = []
        while self.core.executors.running:
            (run,) = self.core.executors.running.values()
            order.append(run.ready.spec.id)
            self.step(RunEnded(order[-1], run.number, 1_000_000_000, (1,)))
        return order


def small(task: int, size: int = 10, priority: int = 0) -> Ready:
    return ready(task, object_at(task + 100, 0, size_bytes=size), priority=priority)


def test_what_is_queued_is_ordered_anew():
    node = Noted("mlb:order=submission")
    sizes = {2: 20_000, 3: 40_000, 4: 30_000}
    node.step(ObjectsPut(tuple([(task + 100, size) for task, size in sizes.items()])))
    node.submit(small(1), *[small(task, size) for task, size in sizes.items()], small(5, priority=1))
    node.switch("mlb")
    assert node.core.strategy.order == parse_strategy("mlb").order
    assert node.runs() == [5, 3, 4, 2, 1]


def test_equal_keys_stay_in_the_order_in_which_they_came():
    node = Noted("mlb")
    node.submit(ready(1))
    node.submit(small(2, 50), small(3, 90), small(4, 70))
    node.switch("mlb:order=submission")
    assert node.runs() == [1, 2, 3, 4]


def test_what_was_kept_for_this_node_may_be_shared_now():
    node = Noted("mdl")
    node.step(ObjectsPut(((9, BIG),)))
    node.submit(ready(1))
    node.submit(*[ready(task, object_at(9, 0)) for task in (2, 3)])
    assert (node.core.queues.dedicated.count, node.core.queues.shared.count) == (2, 0)
    node.switch("mlb")
    assert (node.core.queues.dedicated.count, node.core.queues.shared.count) == (0, 2)
    node.switch("mdl")
    assert (node.core.queues.dedicated.count, node.core.queues.shared.count) == (2, 0)


def test_what_belongs_elsewhere_now_is_offered_there():
    node = Noted("mlb")
    node.submit(ready(1))
    node.submit(ready(2, object_at(9, 1)))
    effects = node.switch("mdl:relax=never")
    (offer,) = [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, Offer)]
    assert (offer.why, [one.spec.id for one in offer.tasks]) == (PUSH, [2])
    assert list(node.core.executors.running) == [1]  # what runs goes on


def test_all_that_strategies_tune_begins_anew():
    node = Noted("matrix:period=1")
    node.submit(ready(1), ready(2), ready(3))
    for _ in range(2):
        (run,) = node.core.executors.running.values()
        node.step(RunEnded(run.ready.spec.id, run.number, 1_000_000_000, (1,)))
    node.switch("flds:t=0.25,tt=5,poll-min-ms=7")
    core = node.core
    assert (core.tuning.threshold, core.tuning.tt_ns, core.search.poll_ns, core.tuning.adapt_at) == (
        0.25,
        5_000_000_000,
        7_000_000,
        2,
    )
    node.switch("matrix:period=10")
    assert core.tuning.adapt_at == 12
    node.switch("adage")
    assert (core.is_giver, core.one_kind) == (True, False)
    node.switch("mlb")
    assert (core.is_giver, core.one_kind) == (False, True)


def test_an_idle_node_begins_to_look_for_work():
    node = Noted("mlb:balance=none")
    assert not node.step()
    effects = node.switch("mlb")
    assert [one.to for one in effects if isinstance(one, Send) and isinstance(one.message, LoadQuery)] == [1]


def test_what_was_called_off_is_gone_and_copies_stay():
    node = Noted("mlb")
    node.submit(ready(1))
    node.submit(ready(2, object_at(9, 1)), ready(3))
    node.core.queues.shared.push(0, 99, ready(4, object_at(9, 1), mode=REPLICA))
    node.step(StopOrder(1, 3, 0, 0))
    effects = node.switch("mdl:relax=never")
    assert [one.spec.id for one in node.core.queues.shared.all()] == [4]
    assert not [one for one in effects if isinstance(one, StartRun)]


@pytest.mark.parametrize("first", PRESETS)
@pytest.mark.parametrize("then", PRESETS)
def test_a_node_that_switched_does_the_same_again(first: str, then: str):
    node = Noted(first)
    node.submit(*[ready(task, *[object_at(90 + task, task % 2)][: task % 3]) for task in range(1, 20)])
    node.switch(then)
    node.submit(ready(30), ready(31, object_at(95, 0)))
    node.switch(first)
    assert replay(node.journal) is None
    assert replay(Journal.from_bytes(node.journal.to_bytes())) is None
