"""A session whose store and only node are in its client's process passes on what it is given, and waits for nothing."""

from collections.abc import Sequence

from daws.core.config import NodeConfig
from daws.core.effects import CallStore, Send, SetTimer
from daws.core.events import Started, StoreAnswered
from daws.core.session import SessionCore
from daws.core.session_events import (
    PlainTasksSubmitted,
    SessionEffect,
    SessionEvent,
    SessionOpened,
    TasksCancelled,
    TasksLetGo,
    TasksSubmitted,
)
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.task import CLIENT, TaskSpec
from daws.store.memory import MemoryStore
from daws.wire.messages import NO_BATCH, CancelOrder, LetGo, NewTasks, PlainTasks
from daws.wire.store import Submit

NODE = 0


def opened() -> tuple[SessionCore, SessionOpened]:
    """A session that is attached to a store of its own."""
    store = MemoryStore()
    members = store.join([NodeInfo(NODE, (ExecutorClass(2),))])
    machine = SessionCore(b"nonce", NodeConfig(), proposal=0, is_direct=True)
    given: Sequence[SessionEvent] = [Started(members)]
    while given:
        out: list[SessionEffect] = []
        machine.step(0, given, out)
        assert not any(isinstance(one, SetTimer) for one in out)
        given = [
            StoreAnswered(one.token, store.apply(one.shard, one.rows, 0)) for one in out if isinstance(one, CallStore)
        ]
    (effect,) = out
    assert isinstance(effect, SessionOpened)
    return machine, effect


def said(machine: SessionCore, *events: SessionEvent) -> list[SessionEffect]:
    out: list[SessionEffect] = []
    machine.step(1, events, out)
    return out


def test_it_is_open_after_the_answers_of_the_store_and_counts_tasks_from_0():
    _, effect = opened()
    assert (effect.session, effect.next_task, effect.tasks) == (0, 0, ())


def test_tasks_orders_and_what_is_let_go_are_passed_on_in_their_order_and_tasks_need_no_receipt():
    machine, _ = opened()
    row = Submit(TaskSpec(1, 7), (), NODE)
    out = said(machine, TasksSubmitted([row]), PlainTasksSubmitted([2, 3], [7], [b""]), TasksCancelled([2]))
    new, plain, order = [one.message for one in out if isinstance(one, Send) and one.to == NODE]
    assert isinstance(new, NewTasks) and isinstance(plain, PlainTasks) and isinstance(order, CancelOrder)
    assert new == NewTasks(CLIENT, new.batch, (row,))
    assert plain == PlainTasks(CLIENT, plain.batch, [2, 3], [7], [b""])
    assert order == CancelOrder(CLIENT, order.batch, (2,))
    assert new.batch == plain.batch == NO_BATCH != order.batch
    assert said(machine, TasksLetGo([1])) == [Send(NODE, LetGo(CLIENT, (1,)))]
