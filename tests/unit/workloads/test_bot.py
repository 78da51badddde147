from daws.workloads import parse_workload


def test_independent_tasks_without_objects():
    graph = parse_workload("bot:tasks=10").build(1, 1, 0)
    assert (graph.task_count, graph.object_count, graph.edge_count) == (10, 0, 0)


def test_outputs_when_asked_for():
    graph = parse_workload("bot:tasks=10,output-mb=1,spread=constant").build(1, 1, 0)
    assert graph.object_bytes.tolist() == [1_000_000] * 10
    assert graph.external_count == 0
