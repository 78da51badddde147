import pytest

from daws.model.pilots import Demand, PilotRequest, Resource, Stage
from daws.strategy.acquire.by_prediction import AcquireByPrediction
from daws.strategy.acquire.many_small import AcquireManySmall
from daws.strategy.acquire.per_resource import AcquirePerResource
from daws.strategy.decisions import Acquire, PilotView

SLOW = Resource("slow", cores=16, nodes=100, waits=((1600, 9000.0),))
FAST = Resource("fast", cores=16, nodes=100, waits=((64, 60.0), (1600, 20_000.0)))
BAG = Demand((Stage(64, 1200.0),))


def view(demand: Demand = BAG, queued: tuple[int, int] = (0, 0), active: tuple[int, int] = (0, 0)) -> PilotView:
    return PilotView(demand, (SLOW, FAST), queued, active)


def test_one_pilot_per_resource_can_each_do_everything():
    asked = AcquirePerResource(pilots=2).ask(view())
    assert asked == (PilotRequest(1, 32, 2700, 1200), PilotRequest(0, 32, 2700, 1200))


def test_with_one_pilot_the_resource_of_the_shortest_wait_is_asked():
    assert AcquirePerResource(pilots=1).ask(view()) == (PilotRequest(1, 64, 1500, 1200),)
    assert AcquirePerResource(pilots=1, concurrency=0.25).ask(view())[0].cores == 16


def test_a_new_pilot_is_asked_for_only_when_none_is_left():
    for answer in (AcquirePerResource(), AcquireByPrediction()):
        assert answer.ask(view(queued=(1, 0))) == answer.ask(view(active=(0, 1))) == ()


def test_many_small_pilots_are_kept_up_while_there_is_work_for_them():
    answer = AcquireManySmall(pilots_each=3, pilot_cores=16, rounds=2, spare_s=60)
    assert answer.ask(view()) == (PilotRequest(1, 16, 2460, 1200),) * 2 + (PilotRequest(0, 16, 2460, 1200),) * 2
    large = Demand((Stage(6400, 1200.0),))
    assert [one.resource for one in answer.ask(view(large))] == [1, 1, 1, 0, 0, 0]
    assert [one.resource for one in answer.ask(view(large, queued=(1, 2), active=(1, 1)))] == [0]
    assert answer.ask(view(queued=(2, 5))) == ()


def test_prediction_weighs_the_waits_of_jobs_of_each_size():
    # 64 cores at the fast one wait a minute; half of them would have to wait for the slow one.
    assert AcquireByPrediction().ask(view()) == (PilotRequest(1, 64, 1500, 1200),)
    # So large a job waits long at the fast one and less at the slow one.
    assert [one.resource for one in AcquireByPrediction().ask(view(Demand((Stage(1000, 1200.0),))))] == [0]
    # Two that wait equally long are no better than one ... unless one has too few cores.
    twin = Resource("twin", cores=16, nodes=2, waits=((1600, 60.0),))
    both = PilotView(BAG, (twin, Resource("twin-2", cores=16, nodes=2, waits=((1600, 60.0),))), (0, 0), (0, 0))
    assert len(AcquireByPrediction().ask(both)) == 2


@pytest.mark.parametrize("answer", [AcquirePerResource(), AcquireManySmall(), AcquireByPrediction()])
def test_explanations_agree_with_choices(answer: Acquire):
    for one in (view(), view(active=(1, 2))):
        names = [(one.resources[asked.resource].name, asked.cores, asked.walltime_s) for asked in answer.ask(one)]
        assert answer.explain(one)["choice"] == names
