"""Copies of runs that take too long, for nodes that ask for work."""

from typing import Any

import pytest

from daws.core import replicas
from daws.core.effects import POLL, CallStore, StartRun
from daws.core.events import RunEnded
from daws.core.node import SECOND_NS
from daws.model.task import CLIENT, REPLICA, SUSPECT
from daws.testing import Driver, ready
from daws.wire.messages import (
    COPY,
    LoadQuery,
    LoadReply,
    Offer,
    StealDenied,
    StealRequest,
    Submission,
    SubmissionTaken,
)
from daws.wire.store import REFUSED, REPLICATE, Claim, Committed, Granted

MS = 1_000_000
STRATEGY = "constellation:replicate=stragglers,seen=2,quantile=0.5,slack=2,least-ms=20"


def running(*tasks: Any, strategy: str = STRATEGY, cores: int = 1) -> Driver:
    """A node that has seen two runs of 20 ms and has just started these."""
    node = Driver(strategy, members=4, cores=cores)
    for number in (100, 101):
        submit(node, number)
        run = node.expect(StartRun, task=number)
        node.give(RunEnded(number, run.run, 20 * MS, ()), later_ns=20 * MS)
        node.answer(node.expect(CallStore), Committed(-1))
        node.drop(StealRequest)
        node.core.search.stealing_since_ns = -1
    submit(node, *tasks)
    return node


def submit(node: Driver, *tasks: Any) -> None:
    made = tuple([ready(one) if isinstance(one, int) else one for one in tasks])
    node.give(Submission(CLIENT, made[0].spec.id, made))
    node.expect(SubmissionTaken)


def test_who_asks_and_finds_nothing_else_gets_a_copy_of_an_overdue_run_once():
    with running(1) as node:
        node.expect(StartRun, task=1)
        node.give(StealRequest(2), later_ns=40 * MS)
        node.expect(StealDenied, to=2)
        node.give(StealRequest(2), later_ns=1)
        offer = node.expect(Offer, to=2, why=COPY)
        assert [one.spec.id for one in offer.tasks] == [1] and node.core.replicas.copied == {1: 1}
        node.give(StealRequest(3), later_ns=1)
        node.expect(StealDenied, to=3)


def test_tasks_that_wait_come_before_copies_and_the_longest_over_time_first():
    with running(1, cores=2) as node:
        node.expect(StartRun, task=1)
        node.give(Submission(CLIENT, 7, (ready(2), ready(3))), later_ns=5 * MS)
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=2)
        node.give(StealRequest(2), later_ns=100 * MS)
        assert [one.spec.id for one in node.expect(Offer, to=2).tasks] == [3]
        copies = []
        for _ in range(2):
            node.give(StealRequest(3))
            copies += [one.spec.id for one in node.expect(Offer, to=3, why=COPY).tasks]
        assert copies == [1, 2]


def test_overdue_runs_count_as_something_to_steal():
    with running(1) as node:
        node.expect(StartRun, task=1)
        node.give(LoadQuery(2), later_ns=10 * MS)
        node.expect(LoadReply, to=2, stealable=0)
        node.give(LoadQuery(2), later_ns=90 * MS)
        node.expect(LoadReply, to=2, stealable=1)


@pytest.mark.parametrize("one", [ready(5, mode=REPLICA), ready(5, cores=2)])
def test_copies_of_copies_and_what_the_asking_node_cannot_run_are_none(one: Any):
    with running(5) as node:
        node.expect(StartRun, task=5)
        node.core.executors.running[5].ready = one
        node.give(StealRequest(2), later_ns=SECOND_NS // 2)
        node.expect(StealDenied, to=2)


def test_what_may_have_killed_a_node_is_not_run_twice():
    with running(5) as node:
        node.expect(StartRun, task=5)
        node.core.executors.running[5].ready = ready(5, mode=SUSPECT)
        node.give(StealRequest(2), later_ns=SECOND_NS // 2)
        node.expect(StealDenied, to=2)


@pytest.mark.parametrize("granted", [True, False])
def test_a_copy_that_comes_ends_the_search_for_work(granted: bool):
    with Driver(STRATEGY, members=4, cores=1) as node:
        node.fire(POLL)
        thief = node.expect(StealRequest)
        assert thief.sender == 0
        node.give(Offer(2, 1, COPY, (ready(9),)))
        call = node.expect_rows(Claim(9, 2, 0, 0, REPLICATE))
        node.answer(call, Granted(0, 0, REPLICA) if granted else REFUSED)
        assert node.core.search.stealing_since_ns == -1
        if granted:
            node.expect(StartRun, task=9)
            assert node.core.replicas.count == 1


def test_a_copy_that_waits_here_is_not_handed_on():
    with Driver(STRATEGY, members=4, cores=1) as node:
        submit(node, 1)
        node.expect(StartRun, task=1)
        node.give(Offer(2, 1, COPY, (ready(9),)))
        node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        node.give(StealRequest(3))
        node.expect(StealDenied, to=3)
        assert node.core.queues.shared.count == 1


def test_only_so_many_copies_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicas, "COPIED_MAX", 2)
    with running(1) as node:
        node.expect(StartRun, task=1)
        for task in (1, 77, 78):
            replicas.note_copy(node.core, task)
        assert node.core.replicas.copied == {1: 1, 78: 1}, "those that are neither queued nor run are forgotten first"


def test_without_such_a_strategy_nobody_looks_at_lengths():
    with running(1, strategy="constellation") as node:
        node.expect(StartRun, task=1)
        assert node.core.lengths.last is None and node.core.executors.running[1].since_ns == 0
        node.give(StealRequest(2), later_ns=SECOND_NS // 2)
        node.expect(StealDenied, to=2)
