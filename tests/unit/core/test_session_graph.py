"""A whole graph in a session: written, handed out when it is safe, and counted as it ends."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from daws.core import session_graph
from daws.core.effects import CallStore
from daws.core.events import StoreAnswered, StoreChanged, TimerFired
from daws.core.session_events import (
    CloseAsked,
    CommitsHeard,
    EndsHeard,
    GraphAdvanced,
    GraphSubmitted,
    MembersHeard,
    SessionClosed,
    TasksCancelled,
)
from daws.core.session_graph import CALLS_MAX
from daws.core.session_tell import FIRST_TASKS, MORE_TASKS, TASKS_MAX
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.model.session import SESSION_BITS
from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import CLIENT, NO_TASK, Input, TaskSpec, spawned_id
from daws.store.memory import MemoryStore
from daws.strategy import parse_strategy
from daws.strategy.decisions import Site
from daws.testing import members_of
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.store import (
    NO_SESSION,
    OK,
    STRUCK,
    Cancel,
    CloseSession,
    Create,
    Finish,
    Inspect,
    Log,
    LoggedEnd,
    LogRow,
    ReadLog,
    Story,
    Submit,
    TrimLog,
    Watch,
    shard_of,
)
from tests.unit.core import test_session
from tests.unit.core.test_session import BASE, LEASE_NS, MEMBERS, Harness, ends, handed, of, sent

TIMER = TimerFired(0)
ROUND_ROBIN = "mlb:assign=round-robin"
BY_RANK = "mlb:assign=round-robin,order=critical-path"


def bag(count: int) -> Graph:
    builder = GraphBuilder()
    for _ in range(count):
        builder.add_task("one", 1_000_000)
    return builder.build()


def chain() -> Graph:
    builder = GraphBuilder()
    first = builder.add_task("one", 1_000_000, (), (10_000,))
    builder.add_task("two", 1_000_000, [first], ())
    return builder.build()


def submitted(
    graph: Graph, strategy: str = ROUND_ROBIN, members: Members = MEMBERS, first: int = BASE
) -> GraphSubmitted:
    places = np.zeros(graph.external_count, dtype=np.int64)
    return GraphSubmitted(graph, parse_strategy(strategy), Site(members, 1e9, places, 0), first)


def session_with(graph: Graph, strategy: str = ROUND_ROBIN, **more: Any) -> Harness:
    """A session whose graph is written and handed out, unless its store is yet to say that it is safe."""
    harness = Harness(**more)
    if more.get("replicated"):
        harness.all_is_safe()
    harness.step(submitted(graph, strategy))
    return harness


def session_that_may_forget(graph: Graph) -> Harness:
    harness = session_with(graph, replicated=True)
    harness.all_is_safe()
    return harness


def created(found: Sequence[Any]) -> list[Create]:
    return [row for call in of(CallStore, found) for row in call.rows if isinstance(row, Create)]


def batches(found: Sequence[Any]) -> list[Submission]:
    return [message for _, message in sent(Submission, found)]


def reads(found: Sequence[Any]) -> list[CallStore]:
    return [call for call in of(CallStore, found) if any(isinstance(row, ReadLog) for row in call.rows)]


def left(harness: Harness) -> int:
    """So many tasks have not ended, as the client was told last."""
    return of(GraphAdvanced, harness.seen)[-1].left


def log_goes_on(harness: Harness, *rows: LogRow) -> list[Any]:
    """Returns what the client does when it reads these commits."""
    harness.store.shards[0].log += rows
    return harness.tick()


def log_is_now(harness: Harness, *rows: LogRow) -> None:
    """Another server answers, whose log has this from its beginning."""
    harness.store.shards[0].log[:] = rows
    harness.step(StoreChanged(0))
    harness.tick()


def answer_to(harness: Harness, call: CallStore, log: Log) -> StoreAnswered:
    """The answer to a call that was lost, with this log."""
    others = [harness.store.apply(call.shard, [row], harness.now_ns)[0] for row in call.rows]
    return StoreAnswered(
        call.token, [log if isinstance(row, ReadLog) else one for row, one in zip(call.rows, others, strict=True)]
    )


def drop_node(harness: Harness, node: int) -> None:
    """The store knows that a node is dead; the client is yet to hear of it."""
    for shard in harness.store.shards:
        shard.dead.add(node)


# -- into the store ----------------------------------------------------------------------------------------------------


def test_the_graph_is_described_with_both_ends_of_each_edge():
    first, second = created(session_with(chain()).seen)
    assert (first.children, first.parents, first.spec.leaf) == ((BASE + 1,), (), False)
    assert (second.children, second.parents, second.spec.leaf) == ((), (BASE,), True)
    assert (first.spec.id, second.spec.id) == (BASE, BASE + 1)
    assert second.spec.inputs == first.spec.outputs == (BASE,)
    assert second.owner == -1, "a task that waits belongs to nobody"


def test_objects_from_outside_are_on_a_node_and_with_the_client():
    builder = GraphBuilder()
    given = builder.add_external(500)
    first = builder.add_task("one", 1_000_000, (), (10_000,))
    builder.add_task("two", 1_000_000, [first, given], ())
    (_, second) = created(session_with(builder.build()).seen)
    (external,) = second.inputs
    assert external == Input(BASE + 1, 500, NO_TASK, (0, CLIENT), b""), "the objects of the tasks come first"
    assert second.spec.inputs == (BASE, BASE + 1)


def test_estimates_of_lengths_reach_the_nodes():
    graph = bag(3)
    assert [row.spec.estimate_ns for row in created(session_with(graph).seen)] == [0, 0, 0], "nobody knows true lengths"
    told = graph.changed(estimate_ns=[5, 0, 7])
    assert [row.spec.estimate_ns for row in created(session_with(told).seen)] == [5, 0, 7]


def test_ranks_are_made_of_estimates_where_there_are_any():
    graph = chain()
    assert [row.spec.rank for row in created(session_with(graph, BY_RANK).seen)] == [2_000_000, 1_000_000]
    told = graph.changed(estimate_ns=[5, 7])
    assert [row.spec.rank for row in created(session_with(told, BY_RANK).seen)] == [12, 7]


def test_only_ready_tasks_are_handed_out():
    assert handed(session_with(chain()).seen) == [BASE]


@pytest.mark.parametrize("first", [BASE, BASE + 5])
def test_each_task_is_written_into_its_shard(first):
    harness = Harness(shards=3)
    for call in of(CallStore, harness.step(submitted(bag(5000), first=first))):
        assert all(shard_of(row.spec.id, 3) == call.shard for row in call.rows if isinstance(row, Create))
    assert sorted(row.spec.id for row in created(harness.seen)) == list(range(first, first + 5000))


def test_few_calls_are_under_way_while_a_graph_is_written(monkeypatch):
    monkeypatch.setattr(session_graph, "CALL_ROWS", 64)
    harness = Harness()
    harness.mute = (Create,)
    calls = of(CallStore, harness.step(submitted(bag(64 * CALLS_MAX + 100))))
    assert [len(call.rows) for call in calls] == [64] * CALLS_MAX
    (next_call,) = of(CallStore, harness.step(StoreAnswered(calls[0].token, [OK] * 64)))
    assert len(next_call.rows) == 64
    harness.mute = ()
    harness.tick()
    assert len({row.spec.id for row in created(harness.seen)}) == 64 * CALLS_MAX + 100


def test_nothing_is_handed_out_before_all_is_written():
    harness = Harness(shards=2)
    harness.mute = (Create,)
    first, second = of(CallStore, harness.step(submitted(bag(100))))
    harness.step(StoreAnswered(first.token, [OK] * len(first.rows)))
    assert not handed(harness.seen)
    harness.step(StoreAnswered(second.token, [OK] * len(second.rows)))
    assert handed(harness.seen)


def test_nothing_is_handed_out_before_it_is_safe():
    harness = session_with(bag(2), replicated=True)
    harness.tick()
    assert len(created(harness.seen)) == 2 and not handed(harness.seen)
    harness.all_is_safe()
    assert sorted(handed(harness.seen)) == [BASE, BASE + 1]


def test_a_graph_that_a_failover_has_lost_is_written_again_before_it_is_handed_out():
    harness = session_with(bag(2), replicated=True)
    harness.store.shards[0].records.clear()
    harness.step(StoreChanged(0))
    assert not handed(harness.seen)
    harness.all_is_safe()
    assert sorted(handed(harness.seen)) == [BASE, BASE + 1]
    assert harness.record(BASE).owner != harness.record(BASE + 1).owner


def test_a_task_that_the_store_does_not_take_has_failed_and_is_not_handed_out():
    harness = Harness()
    harness.store.apply(0, [Create(TaskSpec(BASE, 5))], 0)
    harness.store.apply(0, [Submit(TaskSpec(BASE + 1), (), 0)], 0)
    harness.store.shards[0].records[BASE + 1] = None  # it has ended, and is forgotten
    found = harness.step(submitted(bag(4)))
    assert [(end.task, end.state) for end in ends(found)] == [(BASE, FAILED)]
    assert "has its number" in ends(found)[0].error
    assert left(harness) == 2 and sorted(handed(found)) == [BASE + 2, BASE + 3]


def test_tasks_of_a_session_that_ends_are_cancelled():
    harness = Harness()
    harness.store.apply(0, [CloseSession(1)], 0)
    found = harness.step(submitted(bag(2)))
    assert [end.state for end in ends(found)] == [CANCELLED, CANCELLED] and left(harness) == 0


# -- homes that have died ----------------------------------------------------------------------------------------------


def session_whose_home_died() -> Harness:
    """Of four tasks, two are at home on node 1, which has died. The client knows no other node yet."""
    harness = Harness(replicated=True)
    harness.all_is_safe()
    drop_node(harness, 1)
    harness.step(MembersHeard(Members(2, ())))
    harness.step(submitted(bag(4)))
    return harness


def test_tasks_whose_home_has_died_get_another_one():
    harness = session_whose_home_died()
    harness.all_is_safe()
    assert not handed(harness.seen), "there is nobody to take the tasks of the dead node"
    harness.step(MembersHeard(Members(3, MEMBERS.infos[:1])))
    assert not handed(harness.seen), "these rows are not safe yet"
    harness.all_is_safe()
    assert {node for node, _ in sent(Submission, harness.seen)} == {0}
    assert sorted(handed(harness.seen)) == [BASE, BASE + 1, BASE + 2, BASE + 3]
    assert [harness.record(BASE + place).owner for place in range(4)] == [0, 0, 0, 0]


def test_the_new_home_may_have_died_as_well():
    harness = session_whose_home_died()
    drop_node(harness, 0)
    newer = members_of(3).infos
    harness.step(MembersHeard(Members(3, newer[:1])))
    harness.tick()
    assert not handed(harness.seen)
    harness.step(MembersHeard(Members(4, newer[2:])))
    harness.all_is_safe()
    moved = {ready.spec.id: node for node, one in sent(Submission, harness.seen) for ready in one.tasks}
    struck = [task for task in moved if harness.record(task).owner == 2]
    assert len(struck) == 2 and all(moved[task] == 2 for task in struck)


def test_a_task_gets_another_home_once_though_a_failover_has_both_rows_sent_again():
    harness = session_whose_home_died()
    harness.step(MembersHeard(Members(3, members_of(4).infos[2:])))
    owners = {task: harness.record(task).owner for task in range(BASE, BASE + 4)}
    harness.store.shards[0].records.clear()
    harness.step(StoreChanged(0))
    harness.all_is_safe()
    assert {task: harness.record(task).owner for task in range(BASE, BASE + 4)} == owners
    assert {ready.spec.id: node for node, one in sent(Submission, harness.seen) for ready in one.tasks} == owners


def test_a_moved_task_that_the_store_does_not_take_holds_up_no_other():
    harness = session_whose_home_died()
    harness.mute = (Create,)
    (call,) = [
        one for one in of(CallStore, harness.step(MembersHeard(Members(3, MEMBERS.infos[:1])))) if created([one])
    ]
    tasks = [row.spec.id for row in created([call])]
    for task in tasks:
        harness.store.shards[0].records[task] = None  # a node has taken over from this home too, and all went well
    harness.mute = ()
    harness.tick()
    harness.all_is_safe()
    assert left(harness) == 2 and sorted({*handed(harness.seen), *tasks}) == list(range(BASE, BASE + 4))
    assert not {*handed(harness.seen)} & {*tasks}


# -- hand-outs ---------------------------------------------------------------------------------------------------------


def test_each_node_gets_a_few_tasks_before_any_node_gets_many():
    assert [len(batch.tasks) for batch in batches(session_with(bag(4000)).seen)] == [FIRST_TASKS, FIRST_TASKS]


def test_homes_are_served_in_the_order_of_their_first_tasks():
    harness = session_with(bag(9))
    assert [(node, message.tasks[0].spec.id) for node, message in sent(Submission, harness.seen)] == [
        (harness.record(BASE).owner, BASE),
        (harness.record(BASE + 1).owner, BASE + 1),
    ]
    for batch in batches(harness.seen):
        assert [ready.spec.id for ready in batch.tasks] == sorted(ready.spec.id for ready in batch.tasks)


def test_a_node_gets_the_next_batch_when_it_has_taken_the_one_before():
    harness = session_with(bag(4000))
    (node, first), (_, second) = sent(Submission, harness.seen)
    out = harness.step(SubmissionTaken(node, first.batch))
    ((to, third),) = sent(Submission, out)
    assert len(third.tasks) == MORE_TASKS * len(first.tasks), "more than before"
    assert to == node, "the other one has not answered yet"
    assert not batches(harness.step(SubmissionTaken(node, first.batch))), "what comes twice counts once"
    assert batches(harness.tick()) == [second, third], "one for each is under way"


def test_batch_after_batch_everything_is_handed_out_once():
    harness = session_with(bag(4000))
    tasks: list[int] = []
    sizes: list[int] = []
    todo = sent(Submission, harness.seen)
    while todo:
        node, batch = todo.pop(0)
        tasks += [ready.spec.id for ready in batch.tasks]
        sizes.append(len(batch.tasks))
        todo += sent(Submission, harness.step(SubmissionTaken(node, batch.batch)))
    assert sorted(tasks) == list(range(BASE, BASE + 4000))
    assert max(sizes) == TASKS_MAX
    assert not batches(harness.tick())


def test_a_batch_is_handed_out_until_it_is_taken():
    harness = session_with(bag(2))
    (node, first), (other, second) = sent(Submission, harness.seen)
    harness.step(SubmissionTaken(node, first.batch))
    harness.now_ns += 1
    assert not batches(harness.step()), "it may still be on its way"
    assert batches(harness.tick()) == [second] == batches(harness.tick())
    harness.step(SubmissionTaken(other, second.batch), SubmissionTaken(other, second.batch))
    assert not batches(harness.tick())


def test_a_planned_node_that_has_yet_to_join_is_not_dead():
    three = members_of(3)
    harness = Harness()
    harness.mute = (Watch,)
    harness.step(submitted(bag(30), members=three))
    (late,) = [batch for node, batch in sent(Submission, harness.seen) if node == 2]
    harness.tick(12)
    assert late in batches(harness.tick()), "much later than a lease"
    harness.step(MembersHeard(Members(8, three.infos)))
    assert late in batches(harness.tick())
    harness.step(MembersHeard(Members(9, MEMBERS.infos)))
    harness.tick()
    assert late not in batches(harness.tick()), "now it was there and has died"


def test_the_tasks_of_a_node_that_has_died_are_not_handed_out():
    harness = session_with(bag(4000))
    harness.mute = (Watch,)
    batch_of = dict(sent(Submission, harness.seen))
    harness.step(MembersHeard(Members(5, MEMBERS.infos[:1])))
    assert batch_of[1] in batches(harness.tick()), "it may be so new that this client has not heard of it"
    harness.tick(5)
    assert batches(harness.tick()) == [batch_of[0]]
    assert not batches(harness.step(SubmissionTaken(1, batch_of[1].batch)))
    assert batches(harness.step(SubmissionTaken(0, batch_of[0].batch)))


# -- cancels -----------------------------------------------------------------------------------------------------------


def test_a_cancel_is_repeated_to_other_nodes_until_the_store_knows():
    harness = session_with(bag(4))
    ((node, order),) = sent(CancelOrder, harness.step(TasksCancelled((BASE + 1, BASE + 2))))
    ((other, again),) = sent(CancelOrder, harness.tick())
    assert order == again and node != other
    assert order.sender == CLIENT and order.tasks == (BASE + 1, BASE + 2)
    harness.step(CancelTaken(other, order.batch))
    assert not sent(CancelOrder, harness.tick(3)) and not harness.core.cancels


def test_a_task_is_cancelled_when_the_graph_is_in_the_store():
    harness = Harness()
    harness.mute = (Create,)
    harness.step(submitted(bag(2)))
    assert not sent(CancelOrder, harness.step(TasksCancelled((BASE,))))
    harness.mute = ()
    assert sent(CancelOrder, harness.tick())


def test_a_task_that_has_ended_need_not_be_cancelled():
    harness = session_with(bag(2))
    harness.step(TasksCancelled((BASE, BASE + 1)))
    log_goes_on(harness, BASE, LoggedEnd(BASE + 1, CANCELLED, "", ()))
    assert not harness.core.cancels.has_any


def test_a_cancel_that_a_failover_may_have_lost_is_ordered_again():
    harness = session_that_may_forget(bag(2))
    ((node, order),) = sent(CancelOrder, harness.step(TasksCancelled((BASE,))))
    harness.step(CancelTaken(node, order.batch))
    assert harness.core.cancels.has_any, "its end was not read"
    ((_, again),) = sent(CancelOrder, harness.step(StoreChanged(0)))
    assert again.tasks == order.tasks and again.batch != order.batch


def test_nodes_that_live_are_asked_to_cancel():
    harness = session_with(bag(4))
    harness.mute = (Watch,)
    harness.step(TasksCancelled((BASE + 1,)))
    harness.step(MembersHeard(Members(5, members_of(4).infos[2:])))
    assert {node for node, _ in sent(CancelOrder, harness.tick(3))} == {2, 3}


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_the_log_is_read_to_its_end_each_entry_once():
    harness = session_with(bag(3))
    harness.mute = (ReadLog,)
    (first,) = reads(harness.tick())
    assert all(call is first for call in reads(harness.tick())), "one is under way"
    harness.step(answer_to(harness, first, Log(1, [BASE + 1])))
    assert left(harness) == 2
    harness.step(answer_to(harness, first, Log(1, [BASE + 1])))
    assert left(harness) == 2
    (second,) = reads(harness.tick())
    assert [row.start for row in second.rows if isinstance(row, ReadLog)] == [1]
    harness.step(answer_to(harness, second, Log(3, [BASE, BASE + 2])))
    assert left(harness) == 0


def test_what_is_left_is_told_when_it_changes():
    harness = session_with(bag(3))
    assert [one.left for one in of(GraphAdvanced, harness.seen)] == [3]
    assert not of(GraphAdvanced, harness.tick(2))
    assert [one.left for one in of(GraphAdvanced, log_goes_on(harness, BASE, BASE + 1))] == [1]


def test_a_graph_that_has_ended_is_not_asked_about():
    harness = session_with(bag(1))
    log_goes_on(harness, BASE)
    assert left(harness) == 0 and not reads(harness.tick(4))


def test_those_that_did_not_end_well_are_told():
    harness = session_with(bag(3))
    found = log_goes_on(harness, LoggedEnd(BASE, FAILED, "bad", ()), LoggedEnd(BASE + 1, CANCELLED, "", ()), BASE + 2)
    assert left(harness) == 0
    assert ends(found) == [Outcome(BASE, (), FAILED, "bad"), Outcome(BASE + 1, (), CANCELLED, "")]


def test_every_shard_has_its_log():
    harness = session_with(bag(200), shards=3)
    for task in range(BASE, BASE + 200):
        harness.finish(task)
    harness.tick()
    assert left(harness) == 0


def test_the_logs_are_read_more_and_more_rarely():
    harness = session_with(bag(1))
    waits = []
    for at_ns in (10**7, 10**9, 10**10, 10**11):
        harness.now_ns = max(harness.core.ends.read_at_ns, at_ns)
        harness.store.join(MEMBERS.infos, harness.now_ns)
        harness.step(TIMER)
        waits.append(harness.core.ends.read_at_ns - harness.now_ns)
    assert waits == sorted(waits) and len(set(waits)) > 2


def test_tasks_beside_the_graph_are_told_with_what_they_have_made():
    harness = session_with(bag(1))
    small = BASE + 100
    harness.submit(small)
    harness.finish(small)
    harness.finish(BASE)
    (end,) = ends(harness.tick())
    assert end.task == small and end.outputs and left(harness) == 0


def test_tasks_of_other_sessions_are_not_counted():
    harness = session_with(bag(1))
    assert (
        not ends(log_goes_on(harness, 5 * BASE, LoggedEnd(5 * BASE + 1, FAILED, "", ()), BASE + 1))
        and left(harness) == 1
    )


def test_ends_that_nodes_tell_do_not_hide_what_tasks_have_created():
    harness = session_with(bag(2))
    name = spawned_id(BASE, 0, 0)
    harness.step(EndsHeard((Outcome(BASE + 1),)))
    log_goes_on(harness, LoggedEnd(BASE, DONE, "", (name,)))
    harness.step(EndsHeard((Outcome(BASE),)))
    assert left(harness) == 2
    log_goes_on(harness, BASE + 1, name)
    assert left(harness) == 0


# -- tasks that tasks of the graph have created ------------------------------------------------------------------------


def test_a_session_with_a_graph_reads_the_commits_of_all_sessions():
    """The number of a task that a run has created does not tell the session."""
    harness = Harness()
    harness.submit(BASE + 100)
    (call,) = reads(harness.tick())
    assert {row.session for row in call.rows if isinstance(row, ReadLog)} == {harness.core.session}
    harness.step(submitted(bag(1)))
    (call,) = reads(harness.tick())
    assert {row.session for row in call.rows if isinstance(row, ReadLog)} == {NO_SESSION}
    name = spawned_id(BASE, 0, 0)
    log_goes_on(harness, LoggedEnd(BASE, DONE, "", (name,)))
    assert left(harness) == 1
    log_goes_on(harness, name)
    assert left(harness) == 0 and harness.core.graph is not None and harness.core.graph.spawned == {name}


def test_it_waits_for_spawned_tasks_of_committed_attempts_in_any_order():
    name, other, stray = 1 << 60, (1 << 60) + 1, (1 << 60) + 2
    harness = session_with(bag(1))
    log_goes_on(harness, name, LoggedEnd(stray, CANCELLED, "", ()))
    assert left(harness) == 1
    log_goes_on(harness, LoggedEnd(BASE, DONE, "", (name, other)))
    assert left(harness) == 1
    log_goes_on(harness, other)
    assert left(harness) == 0


def test_commits_that_are_heard_of_count_once():
    harness = session_that_may_forget(bag(2))
    good, bad = spawned_id(BASE, 0, 0), spawned_id(BASE, 0, 1)
    found = harness.step(CommitsHeard((BASE + 1, good, LoggedEnd(bad, FAILED, "bad", ()))))
    assert left(harness) == 1 and ends(found) == [Outcome(bad, (), FAILED, "bad")]
    harness.step(CommitsHeard((good,)))
    found = log_goes_on(
        harness, good, LoggedEnd(bad, FAILED, "bad", ()), LoggedEnd(BASE, DONE, "", (good, bad)), BASE + 1
    )
    assert left(harness) == 0 and not ends(found)


def test_commits_that_are_heard_of_leave_alone_what_is_no_task_of_the_graph():
    harness = Harness()
    harness.submit(BASE)
    assert not ends(harness.step(CommitsHeard((BASE,)))), "a session without a graph reads the log"


def test_what_a_forgotten_run_had_created_is_not_waited_for():
    harness = session_that_may_forget(bag(1))
    old, new = spawned_id(BASE, 0, 0), spawned_id(BASE, 1, 0)
    log_goes_on(harness, LoggedEnd(BASE, DONE, "", (old,)))
    assert left(harness) == 1
    log_is_now(harness, LoggedEnd(BASE, DONE, "", (new,)))
    assert left(harness) == 1, "but what the next one has created is"
    log_is_now(harness, LoggedEnd(BASE, DONE, "", (new,)), new)
    assert left(harness) == 0


def test_a_run_that_creates_nothing_replaces_one_that_did():
    harness = session_that_may_forget(bag(1))
    log_goes_on(harness, LoggedEnd(BASE, DONE, "", (spawned_id(BASE, 0, 0),)))
    log_is_now(harness, BASE)
    assert left(harness) == 0


def test_nor_is_what_these_have_created():
    harness = session_that_may_forget(bag(1))
    old, new = spawned_id(BASE, 0, 0), spawned_id(BASE, 1, 0)
    log_goes_on(harness, LoggedEnd(old, DONE, "", (spawned_id(old, 0, 0),)))
    assert left(harness) == 1, "nobody knows yet whether its creator counts"
    log_is_now(harness, LoggedEnd(BASE, DONE, "", (old,)))
    assert left(harness) == 1, "of which the end was read before"
    log_is_now(harness, new, LoggedEnd(BASE, DONE, "", (new,)))
    assert left(harness) == 0


def test_a_log_that_has_changed_is_read_from_its_beginning_and_each_end_counts_once():
    harness = session_that_may_forget(bag(3))
    log_goes_on(harness, BASE, LoggedEnd(BASE + 1, FAILED, "bad", ()))
    assert left(harness) == 1
    log_is_now(harness, BASE + 2, BASE, LoggedEnd(BASE + 1, DONE, "", ()))
    assert left(harness) == 0
    assert [end.state for end in ends(harness.seen)] == [FAILED], "a first end stays"


# -- logs that were trimmed --------------------------------------------------------------------------------------------


def test_a_graph_whose_commits_were_dropped_is_asked_about():
    harness = session_with(bag(4))
    for task in range(BASE, BASE + 4):
        assert harness.core.is_pending(task)
    harness.finish(BASE)
    harness.store.apply(0, [Finish(BASE + 1, 0, harness.record(BASE + 1).owner, (), "bad")], harness.now_ns)
    harness.store.apply(0, [Cancel(BASE + 2, 0)], harness.now_ns)
    harness.store.apply(0, [TrimLog(3)], harness.now_ns)
    found = harness.tick()
    assert {end.task: (end.state, end.error) for end in ends(found)} == {
        BASE + 1: (FAILED, "bad"),
        BASE + 2: (CANCELLED, ""),
    }
    assert left(harness) == 1 and [harness.core.is_pending(BASE + place) for place in (0, 1, 2, 3)] == [0, 0, 0, 1]
    harness.finish(BASE + 3)
    harness.tick()
    assert left(harness) == 0, "it had not ended: the log goes on"


def test_a_task_that_is_made_again_has_ended():
    harness = session_with(bag(1))
    harness.mute = (Inspect,)
    harness.finish(BASE)
    harness.store.apply(0, [TrimLog(1)], harness.now_ns)
    (call,) = [one for one in of(CallStore, harness.tick()) if Inspect(BASE, True) in one.rows]
    harness.step(StoreAnswered(call.token, [Story(0, 0, 0, 0, ended=True)] * len(call.rows)))
    assert left(harness) == 0


# -- the session around it ---------------------------------------------------------------------------------------------


def test_a_client_that_keeps_its_session_waits_until_its_graph_is_handed_out():
    harness = Harness()
    harness.mute = (Create,)
    harness.step(submitted(bag(2)))
    harness.step(CloseAsked(keep=True))
    assert not of(SessionClosed, harness.seen)
    harness.mute = ()
    harness.tick()
    assert not of(SessionClosed, harness.seen)
    for node, batch in sent(Submission, harness.seen):
        harness.step(SubmissionTaken(node, batch.batch))
    assert of(SessionClosed, harness.seen)


def test_a_session_that_its_client_ends_cancels_its_graph():
    harness = session_with(bag(2))
    harness.step(CloseAsked(keep=False))
    found = harness.tick(2)
    tasks = {task for _, order in sent(CancelOrder, harness.seen) for task in order.tasks}
    assert tasks == {BASE, BASE + 1} and not of(GraphAdvanced, found)


@pytest.mark.parametrize("answer", [OK, STRUCK])
def test_rows_that_are_answered_after_the_session_began_to_end_do_no_harm(answer):
    harness = Harness()
    harness.mute = (Create,)
    (call,) = of(CallStore, harness.step(submitted(bag(2))))
    harness.step(CloseAsked(keep=False))
    harness.step(StoreAnswered(call.token, [answer] * 2))
    assert not handed(harness.tick())


def test_a_log_that_is_trimmed_while_a_graph_is_written_ends_none_of_its_tasks():
    """A store that forgets ended tasks says of a task that it does not know yet that it has ended."""
    harness = Harness(store=MemoryStore(1, LEASE_NS, retired_max=1000))
    harness.mute = (Create,)
    harness.step(submitted(bag(4)))
    harness.store.shards[0].log += [7 << SESSION_BITS, (7 << SESSION_BITS) + 1]  # commits of another session
    harness.store.apply(0, [TrimLog(2)], 0)
    harness.tick(3)
    assert left(harness) == 4
    harness.mute = ()
    harness.tick()
    assert sorted(handed(harness.seen)) == [BASE, BASE + 1, BASE + 2, BASE + 3]


def test_a_slow_read_of_before_the_graph_hides_no_ends_of_tasks_that_were_created():
    harness = Harness()
    harness.submit(BASE + 1000)
    harness.mute = (slow := ReadLog(0, session=1),)
    harness.tick()
    harness.step(submitted(bag(1)))
    harness.store.shards[0].log += [LoggedEnd(BASE, DONE, "", (child := spawned_id(BASE, 0, 0),)), child]
    late = [call for call in of(CallStore, harness.seen) if slow in call.rows][-1]
    harness.mute = ()
    harness.step(StoreAnswered(late.token, harness.store.apply(0, late.rows, harness.now_ns)))
    harness.tick(10)
    assert left(harness) == 0


def test_a_planned_node_that_was_a_member_and_died_is_not_waited_for():
    harness = Harness(replicated=True)
    harness.all_is_safe()
    harness.step(submitted(bag(4)))
    harness.store.join = lambda infos, now_ns=0: harness.store.members  # type: ignore[method-assign]
    harness.step(MembersHeard(Members(5, MEMBERS.infos[:1])))
    harness.all_is_safe()
    harness.step(CloseAsked(keep=True))
    for _ in range(20):
        taken = [SubmissionTaken(0, message.batch) for node, message in sent(Submission, harness.seen) if node == 0]
        harness.now_ns += LEASE_NS
        harness.step(TIMER, *taken)
        harness.all_is_safe()
    assert of(SessionClosed, harness.seen)


def test_tasks_whose_home_has_died_get_nodes_that_can_run_them(monkeypatch: pytest.MonkeyPatch):
    infos = tuple([NodeInfo(node, (ExecutorClass(2 if node in (1, 2) else 1),)) for node in range(4)])
    members = Members(1, infos)
    monkeypatch.setattr(test_session, "MEMBERS", members)
    builder = GraphBuilder()
    for _ in range(8):
        builder.add_task("wide", 1_000_000, cores=2)
    harness = Harness(replicated=True)
    harness.all_is_safe()
    drop_node(harness, 1)
    harness.step(submitted(builder.build(), ROUND_ROBIN, members))
    harness.step(MembersHeard(Members(3, tuple([info for info in infos if info.id != 1]))))
    harness.all_is_safe()
    assert {row.owner for row in created(harness.seen)} == {1, 2}
