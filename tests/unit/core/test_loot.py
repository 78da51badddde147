"""What a dispatcher with an index hands over, and what is planned. (What other victims do: test_balancing.)"""

from daws.core.effects import STALL, CallStore, DropObject, Send, StartRun
from daws.core.events import RunEnded, TimerFired
from daws.core.lengths import own_lengths
from daws.core.node import SECOND_NS
from daws.model.context import Label
from daws.model.task import CLIENT, Ready
from daws.strategy.relax.above import STALL_NS
from daws.testing import Driver, ready
from daws.testing.build import fetched, object_at
from daws.wire.messages import Offer, StealDenied, StealRequest, Submission, SubmissionTaken


def dispatcher(policy: str, *tasks: Ready) -> Driver:
    node = Driver(f"data-diffusion:policy={policy},window=3", members=4, cores=1)
    node.give(Submission(CLIENT, 0, (ready(0),)))
    node.give(Submission(CLIENT, 1, tasks))
    node.drop(SubmissionTaken)
    node.expect(StartRun, task=0)
    return node


def handed(node: Driver, thief: int) -> int:
    node.give(StealRequest(thief))
    if not node.core.transfer.offers and any(
        isinstance(getattr(one, "message", None), StealDenied) for one in node.effects
    ):
        node.expect(StealDenied, to=thief)
        return -1
    [one] = node.expect(Offer, to=thief).tasks
    return one.spec.id


def test_each_gets_what_it_has_most_of_within_the_window():
    tasks = [
        ready(1, object_at(11, 3)),
        ready(2, object_at(12, 2)),
        ready(3, object_at(13, 3), object_at(14, 2)),
        ready(4, object_at(15, 1)),
    ]
    with dispatcher("max-compute-util", *tasks) as node:
        assert handed(node, 1) == 1, "it has nothing of the first three: the first"
        assert handed(node, 1) == 4, "all of it is there"
        assert handed(node, 2) == 2
        assert handed(node, 3) == 3
        assert handed(node, 3) == -1


def test_what_was_handed_out_is_remembered():
    with dispatcher("max-compute-util", *[ready(task, object_at(10 + task % 2, 3)) for task in (1, 2, 3, 4)]) as node:
        assert [handed(node, 1), handed(node, 1)] == [1, 3]
        assert [handed(node, 2), handed(node, 2)] == [2, 4]


def test_who_waits_for_hits_hands_over_nothing_of_which_another_has_more():
    with dispatcher("max-cache-hit", ready(1, object_at(11, 3)), ready(2, object_at(12, 77))) as node:
        assert handed(node, 1) == 2, "who had it is gone"
        assert handed(node, 2) == -1
        assert handed(node, 3) == 1


def test_planned_tasks_that_have_just_come_are_left_alone_for_a_part_of_their_length():
    with Driver("daws:settle=0.1", members=2, cores=1) as node:
        tasks = [ready(task, rank=task * SECOND_NS, home=0, planned=True) for task in (1, 2, 3, 4)]
        node.give(Submission(CLIENT, 0, tuple(tasks)))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=4)
        assert handed(node, 1) == -1
        node.give(later_ns=SECOND_NS // 10)
        assert handed(node, 1) == -1, "the first of them takes three seconds, for all that is known"
        node.give(later_ns=SECOND_NS // 5)
        assert handed(node, 1) == 3, "the most urgent"


def test_what_is_staged_behind_a_run_that_takes_long_can_be_stolen():
    with Driver("daws", members=3, cores=1) as node:
        task = ready(2, object_at(9, 2), rank=2, home=0, planned=True)
        node.give(Submission(CLIENT, 0, (task,)))
        node.drop(SubmissionTaken)
        node.expect_fetch(9, source=2)
        node.give(Submission(CLIENT, 1, (ready(1),)))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=1)
        node.give(fetched(9, 2))
        own_lengths(node.core).mean_run_ns = SECOND_NS
        assert handed(node, 1) == -1, "what runs will end soon, so far as is known"
        node.give(later_ns=2 * SECOND_NS)
        node.give(StealRequest(2, (Label("gpu"),)))
        node.expect(StealDenied, to=2)  # no executor of it could run this
        assert handed(node, 1) == 2
        node.drop(DropObject)
        assert not node.core.fetching.staged


def test_a_short_task_behind_a_long_run_stays_where_thieves_find_it():
    with Driver("flds", members=3, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, kind=7),)))
        node.drop(SubmissionTaken)
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, 1000))
        node.answer(node.expect(CallStore), None)
        node.drop(Send)
        node.give(Submission(CLIENT, 1, (ready(2), ready(3, kind=7))))  # how long the first of them takes nobody knows
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=2)
        assert not node.core.fetching.staged
        assert handed(node, 1) == 3


def behind_a_long_run(relax: str) -> Driver:
    """Task 2 has its input and waits for this node alone, while task 3 runs and does not end."""
    node = Driver(f"daws:relax={relax}", members=3, cores=1)
    node.give(Submission(CLIENT, 0, (ready(1),)))
    node.drop(SubmissionTaken)
    run = node.expect(StartRun, task=1).run
    node.give(RunEnded(1, run, 5_000_000))
    node.answer(node.expect(CallStore), None)
    node.give(Submission(CLIENT, 1, (ready(2, object_at(9, 2), rank=2, home=0, planned=True),)))
    node.drop(SubmissionTaken)
    node.drop(Send)
    node.expect_fetch(9, source=2)
    node.give(Submission(CLIENT, 2, (ready(3),)))
    node.drop(SubmissionTaken)
    node.expect(StartRun, task=3)
    node.give(fetched(9, 2), later_ns=1000)
    return node


def test_what_is_kept_for_its_data_is_shared_when_no_run_ends_for_a_while():
    with behind_a_long_run("above") as node:
        assert handed(node, 1) == -1
        assert node.timers[STALL] == node.now_ns + STALL_NS
        early_ns = node.timers.pop(STALL) - 300_000
        node.give(TimerFired(STALL), later_ns=early_ns - node.now_ns)
        assert node.timers[STALL] == early_ns + 300_000, "timers of a real clock may be early"
        node.fire(STALL)
        assert not node.core.fetching.staged
        node.give(later_ns=SECOND_NS)  # planned tasks settle for a moment
        assert handed(node, 1) == 2
        assert STALL not in node.timers, "nothing waits for this node any more"
        node.drop(DropObject)


def test_where_runs_end_nothing_is_stalled():
    with behind_a_long_run("above") as node:
        node.give(Submission(CLIENT, 3, (ready(4), ready(5))))
        node.drop(SubmissionTaken)
        own_lengths(node.core).done_count += 1
        node.fire(STALL)
        assert node.core.fetching.staged and node.timers[STALL] == node.now_ns + STALL_NS, "it looks again"


def test_who_never_shares_sets_no_timer():
    with behind_a_long_run("never") as node:
        assert STALL not in node.timers
        assert node.core.fetching.staged


def test_what_nobody_planned_is_handed_over_at_once():
    with Driver("daws:settle=1", members=2, cores=1) as node:
        node.give(Submission(CLIENT, 0, tuple(ready(task, rank=task * SECOND_NS, home=0) for task in (1, 2, 3))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=3)
        assert handed(node, 1) == 2
