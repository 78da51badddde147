from daws.sim.cluster import cluster_of
from daws.sim.kernel import Kernel
from daws.sim.runlog import RunLog
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload


def test_every_task_has_a_run_after_those_of_its_parents():
    graph = parse_workload("random:tasks=200").build(1, 1, 0)
    logs: list[RunLog] = []
    settings = Settings(check=True)
    result, _ = simulate(
        graph, cluster_of(4, 2), parse_strategy("daws"), settings, prepare=lambda kernel: logs.append(RunLog(kernel))
    )
    log = logs[0]
    assert min(log.start_ns) >= 0
    assert [end - start for start, end in zip(log.start_ns, log.end_ns, strict=True)] == graph.length_ns.tolist()
    assert max(log.end_ns) / 1e9 == result.makespan_s
    assert set(log.node) == {0, 1, 2, 3}
    for task in range(graph.task_count):
        assert all(log.end_ns[parent] <= log.start_ns[task] for parent in graph.parents_of(task))


def test_listening_changes_nothing():
    graph = parse_workload("random:tasks=100").build(1, 1, 0)

    def listen(kernel: Kernel) -> None:
        RunLog(kernel)

    digests = [
        simulate(graph, cluster_of(3, 2), parse_strategy("daws"), Settings(digest=True), prepare=prepare)[0].digest
        for prepare in (None, listen)
    ]
    assert digests[0] == digests[1] != ""
