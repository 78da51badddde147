"""The user of most simulations hands in a graph before time begins, and hears of its end."""

from typing import Any

import numpy as np

from daws.core.effects import CallStore, Send, SetTimer
from daws.core.events import Started
from daws.core.node import NodeConfig
from daws.core.session_events import CommitsHeard, TasksCancelled
from daws.model.graph_builder import GraphBuilder
from daws.model.states import DONE, FAILED
from daws.model.task import spawned_id
from daws.sim.graph_user import GraphUser
from daws.store.memory import MemoryStore
from daws.strategy import parse_strategy
from daws.strategy.decisions import Site
from daws.testing import members_of
from daws.wire.messages import CancelOrder, CancelTaken, Submission
from daws.wire.store import Create, LoggedEnd

MEMBERS = members_of(2)


def user_with(count: int, **config: Any) -> tuple[GraphUser, list[CallStore]]:
    """A user who has handed in a bag of tasks, and the calls of that."""
    builder = GraphBuilder()
    for _ in range(count):
        builder.add_task("one", 1_000_000)
    site = Site(MEMBERS, 1e9, np.zeros(0, dtype=np.int64), 0)
    user = GraphUser(builder.build(), parse_strategy("mlb"), site, NodeConfig(**config))
    store = MemoryStore(1)
    members = store.join(MEMBERS.infos)
    calls: list[CallStore] = []

    def serve(call: CallStore) -> list[Any]:
        calls.append(call)
        return store.apply(call.shard, call.rows, 0)

    user.hand_in(members, serve)
    return user, calls


def stepped(user: GraphUser, *events: Any, now_ns: int = 0) -> list[Any]:
    out: list[Any] = []
    user.step(now_ns, events, out)
    return out


def test_a_graph_is_written_before_time_begins_and_handed_out_then():
    user, calls = user_with(10)
    assert [row.spec.id for call in calls for row in call.rows if isinstance(row, Create)] == list(range(10))
    out = stepped(user, Started(MEMBERS))
    assert {one.to for one in out if isinstance(one, Send) and isinstance(one.message, Submission)} == {0, 1}
    assert any(isinstance(one, SetTimer) for one in out)
    assert not any(isinstance(one, Send) for one in stepped(user, CommitsHeard(())))


def test_a_graph_is_handed_out_by_a_store_that_is_replicated():
    user, _ = user_with(10, replicated=True)
    assert any(isinstance(one, Send) for one in stepped(user, Started(MEMBERS)))


def test_the_user_hears_how_tasks_have_ended():
    user, _ = user_with(2)
    stepped(user, Started(MEMBERS))
    assert user.waiting_for == 2 and not user.is_done
    name = spawned_id(0, 0, 0)
    stepped(user, CommitsHeard((LoggedEnd(0, FAILED, "bad", ()), LoggedEnd(1, DONE, "", (name,)))))
    assert user.waiting_for == 1 and user.spawned == {name} and user.ended[0] == (FAILED, "bad")
    stepped(user, CommitsHeard((name,)))
    assert user.is_done


def test_the_user_knows_whether_a_node_has_seen_to_a_cancel():
    user, _ = user_with(2)
    stepped(user, Started(MEMBERS))
    (order,) = [one for one in stepped(user, TasksCancelled((0,))) if isinstance(one, Send)]
    assert isinstance(order.message, CancelOrder)
    before = user.cancels
    stepped(user, CancelTaken(order.to, order.message.batch))
    assert (before, user.cancels) == (True, False)
