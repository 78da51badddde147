"""The server of a store: what it answers and tells, and that nobody has to stay connected."""

import asyncio
import logging
from random import Random
from typing import Any, cast

import msgspec
import pytest
from msgspec import msgpack

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.errors import StoreFullError
from daws.model.session import SESSION_BITS, brought_id
from daws.model.states import CANCELLED, FAILED
from daws.model.task import AGAIN, CLIENT, FIRST_SPAWNED_ID, FROM_OUTSIDE, Input, TaskSpec
from daws.runtime.cluster import serving
from daws.runtime.cluster.serving import StoreServer, settings_of
from daws.wire.cluster import (
    AskCluster,
    AskEnds,
    AskFunction,
    ClusterIs,
    Ends,
    Enrol,
    Enrolled,
    Forgotten,
    NodeDied,
    NowMembers,
    OpenSessions,
    Refused,
)
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, Submission, SubmissionTaken
from daws.wire.store import (
    CLIENT_HOLDER,
    LOG_END,
    TO_END,
    UNDERWAY,
    AttachSession,
    Cancel,
    Clear,
    DetachSession,
    DropPlace,
    FindHeld,
    Finish,
    Lease,
    ListSessions,
    Log,
    ReadLog,
    Release,
    SessionAttached,
    Stopped,
    Submit,
    Watch,
)
from daws.wire.worker import Learn
from tests.unit.runtime.cluster.conftest import Party, Site, SweepClock

BIG = 2_000_000


def task_of(attached: SessionAttached, number: int) -> int:
    return (attached.session << SESSION_BITS) + number


def submit(client: Party, task: int, node: int, *parents: int, token: int = 1) -> None:
    spec = TaskSpec(task, 0, inputs=parents, outputs=(task,))
    client.tells(CallStore(token, 0, [Submit(spec, parents, node)]))


def finish(node: Party, number: int, task: int, value: bytes = b"v", error: str = "", failure: bytes = b"") -> None:
    outputs = () if error else (Input(task, len(value), task, (), value),)
    node.tells(CallStore(1, 0, [Finish(task, 0, number, outputs, error, failure)]))


def carry_out(node: Party, number: int, order: CancelOrder) -> None:
    """As a node does that was told to cancel a task."""
    (task,) = order.tasks
    node.tells(CallStore(5, 0, [Cancel(task, number)]))
    stopped = next(one.answers[0] for one in node.hears(StoreAnswered) if one.token == 5)
    assert isinstance(stopped, Stopped)
    node.tells(CallStore(6, 0, [Clear(number, (stopped.key,))]), CancelTaken(number, order.batch))


def ends_of(party: Party) -> list[int]:
    return [one.task for ends in party.hears(Ends) for one in ends.outcomes]


# -- members -----------------------------------------------------------------------------------------------------------


def test_nodes_that_come_and_go_are_logged(site: Site, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "daws.store")
    (_, first), (leaving, second) = site.node(), site.node()
    leaving.tells(CallStore(8, 0, [Watch(0)]))
    leaving.tells(CallStore(9, 0, [Lease(second, 0, leaving=True)]))
    site.server.store.expire(first)
    leaving.tells(CallStore(10, 0, [Watch(0)]))
    lines = [record.getMessage() for record in caplog.records]
    assert f"node {first} has joined" in lines
    assert f"node {second} has left" in lines
    assert any(line.startswith(f"node {first} is taken for dead") for line in lines)
    assert {record.levelname for record in caplog.records if "dead" in record.getMessage()} == {"WARNING"}


# -- ends --------------------------------------------------------------------------------------------------------------


def test_calls_are_answered_and_ends_are_told_to_the_client_of_their_session(site: Site):
    (node, number), (client, attached), (other, _) = site.node(), site.client(), site.client("other")
    first, second = task_of(attached, 0), task_of(attached, 1)
    submit(client, first, number)
    submit(client, second, number, first, token=2)
    assert client.hears(CallFine) == [CallFine(1), CallFine(2)]
    finish(node, number, first)
    (ends,) = client.hears(Ends)
    assert [(one.task, one.outputs[0].value) for one in ends.outcomes] == [(first, b"v")]
    finish(node, number, first)
    assert not client.hears(Ends), "the second time it is no news"
    assert not other.hears(Ends)


