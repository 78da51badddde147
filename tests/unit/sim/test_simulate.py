"""Simulations from the outside: what goes in, what comes out."""

import gc

import pytest
from msgspec.structs import asdict

from daws.core.events import NEVER_NS
from daws.core.journal import Journal, replay
from daws.core.node import SECOND_NS
from daws.model.context import parse_context
from daws.model.errors import ContextError, InternalError, UsageError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.sim.cluster import cluster_of, joined, parse_group
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.profiles import PROFILES, Costs
from daws.sim.runlog import RunLog
from daws.sim.simulate import FILES, Settings, lease_ns_of, least_run_ns, make_kernel, places_of, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import parse_workload

FREE = Costs(
    latency_ns=0, step_ns=0, message_ns=0, task_ns=0, dispatch_ns=0, store_call_ns=0, store_row_ns=0, task_bytes=0
)


def run(workload="bot:tasks=100", nodes=4, cores=2, strategy="daws", **settings):
    graph = parse_workload(workload).build(nodes, cores, 0)
    return simulate(graph, cluster_of(nodes, cores), parse_strategy(strategy), Settings(**settings))[0]


def test_one_core_without_costs_takes_as_long_as_the_work():
    result = run("bot:tasks=50,length-ms=10,spread=constant", 1, 1, costs=FREE)
    assert result.makespan_s == pytest.approx(0.5, rel=1e-3)
    assert result.efficiency == pytest.approx(1.0, rel=1e-3)
    assert result.throughput == pytest.approx(100, rel=1e-3)


def test_efficiency_counts_speed_and_utilization_does_not():
    graph = parse_workload("bot:tasks=40,length-ms=10,spread=constant").build(1, 2, 0)
    fast = joined([parse_group("1x2:speed=4")])
    result, _ = simulate(graph, fast, parse_strategy("daws"), Settings(costs=FREE))
    assert result.makespan_s == pytest.approx(0.05, rel=1e-2)
    assert result.efficiency == pytest.approx(1.0, rel=1e-2)
    assert result.utilization == pytest.approx(1.0, rel=1e-2)


def test_lengths_may_depend_on_the_node():
    graph = parse_workload("bot:tasks=6,length-ms=10,spread=constant").build(2, 1, 0)

    def prepare(kernel: Kernel) -> None:
        kernel.length_on = lambda task, info: (1 + task) * (1 + info.id) * SECOND_NS

    strategy = parse_strategy("random:assign=round-robin,place=keep")
    result, _ = simulate(graph, cluster_of(2, 1), strategy, Settings(costs=FREE, check=True), prepare=prepare)
    assert result.makespan_s == pytest.approx(2 * (2 + 4 + 6)), "every second task ran on node 1, twice as long"


def test_nobody_steals_from_a_pool_that_it_does_not_name():
    graph = parse_workload("bot:tasks=60,length-ms=100,spread=constant").build(3, 1, 0)
    logs: list[RunLog] = []

    def nodes_of(groups: list[str]) -> set[int]:
        strategy = parse_strategy("constellation:assign=one,pool=named")
        cluster = joined(list(map(parse_group, groups)))
        simulate(graph, cluster, strategy, Settings(check=True), prepare=lambda kernel: logs.append(RunLog(kernel)))
        return set(logs[-1].node)

    assert nodes_of(["1x1:pool=a", "1x1:pool=a", "1x1:pool=b"]) == {0, 1}
    assert nodes_of(["1x1:pool=a", "1x1:pool=a", "1x1:pool=b,steals=a+b"]) == {0, 1, 2}


def test_result_describes_the_run():
    result = run("pipeline:tasks=100,size=4", 3, 2, "flds:t=0.2", seed=5)
    assert (result.tasks, result.edges, result.nodes, result.cores, result.cores_total) == (100, 75, 3, 2, 6)
    assert (result.strategy, result.seed, result.failed, result.cancelled) == ("flds:t=0.2", 5, 0, 0)
    assert result.store_records >= 75


def test_objects_from_outside_are_read_where_they_lie_or_fetched():
    result = run("all-pairs:files=10", 4, 2, "flds")
    assert result.failed == 0
    assert result.local_hits > 0
    assert result.bytes_moved % 12_000_000 == 0 and result.bytes_moved > 0


