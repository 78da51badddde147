from daws.workloads import parse_workload


def test_four_stages():
    graph = parse_workload("ensemble:simulations=3,analysis-cores=8").build(1, 1, 0)
    graph.check()
    assert graph.task_count == 8 and graph.external_count == 1
    assert graph.levels().tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    assert graph.parents_of(4).tolist() == [1]
    assert graph.parents_of(6).tolist() == [3, 4, 5]
    assert graph.parents_of(7).tolist() == [6]
    assert graph.cores.tolist() == [1] * 6 + [8, 1]
    assert graph.critical_path_ns() == 870_000_000_000
