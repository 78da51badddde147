"""Objects whose files turn out to be damaged: they are looked for elsewhere or made again, and no task is to blame."""

from typing import Any

from daws.core.damage import LACKS_MAX
from daws.core.effects import CallStore, StartRun
from daws.core.events import ObjectsLost, ObjectsPut, RunEnded, RunLacks
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT, Input, Ready
from daws.testing import Driver, ready
from daws.testing.build import BIG, fetched, object_at
from daws.wire.messages import Submission, SubmissionTaken
from daws.wire.store import RETRY, Claim, Finish, Unready


def node_with(cores: int = 1) -> Driver:
    return Driver("mlb", cores=cores, config=NodeConfig(lease_ns=8 * SECOND_NS))


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, node.core.executors.token, tasks))
    node.expect(SubmissionTaken)


def lacks(node: Driver, run: Any, object_: int) -> None:
    node.give(ObjectsLost((object_,)), RunLacks(run.ready.spec.id, run.run, object_))


def test_a_damaged_copy_is_fetched_again_and_the_run_starts_anew():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 1)))
        node.expect_fetch(source=1)
        node.give(fetched(8, 1))
        lacks(node, node.expect(StartRun, task=1), 8)
        assert 8 not in node.core.objects.sizes and node.core.objects.copied_bytes == 0
        node.expect_fetch(source=1)
        node.give(fetched(8, 1))
        again = node.expect(StartRun, task=1)
        assert again.ready.attempt == 0, "it is on its first attempt still"
        node.give(RunEnded(1, again.run, 50_000_000))
        node.expect(CallStore)


def test_what_was_only_here_is_made_again():
    with node_with() as node:
        node.give(ObjectsPut(((8, BIG),)))
        submit(node, ready(1, object_at(8, 0)))
        lacks(node, node.expect(StartRun, task=1), 8)
        node.expect_rows(Unready(1, 0, 0, (8,)))
        assert node.core.transfer.unreachable == {1: (0,)}, "the store learns that it is not here"


def test_what_came_from_outside_and_was_only_here_is_lost_in_words():
    with node_with() as node:
        node.give(ObjectsPut(((8, BIG),)))
        submit(node, ready(1, Input(8, BIG, -1, (0,), b"")))
        lacks(node, node.expect(StartRun, task=1), 8)
        [row] = node.expect(CallStore).rows
        assert isinstance(row, Finish) and "ObjectLost: task 1 reads object 8" in row.error
        assert "put it in again" in row.error


def test_others_that_would_read_it_are_not_started():
    with node_with() as node:
        node.give(ObjectsPut(((8, BIG),)))
        submit(node, ready(1, object_at(8, 0)), ready(2, object_at(8, 0)))
        lacks(node, node.expect(StartRun, task=1), 8)
        [call] = [node.expect(CallStore)]
        assert sorted(row.task for row in call.rows if isinstance(row, Unready)) == [1, 2]


def test_a_run_that_lacks_what_its_own_task_made_is_tried_again():
    with node_with() as node:
        submit(node, ready(1))
        run = node.expect(StartRun, task=1)
        node.give(ObjectsLost((77,)), RunLacks(1, run.run, 77))
        node.expect_rows(Claim(1, 0, 0, 0, RETRY))


def test_it_does_not_go_on_for_ever():
    with node_with() as node:
        submit(node, ready(1, object_at(8, 1)))
        for _ in range(LACKS_MAX):
            node.expect_fetch(source=1)
            node.give(fetched(8, 1))
            lacks(node, node.expect(StartRun, task=1), 8)
        [row] = node.expect(CallStore).rows
        assert isinstance(row, Finish) and f"object 8 damaged or missing on node 0, {LACKS_MAX} times" in row.error
        assert not node.core.objects.lacked


def test_a_run_that_is_over_lacks_nothing():
    with node_with() as node:
        submit(node, ready(1))
        run = node.expect(StartRun, task=1)
        node.give(RunLacks(1, run.run + 1, 8), RunLacks(2, run.run, 8), ObjectsLost((8,)))
        assert 1 in node.core.executors.running
