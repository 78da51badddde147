import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.context import (
    AnyOf,
    Context,
    Label,
    check_context,
    format_context,
    labels,
    matches,
    options_of,
    parse_context,
    preference,
    rank_of,
)
from daws.model.errors import ContextError

ranks = st.integers(-(2**62), 2**62)
names = st.text(st.characters(exclude_characters="@|>,=:;", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
ranges = st.tuples(ranks, ranks).map(sorted)
small_ranges = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)


def _labels(names: st.SearchStrategy[str], ranges: st.SearchStrategy[list[int]]) -> st.SearchStrategy[Label]:
    return st.builds(Label, names) | st.builds(lambda name, ends: Label(name, *ends), names, ranges)


def _contexts(one: st.SearchStrategy[Label]) -> st.SearchStrategy[Context | None]:
    lists = st.builds(AnyOf, st.lists(one, min_size=2, max_size=4).map(tuple), st.booleans())
    return st.none() | one | lists


contexts = _contexts(_labels(names, ranges))
small_contexts = _contexts(_labels(st.sampled_from(["any", "gpu", "cpu"]), small_ranges))


@given(contexts)
def test_written_form_reads_back(context: Context | None):
    assert parse_context(format_context(context)) == context


@given(contexts)
def test_travels_as_message_pack(context: Context | None):
    check_context(context)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(context), type=Context | None) == context


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("", None),
        ("  ", None),
        ("gpu", Label("gpu")),
        ("gpu@3", Label("gpu", 3, 3)),
        ("gpu@-3", Label("gpu", -3, -3)),
        ("gpu@1..5", Label("gpu", 1, 5)),
        ("a|b@2", AnyOf((Label("a"), Label("b", 2, 2)))),
        ("a > any", AnyOf((Label("a"), Label("any")), ordered=True)),
    ],
)
def test_parse(text: str, context: Context | None):
    assert parse_context(text) == context


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a|b>c",
            "gpu@",
            "gpu@x",
            "gpu@1..",
            "gpu@5..1",
            "gpu@1@2",
            "|",
            "a|",
            ">a",
            "@3",
            "a,b",
            "a=b",
            "a:b",
            "a\tb",
        ),
        # Absurd sizes, and digits that are not ASCII.
        *("a\tb", "gpu@" + "9" * 19, "gpu@" + "9" * 5000, "x" * 201, "|".join(["a"] * 2000), "gpu@١"),
    ],
)
def test_parse_refuses_in_one_line(text: str):
    with pytest.raises(ContextError) as caught:
        parse_context(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("context", [Label("a", 1), Label("a", None, 1), Label("a", 2, 1), AnyOf(()), Label(" a")])
def test_check_refuses_what_cannot_be_written(context: Context):
    with pytest.raises(ContextError):
        check_context(context)


@pytest.mark.parametrize(
    ("task", "executor", "expected"),
    [
        ("", "", True),
        ("", "gpu", False),
        ("", "gpu>any", True),
        ("any", "", True),
        ("gpu", "", False),
        ("gpu", "gpu", True),
        ("gpu@3", "gpu", True),
        ("gpu", "gpu@3", True),
        ("gpu@3", "gpu@1..5", True),
        ("gpu@6", "gpu@1..5", False),
        ("gpu@4..9", "gpu@1..5", True),
        ("cpu|gpu@2", "gpu@2", True),
        ("cpu|gpu@2", "gpu@3", False),
    ],
)
def test_matches(task: str, executor: str, expected: bool):
    assert matches(parse_context(task), parse_context(executor)) is expected


@pytest.mark.parametrize(
    ("better", "worse", "executor"),
    [
        ("gpu", "", "gpu>any"),
        ("any>gpu", "gpu>any", "any>gpu"),
        ("a>b", "b>a", "a"),
        ("x>y>a", "b", "a>b"),
    ],
)
def test_preference_follows_the_executor_first(better: str, worse: str, executor: str):
    offered = parse_context(executor)
    first, second = preference(parse_context(better), offered), preference(parse_context(worse), offered)
    assert 0 <= first < second


def test_or_lists_have_no_favourites():
    assert preference(parse_context("b|a"), parse_context("a|b")) == 0
    assert preference(parse_context("b"), parse_context("a|b")) == 0


@given(small_contexts, small_contexts)
def test_matches_is_symmetric_and_agrees_with_preference(task: Context | None, executor: Context | None):
    def ranks_of(label: Label) -> set[int]:
        return set(range(-1, 6)) if label.low is None or label.high is None else {*range(label.low, label.high + 1)}

    naive = any(
        one.name == other.name and ranks_of(one) & ranks_of(other)
        for one in options_of(task)
        for other in options_of(executor)
    )
    assert matches(task, executor) is matches(executor, task) is naive
    assert (preference(task, executor) >= 0) is naive


def test_rank_and_labels():
    assert [rank_of(parse_context(text)) for text in ("", "a", "a@7", "a@2..9", "a|b@4")] == [0, 0, 7, 2, 4]
    assert labels(None) == ("any",)
    assert labels(parse_context("a@1>b")) == ("a", "b")
