import pytest

from daws.workloads import parse_workload


@pytest.mark.parametrize(("tasks", "degree"), [(1, 10), (2, 10), (11, 10), (12, 10), (100, 3), (7, 1)])
def test_is_fan_out_reversed(tasks: int, degree: int):
    fan_in, fan_out = (
        parse_workload(f"{kind}:tasks={tasks},degree={degree}").build(1, 1, 0) for kind in ("fan-in", "fan-out")
    )
    fan_in.check()
    for task in range(tasks):
        mirrored = sorted(tasks - 1 - child for child in fan_out.children_of(tasks - 1 - task).tolist())
        assert fan_in.parents_of(task).tolist() == mirrored
    assert fan_in.children_of(tasks - 1).tolist() == []
