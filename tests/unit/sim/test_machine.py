"""Machines own their objects, and other nodes fetch from machines, whatever nodes believe."""

from typing import Any

import pytest

from daws.core.effects import FetchObjects
from daws.core.events import ObjectsFetched, ObjectsLost, ObjectsPut
from daws.core.node import NodeCore
from daws.core.objects import own_objects
from daws.model.cluster import NodeInfo
from daws.model.task import INLINE_BYTES, Input, ObjectTransfer, TaskSpec
from daws.sim.cluster import cluster_of
from daws.sim.machine import Machine
from daws.sim.simulate import FAIR, SIMPLE, Settings, make_kernel
from daws.strategy import parse_strategy
from daws.wire.messages import NewTasks
from daws.wire.store import Submit
from daws.workloads import parse_workload

BIG = INLINE_BYTES + 1


def machine() -> Machine:
    return Machine(NodeInfo(0, ()))


def test_objects_come_and_go():
    one = machine()
    assert not one.objects
    one.change_objects(ObjectsPut(((1, BIG), (2, BIG))))
    one.change_objects(ObjectsFetched((ObjectTransfer(3, BIG, 7),), (ObjectTransfer(4, BIG, 7),)))
    one.keep([5])
    assert one.objects == {1, 2, 3, 5}
    one.change_objects(ObjectsLost((1, 5)))
    assert one.objects == {2, 3}
    assert not machine().objects, "each has its own"


def test_objects_that_come_with_new_tasks_are_kept_unless_they_travel_inside_records():
    one = machine()
    outputs = (Input(8, BIG, 1, (0,), b""), Input(9, 10, 1, (0,), b"0123456789"))
    one.change_objects(NewTasks(-1, 0, (Submit(TaskSpec(1), (), 0, outputs),)))
    assert one.objects == {8}


def test_losing_an_object_that_is_not_there_changes_nothing():
    one = machine()
    one.change_objects(ObjectsLost((1,)))
    assert not one.objects


class Monitor:
    """In a node's place: notes its events and does nothing."""

    def __init__(self):
        self.events: list[Any] = []

    def step(self, now_ns, events, out):
        self.events.extend(events)


def fetches(network, there, believed):
    """What node 1 hears when it fetches object 0 from node 0."""
    graph = parse_workload("fan-out:tasks=5,degree=4,output-mb=1").build(2, 1, 0)
    kernel = make_kernel(graph, cluster_of(2, 1), parse_strategy("daws"), Settings(network=network))
    source, reader = kernel.seats[0], kernel.seats[1]
    if there:
        source.keep([0])
    source.core = NodeCore(source.info, kernel.strategy, kernel.config, 0)
    if believed:
        own_objects(source.core).sizes = {0: 1_000_000}
    monitor: Any = Monitor()
    reader.core = monitor
    kernel.transfers.fetch(kernel, reader, 1, 0, FetchObjects((ObjectTransfer(0, 1_000_000, 0),)))
    kernel.run_on(60_000_000_000)
    (event,) = monitor.events
    return event


@pytest.mark.parametrize("network", [SIMPLE, FAIR])
@pytest.mark.parametrize("believed", [False, True])
def test_fetches_are_served_from_the_machine_and_not_from_what_its_node_believes(network, believed):
    wanted = ObjectTransfer(0, 1_000_000, 0)
    assert fetches(network, True, believed) == ObjectsFetched((wanted,), ())
    assert fetches(network, False, believed) == ObjectsFetched((), (wanted,))
