import pytest

from daws.workloads import parse_workload


@pytest.mark.parametrize(("tasks", "degree"), [(1, 10), (2, 10), (11, 10), (12, 10), (100, 3), (7, 1)])
def test_one_tree_with_one_root(tasks: int, degree: int):
    graph = parse_workload(f"fan-out:tasks={tasks},degree={degree}").build(1, 1, 0)
    graph.check()
    assert graph.parents_of(0).tolist() == []
    assert [graph.parents_of(task).tolist() for task in range(1, tasks)] == [
        [(t - 1) // degree] for t in range(1, tasks)
    ]
    children = [len(graph.children_of(task)) for task in range(tasks)]
    # All inner tasks are full but perhaps the last of them.
    inner = [count for count in children if count]
    assert all(count == degree for count in inner[:-1])
    assert sum(children) == graph.edge_count == tasks - 1
