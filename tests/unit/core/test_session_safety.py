"""The session machine where calls are slow, other clients were there before, or a failover has lost something."""

from collections.abc import Sequence
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import StoreChanged
from daws.core.session_events import (
    CloseAsked,
    Reconnected,
    SessionClosed,
    SessionOpened,
    TasksCancelled,
)
from daws.model.states import FAILED
from daws.model.task import Input
from daws.store.memory import MemoryStore
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.store import AnswerType, DetachSession, FindHeld, Finish, Row, Submit
from tests.unit.core.test_session import BASE, LEASE_NS, Harness, ends, handed, of, sent


def opened(**more: Any) -> Harness:
    """A client of a store that may lose what it has acknowledged. What it has said so far is safe."""
    harness = Harness(replicated=True, **more)
    harness.all_is_safe()
    assert of(SessionOpened, harness.seen)
    return harness


def rows_of(harness: Harness, kind: type[Row]) -> list[Row]:
    return [row for call in of(CallStore, harness.seen) for row in call.rows if type(row) is kind]


def test_a_task_is_cancelled_when_it_is_written():
    """A node that asks the store to cancel a task which is not there has done so in vain."""
    harness = Harness()
    harness.mute = (Submit,)
    harness.submit(BASE)
    assert not sent(CancelOrder, [*harness.step(TasksCancelled((BASE,))), *harness.tick()])
    harness.mute = ()
    ((_, order),) = sent(CancelOrder, harness.tick())
    assert order.tasks == (BASE,)


def test_a_cancel_that_a_failover_may_have_lost_is_ordered_once_more():
    harness = opened()
    harness.submit(BASE)
    ((node, order),) = sent(CancelOrder, harness.step(TasksCancelled((BASE,))))
    harness.step(CancelTaken(node, order.batch))
    assert not sent(CancelOrder, harness.tick(2)), "a node has seen to it"
    ((_, again),) = sent(CancelOrder, harness.step(StoreChanged(0)))
    assert again.tasks == (BASE,) and again.batch != order.batch


class BusyStore(MemoryStore):
    """A store in which a task ends as soon as it was found."""

    def __init__(self) -> None:
        super().__init__(1, LEASE_NS)
        self.ending: list[Finish] = []

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        answers: list[AnswerType] = []
        for row in rows:
            answers += super().apply(shard, [row], now_ns)
            while type(row) is FindHeld and self.ending:
                super().apply(shard, [self.ending.pop()], now_ns)
        return answers


def test_an_end_is_not_missed_that_comes_while_a_session_is_searched():
    store = BusyStore()
    first = Harness(store, name="mine")
    first.submit(BASE)
    store.ending.append(Finish(BASE, 0, first.record(BASE).owner, (Input(BASE, 100, BASE, (0,), b""),)))
    second = Harness(store, b"nonce-2", 2 * LEASE_NS, name="mine")
    assert of(SessionOpened, second.seen) and not store.ending
    assert [end.task for end in ends(second.tick())] == [BASE]


def test_after_a_failover_the_log_is_read_from_its_beginning():
    harness = opened()
    harness.submit(BASE, BASE + 1)
    harness.finish(BASE)
    assert [end.task for end in ends(harness.tick())] == [BASE]
    harness.store.shards[0].log.clear()  # the end of the first task was lost, and is not yet said again
    harness.step(StoreChanged(0))
    harness.finish(BASE + 1)
    assert [end.task for end in ends(harness.tick(2))] == [BASE + 1]


def test_a_task_that_nobody_can_submit_again_after_a_failover_has_failed():
    first = opened(name="mine")
    first.submit(BASE, BASE + 1)
    second = Harness(first.store, b"nonce-2", 2 * LEASE_NS, name="mine", replicated=True)
    second.all_is_safe()
    assert of(SessionOpened, second.seen)
    second.submit(BASE + 5)
    del second.store.shards[0].records[BASE], second.store.shards[0].records[BASE + 5]
    (lost,) = ends(second.step(StoreChanged(0)))
    assert (lost.task, lost.state) == (BASE, FAILED) and "its client was killed" in lost.error
    assert second.store.record(BASE + 5) is not None, "this client has submitted it, and so does it again"


def test_new_rows_wait_until_all_is_said_again_that_a_failover_may_have_lost():
    harness = opened()
    harness.submit(BASE)
    harness.lost = True
    harness.step(StoreChanged(0))
    found = harness.submit(BASE + 1)
    assert not of(CallStore, found), "the store may not know yet what comes before it"
    harness.lost = False
    found = harness.step(Reconnected())
    written = [row.spec.id for call in of(CallStore, found) for row in call.rows if type(row) is Submit]
    assert written == [BASE, BASE + 1] and BASE + 1 in handed(found)


def test_a_client_that_keeps_its_session_leaves_when_its_tasks_are_safe():
    harness = opened(name="mine")
    harness.submit(BASE)
    for node, message in sent(Submission, harness.seen):
        harness.step(SubmissionTaken(node, message.batch))
    harness.step(CloseAsked(True))
    harness.tick()
    assert not rows_of(harness, DetachSession), "a failover may lose the task, and nobody else has it"
    harness.all_is_safe()
    assert rows_of(harness, DetachSession) and of(SessionClosed, harness.seen) == [SessionClosed(True)]
