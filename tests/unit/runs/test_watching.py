"""A watched strategy decides as the strategy itself does, and tells why."""

from typing import Any

import pytest

from daws.core.effects import EffectType
from daws.core.events import EventType, RunEnded, Started
from daws.core.journal import Journal, replay
from daws.core.node import NodeConfig, NodeCore
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.task import CLIENT, Input, Ready, TaskSpec
from daws.runs.watching import StrategyWatch, WatchedAssign, reasons_of
from daws.strategy import parse_strategy
from daws.strategy.decisions import SHARED, Newcomer
from daws.strategy.presets import PRESETS
from daws.wire.messages import STOLEN, Offer, Submission
from daws.wire.notes import Decided, FactType, Handed, Sent

INFOS = tuple([NodeInfo(node, (ExecutorClass(1),)) for node in range(3)])
MEMBERS = Members(1, INFOS)


def ready(task: int, *sizes: int, priority: int = 0) -> Ready:
    inputs = tuple(Input(100 + number, size, 90, (number % 3,), b"") for number, size in enumerate(sizes))
    return Ready(TaskSpec(task, outputs=(task,), priority=priority), 0, 0, inputs)


def batches() -> list[list[EventType]]:
    some = (ready(1), ready(2, 50), ready(3, 10**9), ready(4, 10**9, 2 * 10**9), ready(5, priority=2))
    return [[Started(MEMBERS)], [Submission(CLIENT, 1, some)], [RunEnded(1, 1, 10_000_000, (5,))]]


@pytest.mark.filterwarnings("ignore:strategy .* works differently")
@pytest.mark.parametrize("name", [*PRESETS, "flds:place=random"])
def test_a_watched_node_does_what_it_would_do_otherwise(name: str):
    strategy = parse_strategy(name)
    config = NodeConfig(lease_ns=1 << 60)
    core = NodeCore(INFOS[0], StrategyWatch(lambda fact: None).over(strategy), config, 7)
    journal = Journal(INFOS[0], strategy, config, 7)
    for now_ns, events in enumerate(batches()):
        out: list[EffectType] = []
        core.step(now_ns, events, out)
        journal.note(now_ns, events, out)
    assert replay(journal) is None  # by the strategy itself


def watched_core(facts: list[FactType], name: str = "flds") -> tuple[NodeCore, StrategyWatch]:
    watch = StrategyWatch(facts.append)
    core = NodeCore(INFOS[0], watch.over(parse_strategy(name)), NodeConfig(lease_ns=1 << 60), 0)
    return core, watch


def test_every_task_is_explained_with_what_was_compared():
    facts: list[FactType] = []
    core, _ = watched_core(facts)
    for now_ns, events in enumerate(batches()):
        core.step(now_ns, events, [])
    places = {fact.task: fact for fact in facts if isinstance(fact, Decided) and fact.decision == "place"}
    assert sorted(places) == [1, 2, 3, 4, 5]
    assert places[1].reasons["choice"] == SHARED and places[1].answer == "daws" and places[1].at_ns == 1
    assert places[4].reasons["choice"] == 1 and places[4].reasons["total_bytes"] == 3 * 10**9
    orders = {fact.task: fact.reasons for fact in facts if isinstance(fact, Decided) and fact.decision == "order"}
    assert orders[3] == {"input_bytes": 10**9, "priority": 0, "choice": -(10**9)}


def test_a_task_that_was_claimed_is_told_with_where_it_came_from():
    facts: list[FactType] = []
    core, watch = watched_core(facts)
    core.strategy.balance.pick(core, [(1, 3), (2, 9)])
    watch.offered(Offer(2, 1, STOLEN, (ready(8), ready(9))))
    assert not facts  # offered is not claimed
    core.strategy.order.key(core, ready(8))
    assert facts[0] == Handed(8, 0, 0, 2, STOLEN, ((1, 3), (2, 9)))
    core.strategy.order.key(core, ready(8))
    assert [type(fact) for fact in facts] == [Handed, Decided, Decided]


def test_bytes_of_other_nodes_are_told_apart():
    facts: list[FactType] = []
    StrategyWatch(facts.append).sent(0, 3, ready(1, 10_000, 20_000), 5)
    assert facts == [Sent(1, 0, 5, 3, 0, 30_000, 20_000)]


def test_the_client_tells_which_home_it_chose():
    facts: list[FactType] = []
    assign = WatchedAssign(parse_strategy("daws:assign=data").assign, facts.append, lambda: 11)
    assert assign.home(Newcomer(4, inputs=(Input(1, 5000, 0, (2,), b""),)), MEMBERS, 0) == 2
    (fact,) = facts
    assert isinstance(fact, Decided) and fact.at_ns == 11 and fact.reasons["held_bytes"] == {2: 5000}


def test_what_an_answer_says_is_made_fit_to_travel():
    def explain() -> dict[str, Any]:
        return {"a": (1, 2.5), "b": {(1, 2): None}, "c": object, "d": 1 << 80, "e": True}

    said = reasons_of(explain)
    assert said == {"a": [1, 2.5], "b": {"(1, 2)": None}, "c": repr(object), "d": repr(1 << 80), "e": True}


def test_an_answer_that_cannot_explain_itself_harms_nobody():
    def explain() -> dict[str, Any]:
        raise KeyError("oops")

    assert reasons_of(explain) == {"explain": "raised KeyError: 'oops'"}