def test_one_node_moves_nothing():
    result = run("all-pairs:files=6", 1, 2, "flds")
    assert (result.bytes_moved, result.local_hits, result.failed) == (0, 72, 0)


def test_the_same_seed_is_the_same_run_and_another_is_not():
    def numbers(seed):
        found = asdict(run("random:tasks=300", seed=seed, digest=True))
        return {key: value for key, value in found.items() if key not in ("wall_s", "peak_rss_mb", "seed")}

    assert numbers(1) == numbers(1)
    assert numbers(1)["digest"] != numbers(2)["digest"]


def test_progress_is_told_now_and_then():
    told: list[int] = []
    graph = parse_workload("bot:tasks=60000,length-ms=1").build(4, 2, 0)
    simulate(graph, cluster_of(4, 2), parse_strategy("daws"), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 60_000


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_left_as_it_was(collecting):
    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        run("bot:tasks=1")
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if was else gc.disable)()


def test_a_context_that_nobody_offers_is_named():
    builder = GraphBuilder()
    builder.add_task("render", 1000, context=parse_context("gpu@3"))
    graph = builder.build()
    with pytest.raises(ContextError, match=r"task 0 \(render\) .*'gpu@3', which no executor offers: there are any"):
        simulate(graph, cluster_of(2), parse_strategy("daws"))
    with pytest.raises(ContextError, match=r"there are gpu@1\.\.2"):
        simulate(graph, joined([parse_group("1x1[gpu@1..2]")]), parse_strategy("daws"))
    result, _ = simulate(graph, joined([parse_group("3x1"), parse_group("1x1[gpu@1..5]")]), parse_strategy("daws"))
    assert (result.failed, result.makespan_s > 0) == (0, True)


def test_a_task_that_is_too_wide_is_told_how_wide_nodes_are():
    builder = GraphBuilder()
    builder.add_task("analyse", 1000, cores=16)
    with pytest.raises(ContextError, match=r"task 0 \(analyse\) needs 16 cores of one node, but .* more than 2$"):
        simulate(builder.build(), cluster_of(3, 2), parse_strategy("daws"))
    builder.add_task("render", 1000, context=parse_context("gpu"), cores=4)
    uneven = joined([parse_group("1x16"), parse_group("1x8+3[gpu]")])
    with pytest.raises(ContextError, match=r"needs 4 cores of one node with context 'gpu', but .* more than 3$"):
        simulate(builder.build(), uneven, parse_strategy("daws"))


def test_more_memory_than_any_node_has_is_refused():
    builder = GraphBuilder()
    builder.add_task("small", 1000, memory_bytes=10**9)
    builder.add_task("big", 1000, memory_bytes=3 * 10**9)
    builder.add_task("big", 1000, context=parse_context("gpu"), memory_bytes=10**9)
    graph = builder.build()

    def run(*groups: str) -> None:
        simulate(graph, joined([parse_group(text) for text in groups]), parse_strategy("daws"), Settings(check=True))

    with pytest.raises(ContextError) as caught:
        run("2x2:memory-gb=2", "1x1[gpu]")
    assert str(caught.value) == (
        "task 1 (big) needs 3 GB of memory, but no node that could run it has more than 2 GB"
    ), "the other has no limit, but also no executor for it"
    with pytest.raises(ContextError, match=r"task 2 \(big\) needs 1 GB .* more than 0.5 GB"):
        run("1x2", "1x1[gpu]:memory-gb=0.5")
    run("1x2:memory-gb=2", "1x2:memory-gb=3", "1x1[gpu]:memory-gb=1")


def test_too_many_cores_are_refused():
    builder = GraphBuilder()
    builder.add_task("wide", 1000, cores=3)
    with pytest.raises(ContextError, match=r"needs 3 cores of one node, but no node has more than 2"):
        simulate(builder.build(), cluster_of(4, 2), parse_strategy("daws"))


def test_an_empty_graph_ends_at_once():
    result, _ = simulate(GraphBuilder().build(), cluster_of(2), parse_strategy("daws"))
    assert (result.tasks, result.makespan_s, result.throughput, result.efficiency) == (0, 0.0, 0.0, 0.0)


