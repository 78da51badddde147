"""A check for answers that do not go together.

A combination is refused only if it makes an answer pointless or misleads. Odd combinations are left to those who study
them (`docs/strategies.md` has a table of both). Answers written by users are never refused: daws cannot know what they
do.
"""

from daws.model.errors import StrategyError
from daws.strategy.assign.one import AssignOne
from daws.strategy.balance.give import BalanceGive
from daws.strategy.balance.index import BalanceIndex
from daws.strategy.balance.lifelines import BalanceLifelines
from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.balance.none import BalanceNone
from daws.strategy.balance.random_steal import BalanceRandomSteal
from daws.strategy.balance.sample import BalanceSample
from daws.strategy.balance.steal import BalanceSteal
from daws.strategy.decisions import Strategy
from daws.strategy.place.home import PlaceHome
from daws.strategy.place.master import PlaceMaster
from daws.strategy.registry import answer_name
from daws.strategy.relax.never import RelaxNever
from daws.strategy.replicate.given import ReplicateGiven
from daws.strategy.replicate.stragglers import ReplicateStragglers

CENTRAL = (BalanceMasterWorker, BalanceIndex)
THIEVES = (BalanceSteal, BalanceRandomSteal, BalanceLifelines, BalanceSample, *CENTRAL)


def check_fitting(strategy: Strategy) -> None:
    """Raise StrategyError, with a line that says which answers go together, if the answers contradict each other."""
    assign, place, balance = strategy.assign, strategy.place, strategy.balance
    # Compare types, not isinstance: a class derived from one of our answers may do something else.
    brought = type(place) is PlaceMaster or (type(assign) is AssignOne and assign.node == 0)
    if type(balance) in CENTRAL and not brought and is_ours(assign, place):
        raise StrategyError(
            f"balance={answer_name('balance', balance)} lets idle nodes ask the first node alone, and nothing brings "
            "the tasks there: it goes with place=master,relax=above,tt=0 or with assign=one,node=0"
        )
    if type(strategy.relax) is RelaxNever and type(balance) in THIEVES:
        if type(place) is PlaceHome:
            raise StrategyError(
                "place=home dedicates every task to a node, and with relax=never no node may steal it: "
                "it goes with balance=give, balance=none or relax=above"
            )
        if type(place) is PlaceMaster:
            raise StrategyError(
                "place=master pushes tasks to the first node, and with relax=never no node may steal them there: "
                "it goes with relax=above,tt=0"
            )
    if type(strategy.replicate) is ReplicateGiven and type(balance) in (*THIEVES, BalanceNone):
        raise StrategyError(
            "replicate=given makes copies of tasks that are given away, and no node gives any: "
            "it goes with balance=give, or else say replicate=never"
        )
    if type(strategy.replicate) is ReplicateStragglers and type(balance) in (BalanceGive, BalanceNone, BalanceSample):
        raise StrategyError(
            "replicate=stragglers hands copies to idle nodes that ask for work, and no node asks: "
            "it goes with balance=steal, random-steal, lifelines, master-worker or index, or else say replicate=never"
        )


def lacks_live(strategy: Strategy) -> str:
    """A line that says what a strategy lacks when tasks come one by one; empty if it lacks nothing important."""
    if not strategy.traits.assign.needs_graph:
        return ""
    return (
        f"strategy {strategy.name!r} works differently on a live cluster, where tasks come one by one: "
        f"assign={answer_name('assign', strategy.assign)} has no graph to plan, so each task goes to the node that has "
        "most of its inputs. 'daws sim' runs it as published; the default strategy needs no graph"
    )


def is_ours(*answers: object) -> bool:
    """Whether all of these are answers of daws itself, as opposed to users' own."""
    return all(type(answer).__module__.startswith("daws.strategy.") for answer in answers)
