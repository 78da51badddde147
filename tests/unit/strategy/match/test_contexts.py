from hypothesis import given
from hypothesis import strategies as st

from daws.model.context import matches, parse_context
from daws.strategy.match.contexts import MatchContexts

CONTEXTS = st.sampled_from(["", "a", "b", "a@1", "a@2..4", "a|b", "b>a", "any", "a>any"]).map(parse_context)


@given(CONTEXTS, CONTEXTS)
def test_it_prefers_what_matches_and_explain_agrees(task, executor):
    preference = MatchContexts().preference(task, executor)
    assert (preference >= 0) == matches(task, executor)
    assert MatchContexts().explain(task, executor)["choice"] == preference


def test_earlier_labels_are_preferred():
    executor = parse_context("a>b")
    taken = [MatchContexts().preference(parse_context(text), executor) for text in ("a", "b", "c")]
    assert taken[0] == 0
    assert taken[1] > 0
    assert taken[2] == -1