def test_the_end_of_a_task_that_a_run_has_created_is_told_to_the_node_of_that_run(site: Site):
    (home, creator), (node, number), (client, _) = site.node(), site.node(), site.client()
    task = FIRST_SPAWNED_ID + 7
    site.server.store.apply(0, [Submit(TaskSpec(task, 0, outputs=(task,), home=creator), (), number)], 0)
    finish(node, number, task)
    assert ends_of(home) == [task]
    assert not node.hears(Ends) and not client.hears(Ends)


def test_a_client_that_comes_back_asks_for_what_it_has_missed(site: Site):
    (node, number), (client, attached) = site.node(), site.client(nonce=b"n" * 16)
    tasks = [task_of(attached, index) for index in range(4)]
    for token, task in enumerate(tasks):
        submit(client, task, number, token=token)
    client.lose()
    finish(node, number, tasks[0])
    finish(node, number, tasks[1], error="it failed", failure=b"failure")
    node.tells(CallStore(9, 0, [Cancel(tasks[2], number)]))
    back, again = site.client(nonce=b"n" * 16)
    assert again.session == attached.session
    back.tells(AskEnds([*tasks, tasks[3] + 1]))
    (ends,) = back.hears(Ends)
    known = {one.task: one for one in ends.outcomes}
    assert known[tasks[0]].outputs[0].value == b"v"
    assert (known[tasks[1]].state, known[tasks[1]].error, known[tasks[1]].failure) == (FAILED, "it failed", b"failure")
    assert known[tasks[2]].state == CANCELLED
    assert tasks[3] not in known, "it has not ended"
    assert "does not know" in known[tasks[3] + 1].error, "the client would wait for it for ever"


def test_a_node_is_not_told_that_a_task_is_lost_which_it_is_about_to_create(site: Site):
    node, _ = site.node()
    node.tells(AskEnds([1 << 60]))
    assert not node.said


