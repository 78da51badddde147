"""Optional attributes of answers: their defaults, and how a strategy passes them on."""

from typing import Any

import msgspec
import pytest

from daws.runs.watching import StrategyWatch
from daws.strategy import parse_strategy
from daws.strategy.decisions import BalanceTraits, PlaceTraits, ReplicateTraits, traits_of
from daws.strategy.presets import PRESETS


class Bare:
    """An answer that inherits from nothing and has no optional attribute."""


class Talkative:
    one_line = True
    t = 0.25
    unknown = 3


def test_an_answer_that_says_nothing_has_the_defaults():
    assert traits_of(PlaceTraits, Bare()) == PlaceTraits()
    assert traits_of(BalanceTraits, Bare()).leaves_name is None


def test_attributes_of_an_answer_replace_the_defaults():
    assert traits_of(PlaceTraits, Talkative()) == PlaceTraits(one_line=True, t=0.25)


def test_methods_and_properties_are_read_too():
    traits = parse_strategy("matrix:replicate=stragglers,cache=lru,lru-gb=1").traits
    assert traits.replicate.overdue_ns is not None and ReplicateTraits().overdue_ns is None
    assert (traits.cache.limit_bytes, traits.cache.by_use) == (1_000_000_000, True)


def test_a_changed_strategy_has_the_attributes_of_its_new_answers():
    strategy = parse_strategy("flds")
    assert strategy.traits.place.plain_is_neutral
    own: Any = Talkative()
    changed = msgspec.structs.replace(strategy, place=own)
    assert changed.traits.place == PlaceTraits(one_line=True, t=0.25)
    assert changed.traits.order == strategy.traits.order


@pytest.mark.parametrize("name", PRESETS)
def test_a_watched_strategy_says_the_same_but_is_asked_about_every_task(name: str):
    strategy = parse_strategy(name)
    watched = StrategyWatch(lambda fact: None).over(strategy)
    assert not watched.traits.place.plain_is_neutral and not watched.traits.order.plain_is_neutral
    for decision in ("place", "order", "balance", "relax", "replicate", "cache"):
        own, passed = (getattr(one.traits, decision) for one in (strategy, watched))
        for field in own.__struct_fields__:
            if field != "plain_is_neutral":
                assert getattr(own, field) == getattr(passed, field), f"{decision}.{field}"
