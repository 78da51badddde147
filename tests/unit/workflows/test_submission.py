"""How urgent the tasks of a graph are when it is carried out."""

from daws.model.task import RAISED
from daws.strategy import parse_strategy
from daws.workflows.submission import ranks_of
from tests.unit.strategy.order.test_finishing import chains


def test_what_was_begun_is_finished_first_also_when_a_graph_is_carried_out():
    graph = chains(128)
    known = graph.planned_rank_ns()
    found = ranks_of(graph, parse_strategy("daws").order, 2)
    assert found is not None
    assert (found >= known).all() and (found > known).any()
    assert found.max() < RAISED
    last, second = 127 * 4, 1  # the first task of the last chain, and the second of the first
    assert known[last] > known[second]
    assert found[last] < found[second]


def test_others_go_by_the_longest_way_to_the_end_or_by_nothing():
    graph = chains(128)
    found = ranks_of(graph, parse_strategy("adage").order, 2)
    assert found is not None and found.tolist() == graph.planned_rank_ns().tolist()
    assert ranks_of(graph, parse_strategy("flds").order, 2) is None