# -- tasks that need several cores ---------------------------------------------------------------------------------


def bag(*tasks: tuple[int, int]) -> Graph:
    """Tasks by length in ms and cores."""
    builder = GraphBuilder()
    for length_ms, cores in tasks:
        builder.add_task("k", length_ms * 1_000_000, cores=cores)
    return builder.build()


@pytest.mark.parametrize("speed", [1, 2])
def test_wide_tasks_count_with_all_their_cores(speed):
    cluster = joined([parse_group(f"2x4:speed={speed}")])
    result, _ = simulate(bag(*[(100, 4)] * 8), cluster, parse_strategy("daws"), Settings(costs=FREE))
    assert result.makespan_s == pytest.approx(0.4 / speed, rel=1e-2)
    assert result.efficiency == pytest.approx(1.0, rel=1e-2)
    assert result.utilization == pytest.approx(1.0, rel=1e-2)


def test_wide_and_narrow_tasks_count_together():
    graph = bag((400, 3), *[(100, 1)] * 4)
    result, _ = simulate(graph, cluster_of(1, 4), parse_strategy("daws"), Settings(costs=FREE))
    assert result.efficiency == pytest.approx(1.6 / 4 / result.makespan_s, rel=1e-6)
    assert result.utilization == pytest.approx(result.efficiency, rel=1e-6)


# -- leases --------------------------------------------------------------------------------------------------------


def test_large_clusters_have_longer_leases_unless_told_otherwise():
    assert lease_ns_of(Settings(), 1) == lease_ns_of(Settings(), 10_000) == 10 * SECOND_NS
    assert lease_ns_of(Settings(), 100_000) == 100 * SECOND_NS
    assert lease_ns_of(Settings(lease_s=2.5), 100_000) == 2.5 * SECOND_NS
    kernel = make_kernel(bag((1, 1)), cluster_of(12_000, 1), parse_strategy("daws"), Settings())
    assert kernel.config.lease_ns == kernel.store.lease_ns == 12 * SECOND_NS


@pytest.mark.parametrize(
    ("costs", "lease_s", "message"),
    [
        ({"latency_ns": 3_000_000_000}, 0.0, r"6\.\d+ s .* lease of 10 s: set lease-s to 12\.1 .* latency-us"),
        ({"latency_ns": 2_500_000_000}, 0.0, "lower latency-us"),
        ({"latency_ns": 50_000_000}, 0.1, r"lease of 0\.1 s: set lease-s to 0\.3 or more, or lower latency-us"),
        ({"step_ns": 10**12}, 0.0, "lower step-us"),
        ({"message_ns": 10**11}, 0.0, "lower message-us"),
        ({"store_call_ns": 10**12}, 0.0, "lower store-call-us"),
        ({"store_row_ns": 10**12}, 0.0, "lower store-row-us"),
    ],
)
def test_renewals_that_are_always_late_are_refused(costs, lease_s, message):
    with pytest.raises(UsageError, match=f"^renewing a lease takes .*{message}$"):
        run("bot:tasks=20", 2, costs=Costs(**costs), lease_s=lease_s)


@pytest.mark.parametrize("latency_ns", [2_000_000_000, 2_499_000_000])
def test_renewals_that_are_just_in_time_are_fine(latency_ns):
    assert run("bot:tasks=20", 2, costs=Costs(latency_ns=latency_ns)).makespan_s < 30


def test_the_lease_that_is_advised_is_long_enough():
    assert run("bot:tasks=20", 2, costs=Costs(latency_ns=3_000_000_000), lease_s=12.1).makespan_s < 60
    for costs in PROFILES.values():
        assert run("bot:tasks=20", 2, costs=costs).failed == 0


@pytest.mark.parametrize("costs", [{"step_ns": 4_000_000_000}, {"message_ns": 3_000_000_000}])
def test_queues_that_only_grow_are_noticed(costs, monkeypatch):
    monkeypatch.setattr("daws.sim.watch.STUCK_LEASES", 30)  # not as sure, but soon
    with pytest.raises(UsageError, match=r"^nothing could start for 900 simulated seconds with \d+ tasks left: .*$"):
        run("bot:tasks=20", 2, costs=Costs(**costs))


