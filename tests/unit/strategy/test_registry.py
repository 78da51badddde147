from collections.abc import Iterator

import pytest
from msgspec import Struct

from daws.model.errors import StrategyError
from daws.model.task import Ready
from daws.strategy import registry
from daws.strategy.acquire.by_prediction import AcquireByPrediction
from daws.strategy.acquire.many_small import AcquireManySmall
from daws.strategy.acquire.per_resource import AcquirePerResource
from daws.strategy.answer import parameters_of
from daws.strategy.assign.critical_path import AssignCriticalPath
from daws.strategy.assign.data import AssignData
from daws.strategy.assign.dealt import AssignDealt
from daws.strategy.assign.forecast import AssignForecast
from daws.strategy.assign.hashed import AssignHashed
from daws.strategy.assign.heft import AssignHeft
from daws.strategy.assign.one import AssignOne
from daws.strategy.assign.round_robin import AssignRoundRobin
from daws.strategy.bind.early import BindEarly
from daws.strategy.bind.late import BindLate
from daws.strategy.bind.resource import BindResource
from daws.strategy.cache.all import CacheAll
from daws.strategy.cache.lru import CacheLru
from daws.strategy.cache.none import CacheNone
from daws.strategy.decisions import (
    SHARED,
    Acquire,
    Assign,
    Bind,
    Cache,
    Match,
    Place,
    Reasons,
    Relax,
    Replicate,
    Rng,
    Strategy,
    View,
)
from daws.strategy.match.contexts import MatchContexts
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.place.earliest import PlaceEarliest
from daws.strategy.place.home import PlaceHome
from daws.strategy.place.keep import PlaceKeep
from daws.strategy.place.late import PlaceLate
from daws.strategy.place.master import PlaceMaster
from daws.strategy.place.planned import PlacePlanned
from daws.strategy.place.random import PlaceRandom
from daws.strategy.registry import DECISIONS, answer_class, answer_name, answers, register
from daws.strategy.relax.above import RelaxAbove
from daws.strategy.relax.never import RelaxNever
from daws.strategy.replicate.given import ReplicateGiven
from daws.strategy.replicate.never import ReplicateNever
from daws.strategy.replicate.stragglers import ReplicateStragglers
from daws.strategy.spec import describe, parse_strategy

ALL = [(decision, name, cls) for decision in DECISIONS for name, cls in answers(decision).items()]


class Stubborn(Struct, frozen=True):
    """Never moves anything."""

    patience: int = 3

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        return SHARED

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {"patience": self.patience, "choice": SHARED}


@pytest.fixture(autouse=True)
def _forget_what_was_registered() -> Iterator[None]:
    before = {decision: dict(known) for decision, known in registry._ANSWERS.items()}
    yield
    for decision, known in registry._ANSWERS.items():
        known.clear()
        known.update(before[decision])


def test_the_decisions_are_those_of_a_strategy():
    assert ("name", *DECISIONS) == Strategy.__struct_fields__


@pytest.mark.parametrize(("decision", "name", "cls"), ALL)
def test_every_answer_is_documented_and_complete(decision: str, name: str, cls: type):
    register(decision, name, cls)  # checks its methods; a second time under its own name is allowed
    answer = cls()
    assert answer_name(decision, answer) == name
    assert answer == cls()
    assert cls.__doc__ is not None
    assert "elps" in cls.__doc__ and "urts" in cls.__doc__, "says when it helps and when it hurts"
    for parameter in parameters_of(cls):
        assert parameter.help, parameter.key


def test_answers_fit_their_protocols():
    # mypy checks what is listed here against the protocols; the test, that nothing is missing.
    acquire: list[type[Acquire]] = [AcquirePerResource, AcquireManySmall, AcquireByPrediction]
    bind: list[type[Bind]] = [BindEarly, BindResource, BindLate]
    pilots = {"acquire": acquire, "bind": bind}
    assign: list[type[Assign]] = [
        AssignOne,
        AssignRoundRobin,
        AssignDealt,
        AssignHashed,
        AssignData,
        AssignCriticalPath,
        AssignHeft,
        AssignForecast,
    ]
    place: list[type[Place]] = [
        PlaceDaws,
        PlaceHome,
        PlacePlanned,
        PlaceKeep,
        PlaceLate,
        PlaceEarliest,
        PlaceMaster,
        PlaceRandom,
    ]
    match: list[type[Match]] = [MatchContexts]
    relax: list[type[Relax]] = [RelaxNever, RelaxAbove]
    replicate: list[type[Replicate]] = [ReplicateNever, ReplicateGiven, ReplicateStragglers]
    cache: list[type[Cache]] = [CacheNone, CacheAll, CacheLru]
    listed = {"assign": assign, "place": place, "match": match, "relax": relax, "replicate": replicate, "cache": cache}
    for decision, classes in (pilots | listed).items():
        # Tests enter answers of their own.
        ours = [one for one in answers(decision).values() if one.__module__.startswith("daws.")]
        assert ours == classes


def test_no_two_answers_share_a_name_or_a_class():
    classes = [cls for _, _, cls in ALL]
    assert len(set(classes)) == len({cls.__name__ for cls in classes}) == len(classes)


def test_what_is_registered_can_be_typed():
    register("place", "stubborn", Stubborn)
    strategy = parse_strategy("flds:place=stubborn,patience=7")
    assert strategy.place == Stubborn(patience=7)
    assert ("place", "stubborn", {"patience": "7"}) in describe(strategy)


def test_unknown_names():
    with pytest.raises(StrategyError, match="unknown decision 'lace'; there are acquire, bind, assign"):
        answers("lace")
    with pytest.raises(StrategyError, match="unknown answer relax=some; there are never, above"):
        answer_class("relax", "some")


def test_an_unregistered_answer_goes_by_the_name_of_its_class():
    assert answer_name("place", Stubborn()) == "Stubborn"


class Bad(Struct, frozen=True):
    place: int = 3
    choose = explain = Stubborn.choose


class Needy(Struct, frozen=True):
    must: int
    choose = explain = Stubborn.choose


@pytest.mark.parametrize(
    ("decision", "name", "cls", "message"),
    [
        ("place", "daws", Stubborn, "place=daws is already taken by PlaceDaws"),
        ("place", "No Name", Stubborn, "a name is made of"),
        ("relax", "stubborn", Stubborn, "cannot answer relax: it lacks start_tt_ns, excess"),
        ("place", "bad", Bad, "cannot be called place"),
        ("place", "needy", Needy, "must needs a default"),
    ],
)
def test_register_refuses(decision: str, name: str, cls: type, message: str):
    with pytest.raises(StrategyError, match=message):
        register(decision, name, cls)
