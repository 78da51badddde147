"""Each invariant notices when it is broken."""

from collections.abc import Callable

import pytest

from daws.core import invariants
from daws.core.config import Phase
from daws.core.effects import StartRun
from daws.core.fetching import Lacking, own_fetching
from daws.core.leaving import Leaving
from daws.core.lengths import own_lengths
from daws.core.node import NodeCore
from daws.core.objects import Made, own_objects
from daws.core.outbox import Intent, own_outbox
from daws.core.places import holds, places
from daws.core.queues import NO_TASKS, dedicated_queue, own_queues
from daws.core.transfer import LentTask, own_transfer
from daws.model.errors import InternalError
from daws.model.task import CLIENT
from daws.testing import Driver, ready
from daws.testing.build import BIG, fetched, object_at
from daws.wire.messages import Submission, SubmissionTaken


@pytest.fixture
def core() -> NodeCore:
    """Task 1 runs, 2 is staged or staging, 3 and 4 are queued."""
    node = Driver(cores=1)
    node.give(Submission(CLIENT, 0, (ready(1), ready(2, object_at(9, 1)), ready(3), ready(4))))
    node.give(fetched(9, 1))
    node.drop(StartRun)
    node.drop(SubmissionTaken)
    return node.core


def lose_a_slot(core: NodeCore) -> None:
    core.executors.running.clear()


def free_a_busy_slot(core: NodeCore) -> None:
    core.executors.groups[0].free.append(0)


def free_a_foreign_slot(core: NodeCore) -> None:
    core.executors.groups[0].free.append(7)


def count_wrongly(core: NodeCore) -> None:
    core.queues.shared.count += 1


def queue_twice(core: NodeCore) -> None:
    core.queues.shared.push(0, 99, ready(3))


def run_what_is_queued(core: NodeCore) -> None:
    dedicated_queue(core).push(0, 99, ready(1))


def lend_what_is_queued(core: NodeCore) -> None:
    own_transfer(core).lent = {3: LentTask(ready(3), 2, 0)}


def forget_a_pin(core: NodeCore) -> None:
    assert core.objects.copies is not None
    core.objects.copies[9] += 1


def miscount_bytes(core: NodeCore) -> None:
    core.objects.copied_bytes += 1


def drop_a_copy(core: NodeCore) -> None:
    del core.objects.sizes[9]


def stage_nothing(core: NodeCore) -> None:
    own_fetching(core).waiting = {5: Lacking(ready(5), set())}


def wait_for_nothing(core: NodeCore) -> None:
    own_fetching(core).waiting = {5: Lacking(ready(5, object_at(8, 1)), {8})}


def tell_nobody(core: NodeCore) -> None:
    own_outbox(core).telling = {1: Intent(0, 1, 1)}


def stop_for_nothing(core: NodeCore) -> None:
    own_outbox(core).stops = {(77, 2): (1, 0)}


def send_ahead_without_counting(core: NodeCore) -> None:
    core.executors.ahead = 1


def wait_for_loads(core: NodeCore) -> None:
    core.search.probe = []


def leave_work(core: NodeCore) -> None:
    core.dirty = True


def run_backwards(core: NodeCore) -> None:
    own_lengths(core).done_count = -1


def grow_without_seedlings(core: NodeCore) -> None:
    core.executors.running[1].growing = 2


def keep_what_nobody_reads(core: NodeCore) -> None:
    own_objects(core).made = {6: Made(set(), 0, (6,))}


def tell_to_leave(core: NodeCore) -> None:
    core.leaving = Leaving(0)
    core.membership.leased_until_ns = 0
    core.phase = Phase.LEAVING


def keep_queues_while_it_leaves(core: NodeCore) -> None:
    tell_to_leave(core)


def keep_a_lease_while_it_leaves(core: NodeCore) -> None:
    own_queues(core).shared = NO_TASKS
    core.fetching.staged = []
    core.objects.copies = {}
    core.objects.copied_bytes = 0
    core.objects.fresh = set()
    tell_to_leave(core)
    invariants.check(core)
    core.membership.leased_until_ns = 1


def keep_what_others_could_be_given(core: NodeCore) -> None:
    keep_a_lease_while_it_leaves(core)
    core.membership.leased_until_ns = 0
    own_queues(core).stranded = [ready(7)]


def look_for_work_while_it_leaves(core: NodeCore) -> None:
    keep_a_lease_while_it_leaves(core)
    core.membership.leased_until_ns = 0
    core.search.stealing_since_ns = 0


def say_farewell_while_a_task_runs(core: NodeCore) -> None:
    keep_a_lease_while_it_leaves(core)
    core.membership.leased_until_ns = 0
    core.leaving.said = True


def stay_still_while_it_leaves(core: NodeCore) -> None:
    keep_a_lease_while_it_leaves(core)
    core.membership.leased_until_ns = 0
    core.phase = Phase.ACTIVE


def remember_who_has_left(core: NodeCore) -> None:
    core.membership.leavers = {77}


BREAKS: list[Callable[[NodeCore], None]] = [
    *(lose_a_slot, free_a_busy_slot, free_a_foreign_slot, count_wrongly, queue_twice, run_what_is_queued),
    *(lend_what_is_queued, forget_a_pin, miscount_bytes, drop_a_copy, stage_nothing, wait_for_nothing, tell_nobody),
    *(stop_for_nothing, send_ahead_without_counting, wait_for_loads, leave_work, run_backwards),
    *(grow_without_seedlings, keep_what_nobody_reads),
    *(keep_queues_while_it_leaves, keep_a_lease_while_it_leaves, keep_what_others_could_be_given),
    *(look_for_work_while_it_leaves, say_farewell_while_a_task_runs, stay_still_while_it_leaves, remember_who_has_left),
]


@pytest.mark.parametrize("break_it", BREAKS, ids=lambda one: one.__name__)
def test_what_is_broken_is_noticed_and_told(core: NodeCore, break_it: Callable[[NodeCore], None]):
    invariants.check(core)
    break_it(core)
    with pytest.raises(InternalError) as caught:
        invariants.check(core)
    assert f"node {core.node} at" in str(caught.value)
    assert any("running" in line for line in caught.value.story), "the story says where things are"


def test_a_node_that_restarts_is_left_alone(core: NodeCore):
    count_wrongly(core)
    core.phase = Phase.RESTARTING
    invariants.check(core)


def test_where_tasks_are(core: NodeCore):
    assert {ready.spec.id: name for name, ready in places(core)} == {
        1: "running",
        2: "staged",
        3: "shared",
        4: "shared",
    }
    assert holds(core, 3) and holds(core, 1) and not holds(core, 5)
    assert core.objects.sizes == {9: BIG}