def test_what_is_slow_but_ends_may_take_its_time():
    assert run("bot:tasks=20", 2, costs=Costs(task_ns=30_000_000_000)).makespan_s > 5000
    assert run("bot:tasks=20", 2, costs=Costs(dispatch_ns=1_000_000_000_000)).makespan_s > 3000


def test_days_do_not_take_more_events_than_hours():
    hours = run("bot:tasks=10,length-ms=1e7,spread=constant", 2)
    days = run("bot:tasks=10,length-ms=1e9,spread=constant", 2)
    assert days.makespan_s == pytest.approx(3e6, rel=1e-3)
    assert days.events < 2 * hours.events < 20_000


def test_leases_are_as_long_as_ever_unless_the_run_is():
    settings = Settings()
    assert lease_ns_of(settings, 4, 999 * SECOND_NS) == lease_ns_of(settings, 4) == 10 * SECOND_NS
    assert lease_ns_of(settings, 4, 3000 * SECOND_NS) == 30 * SECOND_NS
    assert lease_ns_of(Settings(lease_s=3.0), 4, 3000 * SECOND_NS) == 3 * SECOND_NS
    graph = bag((50, 1), (8000, 2), (50, 1))
    assert least_run_ns(graph, cluster_of(1, 2)) == 8050 * 1_000_000
    assert least_run_ns(graph, cluster_of(8, 2, slow=0.5)) == 8000 * 1_000_000


def test_a_run_without_an_end_has_no_result():
    def stop(kernel: Kernel) -> None:
        kernel.push(60_000_000, FATE, forget)

    def forget(kernel: Kernel) -> None:
        end_of_time = max(kernel.agenda)
        kernel.agenda.clear()
        kernel.agenda.push(end_of_time)

    graph = bag(*[(50, 1)] * 6)
    with pytest.raises(InternalError, match=r"^nothing is left to happen, but \d of 6 tasks have not ended$"):
        simulate(graph, cluster_of(1, 2), parse_strategy("daws"), prepare=stop)


@pytest.mark.parametrize("strategy", ["adage", "daws:replicate=stragglers"])
def test_runs_that_were_called_off_before_they_began_keep_nobody_busy(strategy):
    for seed in range(3):
        assert run("bot:tasks=500,length-ms=0,spread=constant", 7, 2, strategy, seed=seed).utilization == 0


# -- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shards", -1),
        ("shards", 1.5),
        ("lease_s", -1),
        ("lease_s", 1e-9),
        ("lease_s", float("nan")),
        ("lease_s", float("inf")),
        ("audit_s", -1),
        ("freed_batch", 0),
        ("memory_bytes", -1),
    ],
)
def test_senseless_settings_are_refused_in_one_line(field, value):
    with pytest.raises(UsageError, match=f"^{field}={value:g}: .*$"):
        Settings(**{field: value})


def test_every_node_keeps_a_journal_if_told_to():
    graph = parse_workload("pipeline:tasks=30,size=3").build(3, 2, 0)
    _, kernel = simulate(graph, cluster_of(3, 2), parse_strategy("flds"), Settings(seed=4, journal=True))
    assert kernel.journals is not None
    assert list(kernel.journals) == [0, 1, 2]
    for journal in kernel.journals.values():
        assert len(journal.steps) > 3
        assert replay(Journal.from_bytes(journal.to_bytes())) is None


# -- nodes that leave ------------------------------------------------------------------------------------------------


def drained(workload, preset, deadline_ns=NEVER_NS):
    """Half of the nodes are told to leave early on."""

    def drain(kernel):
        for index in range(4):
            kernel.push(300_000_000, FATE, lambda kernel, index=index: kernel.leave(index, deadline_ns))

    graph = parse_workload(workload).build(8, 2, 1)
    settings = Settings(seed=1, check=True, lease_s=1)
    result, kernel = simulate(graph, cluster_of(8, 2), parse_strategy(preset), settings, prepare=drain)
    kernel.run_on(kernel.now_ns + 10 * SECOND_NS)
    return result, kernel


