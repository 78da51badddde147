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


def test_changed_leaves_the_rest():
    assert Costs().changed(step_ns=7) == Costs(step_ns=7)
