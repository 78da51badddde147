"""Every number of a simulated cluster has a name with its unit."""

import pytest
from msgspec.structs import fields

from daws.cli.knobs import CORES_PER_SHARD, KNOBS, knobs_table, read_settings
from daws.model.errors import UsageError
from daws.sim import simulate
from daws.sim.profiles import PROFILES, Costs


def test_every_cost_can_be_set():
    assert [knob.field for knob in KNOBS.values() if knob.target == "costs"] == [one.name for one in fields(Costs)]


def test_units_are_converted():
    found = read_settings(["latency-us=1.5", "net-gbps=10", "cluster-latency-ms=2", "task-bytes=100", "cache-gb=0.5"])
    assert found["costs"] == {
        "latency_ns": 1500,
        "net_bytes_per_s": 1.25e9,
        "cluster_latency_ns": 2_000_000,
        "task_bytes": 100,
    }
    assert found["settings"] == {"memory_bytes": 500_000_000}
    assert read_settings(["slow=0.25", "clusters=3", "slow-speed=2"])["cluster"] == {
        "slow": 0.25,
        "clusters": 3,
        "slow_speed": 2,
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_setting_what_the_table_shows_changes_nothing(profile):
    costs = PROFILES[profile]
    for knob in KNOBS.values():
        if knob.target == "costs":
            found = read_settings([f"{knob.key}={knob.default_in(costs)}"])["costs"]
            assert found == {knob.field: pytest.approx(getattr(costs, knob.field))}
            assert isinstance(found[knob.field], int) == knob.field.endswith(("_ns", "task_bytes"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "=1", "shards", "shards=", "shards=1.5", "shards=0", "Shards=1", "shards=" + "1" * 100),
        *("lease-s=nan", "lease-s=inf", "lease-s=1_0", "slow=1.1", "latency-us=-1", "latency-us=1e999", "latency-us=٣"),
    ],
)
def test_bad_values_are_refused_in_one_line(text):
    with pytest.raises(UsageError) as refused:
        read_settings([text])
    assert "--set" in str(refused.value) and "\n" not in str(refused.value)


def test_nothing_is_set_twice():
    with pytest.raises(UsageError, match="twice"):
        read_settings(["shards=1", "shards=2"])


def test_the_table_tells_what_depends_on_the_size():
    assert simulate.CORES_PER_SHARD == CORES_PER_SHARD
    shown = " ".join(knobs_table().split())
    shards = f"cores/{CORES_PER_SHARD} " * len(PROFILES)
    assert f"shards {shards}of the store" in shown
    assert (
        f"lease-s {'10 ' * len(PROFILES)}a silent node" in shown and "more where there are over 10,000 nodes" in shown
    )


def test_the_table_shows_all_profiles():
    lines = knobs_table().splitlines()
    assert [line.split()[0] for line in lines if line[2] != " "] == ["key", *KNOBS]
    assert lines[0].split() == ["key", *PROFILES, "meaning"]
    assert next(line for line in lines if "store-row-us" in line).split()[:3] == ["store-row-us", "5", "1000"]
