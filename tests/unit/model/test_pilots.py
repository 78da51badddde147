import pytest

from daws.model.errors import UsageError
from daws.model.pilots import Demand, Resource, Stage, by_wait, request, usable

SMALL = Resource("small", cores=4, nodes=10, walltime_s=1000, waits=((16, 50.0), (64, 500.0)))
LARGE = Resource("large", cores=16, nodes=2, waits=((1024, 100.0),))


def test_experience_depends_on_the_size_of_a_job():
    assert [SMALL.wait_s(cores) for cores in (1, 16, 17, 64, 10_000)] == [50, 50, 500, 500, 500]
    assert Resource("new", 4, 4).wait_s(8) == 0


def test_stages_run_one_after_the_other():
    demand = Demand((Stage(100, 10.0), Stage(1, 7.0)))
    assert (demand.peak_cores, demand.longest_s) == (100, 10.0)
    assert [demand.run_s(cores) for cores in (100, 50, 30)] == [17, 27, 47]
    assert Demand(()).peak_cores == Demand(()).run_s(4) == 0


def test_resources_are_tried_by_their_waits_and_only_if_every_task_fits():
    assert usable((LARGE, SMALL), Demand((Stage(8, 10.0),))) == [0, 1]
    assert by_wait((LARGE, SMALL), [0, 1], 16) == [1, 0]
    assert by_wait((LARGE, SMALL), [0, 1], 17) == [0, 1]
    assert usable((LARGE, SMALL), Demand((Stage(8, 10.0),), widest=5)) == [0]
    assert usable((LARGE, SMALL), Demand((Stage(8, 1000.0),))) == [0]
    with pytest.raises(UsageError, match=r"the widest needs 17 core\(s\) of one node, the longest 10 s"):
        usable((LARGE, SMALL), Demand((Stage(8, 10.0),), widest=17))


def test_a_request_stays_within_what_the_resource_allows():
    demand = Demand((Stage(8, 300.0),), widest=2)
    asked = request(SMALL, 1, 1000, 5000, demand)
    assert (asked.resource, asked.cores, asked.walltime_s, asked.drain_s) == (1, 40, 1000, 300)
    assert request(SMALL, 1, 1, 5, demand).cores == 2
