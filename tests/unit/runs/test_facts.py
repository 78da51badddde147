"""Facts about tasks are kept in order, and only of so many."""

from msgspec import msgpack

from daws.runs.facts import Facts
from daws.wire.notes import Decided, FactType, Handed, News, RunFact, Sent


def test_facts_are_told_in_the_order_of_their_times():
    facts = Facts()
    late = Sent(7, 1, 300, 0, 0, 0, 0)
    early = Handed(7, 1, 200, 0, 1, ((0, 5),))
    facts.add(late)
    facts.add(early)
    facts.ran(News(1, ((7, 0, 1, 0, 310, 400, 1, 0, 12, 1), (8, 0, 1, 0, 1, 2, 1, 0, 0, 0)), 1, 0))
    assert facts.of(7) == (early, late, RunFact(7, 1, 400, 0, 310, 12, True))
    assert facts.of(8) == (RunFact(8, 1, 2, 0, 1, 0, False),)
    assert facts.of(9) == ()


def test_of_too_many_tasks_the_first_are_forgotten():
    facts = Facts(tasks_max=2)
    for task in (1, 2, 1, 3):
        facts.add(Sent(task, 0, task, 0, 0, 0, 0))
    assert [len(facts.of(task)) for task in (1, 2, 3)] == [0, 1, 1]


def test_facts_travel():
    fact = Decided(1, 0, 5, "place", "daws", {"limit_bytes": float("inf"), "held": {1: 2}, "choice": -1})
    assert msgpack.decode(msgpack.encode(fact), type=FactType) == fact