def two_fetches(network: str) -> float:
    """Two tasks on the last node, each with an input of a second's transfer that lies at another: when one ends."""
    builder = GraphBuilder()
    objects = [builder.add_external(10**8) for _ in range(2)]
    for object_ in objects:
        builder.add_task("work", 1000, [object_], [])
    costs = FREE.changed(net_bytes_per_s=1e8)
    _, kernel = simulate(
        builder.build(),
        cluster_of(3, 2),
        parse_strategy("mlb:assign=one,node=2,balance=none"),
        Settings(costs=costs, network=network, check=True),
    )
    return min(kernel.ends) / SECOND_NS


def test_transfers_into_a_node_come_one_after_the_other_or_share_its_link():
    kernel = make_kernel(
        parse_workload("bot:tasks=1").build(1, 1, 0), cluster_of(1, 1), parse_strategy("mlb"), Settings(network="fair")
    )
    assert kernel.transfers.network is not None
    assert two_fetches("simple") == pytest.approx(1.0, abs=0.01)
    assert two_fetches("fair") == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("strategy", ["flds", "sparrow", "adage"])
def test_shared_links_lose_nothing_and_carry_no_more_than_they_can(strategy):
    for workload in ("all-pairs:files=12", "random:per-core=10,output-mb=2"):
        results = [run(workload, 7, 2, strategy, network="fair", check=True, digest=True) for _ in range(2)]
        assert results[0].digest == results[1].digest and not results[0].failed
        assert results[0].bytes_moved / (7 * Costs().net_bytes_per_s) <= results[0].makespan_s


def test_objects_from_another_cluster_and_from_nowhere():
    graph = parse_workload("random:per-core=10,output-mb=2").build(6, 2, 0)
    result, _ = simulate(
        graph, cluster_of(6, 2, clusters=2), parse_strategy("mlb"), Settings(network="fair", check=True)
    )
    assert not result.failed and result.bytes_moved
    with pytest.raises(UsageError, match="network=slow: there are simple, fair"):
        Settings(network="slow")


@pytest.mark.parametrize("preset", PRESETS)
def test_nodes_leave_and_nothing_begins_again(preset):
    result, kernel = drained("random:per-core=20,output-mb=1", preset)
    assert not result.failed and sorted(kernel.seats) == [4, 5, 6, 7]
    kernel.checker.leavers.check_left(orderly=True)
    kernel.checker.ends.check_begun_once()
    assert len(kernel.departed) == 4 and not kernel.leave(0)


def test_who_is_pressed_for_time_leaves_all_the_same():
    length_s = 3
    result, kernel = drained(f"bot:tasks=32,length-ms={1000 * length_s},spread=constant", "flds", SECOND_NS)
    assert not result.failed and sorted(kernel.seats) == [4, 5, 6, 7]
    assert max(kernel.checker.known.attempts.values()) == 1, "runs that were stopped began again elsewhere"
    suspected = [record.rare.losses for record in kernel.store.shards[0].records.values() if record and record.rare]
    assert not any(suspected)


def test_files_from_outside_lie_evenly_unless_they_are_scattered():
    shuffled, in_order, scattered = (places_of(20, 5, Settings(files=files, seed=3)) for files in FILES)
    assert sorted(shuffled) == sorted(in_order) == sorted(list(range(5)) * 4)
    assert list(in_order[:6]) == [0, 1, 2, 3, 4, 0] and list(shuffled) != list(in_order)
    assert sorted(scattered) != sorted(in_order) and set(scattered) <= set(range(5))
    with pytest.raises(UsageError, match="files=nowhere"):
        Settings(files="nowhere")


def test_executors_that_fetch_for_themselves_need_the_time_of_both():
    """A second of transfer and a second of work each, on one core that has none of it."""
    builder = GraphBuilder()
    for _ in range(3):
        builder.add_task("work", SECOND_NS, [builder.add_external(10**8)], [])
    strategy = parse_strategy("mlb:assign=one,node=0,balance=none")
    ends = {}
    for ahead in (True, False):
        # With this seed all three files lie at the other node.
        settings = Settings(costs=FREE.changed(net_bytes_per_s=1e8), fetches_ahead=ahead, files="scattered", seed=2)
        result, _ = simulate(builder.build(), cluster_of(2, 1), strategy, settings)
        ends[ahead] = result.makespan_s
    assert ends[False] == pytest.approx(6.0, abs=0.01)
    assert ends[True] < 5.5
