import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daws.model.context import parse_context
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.strategy.assign.data import AssignData
from daws.strategy.decisions import Site
from tests.unit.strategy.fakes import members_of

NODES = 4


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, Site]:
    builder = GraphBuilder()
    outside = [builder.add_external(size) for size in draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))]
    places = draw(st.lists(st.integers(-1, NODES - 1), min_size=len(outside), max_size=len(outside)))
    made: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        inputs = draw(st.lists(st.sampled_from(outside + made), max_size=4))
        context = parse_context(draw(st.sampled_from(["", "", "gpu"])))
        made += builder.add_task("work", 1, inputs, [7], context).outputs
    members = members_of(NODES, contexts={1: "gpu", 3: "gpu>any"})
    return builder.build(), Site(members, 1e9, np.array(places, np.int64), 1)


@given(cases())
def test_each_task_goes_to_most_of_its_outside_bytes(case: tuple[Graph, Site]):
    graph, site = case
    homes = AssignData().plan(graph, site).homes.tolist()
    turn = {"": 0, "gpu": 0}
    for task, home in enumerate(homes):
        context = graph.contexts[graph.context[task]]
        able = [0, 2, 3] if context is None else [1, 3]
        held = dict.fromkeys(able, 0)
        for object_ in graph.inputs_of(task).tolist():
            if object_ >= graph.external_start:
                place = int(site.places[object_ - graph.external_start])
                if place in able:
                    held[place] += int(graph.object_bytes[object_])
        expected = able[turn[str(context or "")] % len(able)]
        turn[str(context or "")] += 1
        if any(held.values()):
            expected = max(held, key=lambda place: (held[place], -place))
        assert home == expected
        reasons = AssignData().explain(graph, site, task)
        assert reasons["choice"] == home
        assert reasons["held_bytes"] == {place: size for place, size in held.items() if size}
