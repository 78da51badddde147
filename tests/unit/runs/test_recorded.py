"""Live runs as workflows, from timelines that are made up."""

from daws.formats import Workflow
from daws.runs.recorded import parts_of, workflow_of_run
from daws.runs.timeline import Timeline
from daws.wire.notes import News, Row, RunLinks


def row(task: int, start_ns: int, end_ns: int, written: int = 10, good: int = 1, cores: int = 1) -> Row:
    return (task, 0, 0, 0, start_ns, end_ns, cores, 0, written, good)


def timeline_of(rows: list[Row], *links: RunLinks) -> Timeline:
    timeline = Timeline(keeps_links=True)
    timeline.learn(0, "f")
    timeline.add(News(0, tuple(rows), 0, 0, links))
    return timeline


def edges(workflow: Workflow) -> set[tuple[str, str]]:
    graph, ids = workflow.graph, workflow.task_ids
    return {
        (ids[parent], ids[task])
        for task in range(graph.task_count)
        for parent in graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]]
    }


def test_links_are_kept_on_request_alone():
    timeline = Timeline()
    timeline.add(News(0, (), 0, 0, (RunLinks(1, 0),)))
    assert timeline.links == []


def test_what_a_task_read_makes_an_edge_with_its_size():
    timeline = timeline_of(
        [row(0, 0, 100), row(1, 100, 250), row(2, 300, 400, cores=2)],
        RunLinks(1, 100, ((0, 10),), ((1, 7), (50, 8))),
        RunLinks(2, 300, ((50, 8), (77, 1000)), ((2, 10),), (), 64),
    )
    workflow, execution = workflow_of_run(timeline, "run", 1, 2)
    graph = workflow.graph
    assert graph.length_ns.tolist() == [100, 150, 100] and graph.cores.tolist() == [1, 1, 2]
    assert edges(workflow) == {("f_00000000", "f_00000001"), ("f_00000001", "f_00000002")}
    assert graph.object_bytes.tolist() == [10, 7, 8, 10, 1000] and graph.external_count == 1
    assert workflow.file_names[-1] == "put_00000000" and "" not in workflow.file_names
    assert workflow.memory_bytes.tolist() == [0, 0, 64]
    assert list(execution.start_ns) == [0, 100, 300] and list(execution.end_ns) == [100, 250, 400]


def test_a_task_that_waited_for_what_it_created_is_several():
    timeline = timeline_of(
        [row(11, 130, 150), row(12, 150, 190), row(13, 260, 300), row(1, 100, 160), row(2, 320, 330)],
        RunLinks(1, 100, ((90, 5),), ((1, 10),), ((30, (11, 12), (11, 12)), (50, (13,), (13,)), (60, (), ()))),
        RunLinks(2, 320, ((1, 10),), ((2, 3),)),
    )
    workflow, execution = workflow_of_run(timeline, "run", 1, 2)
    of = dict(zip(workflow.task_ids, workflow.graph.length_ns.tolist(), strict=True))
    creator = next(name for name, length_ns in of.items() if length_ns == 30)
    assert (of[creator], of[f"{creator}.2"], of[f"{creator}.3"]) == (30, 20, 10)
    found = edges(workflow)
    children = {child for parent, child in found if parent == creator} - {f"{creator}.2"}
    assert len(children) == 2 and {(child, f"{creator}.2") for child in children} <= found
    (third,) = {child for parent, child in found if parent == f"{creator}.2"} - {f"{creator}.3"}
    assert (third, f"{creator}.3") in found
    assert sum(parent == f"{creator}.3" for parent, _ in found) == 1  # whoever reads the result
    start = dict(zip(workflow.task_ids, execution.start_ns, strict=True))
    assert (start[creator], start[f"{creator}.2"], start[f"{creator}.3"]) == (0, 90, 200)


def test_a_task_that_did_not_wait_for_what_it_created_is_cut_where_the_first_began():
    timeline = timeline_of([row(11, 140, 150), row(1, 100, 160)], RunLinks(1, 100, (), ((1, 10),), ((60, (11,), ()),)))
    parts = parts_of(timeline)
    assert [(part.task, part.length_ns, part.after) for part in parts] == [(1, 40, set()), (11, 10, {0}), (1, 20, {0})]


def test_a_task_that_was_tried_again_counts_by_the_run_that_went_well():
    timeline = timeline_of(
        [row(1, 0, 10, 0, good=0), row(1, 20, 50), row(2, 60, 70, 0, good=0), row(2, 80, 95, 0, good=0)],
        RunLinks(2, 80, ((1, 10),)),
    )
    workflow, _ = workflow_of_run(timeline, "run", 1, 1)
    assert workflow.graph.length_ns.tolist() == [30, 15] and edges(workflow) == {("f_00000000", "f_00000001")}
    assert workflow.graph.object_bytes.tolist() == [10]


def test_what_would_be_a_circle_is_cut():
    timeline = timeline_of(
        [row(1, 0, 10), row(2, 20, 50)], RunLinks(1, 0, ((2, 10),), ((1, 10),)), RunLinks(2, 20, ((1, 10),), ((2, 10),))
    )
    workflow, _ = workflow_of_run(timeline, "run", 1, 1)
    workflow.graph.check()
    assert workflow.graph.task_count == 2 and len(edges(workflow)) == 1


def test_children_that_never_ran_are_left_out():
    timeline = timeline_of([row(1, 0, 10)], RunLinks(1, 0, (), ((1, 10),), ((5, (11,), (11,)), (10, (), ()))))
    assert [(part.length_ns, part.after) for part in parts_of(timeline)] == [(5, set()), (5, {0})]
