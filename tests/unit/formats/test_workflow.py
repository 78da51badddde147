from daws.formats import workflow_of
from daws.workloads import parse_workload
from tests.unit.formats.samples import DIAMOND


def test_scaling_leaves_everything_else(read):
    found = read(DIAMOND)
    scaled = found.scaled(time=0.5, data=2)
    assert scaled.graph.length_ns.tolist() == [length // 2 for length in found.graph.length_ns.tolist()]
    assert scaled.graph.object_bytes.tolist() == [2 * size for size in found.graph.object_bytes.tolist()]
    assert scaled.graph.cores.tolist() == found.graph.cores.tolist()
    assert (scaled.task_ids, scaled.notes) == (found.task_ids, found.notes)
    assert found.scaled().graph is found.graph


def test_names_are_made_up_for_graphs(read):
    workflow = workflow_of(parse_workload("all-pairs:files=2").build(1, 1, 0), "pairs")
    assert len(set(workflow.task_ids)) == workflow.graph.task_count
    assert len(set(workflow.file_names)) == workflow.graph.object_count
    assert workflow.command_of(0) == ()
    assert repr(workflow) == "<Workflow 'pairs' (graph) of 4 tasks>"
