import numpy as np
import pytest

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.errors import ClusterError, ContextError
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.capable import capable, in_turn, spread
from tests.unit.strategy.fakes import members_of


def mixed(*needs: tuple[str, int]) -> GraphBuilder:
    builder = GraphBuilder()
    for context, cores in needs:
        builder.add_task("work", 5, context=parse_context(context), cores=cores)
    return builder


def test_tasks_are_grouped_by_what_they_need():
    graph = mixed(("", 1), ("gpu", 1), ("", 2), ("", 1), ("gpu", 2)).build()
    found = capable(graph, members_of(4, cores=2, contexts={1: "gpu", 3: "gpu>any"}))
    able = [found.positions[number].tolist() for number in found.class_of]
    assert able == [[0, 2, 3], [1, 3], [0, 2, 3], [0, 2, 3], [1, 3]]
    assert [found.cores[number] for number in found.class_of] == [1, 1, 2, 1, 2]


def test_in_turn_goes_around_the_capable_per_class():
    graph = mixed(*[("", 1), ("gpu", 1)] * 4).build()
    homes = spread(graph, members_of(4, contexts={1: "gpu", 3: "gpu"}), in_turn)
    assert homes.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert homes.dtype == np.int64


def test_what_nobody_can_run_is_named():
    with pytest.raises(ContextError, match=r"task 1 \(work\) needs 1 cores with context 'tpu', which no node offers"):
        capable(mixed(("", 1), ("tpu", 1)).build(), members_of(2))
    with pytest.raises(ContextError, match=r"task 0 \(work\) needs 9 cores with no context, which no node offers"):
        capable(mixed(("", 9)).build(), members_of(2))
    with pytest.raises(ClusterError, match="no nodes"):
        capable(mixed(("", 1)).build(), members_of(0))


def test_memory_counts_where_nodes_have_a_limit():
    builder = GraphBuilder()
    for memory_bytes in (0, 5, 10, 11, 7, 25):
        builder.add_task("work", 5, memory_bytes=memory_bytes)
    graph = builder.build()
    rooms = (10, 0, 20)
    members = Members(1, tuple(NodeInfo(i, (ExecutorClass(1),), memory_bytes=room) for i, room in enumerate(rooms)))
    found = capable(graph, members)
    able = [found.positions[number].tolist() for number in found.class_of]
    assert able == [[0, 1, 2]] * 3 + [[1, 2]] + [[0, 1, 2]] + [[1]]
    assert len(found.positions) == 3, "many amounts are few classes"
    unlimited = capable(graph, members_of(2))
    assert len(unlimited.positions) == 1
    with pytest.raises(ContextError, match=r"task 5 \(work\) needs .* and 25 bytes of memory, which"):
        capable(graph, Members(1, (members.infos[0], members.infos[2])))


def test_no_tasks():
    assert len(spread(GraphBuilder().build(), members_of(2), in_turn)) == 0
