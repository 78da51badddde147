"""Shared links against progressive filling, and how long transfers take on them."""

from heapq import heappop, heappush
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.sim.fair import FairNetwork, Flow
from daws.sim.machine import Machine

SECOND_NS = 1_000_000_000
Wanted = tuple[int, int, float]


class World:
    """Time for a network: what was pushed happens in its turn."""

    def __init__(self, nodes: int = 4, tolerance: float = 0.0) -> None:
        self.heap: list[Any] = []
        self.now_ns = 0
        self.network = FairNetwork(100.0, self.push, tolerance)
        self.machines = [Machine(NodeInfo(i, (ExecutorClass(1),))) for i in range(nodes)]
        self.ended: dict[int, float] = {}

    def push(self, at_ns: int, to: int, event: Any) -> None:
        heappush(self.heap, (at_ns, len(self.heap), id(event), event))

    def send(self, number: int, source: int, to: int, size: int, at_s: float = 0.0, most: float = inf) -> None:
        def begin(_: object) -> None:
            self.network.begin(
                self.machines[source],
                self.machines[to],
                size,
                most,
                self.now_ns,
                lambda now_ns: self.end(number, now_ns),
            )

        self.push(int(at_s * SECOND_NS), 0, begin)

    def end(self, number: int, now_ns: int) -> None:
        self.ended[number] = now_ns / SECOND_NS

    def run(self) -> dict[int, float]:
        while self.heap:
            self.now_ns, _, _, event = heappop(self.heap)
            event(self)
        return {number: round(self.ended[number], 3) for number in sorted(self.ended)}


def test_one_transfer_has_the_link_to_itself():
    world = World()
    world.send(1, 0, 1, 200)
    assert world.run() == {1: 2.0}


def test_two_out_of_one_node_share_its_link_until_one_ends():
    world = World()
    world.send(1, 0, 1, 100)
    world.send(2, 0, 2, 200)
    assert world.run() == {1: 2.0, 2: 3.0}


def test_who_comes_later_slows_down_who_is_there():
    world = World()
    world.send(1, 0, 3, 200)
    world.send(2, 1, 3, 100, at_s=1.0)
    assert world.run() == {1: 3.0, 2: 3.0}


def test_both_directions_are_apart():
    world = World()
    world.send(1, 0, 1, 100)
    world.send(2, 1, 0, 100)
    assert world.run() == {1: 1.0, 2: 1.0}


def test_what_one_cannot_use_is_for_the_others():
    """Three into node 3; one of them is held back at its source by two others."""
    world = World(6)
    world.send(1, 0, 3, 100)
    for number, to in ((2, 4), (3, 5), (4, 1)):
        world.send(number, 0, to, 100)
    world.send(5, 2, 3, 150)
    assert world.run() == {1: 4.0, 2: 4.0, 3: 4.0, 4: 4.0, 5: 2.0}


def test_a_limit_of_its_own():
    world = World()
    world.send(1, 0, 1, 100, most=20.0)
    world.send(2, 0, 2, 80)
    assert world.run() == {1: 5.0, 2: 1.0}


def test_nothing_takes_no_time():
    world = World()
    world.send(1, 0, 1, 0)
    assert world.run() == {1: 0.0}


def filled(wanted: list[Wanted]) -> list[float]:
    """Progressive filling: all rates grow together; those on a full link, or at their limit, stop."""
    rates, growing = [0.0] * len(wanted), set(range(len(wanted)))
    links = [("out", node) for node, _, _ in wanted] + [("in", node) for _, node, _ in wanted]
    while growing:
        step = min(wanted[one][2] - rates[one] for one in growing)
        for side, node in set(links):
            own = [one for one in range(len(wanted)) if wanted[one][0 if side == "out" else 1] == node]
            rising = growing.intersection(own)
            if rising:
                step = min(step, (100.0 - sum(rates[one] for one in own)) / len(rising))
        for one in growing:
            rates[one] += step
        full = {
            (side, node)
            for side, node in set(links)
            if sum(rate for rate, want in zip(rates, wanted, strict=True) if want[0 if side == "out" else 1] == node)
            > 100.0 - 1e-6
        }
        growing = {
            one
            for one in growing
            if ("out", wanted[one][0]) not in full
            and ("in", wanted[one][1]) not in full
            and rates[one] < wanted[one][2] - 1e-6
        }
    return rates


wishes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(5, 9), st.sampled_from([10.0, 40.0, 1e9])), min_size=1, max_size=16
)


def begun(wanted: list[Wanted], gone: int, tolerance: float = 0.0) -> tuple[World, list[Flow], list[Wanted]]:
    """All of these transfers begin at once; the first few have ended since."""
    world = World(10, tolerance)
    for source, to, most in wanted:
        world.network.begin(world.machines[source], world.machines[to], 10**9, most, 0, lambda now_ns: None)
    flows = [flow for link in world.network.outs.values() for flow in link.flows]
    machine_of = {
        link: machine.info.id for links in (world.network.outs, world.network.ins) for machine, link in links.items()
    }
    for flow in flows[: min(gone, len(flows) - 1)]:
        flow.left_bytes = 0.0
        flow.since_ns = flow.armed_ns = 1
        world.network._look_at(flow, 1)
    left = [flow for flow in flows if flow.armed_ns >= 0]
    return world, left, [(machine_of[flow.source], machine_of[flow.to], flow.most) for flow in left]


@settings(max_examples=300)
@given(wishes, st.integers(0, 8))
def test_rates_are_max_min_fair(wanted: list[Wanted], gone: int):
    _, flows, left = begun(wanted, gone)
    assert [flow.rate for flow in flows] == pytest.approx(filled(left), rel=1e-6)


@settings(max_examples=300)
@given(wishes, st.integers(0, 8))
def test_with_a_tolerance_they_are_nearly_so_and_no_link_carries_more_than_it_can(wanted: list[Wanted], gone: int):
    world, flows, left = begun(wanted, gone, tolerance=0.01)
    assert [flow.rate for flow in flows] == pytest.approx(filled(left), rel=0.1)
    for link in (*world.network.outs.values(), *world.network.ins.values()):
        assert sum(flow.rate for flow in link.flows) <= 100.0 + 1e-6
