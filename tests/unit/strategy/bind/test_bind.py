import numpy as np
import pytest

from daws.model.pilots import PilotRequest
from daws.strategy.bind.dealing import dealt
from daws.strategy.bind.early import BindEarly
from daws.strategy.bind.late import BindLate
from daws.strategy.bind.resource import BindResource
from daws.strategy.decisions import Bind
from daws.workloads import parse_workload

GRAPH = parse_workload("bot:tasks=12").build(1, 1, seed=0)
PILOTS = (PilotRequest(1, 4, 100), PilotRequest(0, 2, 100), PilotRequest(1, 2, 100))


def test_tasks_are_dealt_by_cores_and_in_turn():
    assert dealt(8, [1, 1]).tolist() == [0, 1] * 4
    assert np.bincount(dealt(80, [4, 2, 2])).tolist() == [40, 20, 20]
    # Every stretch of tasks is spread, not only the whole.
    assert set(dealt(80, [4, 2, 2])[10:18]) == {0, 1, 2}


def test_early_ties_to_a_pilot():
    found = BindEarly().bind(GRAPH, PILOTS)
    assert found.shares == (0, 1, 2)
    assert found.share_of is not None and np.bincount(found.share_of).tolist() == [6, 3, 3]


def test_resource_ties_to_all_pilots_of_a_resource():
    found = BindResource().bind(GRAPH, PILOTS)
    assert found.shares == (0, 1, 0)
    assert found.share_of is not None and np.bincount(found.share_of).tolist() == [9, 3]


def test_late_ties_nothing():
    found = BindLate().bind(GRAPH, PILOTS)
    assert found.shares == (0, 0, 0) and found.share_of is None


@pytest.mark.parametrize("answer", [BindEarly(), BindResource(), BindLate()])
def test_explanations_agree_with_choices(answer: Bind):
    share_of = answer.bind(GRAPH, PILOTS).share_of
    for task in range(GRAPH.task_count):
        assert answer.explain(GRAPH, PILOTS, task)["choice"] == (0 if share_of is None else share_of[task])
