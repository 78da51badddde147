"""The price lists."""

import pytest
from msgspec.structs import asdict

from daws.model.errors import UsageError
from daws.sim.profiles import PROFILES, Costs, profile


def test_no_price_is_negative_and_links_have_bandwidth():
    for costs in PROFILES.values():
        assert min(asdict(costs).values()) >= 0
        assert min(costs.net_bytes_per_s, costs.cluster_bytes_per_s) > 0


def test_measured_is_the_default():
    assert profile("measured") == Costs()
    assert next(iter(PROFILES)) == "measured"


def test_unknown_profiles_are_refused_with_the_list():
    with pytest.raises(UsageError, match="'ideal'; there are measured, simmatrix"):
        profile("ideal")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("latency_ns", -100),
        ("step_ns", 1.5),
        ("task_bytes", -1),
        ("net_bytes_per_s", 0),
        ("cluster_bytes_per_s", -1.0),
        ("net_bytes_per_s", float("inf")),
        ("net_bytes_per_s", float("nan")),
    ],
)
def test_senseless_costs_are_refused_in_one_line(field, value):
    for make in (Costs, Costs().changed):
        with pytest.raises(UsageError, match=f"^{field}={value:g}: .*$"):
            make(**{field: value})


def test_changed_leaves_the_rest():
    assert Costs().changed(step_ns=7) == Costs(step_ns=7)
