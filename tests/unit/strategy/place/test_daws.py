from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.task import CLIENT, INLINE_BYTES, Ready
from daws.strategy.decisions import DEDICATED, SHARED
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, ObjectAt, members_of, ready_of

MB = 1_000_000
PLACE = PlaceDaws()


def choose(view: FakeView, ready: Ready, place: PlaceDaws = PLACE) -> int:
    return place.choose(view, ready, SplitMix64(0))


def algorithm_1(view: FakeView, ready: Ready) -> int:
    """The paper's pseudocode, line by line; each input has exactly one place, which is alive."""
    est_task_length = view.mean_ns / 1e9
    data_size = [item.size_bytes for item in ready.inputs]
    parent_list = [item.places[0] for item in ready.inputs]
    if sum(data_size) / view.net_bytes_per_s / est_task_length <= view.threshold:
        return SHARED
    max_data_size, max_data_scheduler_idx = data_size[0], 0
    for i in range(1, len(data_size)):
        if data_size[i] > max_data_size:
            max_data_size, max_data_scheduler_idx = data_size[i], i
    if max_data_size / view.net_bytes_per_s / est_task_length <= view.threshold:
        return SHARED
    if parent_list[max_data_scheduler_idx] == view.node:
        return DEDICATED
    return parent_list[max_data_scheduler_idx]


# Powers of two keep both forms of the comparison exact, so they may not differ even at the threshold itself.
SIZES = st.integers(13, 40).map(lambda power: 2**power)
INPUTS = st.lists(st.tuples(st.integers(0, 99), SIZES, st.just(-1), st.tuples(st.integers(0, 3))), max_size=6)


@given(INPUTS, st.sampled_from([0.0, 0.25, 0.5, 1.0, 4.0, inf]), st.integers(0, 3))
def test_it_is_algorithm_1(inputs: list[ObjectAt], threshold: float, node: int):
    view = FakeView(node=node, threshold=threshold, net_bytes_per_s=2.0**30, mean_ns=10**9)
    ready = ready_of(*inputs)
    assert choose(view, ready) == algorithm_1(view, ready)


ANY_INPUTS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([0, 1, INLINE_BYTES, INLINE_BYTES + 1]) | st.integers(0, 10**10),
        st.just(-1),
        st.lists(st.sampled_from([CLIENT, 0, 1, 2, 3, 77]), max_size=3).map(tuple),
    ),
    max_size=4,
)


@given(
    ANY_INPUTS,
    st.sampled_from([0.0, 0.5, inf]),
    st.sampled_from(["ratio", "rate"]),
    st.sampled_from([0, 1, 10**9]),
    st.sampled_from([1e9, inf]),
    st.frozensets(st.integers(0, 9)),
    st.sampled_from(["", "gpu"]),
)
def test_the_choice_is_always_a_live_node_that_can_run_it(
    inputs: list[ObjectAt], threshold: float, form: str, mean_ns: int, net: float, objects: frozenset[int], context: str
):
    members = members_of(4, contexts={2: "gpu"})
    view = FakeView(threshold=threshold, mean_ns=mean_ns, net_bytes_per_s=net, objects=objects, members=members)
    ready = ready_of(*inputs, context=context)
    place = PlaceDaws(form="rate" if form == "rate" else "ratio")
    choice = choose(view, ready, place)
    assert choice in (SHARED, DEDICATED, *members.capable(ready.spec.needs))
    assert choice != view.node
    if choice == DEDICATED:
        assert view.node in members.capable(ready.spec.needs)
    reasons = place.explain(view, ready, SplitMix64(0))
    assert reasons["choice"] == choice
    tolerable = min(reasons["total_bytes"], reasons["largest_bytes"]) <= reasons["limit_bytes"]
    if tolerable:
        assert choice == SHARED
    elif choice == DEDICATED:
        here = reasons["largest_object"] in objects or view.node in reasons["largest_places"]
        assert here or (not reasons["largest_places"] and reasons["largest_bytes"] <= INLINE_BYTES)
    elif choice >= 0:
        assert choice in reasons["largest_places"]


