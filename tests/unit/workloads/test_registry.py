import pytest

from daws.model.errors import WorkloadError
from daws.workloads import KINDS, describe_kinds, parse_workload

SMALL = ["bot:tasks=50", "fan-in:tasks=50", "fan-out:tasks=50", "pipeline:tasks=53", "all-pairs:files=7"]
SMALL += ["image-stacking:tasks=50,degree=4", "random:tasks=50,layers=5"]
FOR_PILOTS = ["skeleton", "ensemble"]
FAMILIES = ["cybershake", "epigenomics", "inspiral", "montage", "sipht", "moldyn", "fmri"]


def test_every_kind_is_there():
    shapes = ["bot", "fan-in", "fan-out", "pipeline", "all-pairs", "image-stacking", "random"]
    assert list(KINDS) == [*shapes, *FOR_PILOTS, *FAMILIES]
    assert [text.split(":")[0] for text in SMALL] == shapes


@pytest.mark.parametrize("text", SMALL)
def test_every_kind_makes_a_sound_graph_that_depends_on_the_seed_alone(text: str):
    graph = parse_workload(text + ",spread=uniform").build(2, 2, 9)
    graph.check()
    assert graph == parse_workload(text + ",spread=uniform").build(2, 2, 9)
    assert graph != parse_workload(text + ",spread=uniform").build(2, 2, 10)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (*FOR_PILOTS, *FAMILIES)])
@pytest.mark.parametrize("output", ["", "output-mb=0", "output-mb=1"])
def test_the_smallest_of_each_kind(kind: str, output: str):
    few = "files=1" if kind == "all-pairs" else "tasks=1"
    layers = ["layers=1"] if kind == "random" else []
    graph = parse_workload(f"{kind}:" + ",".join(filter(None, [few, output, *layers]))).build(1, 1, 0)
    graph.check()
    assert graph.task_count == (2 if kind == "image-stacking" else 1)


@pytest.mark.parametrize("text", ["", "bag", "Bot:tasks=3", ":tasks=3", "x" * 10_000])
def test_unknown_kinds_are_refused_with_the_list(text: str):
    with pytest.raises(WorkloadError) as caught:
        parse_workload(text)
    assert str(caught.value).endswith("; workloads: " + ", ".join(KINDS))
    assert len(str(caught.value)) < 250


def test_space_around_the_parts_does_not_matter():
    assert parse_workload(" bot : tasks = 3 ") == parse_workload("bot:tasks=3")


def test_the_table_names_every_key_with_its_default():
    table = describe_kinds()
    for kind in KINDS.values():
        assert f"{kind.name}: {kind.help}" in table
        for parameter in kind.parameters:
            assert parameter.help in table
    assert "  degree     whole number      10              children of each task that is not a leaf" in table
    assert max(map(len, table.splitlines())) <= 120
