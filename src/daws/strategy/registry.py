"""The answers to each decision, by the names that users type. `register` adds one."""

import re
from collections.abc import Mapping

from daws.model.errors import StrategyError
from daws.strategy.acquire.by_prediction import AcquireByPrediction
from daws.strategy.acquire.many_small import AcquireManySmall
from daws.strategy.acquire.per_resource import AcquirePerResource
from daws.strategy.adapt.matrix import AdaptMatrix
from daws.strategy.adapt.nothing import AdaptNothing
from daws.strategy.answer import parameters_of
from daws.strategy.assign.critical_path import AssignCriticalPath
from daws.strategy.assign.data import AssignData
from daws.strategy.assign.dealt import AssignDealt
from daws.strategy.assign.forecast import AssignForecast
from daws.strategy.assign.hashed import AssignHashed
from daws.strategy.assign.heft import AssignHeft
from daws.strategy.assign.one import AssignOne
from daws.strategy.assign.round_robin import AssignRoundRobin
from daws.strategy.balance.give import BalanceGive
from daws.strategy.balance.index import BalanceIndex
from daws.strategy.balance.lifelines import BalanceLifelines
from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.balance.none import BalanceNone
from daws.strategy.balance.random_steal import BalanceRandomSteal
from daws.strategy.balance.sample import BalanceSample
from daws.strategy.balance.steal import BalanceSteal
from daws.strategy.bind.early import BindEarly
from daws.strategy.bind.late import BindLate
from daws.strategy.bind.resource import BindResource
from daws.strategy.cache.all import CacheAll
from daws.strategy.cache.lru import CacheLru
from daws.strategy.cache.none import CacheNone
from daws.strategy.match.contexts import MatchContexts
from daws.strategy.order.context_rank import OrderContextRank
from daws.strategy.order.critical_path import OrderCriticalPath
from daws.strategy.order.data_size import OrderDataSize
from daws.strategy.order.submission import OrderSubmission
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.place.earliest import PlaceEarliest
from daws.strategy.place.home import PlaceHome
from daws.strategy.place.keep import PlaceKeep
from daws.strategy.place.late import PlaceLate
from daws.strategy.place.master import PlaceMaster
from daws.strategy.place.planned import PlacePlanned
from daws.strategy.place.random import PlaceRandom
from daws.strategy.relax.above import RelaxAbove
from daws.strategy.relax.never import RelaxNever
from daws.strategy.replicate.given import ReplicateGiven
from daws.strategy.replicate.never import ReplicateNever
from daws.strategy.replicate.stragglers import ReplicateStragglers

# The methods that an answer must have, by decision; beside these each has `explain`.
_METHODS: dict[str, tuple[str, ...]] = {
    "acquire": ("ask",),
    "bind": ("bind",),
    "assign": ("plan",),
    "place": ("choose",),
    "order": ("key", "needs_ranks"),
    "match": ("preference",),
    "balance": (
        *("mode", "asks_load", "follows_rumours", "from_head", "wish", "start_poll_ns", "start_neighbours"),
        *("targets", "pick", "amount", "after_success", "after_failure"),
    ),
    "relax": ("start_tt_ns", "excess", "after_sharing", "after_failed_steal"),
    "replicate": (
        "copies_max",
        "copies",
    ),
    "cache": ("keeps",),
    "adapt": ("period", "start", "adjust"),
}
DECISIONS = tuple(_METHODS)
"""The questions, in the order in which a task meets them."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")

_ANSWERS: dict[str, dict[str, type]] = {
    "acquire": {
        "per-resource": AcquirePerResource,
        "many-small": AcquireManySmall,
        "by-prediction": AcquireByPrediction,
    },
    "bind": {"early": BindEarly, "resource": BindResource, "late": BindLate},
    "assign": {
        "one": AssignOne,
        "round-robin": AssignRoundRobin,
        "dealt": AssignDealt,
        "hashed": AssignHashed,
        "data": AssignData,
        "critical-path": AssignCriticalPath,
        "heft": AssignHeft,
        "forecast": AssignForecast,
    },
    "place": {
        "daws": PlaceDaws,
        "home": PlaceHome,
        "planned": PlacePlanned,
        "keep": PlaceKeep,
        "late": PlaceLate,
        "earliest": PlaceEarliest,
        "master": PlaceMaster,
        "random": PlaceRandom,
    },
    "order": {
        "data-size": OrderDataSize,
        "critical-path": OrderCriticalPath,
        "context-rank": OrderContextRank,
        "submission": OrderSubmission,
    },
    "match": {"contexts": MatchContexts},
    "balance": {
        "steal": BalanceSteal,
        "random-steal": BalanceRandomSteal,
        "lifelines": BalanceLifelines,
        "master-worker": BalanceMasterWorker,
        "index": BalanceIndex,
        "sample": BalanceSample,
        "give": BalanceGive,
        "none": BalanceNone,
    },
    "relax": {"never": RelaxNever, "above": RelaxAbove},
    "replicate": {"never": ReplicateNever, "given": ReplicateGiven, "stragglers": ReplicateStragglers},
    "cache": {"none": CacheNone, "all": CacheAll, "lru": CacheLru},
    "adapt": {"nothing": AdaptNothing, "matrix": AdaptMatrix},
}


def answers(decision: str) -> Mapping[str, type]:
    """The known answers to a decision, by name."""
    if decision not in _ANSWERS:
        raise StrategyError(f"unknown decision '{decision}'; there are {', '.join(DECISIONS)}")
    return dict(_ANSWERS[decision])


def answer_class(decision: str, name: str) -> type:
    known = answers(decision)
    if name not in known:
        raise StrategyError(f"unknown answer {decision}={name}; there are {', '.join(known)}")
    return known[name]


def answer_name(decision: str, answer: object) -> str:
    """The name under which the answer's class is known, else the name of the class."""
    cls = type(answer)
    return next((name for name, known in _ANSWERS[decision].items() if known is cls), cls.__name__)


def register(decision: str, name: str, cls: type) -> None:
    """Let users type `decision=name` and, if `cls` has parameters, set those by their names.

    `cls` is any class with the methods of the decision's protocol whose instances can be made without arguments.
    """
    known = answers(decision)
    if not _NAME.fullmatch(name):
        raise StrategyError(f"{decision}={name}: a name is made of lower-case letters, digits and single dashes")
    if known.get(name, cls) is not cls:
        raise StrategyError(f"{decision}={name} is already taken by {known[name].__name__}")
    lacking = [method for method in (*_METHODS[decision], "explain") if not hasattr(cls, method)]
    if lacking:
        raise StrategyError(f"{cls.__name__} cannot answer {decision}: it lacks {', '.join(lacking)}")
    for parameter in parameters_of(cls):
        if parameter.key in _METHODS:
            raise StrategyError(f"{cls.__name__}: a parameter cannot be called {parameter.key}, that is a decision")
        if parameter.default is None:
            raise StrategyError(f"{cls.__name__}: the parameter {parameter.key} needs a default")
    _ANSWERS[decision][name] = cls
