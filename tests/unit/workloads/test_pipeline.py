import pytest

from daws.workloads import parse_workload


@pytest.mark.parametrize(
    ("tasks", "size"), [(1, 10), (10, 10), (9, 10), (11, 10), (20, 10), (25, 10), (29, 10), (21, 10), (5, 1), (7, 2)]
)
def test_pipes_of_the_asked_size(tasks: int, size: int):
    graph = parse_workload(f"pipeline:tasks={tasks},size={size}").build(1, 1, 0)
    graph.check()
    pipes = -(-tasks // size)
    assert graph.task_count == tasks
    # The first stage comes first; following each pipe to its end meets every task once.
    assert [len(graph.parents_of(task)) for task in range(tasks)] == [0] * pipes + [1] * (tasks - pipes)
    lengths = []
    for head in range(pipes):
        task, length = head, 1
        while len(graph.children_of(task)):
            (task,) = graph.children_of(task).tolist()
            length += 1
        lengths.append(length)
    assert lengths == [size] * (pipes - 1) + [tasks - size * (pipes - 1)]