def test_a_node_hears_of_tasks_that_have_ended_and_that_the_store_has_forgotten(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    waiting, gone = task_of(attached, 0), task_of(attached, 1)
    submit(client, waiting, number)
    node.tells(AskEnds([waiting, gone], have_ended=True), AskEnds([waiting], have_ended=True))
    assert node.hears(Forgotten) == [Forgotten([gone])]


def test_what_a_task_has_raised_is_told_once_with_all_that_failed_because_of_it(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    first, *others = tasks = [task_of(attached, index) for index in range(4)]
    for task in tasks:
        submit(client, task, number, *([] if task == first else [first]))
    node.tells(CallStore(1, 0, [Finish(first, 0, number, (), f"task {first} failed: no", b"failure")]))
    for task in others:
        submit(client, task, number, first)
        node.tells(CallStore(2, 0, [Cancel(task, number, error=f"task {first} failed: no", parent=first)]))
    client.said.clear()
    client.tells(AskEnds(tasks))
    (ends,) = client.hears(Ends)
    assert [one.failure for one in ends.outcomes] == [b"failure", b"", b"", b""]
    client.tells(AskEnds(others[:1]))
    assert client.hears(Ends)[0].outcomes[0].failure == b"failure"


def test_a_client_that_comes_back_before_its_dead_link_is_noticed_hears_of_ends(site: Site):
    (node, number), (client, attached) = site.node(), site.client(nonce=b"n" * 16)
    submit(client, task_of(attached, 0), number)
    back, _ = site.client(nonce=b"n" * 16)
    client.lose()  # now it is noticed
    finish(node, number, task_of(attached, 0))
    assert ends_of(back) == [task_of(attached, 0)]


def test_a_tool_that_ends_a_session_does_not_take_the_place_of_its_client(site: Site):
    (node, number), (client, attached) = site.node(), site.client("mine")
    submit(client, task_of(attached, 0), number)
    tool = Party(site.server, "client")
    tool.tells(CallStore(1, 0, [AttachSession(b"t" * 16, session=attached.session, why=TO_END)]))
    finish(node, number, task_of(attached, 0))
    assert ends_of(client) == [task_of(attached, 0)]
    assert not tool.hears(Ends)


# -- the log -----------------------------------------------------------------------------------------------------------


def commit(site: Site, node: Party, number: int, client: Party, tasks: list[int]) -> None:
    for task in tasks:
        submit(client, task, number)
        finish(node, number, task)


def log_from(site: Site, start: int) -> Log:
    (log,) = site.server.store.apply(0, [ReadLog(start)], 0)
    assert isinstance(log, Log)
    return log


def test_the_log_is_dropped_behind_what_all_clients_have_read(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "TRIM_MIN", 2)
    (node, number), (fast, one), (slow, two) = site.node(), site.client("fast"), site.client("slow")
    commit(site, node, number, fast, [task_of(one, index) for index in range(3)])
    commit(site, node, number, slow, [task_of(two, index) for index in range(3)])
    fast.tells(CallStore(50, 0, [ReadLog(6, session=one.session)]))
    site.look()
    assert not log_from(site, 0).trimmed, "the other one has read nothing"
    slow.tells(CallStore(50, 0, [ReadLog(4, session=two.session), ReadLog(LOG_END)]))
    site.look()
    assert log_from(site, 0).trimmed == 4 and [*log_from(site, 4).rows] == [task_of(two, 1), task_of(two, 2)]


def test_the_log_is_kept_for_no_client_that_is_not_connected(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "TRIM_MIN", 2)
    (node, number), (client, attached) = site.node(), site.client()
    commit(site, node, number, client, [task_of(attached, index) for index in range(4)])
    site.look()
    assert not log_from(site, 0).trimmed
    client.lose()
    site.look()
    assert log_from(site, 0).trimmed == 4


def test_the_log_is_kept_for_a_client_from_where_it_was_when_that_came(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "TRIM_MIN", 2)
    (node, number), (client, attached) = site.node(), site.client()
    commit(site, node, number, client, [task_of(attached, index) for index in range(4)])
    client.tells(CallStore(50, 0, [ReadLog(4)]))
    site.client("late")
    site.look()
    assert log_from(site, 0).trimmed == 4


def test_the_log_is_not_kept_for_ever_for_a_client_that_waits_for_nothing(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "TRIM_MIN", 2)
    monkeypatch.setattr(serving, "UNREAD_MAX", 1)
    site.client("idle")
    (node, number), (client, attached) = site.node(), site.client()
    commit(site, node, number, client, [task_of(attached, index) for index in range(4)])
    client.tells(CallStore(50, 0, [ReadLog(4)]))
    site.look()
    assert log_from(site, 0).trimmed == 3


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_node_that_comes_back_hears_what_it_owns(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    node.lose()
    submit(client, task_of(attached, 0), number)
    assert not node.said, "nobody is there"
    back = Party(site.server)
    back.tells(Enrol(number))
    assert [one.node for one in back.hears(Enrolled)] == [number]
    (submission,) = back.hears(Submission)
    assert [(ready.spec.id, ready.mode & AGAIN) for ready in submission.tasks] == [(task_of(attached, 0), AGAIN)]
    assert back.hears(OpenSessions) == [OpenSessions([attached.session])], "others may have ended"
    again = Party(site.server)
    again.tells(Enrol(number))
    assert again.hears(Submission)[0].batch > submission.batch, "a node takes no two batches with one number"


def test_a_link_of_a_node_that_is_lost_late_does_not_cut_off_its_next_one(site: Site):
    node, number = site.node()
    back = Party(site.server)
    back.tells(Enrol(number))
    node.lose()
    task = FIRST_SPAWNED_ID + 7
    site.server.store.apply(0, [Submit(TaskSpec(task, 0, outputs=(task,), home=number), (), number)], 0)
    finish(back, number, task)
    assert ends_of(back) == [task]


def test_no_number_is_given_twice_even_by_the_next_server(site: Site):
    given = [site.node()[1], site.node()[1]]
    site.server.close()
    after = Site(site.server._loop, site.clock, store=site.server.store)
    given.append(after.node()[1])
    after.server.close()
    assert len(set(given)) == 3


def test_with_a_clients_key_nobody_is_a_node(site: Site):
    stranger = Party(site.server, "client")
    stranger.tells(Enrol())
    assert "node's key" in stranger.hears(Refused)[0].reason
    assert not site.server.nodes


def test_the_death_of_a_node_is_believed_in_a_private_cluster_alone(site: Site, clock: SweepClock):
    loop = asyncio.new_event_loop()
    private = Site(loop, clock)
    private.server.close()
    private.server = StoreServer(loop, private.server.store, "daws", quiet_after_s=1.0)
    for here, is_believed in ((private, True), (site, False)):
        (_, number), (client, _) = here.node(), here.client()
        client.tells(NodeDied(number))
        assert (number not in here.server.store.members_now()) == is_believed
        assert [not one.reason for one in client.hears(Refused)] == ([] if is_believed else [False])
    private.server.close()
    loop.close()


def test_an_answer_from_which_nothing_follows_goes_with_the_next_message(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    first, second = task_of(attached, 0), task_of(attached, 1)
    submit(client, first, number)
    submit(client, second, number, token=2)
    finish(node, number, first)
    assert client.hears(Ends), "others hear of it at once"
    assert not node.said
    node.tells(CallStore(7, 0, [Lease(number, 0)]))
    quiet, leased = node.said
    assert quiet.token == 1
    assert leased.token == 7


def test_an_answer_that_waits_for_another_message_goes_alone_after_a_while(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    submit(client, task_of(attached, 0), number)
    finish(node, number, task_of(attached, 0))
    assert not node.said
    site.server._on_quiet_over(cast(Any, site.server.nodes[number]))  # as its timer does
    assert [word.token for word in node.said] == [1]


def test_a_node_that_hopes_for_work_is_answered_at_once(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task = task_of(attached, 0)
    submit(client, task, number)
    row = Finish(task, 0, number, (Input(task, 1, task, (), b"v"),))
    node.tells(CallStore(1, 0, [row], hopes=True))
    assert [word.token for word in node.said] == [1]


def test_nothing_is_sent_before_what_it_tells_is_safe(clock: SweepClock):
    loop = asyncio.new_event_loop()
    unsafe: list[Any] = []
    site = Site(loop, clock)
    site.server.close()
    site.server = StoreServer(loop, site.server.store, "daws", unsafe.append)
    client = Party(site.server, "client")
    client.tells(CallStore(1, 0, [AttachSession(b"n" * 16)]))
    assert not client.said
    unsafe.pop()()
    (answered,) = client.hears(StoreAnswered)
    assert answered.token == 1
    site.server.close()
    loop.close()


# -- clients and tools -------------------------------------------------------------------------------------------------


def test_members_are_told_to_clients_when_they_change(site: Site):
    client, _ = site.client()
    (cluster,) = client.hears(ClusterIs)
    assert not cluster.members.infos and cluster.shard_count == 1
    node, number = site.node()
    site.look()
    assert client.hears(NowMembers)[-1].members.nodes == (number,)
    assert not node.hears(NowMembers), "nodes are told with their leases"
    site.look()
    assert not client.hears(NowMembers), "nothing has changed"


def test_another_strategy_is_for_all_members_and_for_those_that_come(site: Site):
    (_, number), (client, _) = site.node(), site.client()
    client.tells(NewStrategy("flds"), NewStrategy("nonsense"))
    (members,) = client.hears(NowMembers)[-1:]
    assert members.members.strategy.startswith("flds") and number in members.members
    late = Party(site.server)
    late.tells(Enrol())
    assert late.hears(Enrolled)[0].strategy.startswith("flds")
    client.tells(AskCluster())
    assert client.hears(ClusterIs)[-1].strategy.startswith("flds")
    site.server.close()
    after = Site(site.server._loop, site.clock, store=site.server.store)
    late, _ = after.client("late")
    assert late.hears(ClusterIs)[0].strategy.startswith("flds"), "it is in the store"
    after.server.close()


def test_without_room_a_call_is_not_answered_and_the_link_stays(site: Site, monkeypatch: pytest.MonkeyPatch):
    (_, number), (client, attached) = site.node(), site.client()
    client.said.clear()
    store, apply = site.server.store, site.server.store.apply

    def full(*what: Any) -> Any:
        raise StoreFullError("make room there")

    monkeypatch.setattr(store, "apply", full)
    submit(client, task_of(attached, 0), number)
    site.look()
    assert not client.said and client.is_open
    monkeypatch.setattr(store, "apply", apply)
    submit(client, task_of(attached, 0), number)
    assert client.hears(CallFine) == [CallFine(1)]


def test_without_room_no_node_enrols_and_it_comes_back_until_there_is(site: Site, monkeypatch: pytest.MonkeyPatch):
    _, number = site.node()
    store, apply = site.server.store, site.server.store.apply

    def full(*what: Any) -> Any:
        raise StoreFullError("make room there")

    monkeypatch.setattr(store, "apply", full)
    new = Party(site.server)
    new.tells(Enrol())
    assert not new.said and not new.is_open
    monkeypatch.setattr(store, "apply", apply)
    assert site.node()[1] == number + 1


# -- functions ---------------------------------------------------------------------------------------------------------


def bring_in(party: Party, function: int, code: bytes = b"code") -> None:
    made = (Input(function, len(code), function, (), code),)
    row = Submit(TaskSpec(function, FROM_OUTSIDE, outputs=(function,)), (), -1, made)
    party.tells(CallStore(60, 0, [row]))


def test_functions_are_kept_and_told_to_those_who_ask_even_before(site: Site):
    (early, _), (client, attached) = site.node(), site.client()
    function, brought = task_of(attached, 0), brought_id(attached.session, b"digest")
    early.tells(AskFunction(function))
    assert not early.hears(Learn)
    bring_in(client, function)
    assert early.hears(Learn) == [Learn(function, b"code")]
    late, _ = site.node()
    late.tells(AskFunction(function))
    assert late.hears(Learn) == [Learn(function, b"code")]
    late.tells(AskFunction(brought))
    bring_in(early, brought, b"of a run")
    assert late.hears(Learn) == [Learn(brought, b"of a run")]


def test_a_node_that_is_gone_does_not_wait_for_functions(site: Site):
    (gone, _), (node, _), (client, attached) = site.node(), site.node(), site.client()
    function = task_of(attached, 0)
    gone.tells(AskFunction(function), AskFunction(function + 1))
    node.tells(AskFunction(function))
    gone.lose()
    assert set(site.server._wanted) == {function}
    bring_in(client, function)
    assert node.hears(Learn) and not gone.hears(Learn)


def test_functions_go_with_their_session_and_nodes_hear_of_it(site: Site):
    (node, number), (client, attached), (_, other) = site.node(), site.client(), site.client("other")
    store, brought, others = site.server.store, brought_id(attached.session, b"1"), brought_id(other.session, b"1")
    site.look()
    node.tells(AskFunction(task_of(attached, 9)), AskFunction(task_of(other, 9)))
    for function in (brought, others):
        bring_in(node, function)
    site.end(client, attached.session)
    site.look(3)
    assert store.record(others) and not store.record(brought)
    assert set(site.server._wanted) == {task_of(other, 9)}
    site.server._on_quiet_over(cast(Any, site.server.nodes[number]))
    assert node.hears(OpenSessions) == [OpenSessions([other.session])]
    assert node.hears(Forgotten) == [Forgotten([task_of(attached, 9)])], "runs wait for it"
    node.tells(AskFunction(brought), AskFunction(task_of(other, 8)))
    assert node.hears(Forgotten) == [Forgotten([brought])]
    assert set(site.server._wanted) == {task_of(other, 8), task_of(other, 9)}


@pytest.mark.parametrize("is_brought", [False, True])
def test_functions_stay_while_tasks_need_them_that_nobody_waits_for(site: Site, is_brought: bool):
    (node, number), (client, attached) = site.node(), site.client()
    function = brought_id(attached.session, b"1") if is_brought else task_of(attached, 0)
    bring_in(node if is_brought else client, function)
    task = FIRST_SPAWNED_ID + 2
    site.server.store.apply(0, [Submit(TaskSpec(task, function, outputs=(task,)), (), number)], 0)
    site.end(client, attached.session)
    site.look(5)
    assert attached.session in site.server.store.sessions and site.server.store.record(function)
    finish(node, number, task)
    site.look(5)
    assert not site.server.store.sessions and not site.server.store.record(function)


# -- sessions without a client -----------------------------------------------------------------------------------------


def test_a_session_that_its_client_ends_leaves_nothing(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    put, done, waiting = (task_of(attached, index) for index in range(3))
    made = (Input(put, BIG, put, (number,), b""),)
    client.tells(CallStore(1, 0, [Submit(TaskSpec(put, FROM_OUTSIDE, outputs=(put,)), (), number, made)]))
    submit(client, done, number)
    submit(client, waiting, number)
    finish(node, number, done)
    site.end(client, attached.session)
    site.look(2)
    order = node.hears(CancelOrder)[0]
    assert order.tasks == (waiting,)
    assert LetGo(CLIENT, (put,)) in node.hears(LetGo), "the objects of the session go as well"
    carry_out(node, number, order)
    node.tells(CallStore(7, 0, [DropPlace(put, put, number)]))
    store = site.server.store
    site.look(3)
    assert not store.sessions and not any(map(store.record, (put, done, waiting)))


def test_a_session_is_ended_when_its_client_is_away_for_too_long_and_not_before(site: Site):
    client, attached = site.client()
    client.lose()
    site.look(3)
    assert attached.session in site.server.store.sessions, "it may come back"
    site.abandon(attached.session)
    site.look(3)
    assert not site.server.store.sessions


def test_a_kept_session_whose_client_is_gone_is_free_when_nodes_have_its_tasks(site: Site):
    (node, number), (client, attached) = site.node(), site.client("night", kept=True)
    submit(client, task_of(attached, 0), number)
    client.lose()
    site.abandon(attached.session)
    site.look(3)
    submission = node.hears(Submission)[0]
    assert site.server.store.sessions[attached.session].nonce, "the node may not have heard of it"
    node.tells(SubmissionTaken(number, submission.batch))
    site.look(2)
    assert not site.server.store.sessions[attached.session].nonce


def test_the_next_server_ends_what_was_to_end(site: Site, clock: SweepClock):
    (_, number), (client, attached) = site.node(), site.client("night", kept=True)
    submit(client, task_of(attached, 0), number)
    site.end(client, attached.session)
    site.server.close()
    after = Site(site.server._loop, clock, store=site.server.store)
    node = Party(after.server)
    node.tells(Enrol(number))
    after.look(3)
    order = node.hears(CancelOrder)[0]
    carry_out(node, number, order)
    after.look(3)
    assert not after.server.store.sessions
    after.server.close()


def test_sweeping_goes_on_when_there_is_room_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    client, attached = site.client()
    site.end(client, attached.session)
    store, apply, calls = site.server.store, site.server.store.apply, [0]

    def full(shard: int, rows: Any, now_ns: int) -> Any:
        calls[0] += 1
        if calls[0] % 3:
            raise StoreFullError("make room there")
        return apply(shard, rows, now_ns)

    monkeypatch.setattr(store, "apply", full)
    site.look(40)
    assert "make room there" in caplog.messages
    monkeypatch.setattr(store, "apply", apply)
    site.look(5)
    assert not store.sessions


# -- strangers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_whatever_is_said_the_server_serves_on(site: Site, part: int, caplog: pytest.LogCaptureFixture):
    """By seed: good words with bytes changed, taken out and put in. Most are none; some are words nobody would say."""
    draw = Random(part)
    understood = 0
    for _ in range(25):
        (node, number), (client, attached) = site.node(), site.client(nonce=draw.randbytes(16))
        task = task_of(attached, 1)
        function = Submit(
            TaskSpec(task - 1, FROM_OUTSIDE, outputs=(task - 1,)), (), -1, (Input(task - 1, 3, task - 1, (), b"f"),)
        )
        of_client = [
            CallStore(1, 0, [function, Submit(TaskSpec(task, task - 1, outputs=(task,), payload=b"x"), (), number)]),
            CallStore(2, 0, [Release(task, CLIENT_HOLDER)]),
            CallStore(4, 0, [Watch(0), ReadLog(0, session=attached.session), FindHeld(attached.session)]),
            CallStore(5, 0, [ListSessions(), AttachSession(client.nonce)]),
            CallStore(6, 0, [DetachSession(client.nonce, attached.session, False)]),
            AskEnds([task]),
            AskCluster(),
            NewStrategy("daws"),
        ]
        of_node = [
            Enrol(number),
            AskFunction(task - 1),
            CallStore(7, 0, [Finish(task, 0, number, (), "text", b"text")]),
            CancelTaken(number, 7),
            CallStore(3, 0, [Lease(number, 0, None)]),
        ]
        for party, good in ((client, of_client), (node, of_node)):
            for _ in range(12):
                try:
                    said = party.decoder.decode(mutated(msgpack.encode(draw.sample(good, draw.randint(1, 3))), draw))
                except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError):
                    continue
                if party.is_open:
                    understood += 1
                    party.tell(said)
        site.look()
    assert understood > 50
    party, _ = site.client(nonce=b"somebody who is good")
    assert party.hears(ClusterIs)
    assert all("\n" not in record.getMessage() and record.exc_info is None for record in caplog.records)


def mutated(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 4))):
        at = draw.randrange(len(changed))
        how = draw.random()
        if how < 0.6:
            changed[at] = draw.randrange(256)
        elif how < 0.8 and len(changed) > 1:
            del changed[at]
        else:
            changed.insert(at, draw.randrange(256))
    return bytes(changed)


def test_a_caller_that_says_what_cannot_be_is_cut_off_in_one_line(site: Site, caplog: pytest.LogCaptureFixture):
    node, number = site.node()
    node.tells(CallStore(1, 99, [Lease(number, 0, None)]))
    assert not node.is_open
    assert len(caplog.records) == 1 and "it said what cannot be" in caplog.records[0].getMessage()
    again, _ = site.node()
    assert again.is_open


def test_a_session_in_use_is_refused_to_others(site: Site):
    """The answer is the store's; the caller is told of no ends of that session."""
    (node, number), (client, attached) = site.node(), site.client("mine", nonce=b"1" * 16)
    submit(client, task_of(attached, 0), number)
    other = Party(site.server, "client")
    other.tells(CallStore(1, 0, [AttachSession(b"2" * 16, "mine")]))
    assert other.hears(StoreAnswered) == [StoreAnswered(1, [UNDERWAY])]
    finish(node, number, task_of(attached, 0))
    assert ends_of(client) and not other.hears(Ends)


def test_settings_of_a_live_store_say_that_its_clients_call_it():
    settings = settings_of(5, first_session=0)
    assert settings.direct and settings.lease_ns == 5 and settings.first_session == 0
