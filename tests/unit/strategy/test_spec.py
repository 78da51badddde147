from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daws.model.errors import StrategyError
from daws.strategy.adapt.matrix import AdaptMatrix
from daws.strategy.assign.one import AssignOne
from daws.strategy.balance.give import BalanceGive
from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.balance.steal import BalanceSteal
from daws.strategy.decisions import Strategy
from daws.strategy.order.critical_path import OrderCriticalPath
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.presets import PRESETS
from daws.strategy.registry import DECISIONS, answers
from daws.strategy.relax.above import RelaxAbove
from daws.strategy.spec import describe, format_strategy, parse_strategy


def without_name(strategy: Strategy) -> list[object]:
    return [getattr(strategy, decision) for decision in DECISIONS]


def answer(text: str, decision: str) -> object:
    found: object = getattr(parse_strategy(text), decision)
    return found


def test_examples_from_the_documentation():
    assert answer("flds:assign=one", "assign") == AssignOne()
    assert answer("flds:assign=one", "place") == answer("flds", "place")
    changed = "flds:order=critical-path,t=0.2"
    assert answer(changed, "order") == OrderCriticalPath()
    assert answer(changed, "place") == PlaceDaws(t=0.2)
    assert parse_strategy(changed).name == changed


def test_spaces_do_not_matter():
    assert without_name(parse_strategy(" flds : assign = one , t = 0.2 ")) == without_name(
        parse_strategy("flds:assign=one,t=0.2")
    )


def test_parameters_of_a_newly_chosen_answer_can_be_set():
    assert answer("mlb:relax=above,tt=5", "relax") == RelaxAbove(tt=5)
    assert answer("flds:balance=give,period-ms=2", "balance") == BalanceGive(period_ms=2)
    assert answer("flds:neighbours=sqrt,probes=2", "balance") == BalanceSteal(neighbours="sqrt", probes=2)


def test_settings_that_still_apply_are_kept():
    # mlb has t=inf; naming its own answer again changes nothing, and adapt takes the same t over
    assert parse_strategy("mlb:place=daws").place == parse_strategy("mlb").place
    assert answer("mlb:adapt=matrix", "adapt") == AdaptMatrix(t=inf)
    # tt_rule of matrix stays when only tt changes
    assert answer("matrix:tt=0.3", "relax") == RelaxAbove(tt=0.3, tt_rule="journal", tt_min=0.025, tt_max=0.1)
    # both answers have a count
    assert answer("constellation:assign=one,balance=master-worker,count=5", "balance") == BalanceMasterWorker(count=5)


