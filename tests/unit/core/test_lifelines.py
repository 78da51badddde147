"""Work that finds its taker: thieves that are remembered, and invitations."""

from typing import Any

from daws.core.effects import CALL, POLL, CallStore, StartRun
from daws.core.events import Leave, NewStrategy, RunEnded
from daws.core.lifelines import CALL_NS
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.cluster import Members
from daws.model.task import CLIENT
from daws.testing import Driver, members_of, ready
from daws.wire.messages import STOLEN, Invitation, Offer, StealDenied, StealRequest, Submission, SubmissionTaken, Taken
from daws.wire.store import Committed, Granted, Leased

TICK = 0


def with_tasks(strategy: str, *tasks: Any, cores: int = 1, members: Members | int = 4, **more: Any) -> Driver:
    """A node of four with these tasks, the first of which it runs."""
    node = Driver(strategy, members=members, cores=cores, **more)
    submit(node, *tasks)
    return node


def submit(node: Driver, *tasks: Any, batch: int = 0) -> None:
    node.give(Submission(CLIENT, batch, tuple([ready(one) if isinstance(one, int) else one for one in tasks])))
    node.expect(SubmissionTaken)


def tick(node: Driver) -> None:
    node.fire(TICK)
    node.answer(node.expect(CallStore), Leased())


def invited(node: Driver) -> dict[int, int]:
    """Who was called just now, and for how many tasks."""
    sent = [one for one in node.effects if isinstance(getattr(one, "message", None), Invitation)]
    node.drop(Invitation)
    return {one.to: one.message.count for one in sent}  # type: ignore[union-attr]


def test_two_reservations_for_each_task_that_cannot_run_at_once():
    with with_tasks("sparrow", 0, 1, 2) as node:
        node.expect(StartRun, task=0)
        guests = invited(node)
        assert sum(guests.values()) == 4 and 0 not in guests and len(guests) == 3
        submit(node, 3, batch=1)
        assert sum(invited(node).values()) == 2, "only for the new one"


def test_whoever_comes_gets_the_first_task_and_the_others_nothing():
    with with_tasks("sparrow", 0, 1) as node:
        node.expect(StartRun, task=0)
        invited(node)
        node.give(StealRequest(1))
        assert [one.spec.id for one in node.expect(Offer, to=1, why=STOLEN).tasks] == [1]
        node.give(StealRequest(2))
        node.expect(StealDenied, to=2)
        submit(node, 5, batch=1)
        assert sum(invited(node).values()) == 2, "it is not taken for the one that has gone"


def test_an_idle_node_comes_when_it_is_called_and_asks_one_at_a_time():
    with Driver("sparrow", members=4, cores=1, node=3) as node:
        assert POLL not in node.timers or node.core.search.poll_armed
        node.give(Invitation(1, 2), Invitation(2, 1))
        node.expect(StealRequest, to=1, waits=False)
        node.give(StealDenied(1))
        node.expect(StealRequest, to=2)
        node.give(StealDenied(2))
        assert not node.core.lifelines.invitations and not node.core.search.poll_armed
        node.give(Invitation(77, 1))  # who is no member was never here


def test_a_busy_node_keeps_its_invitations_until_it_has_time():
    with with_tasks("sparrow", 0, node=3) as node:
        run = node.expect(StartRun, task=0)
        node.give(Invitation(2, 1))
        node.give(RunEnded(0, run.run, 5, ()))
        node.expect(StealRequest, to=2)
        node.answer(node.expect(CallStore), Committed(-1))
        node.give(Offer(2, 1, STOLEN, (ready(9),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        node.expect(StartRun, task=9)
        node.expect(Taken)


def test_lost_invitations_are_repeated():
    with with_tasks("sparrow", 0, 1, config=NodeConfig(lease_ns=1000 * SECOND_NS)) as node:
        node.expect(StartRun, task=0)
        assert sum(invited(node).values()) == 2
        for wait_ns in (CALL_NS, 2 * CALL_NS, 4 * CALL_NS):
            assert node.timers[CALL] == node.now_ns + wait_ns, "while no task ends here, after twice as long each time"
            node.fire(CALL)
            assert sum(invited(node).values()) == 2


def test_a_lost_answer_does_not_keep_a_guest_waiting_for_ever():
    with Driver("sparrow", members=4, cores=1, node=3) as node:
        node.give(Invitation(1, 1), Invitation(2, 1))
        node.expect(StealRequest, to=1)
        tick(node)
        tick(node)
        node.expect(StealRequest, to=2)


def test_a_dispatcher_remembers_who_asked_and_calls_them_in_turn():
    with Driver("data-diffusion", members=4, cores=1) as node:
        for thief in (2, 1):
            node.give(StealRequest(thief, waits=True))
            node.expect(StealDenied, to=thief)
        submit(node, 0, 1, 2, 3)
        node.expect(StartRun, task=0)
        assert [one.spec.id for one in node.expect(Offer, to=2).tasks] == [1]
        assert [one.spec.id for one in node.expect(Offer, to=1).tasks] == [2]
        assert not node.core.lifelines.thieves and node.core.queues.shared.count == 1
        node.give(StealRequest(3))
        assert [one.spec.id for one in node.expect(Offer, to=3).tasks] == [3]
        node.give(StealRequest(3))
        node.expect(StealDenied, to=3)
        assert not node.core.lifelines.thieves, "it does not wait"


def test_who_has_left_its_name_asks_no_more_until_it_got_something():
    with Driver("data-diffusion", members=4, cores=1, node=2) as node:
        node.fire(POLL)
        node.expect(StealRequest, to=0, waits=True)
        node.give(StealDenied(0))
        assert node.core.lifelines.named and POLL not in node.timers
        node.give(Offer(0, 1, STOLEN, (ready(9),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        run = node.expect(StartRun, task=9)
        node.expect(Taken)
        node.give(RunEnded(9, run.run, 5, ()))
        node.answer(node.expect(CallStore), Committed(-1))  # it may have made something ready
        node.expect(StealRequest, to=0, waits=True)


def test_a_name_that_was_forgotten_is_left_again():
    with Driver("data-diffusion", members=4, cores=1, node=2) as node:
        node.fire(POLL)
        node.expect(StealRequest, to=0)
        node.give(StealDenied(0))
        node.fire(CALL)
        node.expect(StealRequest, to=0, waits=True)


def test_who_has_gone_or_cannot_run_it_is_not_called():
    members = members_of(4, 1, {2: "gpu"})
    with Driver("data-diffusion", members=members) as node:
        node.give(StealRequest(77, waits=True), StealRequest(2, waits=True), StealRequest(1, waits=True))
        node.drop(StealDenied)
        submit(node, 0, 1)
        node.expect(StartRun, task=0)
        node.expect(Offer, to=1)
        assert list(node.core.lifelines.thieves or ()) == [2]


def test_another_strategy_or_a_farewell_ends_it_all():
    for event in (NewStrategy("mlb"), Leave()):
        with Driver("data-diffusion", members=4, cores=1, node=2) as node:
            node.give(StealRequest(1, waits=True))
            node.fire(POLL)
            node.give(StealDenied(0))
            node.give(event)
            assert not node.core.lifelines.thieves and not node.core.lifelines.named
            node.drop(object)
    with Driver("sparrow", members=4, cores=1, node=2) as node:
        node.give(NewStrategy("mlb"))
        node.give(Invitation(1, 1))
        assert not node.core.lifelines.invitations, "nobody here would come"
        node.drop(object)
