import pytest

from bench.peers.graphs import CHAIN, GRAPHS, depths_of, pipeline, tree


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("count", [1, 2, 33, 1000])
def test_parents_come_first_and_sinks_are_those_that_nobody_reads(kind, count):
    parents, sinks = GRAPHS[kind](count)
    assert count - 1 <= len(parents) <= count
    assert all(one < task for task, above in enumerate(parents) for one in above)
    assert sinks and set(sinks) == set(range(len(parents))) - {one for above in parents for one in above}


def test_a_pipeline_is_chains_of_equal_length():
    parents, sinks = pipeline(10 * CHAIN)
    assert len(sinks) == 10
    assert {depths_of(parents)[sink] for sink in sinks} == {CHAIN}


def test_a_tree_ends_in_one():
    parents, sinks = tree(63)
    assert len(sinks) == 1
    assert depths_of(parents)[sinks[0]] == 6
