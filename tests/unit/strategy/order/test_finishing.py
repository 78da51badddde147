"""Ranks that finish what was begun, at no cost in time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.model.task import RAISED
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Result, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.strategy.order.depth_first import backward_turns
from daws.strategy.order.finishing import LAST, LEAST_BYTES, _held_sizes, _most_held, _play, finishing_ranks
from tests.unit.strategy.fakes import members_of

MS = 1_000_000
MB = 1_000_000
BY_RANK = "daws:room-mb=inf"


def chains(count: int, length: int = 4, size_bytes: int = MB, length_ns: int = 10 * MS) -> Graph:
    """Chains of tasks that make an object each, and a tree that adds up what the last ones made."""
    builder = GraphBuilder()
    heads = []
    for _ in range(count):
        task = builder.add_task("make", length_ns, outputs_bytes=(size_bytes,))
        for _ in range(length - 1):
            task = builder.add_task("next", length_ns, inputs=(task,), outputs_bytes=(size_bytes,))
        heads.append(task)
    while len(heads) > 1:
        pairs = [heads[i : i + 2] for i in range(0, len(heads), 2)]
        heads = [builder.add_task("add", length_ns, inputs=pair, outputs_bytes=(size_bytes,)) for pair in pairs]
    return builder.build()


def run(graph: Graph, nodes: int, strategy: str = "daws") -> Result:
    return simulate(graph, cluster_of(nodes, 2), parse_strategy(strategy))[0]


def test_two_cores_hold_few_objects_of_128_chains():
    graph = chains(128)
    old, new = run(graph, 1, BY_RANK), run(graph, 1)
    assert old.peak_objects > 120
    assert new.peak_objects <= 16
    assert new.makespan_s < 1.007 * old.makespan_s


@pytest.mark.parametrize(("nodes", "count"), [(1, 128), (4, 512), (16, 2048)])
def test_what_is_held_does_not_grow_with_the_number_of_chains(nodes: int, count: int):
    some, twice = run(chains(count), nodes), run(chains(2 * count), nodes)
    assert some.peak_objects < 0.4 * run(chains(count), nodes, BY_RANK).peak_objects
    assert twice.peak_objects <= 1.2 * some.peak_objects


def test_short_runs_on_several_nodes_go_by_rank():
    """Plays know nothing of nodes, which run out of tasks at different times."""
    graph = chains(512)
    ranks = graph.planned_rank_ns()
    assert (finishing_ranks(graph, ranks, members_of(1, 8), 0) != ranks).any()
    assert (finishing_ranks(graph, ranks, members_of(4, 2), 0) != ranks).any()
    assert (finishing_ranks(graph, ranks, members_of(16, 2), 0) == ranks).all()


@pytest.mark.parametrize(("nodes", "count"), [(1, 512), (4, 512), (16, 1024)])
def test_it_costs_hardly_any_time(nodes: int, count: int):
    """Not even here, where the last chains to begin are joined with all others in the end."""
    graph = chains(count)
    assert run(graph, nodes).makespan_s <= 1.007 * run(graph, nodes, BY_RANK).makespan_s


def test_ranks_stay_as_they_are_where_little_is_made_or_all_is_critical():
    few = chains(20)
    ranks = few.planned_rank_ns()
    assert few.object_bytes.sum() > LEAST_BYTES
    assert finishing_ranks(few, ranks, members_of(64), 4 * MB) is ranks
    small = chains(128, size_bytes=20_000)
    assert finishing_ranks(small, small.planned_rank_ns(), members_of(1), 0) is small.planned_rank_ns()
    inline = chains(5000, length=2, size_bytes=4000)
    assert finishing_ranks(inline, inline.planned_rank_ns(), members_of(1), 0) is inline.planned_rank_ns()


def test_a_raised_task_comes_before_what_could_begin_instead_but_the_last_tasks_go_by_rank():
    graph = chains(128)
    ranks = graph.planned_rank_ns()
    found = finishing_ranks(graph, ranks, members_of(1), 4 * MB)
    raised = found >= RAISED
    assert raised.any() and not raised.all()
    assert (found[~raised] == ranks[~raised]).all()
    assert found[raised].min() - RAISED > LAST * ranks.max()
    sources = np.flatnonzero(np.diff(graph.parent_start) == 0)
    first = int(sources[np.argmax(found[sources])])
    after = graph.children[graph.child_start[first]]
    assert (found[after] > found[sources]).sum() > 0.9 * len(sources)


def test_backwards_the_end_of_the_run_leaves_no_core_without_work():
    """Depth-first forwards, the last tasks of a tree run one after the other; on paper nothing of that is left."""
    graph, cores = chains(128), 2
    turns = backward_turns(graph, graph.planned_rank_ns(), np.zeros(graph.task_count))
    found = _play(graph.planned_ns, graph.parent_start, graph.parents, turns, cores, 0)
    ends = _play(graph.planned_ns, graph.child_start, graph.children, -found, cores, 0)
    assert ends.max() <= graph.planned_ns.sum() / cores + 10 * MS


def test_a_play_on_paper():
    """Two chains on one core: while the end of a task is not known yet, the core goes on with the other chain."""
    builder = GraphBuilder()
    firsts = [builder.add_task("make", 10, outputs_bytes=(MB,)) for _ in range(2)]
    for one in firsts:
        builder.add_task("next", 10, inputs=(one,))
    graph = builder.build()
    keys = np.array([0, 2, 1, 3])

    def play(turn_ns: int) -> list[int]:
        return list(_play(graph.planned_ns, graph.child_start, graph.children, keys, 1, turn_ns))

    assert play(0) == [10, 30, 20, 40]
    assert play(1) == [10, 20, 30, 40]
    assert play(15) == [10, 20, 35, 45]


def test_what_is_held_on_paper():
    builder = GraphBuilder()
    make = builder.add_task("make", 10, outputs_bytes=(MB, 2 * MB, 4000))
    builder.add_task("nobody reads this", 10, outputs_bytes=(8 * MB,))
    one, two, small = make.outputs
    builder.add_task("read", 10, inputs=(one, small))
    builder.add_task("read", 10, inputs=(one, two))
    graph = builder.build()
    sizes = _held_sizes(graph)
    assert sizes.tolist() == [MB, 2 * MB, 0, 0]
    assert _most_held(graph, sizes, np.array([10, 10, 20, 30])) == 3 * MB
    chain = chains(1, length=4)
    assert _most_held(chain, _held_sizes(chain), np.array([10, 20, 30, 40])) == 2 * MB


def test_a_long_way_to_the_end_is_never_held_up():
    """One long chain among many short ones, and all of them make large objects: it begins first and goes on."""
    builder = GraphBuilder()
    for _ in range(100):
        first = builder.add_task("make", 10 * MS, outputs_bytes=(MB,))
        builder.add_task("end", 10 * MS, inputs=(first,))
    task = builder.add_task("begin", 100 * MS, outputs_bytes=(MB,))
    for _ in range(9):
        task = builder.add_task("go on", 100 * MS, inputs=(task,), outputs_bytes=(MB,))
    graph = builder.build()
    result = run(graph, 1, "daws:room-mb=0")
    assert result.makespan_s <= 1.01 * run(graph, 1, BY_RANK).makespan_s


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 99), max_size=3)), max_size=60), st.integers(1, 3))
def test_no_graph_gets_ranks_with_which_a_child_comes_before_its_parent(tasks, nodes):
    builder = GraphBuilder()
    made: list[TaskHandle] = []
    for number, (length, wanted) in enumerate(tasks):
        before = sorted({one % number for one in wanted}) if number else []
        made.append(builder.add_task("a", length * MS, [made[one] for one in before], outputs_bytes=(40 * MB,)))
    graph = builder.build()
    found = finishing_ranks(graph, graph.planned_rank_ns(), members_of(nodes), 0)
    again = finishing_ranks(graph, graph.planned_rank_ns(), members_of(nodes), 0)
    assert (found == again).all()
    assert (found % RAISED >= graph.planned_rank_ns()).all()


def test_only_the_default_raises_ranks():
    ours = [name for name, one in PRESETS.items() if getattr(one.strategy.order, "room_mb", float("inf")) < 1e9]
    assert ours == ["daws"]
