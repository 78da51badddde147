"""The model behind the studies of Constellation agrees with what the paper says of its application."""

import pytest

from daws.model.context import format_context, matches
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.one import AssignOne
from studies.constellation_clusters import (
    AT_ONE,
    FALLBACK,
    NEARBY,
    NODES,
    SITES,
    STORED,
    UNSORTED,
    AssignGiven,
    Case,
    context_of,
    offered_by,
    strategy_of,
)
from studies.constellation_clusters import Job as ClustersJob
from studies.constellation_clusters import run_job as run_clusters
from studies.constellation_cores import Job as CoresJob
from studies.constellation_cores import run_job as run_cores
from studies.constellation_gpu import CPU_ONLY, WITH_GPU
from studies.constellation_gpu import Job as GpuJob
from studies.constellation_gpu import run_job as run_gpu
from studies.shared.supernova import (
    PAIR_COUNT,
    STEPS,
    Pair,
    Span,
    add_steps,
    largest,
    make_pairs,
    percent_over_time,
    spans_of,
)

PAIR = Pair(size_mb=70.0, tiles=5, compare_s=50.0, scale=1.0)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return make_pairs(0)


def test_all_pairs_together_are_the_published_data(pairs):
    assert len(pairs) == PAIR_COUNT
    assert sum(pair.size_mb for pair in pairs) == pytest.approx(73_000, rel=0.01)
    assert sum(pair.work_s for pair in pairs) == pytest.approx(48 * 5243, rel=0.02)
    assert sum(pair.seconds(8) for pair in pairs) / 6 == pytest.approx(9043, rel=0.1)


def test_the_largest_are_a_tenth_of_all(pairs):
    thirty = largest(pairs, 30)
    work_s = [pair.work_s for pair in thirty]
    assert sum(work_s) / sum(pair.work_s for pair in pairs) == pytest.approx(0.1, abs=0.01)
    assert sum(work_s) / 30 == pytest.approx(820, rel=0.1)
    assert max(work_s) <= 1040


def test_seeds_change_the_order_and_nothing_that_was_published(pairs):
    other = make_pairs(1)
    assert other != pairs
    assert sorted(pair.size_mb for pair in other) == sorted(pair.size_mb for pair in pairs)
    assert make_pairs(0) == pairs


def test_a_program_uses_as_many_cores_as_its_steps_allow():
    steps_s = sum(STEPS.values())
    assert PAIR.seconds(1) == pytest.approx(PAIR.work_s)
    assert PAIR.seconds(2) == pytest.approx(steps_s + 30), "five tiles are three rounds for two cores"
    assert PAIR.seconds(48) == pytest.approx(steps_s + 10)
    for cores in (1, 2, 4, 48):
        assert sum(seconds * busy for seconds, busy in PAIR.phases(cores)) == pytest.approx(PAIR.work_s)
        assert max(busy for _, busy in PAIR.phases(cores)) <= cores


def test_the_graph_has_the_same_work():
    builder = GraphBuilder()
    add_steps(builder, PAIR, lambda _: "any")
    graph = builder.build()
    graph.check()
    assert graph.task_count == len(STEPS) + 2 + PAIR.tiles
    assert graph.total_length_ns / 1e9 == pytest.approx(PAIR.work_s)


def test_busy_cores_over_time():
    spans = spans_of(PAIR, 100.0, 2, speed=2.0)
    assert spans[0].start_s == 100.0
    assert spans[-1].end_s == pytest.approx(100 + PAIR.seconds(2) / 2)
    edges_s, percent = percent_over_time([Span(0, 5, 2), Span(5, 10)], cores=4, end_s=10)
    assert (edges_s[-1], percent[0], percent[-1]) == (10, pytest.approx(50), pytest.approx(25))


def test_labels_say_who_may_take_a_pair():
    vu3, vu4 = SITES[2:]
    assert sum(count for _, count in STORED) == PAIR_COUNT and NODES * sum(site.cores for site in SITES) == 360
    local = context_of("location sorted", PAIR, ("VU3",))
    assert matches(local, offered_by("location sorted", vu3))
    assert not matches(local, offered_by("location sorted", vu4))
    fallback = context_of(FALLBACK, PAIR, ("VU3", "VU4"))
    assert format_context(fallback) == "VU3@70000>VU4@70000>anywhere"
    assert all(matches(fallback, offered_by(FALLBACK, site)) for site in SITES)
    assert "@" not in format_context(context_of(UNSORTED, PAIR, ("LU",)))


def test_small_tasks_beat_whole_programs():
    whole, steps = (run_cores(CoresJob(executors, 12, 100)) for executors in (6, 0))
    assert steps.makespan_s < whole.makespan_s
    assert steps.mean_percent > whole.mean_percent


def test_cores_go_on_while_tiles_wait_for_a_gpu():
    plain, mixed = (run_gpu(GpuJob(version, 12, 1)) for version in (CPU_ONLY, WITH_GPU))
    assert mixed.makespan_s < plain.makespan_s
    assert set(plain.busy) == {"CPU"} and set(mixed.busy) == {"CPU", "GPU"}


def test_pairs_are_submitted_at_one_node_or_where_they_lie():
    places = [("VU3", "VU4"), ("UvA",), ("LU", "UvA"), ("VU4",)]
    nearby = strategy_of(NEARBY, places, NODES).assign
    assert isinstance(nearby, AssignGiven)
    assert nearby.homes.tolist() == [40, 20, 0, 60]
    assert isinstance(strategy_of(AT_ONE, places, NODES).assign, AssignOne)


def test_who_asks_a_cluster_gets_what_it_has_near_or_not():
    """With all pairs at one node, an executor fetches nothing while there is something near."""
    far = {one: run_clusters(ClustersJob(Case(one, FALLBACK), 0, quick=True)).far for one in (AT_ONE, NEARBY)}
    assert 0 < 1.5 * far[AT_ONE] < far[NEARBY]