def test_tasks_without_data_are_shared_under_every_threshold():
    for threshold in (0.0, 0.5, inf):
        assert choose(FakeView(threshold=threshold), ready_of()) == SHARED
        assert choose(FakeView(threshold=threshold), ready_of((1, 0, 5, (2,)))) == SHARED  # a control edge


def test_mlb_shares_everything_and_mdl_nothing_that_reads():
    large, tiny = ready_of((1, 10**12, 5, (2,))), ready_of((1, 10, 5, (0,)))
    assert choose(FakeView(threshold=inf), large) == SHARED
    assert choose(FakeView(threshold=0.0), large) == 2
    assert choose(FakeView(threshold=0.0), tiny) == DEDICATED
    # An object that travels inside the record has no place of its own: it is here.
    assert choose(FakeView(threshold=0.0), ready_of((1, 10, 5, ()))) == DEDICATED


def test_inline_objects_cost_nothing_above_threshold_0():
    many = [(i, INLINE_BYTES, -1, (2,)) for i in range(1000)]
    assert choose(FakeView(threshold=1e-9), ready_of(*many)) == SHARED
    assert choose(FakeView(threshold=0.0), ready_of(*many)) == 2


def test_the_largest_input_decides_although_the_sum_is_above():
    # 0.5 s of transfer is tolerable: 800 MB together are not, but 400 MB alone are.
    assert choose(FakeView(), ready_of((1, 400 * MB, -1, (1,)), (2, 400 * MB, -1, (2,)))) == SHARED
    assert choose(FakeView(), ready_of((1, 400 * MB, -1, (1,)), (2, 600 * MB, -1, (2,)))) == 2


@pytest.mark.parametrize(
    ("places", "objects", "choice"),
    [
        ((0,), frozenset(), DEDICATED),
        ((3, 0), frozenset(), DEDICATED),  # here counts before elsewhere
        ((3,), frozenset([1]), DEDICATED),  # a cached copy that nobody was told of
        ((77, 3, 2), frozenset(), 3),  # node 77 is no member
        ((CLIENT,), frozenset(), SHARED),
        ((77, CLIENT), frozenset(), SHARED),
        ((), frozenset(), SHARED),
    ],
)
def test_where_the_largest_input_is(places: tuple[int, ...], objects: frozenset[int], choice: int):
    assert choose(FakeView(objects=objects), ready_of((1, 10**12, -1, places))) == choice


def test_only_nodes_that_can_run_it_count():
    view = FakeView(members=members_of(4, contexts={2: "gpu", 3: "gpu"}))
    assert choose(view, ready_of((1, 10**12, -1, (0, 1, 3)), context="gpu")) == 3
    assert choose(view, ready_of((1, 10**12, -1, (0, 1)), context="gpu")) == SHARED


def test_a_task_of_no_length_tolerates_no_transfer():
    assert choose(FakeView(mean_ns=0), ready_of((1, MB, -1, (2,)))) == 2


def test_the_older_form_ignores_the_network():
    rate = PlaceDaws(form="rate", rate_gbps=8.0)  # one GB per second of run time
    for net in (1.0, 1e12):
        assert choose(FakeView(net_bytes_per_s=net), ready_of((1, 1000 * MB, -1, (2,))), rate) == SHARED
        assert choose(FakeView(net_bytes_per_s=net), ready_of((1, 1001 * MB, -1, (2,))), rate) == 2
    # What adapt sets to mean MDL and MLB holds here too.
    assert choose(FakeView(threshold=0.0), ready_of((1, 1, -1, (2,))), rate) == 2
    assert choose(FakeView(threshold=inf), ready_of((1, 10**15, -1, (2,))), rate) == SHARED
    # Ten Gbit/s and t = 0.5 are 5 Gbit/s, the defaults of both papers; ours tolerates a tenth of the younger one's.
    assert PlaceDaws().rate_gbps == 0.5 * 10 == PlaceDaws().t * 100