def test_a_parameter_of_one_answer_alone():
    both = parse_strategy("matrix:t=0.2,adapt.t=0.3")
    assert (both.place, both.adapt) == (PlaceDaws(t=0.2), AdaptMatrix(t=0.3))
    one = parse_strategy("matrix:place.t=0.2")
    assert (one.place, one.adapt) == (PlaceDaws(t=0.2), AdaptMatrix())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "unknown strategy ''; there are mlb, mdl, rlds, flds, daws, matrix, adage, constellation, master-worker, "
            "albatross, sparrow, data-diffusion, heft, aimes, swift, random",
        ),
        ("fld", "unknown strategy 'fld'; there are mlb,"),
        ("x" * 100, f"unknown strategy '{'x' * 57}...'; there are"),
        ("flds:", "expected key=value, not ''"),
        ("flds:t", "expected key=value, not 't'"),
        ("flds:t=", "expected key=value, not 't='"),
        ("flds:=3", "expected key=value, not '=3'"),
        ("flds:t=1,", "expected key=value, not ''"),
        ("flds:t=1,t=1", "'t' is given twice"),
        ("flds:place=keep,place=daws", "'place' is given twice"),
        ("flds:order=best", "unknown answer order=best; there are data-size, critical-path, context-rank, submission"),
        ("flds:probs=4", "unknown key 'probs' (did you mean probes?); decisions are acquire, bind, assign,"),
        (
            "rlds:tt=5",
            "the answers chosen have the parameters pilots, concurrency, spare-s, t, form, rate-gbps, probes,",
        ),
        ("random:t=5", "the answers chosen have the parameters pilots, concurrency, spare-s"),
        ("flds:place=keep,t=0.5", "unknown key 't'"),
        ("flds:place.tt=1", "unknown key 'place.tt' (did you mean place.t?)"),
        ("flds:place.t=1,place.t=2", "'place.t' is given twice"),
        ("flds:nothing.t=1", "unknown key 'nothing.t'"),
        ("flds:adapt.t=1", "unknown key 'adapt.t'"),
        ("flds:t=-1", "t=-1.0: expected a number of at least 0"),
        ("flds:t=nan", "t=nan: expected a number of at least 0"),
        ("flds:t=fast", "t=fast: expected a number of at least 0"),
        ("flds:tt=inf", "tt=inf: expected a number of at least 0 and at most 1e+06"),
        ("flds:probes=0", "probes=0: expected a whole number of at least 1"),
        ("flds:share=0", "share=0.0: expected a number above 0 and at most 1"),
        ("flds:form=raw", "form=raw: expected 'ratio' or 'rate'"),
        ("flds:form=rate,t=0.5", "t=0.5 counts only with form=ratio (or as 0 or inf); with form=rate set rate-gbps"),
        ("flds:rate-gbps=3", "rate-gbps=3 counts only with form=rate; with form=ratio set t"),
        ("flds:poll-min-ms=300", "poll-max-ms=200 is less than poll-min-ms=300"),
        ("flds:tt-min=3,tt-max=2", "tt-max=2 is less than tt-min=3"),
        ("matrix:little=3", "much=1 must be more than 2 times little=3"),
        ("adage:period-ms=5000", "period-max-ms=1000 is less than period-ms=5000"),
        ("constellation:low=3,high=2", "high=2 is less than low=3"),
        ("flds:" + "t=1," * 1000, "at most 2000 characters, not 4005"),
    ],
)
def test_errors_are_one_line(text: str, message: str):
    with pytest.raises(StrategyError) as error:
        parse_strategy(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(max_size=40) | st.builds("flds:{}={}".format, st.text(max_size=10), st.text(max_size=10)))
def test_whatever_is_typed_is_parsed_or_refused(text: str):
    try:
        strategy = parse_strategy(text)
    except StrategyError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(describe(strategy)) == len(DECISIONS)


@given(
    st.sampled_from(list(PRESETS)),
    st.fixed_dictionaries({}, optional={decision: st.sampled_from(list(answers(decision))) for decision in DECISIONS}),
)
def test_every_combination_can_be_typed_and_read_back(name: str, changes: dict[str, str]):
    text = ":".join(filter(None, [name, ",".join(f"{key}={value}" for key, value in changes.items())]))
    try:
        strategy = parse_strategy(text)
    except StrategyError as error:
        assert "it goes with" in str(error), "they contradict each other"
        return
    rows = {row.decision: row.answer for row in describe(strategy)}
    assert changes.items() <= rows.items()
    again = parse_strategy(format_strategy(strategy))
    assert without_name(again) == without_name(strategy)


def test_equal_parameters_are_written_once_and_others_with_their_decision():
    daws = parse_strategy("daws:t=0.25")
    assert ",t=0.25," in format_strategy(daws)
    other = replace(daws, place=PlaceDaws(t=0.5), adapt=AdaptMatrix(t=0.001, period=100_000))
    assert "place.t=0.5,adapt.t=0.001" in format_strategy(other)
    assert without_name(parse_strategy(format_strategy(other))) == without_name(other)


POSITIVE = st.floats(0, exclude_min=True, allow_nan=False)


@given(
    st.sampled_from(list(PRESETS)),
    st.builds(PlaceDaws, t=POSITIVE),
    st.builds(AdaptMatrix, t=POSITIVE, period=st.integers(1, 10**6)),
    st.builds(RelaxAbove, tt=st.floats(0, 1e6)),
)
def test_strategies_composed_in_python_are_read_back_exactly(
    name: str, place: PlaceDaws, adapt: AdaptMatrix, relax: RelaxAbove
):
    strategy = replace(PRESETS[name].strategy, place=place, adapt=adapt, relax=relax)
    again = parse_strategy(format_strategy(strategy))
    assert replace(again, name=name) == strategy


def test_an_answer_that_is_not_registered_is_refused():
    class Mine(PlaceDaws, frozen=True):
        pass

    with pytest.raises(StrategyError, match=r"^place=Mine cannot be written down, it is not registered; .*$"):
        format_strategy(replace(parse_strategy("daws"), place=Mine()))
