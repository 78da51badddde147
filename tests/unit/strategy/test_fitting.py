"""Answers that contradict each other are refused in one line that says what goes with what; odd ones are not."""

from typing import ClassVar

import msgspec
import pytest

from daws.model.errors import StrategyError
from daws.sim.cluster import cluster_of
from daws.sim.simulate import simulate
from daws.sim.worlds.strategies import ALTERED
from daws.strategy import PRESETS, check_fitting, lacks_live, parse_strategy
from daws.strategy.balance.steal import BalanceSteal
from daws.strategy.decisions import Strategy
from daws.strategy.place.keep import PlaceKeep
from daws.strategy.replicate.given import ReplicateGiven
from daws.workloads import parse_workload


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("flds:balance=master-worker", ("balance=master-worker", "place=master,relax=above,tt=0", "assign=one")),
        ("constellation:balance=master-worker", ("balance=master-worker", "assign=one")),
        ("mlb:balance=master-worker,assign=one,node=3", ("balance=master-worker", "assign=one,node=0")),
        ("adage:balance=steal", ("place=home", "balance=give", "relax=above")),
        ("adage:balance=steal,relax=above", ("replicate=given", "balance=give", "replicate=never")),
        ("adage:balance=none", ("replicate=given", "balance=give", "replicate=never")),
        ("flds:replicate=given", ("replicate=given", "balance=give")),
        ("rlds:place=home", ("place=home", "relax=never")),
        ("master-worker:relax=never", ("place=master", "relax=above,tt=0")),
        ("constellation:place=master", ("place=master", "relax=above,tt=0")),
    ],
)
def test_contradictions(text: str, parts: tuple[str, ...]):
    with pytest.raises(StrategyError) as caught:
        parse_strategy(text)
    message = str(caught.value)
    assert all(part in message for part in parts) and "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        *PRESETS,
        *ALTERED,
        *(f"{name}:balance=none,replicate=never" for name in PRESETS),
        *("mlb:balance=master-worker,assign=one", "flds:balance=master-worker,place=master", "flds:place=keep"),
        *("adage:balance=steal,relax=above,replicate=never", "adage:balance=none,replicate=never"),
        *("daws:place=random", "mlb:adapt=matrix", "mlb:relax=above", "adage:replicate=never", "random:balance=give"),
    ],
)
def test_what_goes_together_or_is_merely_odd(text: str):
    check_fitting(parse_strategy(text))


def test_strategies_that_were_put_together_in_python_are_looked_at_before_they_run():
    strategy = msgspec.structs.replace(PRESETS["mlb"].strategy, replicate=ReplicateGiven())
    graph = parse_workload("bot:tasks=2").build(1, 1, 0)
    with pytest.raises(StrategyError, match="replicate=given"):
        simulate(graph, cluster_of(1), strategy)


class OwnBalance(BalanceSteal, frozen=True):
    mode: ClassVar[str] = "give"


class OwnPlace(PlaceKeep, frozen=True):
    pass


def test_answers_of_ones_own_are_trusted():
    base = PRESETS["flds"].strategy
    mine: Strategy = msgspec.structs.replace(base, balance=OwnBalance(), replicate=ReplicateGiven())
    check_fitting(mine)
    asks = parse_strategy("mlb:balance=master-worker,assign=one").balance
    check_fitting(msgspec.structs.replace(base, balance=asks, place=OwnPlace()))


def test_presets_that_need_a_graph_are_named_by_their_answers():
    lacking = {name for name, preset in PRESETS.items() if lacks_live(preset.strategy)}
    assert lacking == {"heft", "adage"}
    assert lacks_live(parse_strategy("flds:assign=heft")) and not lacks_live(parse_strategy("heft:assign=data"))
    assert all("\n" not in lacks_live(PRESETS[name].strategy) for name in lacking)
