"""The server of a store: what it tells whom, whoever goes and comes back."""

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec import msgpack

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.data.tags import rooted
from daws.model.states import CANCELLED, FAILED
from daws.model.task import AGAIN, CLIENT, FIRST_SPAWNED_ID, FROM_OUTSIDE, TaskSpec
from daws.runs.facts import Sent
from daws.runs.notes import News
from daws.runtime.cluster import words
from daws.runtime.cluster.book import NODES_AT_ONCE, Book
from daws.runtime.cluster.ends import FAILURES_MIN
from daws.runtime.cluster.words import SESSION_BITS, Count, Counted, Ends, KeepFailure
from daws.runtime.ports import Counters
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission
from daws.wire.store import CLIENT_HOLDER, STRUCK, UNKNOWN, Cancel, Finish, Lease, Release, Submit, TakeOver
from daws.wire.worker import Learn
from tests.unit.runtime.cluster.conftest import Party, Site

BIG = 2_000_000


def task_of(attached: words.Attached, number: int) -> int:
    return (attached.session << SESSION_BITS) + number


def submit(client: Party, task: int, node: int, *parents: int, token: int = 1) -> None:
    spec = TaskSpec(task, 0, inputs=parents, outputs=(task,))
    client.tells(CallStore(token, 0, [Submit(spec, parents, node)]))


def finish(node: Party, number: int, task: int, value: bytes = b"v", error: str = "") -> None:
    outputs = () if error else ((task, len(value), task, (), value),)
    node.tells(CallStore(1, 0, [Finish(task, 0, number, outputs, error)]))


def test_what_a_client_submits_is_handed_to_its_owner_and_the_end_told(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    first, second = task_of(attached, 0), task_of(attached, 1)
    submit(client, first, number)
    submit(client, second, number, first, token=2)
    assert client.hears(CallFine) == [CallFine(1), CallFine(2)]
    (submission,) = node.hears(Submission)
    assert [ready.spec.id for ready in submission.tasks] == [first], "the second waits in the store"
    finish(node, number, first)
    (ends,) = client.hears(Ends)
    assert [(one.task, one.outputs[0][4]) for one in ends.outcomes] == [(first, b"v")]


def test_a_client_that_says_it_again_gets_no_second_run(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task = task_of(attached, 0)
    submit(client, task, number)
    submit(client, task, number, token=2)
    first, again = [submission.tasks[0] for submission in node.hears(Submission)]
    assert not first.mode & AGAIN
    assert again.mode & AGAIN, "whoever has it ignores it"
    finish(node, number, task)
    submit(client, task, number, token=3)
    assert not node.hears(Submission)


def test_a_node_that_comes_back_hears_what_it_owns(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    node.lose()
    submit(client, task_of(attached, 0), number)
    assert not node.said, "nobody is there"
    back = Party(site.server)
    back.tells(words.Enrol(number))
    assert [one.node for one in back.hears(words.Enrolled)] == [number]
    (submission,) = back.hears(Submission)
    assert [(ready.spec.id, ready.mode & AGAIN) for ready in submission.tasks] == [(task_of(attached, 0), AGAIN)]


def test_no_number_is_given_twice_even_by_the_next_server(tmp_path: Path):
    loop = asyncio.new_event_loop()
    seen = []
    for _ in range(2):
        site = Site(loop, Book(tmp_path / "book"))
        seen += [site.node()[1], site.node()[1], site.client()[1].session]
        site.server.close()
    loop.close()
    assert len({*seen[:2], *seen[3:5]}) == 4
    assert seen[2] != seen[5]


def test_tasks_of_a_node_that_is_dead_go_back_to_the_client(site: Site):
    (_, dead), (_, heir), (client, attached) = site.node(), site.node(), site.client()
    site.server.store.apply(0, [TakeOver(dead, heir)], 0)
    first, second = task_of(attached, 0), task_of(attached, 1)
    specs = [TaskSpec(first, outputs=(first,)), TaskSpec(second, inputs=(first,), outputs=(second,))]
    client.tells(CallStore(1, 0, [Submit(specs[0], (), dead), Submit(specs[1], (first,), heir)]))
    assert client.hears(StoreAnswered) == [StoreAnswered(1, [STRUCK, UNKNOWN])]


def test_a_client_that_comes_back_asks_for_what_it_has_missed(site: Site):
    (node, number), (client, attached) = site.node(), site.client(nonce=b"n" * 16)
    tasks = [task_of(attached, index) for index in range(4)]
    for token, task in enumerate(tasks):
        submit(client, task, number, token=token)
    client.lose()
    finish(node, number, tasks[0])
    node.tells(KeepFailure(tasks[1], b"failure"))
    finish(node, number, tasks[1], error="it failed")
    node.tells(CallStore(9, 0, [Cancel(tasks[2], number)]))
    back = Party(site.server)
    back.tells(words.Attach(b"n" * 16, session=attached.session), words.AskEnds([*tasks, tasks[3] + 1]))
    (again,) = back.hears(words.Attached)
    assert again.session == attached.session
    assert [task for task, _ in again.tasks] == tasks
    assert again.next_task == tasks[3] + 1
    (ends,) = back.hears(Ends)
    known = {one.task: one for one in ends.outcomes}
    assert known[tasks[0]].outputs[0][4] == b"v"
    assert (known[tasks[1]].state, known[tasks[1]].error, known[tasks[1]].failure) == (FAILED, "it failed", b"failure")
    assert known[tasks[2]].state == CANCELLED
    assert tasks[3] not in known, "it has not ended"
    assert "does not know" in known[tasks[3] + 1].error, "the client would wait for it for ever"


def test_a_node_is_not_told_that_what_it_is_about_to_create_is_lost(site: Site):
    node, _ = site.node()
    node.tells(words.AskEnds([1 << 60]))
    assert node.hears(Ends) == [Ends([])]


def test_a_session_in_use_is_nobody_elses(site: Site):
    site.client("mine", nonce=b"1" * 16)
    other = Party(site.server)
    other.tells(words.Attach(b"2" * 16, "mine"))
    assert "in use" in other.hears(words.Refused)[0].reason
    other.tells(words.Attach(b"2" * 16, session=1))
    assert "has ended" in other.hears(words.Refused)[0].reason


def test_a_kept_session_is_there_for_the_next_client(site: Site):
    (node, number), (client, attached) = site.node(), site.client("mine", kept=True)
    task = task_of(attached, 0)
    submit(client, task, number)
    client.tells(words.Close(keep=True))
    assert client.hears(words.Closed)
    client.lose()
    finish(node, number, task)
    _, again = site.client("mine", nonce=b"other" * 4)
    assert (again.session, again.tasks) == (attached.session, [(task, 1)])
    tool = Party(site.server)
    tool.tells(words.AskSessions())
    (sessions,) = tool.hears(words.Sessions)
    (info,) = sessions.sessions
    assert (info.name, info.kept, info.attached, info.waiting, info.done) == ("mine", True, True, 0, 1)


def test_with_its_client_a_session_ends_and_leaves_nothing(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    done, waiting = task_of(attached, 0), task_of(attached, 1)
    submit(client, done, number)
    submit(client, waiting, number)
    finish(node, number, done)
    client.tells(words.Close(keep=False))
    (order,) = node.hears(CancelOrder)
    assert order.tasks == (waiting,)
    node.tells(CallStore(5, 0, [Cancel(waiting, number)]), CancelTaken(number, order.batch))
    site.server._look()
    assert not site.server.sessions
    records = [site.server.store.record(task) for task in (done, waiting)]
    assert not [record for record in records if record is not None and record.held]


def test_a_client_that_is_gone_for_too_long_is_not_waited_for(site: Site):
    client, attached = site.client()
    client.lose()
    site.server._look()
    assert attached.session in site.server.sessions, "it may come back"
    site.server.sessions[attached.session].gone_at_s -= 1e9
    site.server._look()
    assert not site.server.sessions


def test_a_cancel_is_ordered_of_one_node_after_the_other_until_one_has_it(site: Site):
    (one, _), (client, _) = site.node(), site.client()
    client.tells(words.CancelTasks((7,)))
    (order,) = one.hears(CancelOrder)
    assert order.tasks == (7,)
    one.lose()
    site.server._cancels = {batch: (tasks, -1e9) for batch, (tasks, _) in site.server._cancels.items()}
    other, number = site.node()
    site.server._look()
    (again,) = other.hears(CancelOrder)
    assert again == order
    other.tells(CancelTaken(number, again.batch))
    assert not site.server._cancels


def test_what_tasks_raised_goes_with_the_last_that_is_known_of_them(site: Site):
    """Nobody lets go of a task that a run has created, or that its client did not hold when it failed."""
    (node, number), (client, attached) = site.node(), site.client()
    held = task_of(attached, 0)
    submit(client, held, number)
    for task in (held, *range(FIRST_SPAWNED_ID, FIRST_SPAWNED_ID + 2 * FAILURES_MIN)):
        node.tells(KeepFailure(task, b"failure"))
    assert len(site.server.ends.failures) <= FAILURES_MIN
    finish(node, number, held, error="it failed")
    assert client.hears(Ends)[-1].outcomes[0].failure == b"failure"


def test_a_client_that_comes_back_before_its_dead_link_is_noticed_leaves_nothing_there(site: Site):
    client, attached = site.client(nonce=b"n" * 16)
    client.tells(words.AskFunction(task_of(attached, 0)))
    back = Party(site.server)
    back.tells(words.Attach(b"n" * 16, session=attached.session))
    assert back.hears(words.Attached) and not client.is_open
    assert not site.server._wanted
    assert len(site.server.callers) == 1
    client.lose()  # now it is noticed
    assert next(iter(site.server.sessions.values())).client is not None


def test_functions_are_kept_and_told_to_those_who_ask_even_before(site: Site):
    (early, _), (client, attached) = site.node(), site.client()
    function = task_of(attached, 0)
    early.tells(words.AskFunction(function))
    assert not early.hears(Learn)
    made = ((function, 4, function, (), b"code"),)
    client.tells(CallStore(1, 0, [Submit(TaskSpec(function, FROM_OUTSIDE, outputs=(function,)), (), -1, made)]))
    assert early.hears(Learn) == [Learn(function, b"code")]
    late, _ = site.node()
    late.tells(words.AskFunction(function))
    assert late.hears(Learn) == [Learn(function, b"code")]
    early.tells(Learn(1 << 61, b"of a run"))
    late.tells(words.AskFunction(1 << 61))
    assert late.hears(Learn) == [Learn(1 << 61, b"of a run")]
    assert not site.client("again", kept=True)[1].tasks


def test_functions_go_with_their_session_and_nodes_hear_of_it(site: Site):
    (node, number), (client, attached), (_, other) = site.node(), site.client(), site.client("other")
    brought, others = FIRST_SPAWNED_ID + 1, FIRST_SPAWNED_ID + 2
    node.tells(words.AskFunction(task_of(attached, 9)), words.AskFunction(task_of(other, 9)))
    node.tells(Learn(brought, rooted(task_of(attached, 0), b"code")))
    node.tells(Learn(others, rooted(task_of(other, 0), b"code")))
    client.tells(words.Close(keep=False))
    assert set(site.server._functions) == {others} and set(site.server._wanted) == {task_of(other, 9)}
    site.server._quietly._on_time(site.server.nodes[number])
    assert node.hears(words.OpenSessions) == [words.OpenSessions([other.session])]
    node.lose()
    back = Party(site.server)
    back.tells(words.Enrol(number))
    assert back.hears(words.OpenSessions) == [words.OpenSessions([other.session])], "it may not have heard"


@pytest.mark.parametrize("is_brought", [False, True])
def test_functions_stay_while_tasks_need_them_that_nobody_waits_for(site: Site, is_brought: bool):
    (node, number), (client, attached) = site.node(), site.client()
    function = FIRST_SPAWNED_ID + 1 if is_brought else task_of(attached, 0)
    node.tells(Learn(FIRST_SPAWNED_ID + 1, rooted(task_of(attached, 0), b"code")))
    task = FIRST_SPAWNED_ID + 2
    site.server.store.apply(0, [Submit(TaskSpec(task, function, outputs=(task,)), (), number)], 0)
    client.tells(words.Close(keep=False))
    assert attached.session in site.server.sessions and site.server._functions
    finish(node, number, task)
    site.server.sessions[attached.session].look_at_s = 0.0
    site.server._look_after()
    assert not site.server.sessions and not site.server._functions


def test_who_has_what_was_put_in_is_told_of_it_and_of_its_end(site: Site):
    (first, one), (second, two), (client, attached) = site.node(), site.node(), site.client()
    task = task_of(attached, 0)
    made = ((task, BIG, task, (one, two), b""),)
    client.tells(CallStore(1, 0, [Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), one, made)]))
    for node in (first, second):
        (new,) = node.hears(NewTasks)
        assert [row.spec.id for row in new.tasks] == [task]
    client.tells(words.Close(keep=False))
    assert first.hears(LetGo) == second.hears(LetGo) == [LetGo(CLIENT, (task,), ((),))]


def test_what_is_put_in_and_let_go_of_at_once_is_told_in_this_order(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task = task_of(attached, 0)
    put = Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), number, ((task, 100_000, task, (number,), b""),))
    client.tells(CallStore(1, 0, [put, Release(task, CLIENT_HOLDER)]))
    site.server._quietly._on_time(site.server.nodes[number])
    assert [type(one) for one in node.said if isinstance(one, NewTasks | LetGo)] == [NewTasks, LetGo]


def test_an_answer_from_which_nothing_follows_goes_with_the_next_word(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    first, second = task_of(attached, 0), task_of(attached, 1)
    submit(client, first, number)
    submit(client, second, number, token=2)
    node.hears(Submission)
    finish(node, number, first)
    assert client.hears(Ends), "others hear of it at once"
    assert not node.said
    node.tells(CallStore(7, 0, [Lease(number, 0)]))
    quiet, leased = node.said
    assert quiet.token == 1
    assert leased.token == 7


def test_what_goes_with_the_next_word_goes_alone_after_a_while(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    submit(client, task_of(attached, 0), number)
    node.hears(Submission)
    finish(node, number, task_of(attached, 0))
    assert not node.said
    site.server._quietly._on_time(site.server.nodes[number])  # as its timer does
    assert [word.token for word in node.said] == [1]


def test_a_node_that_hopes_for_work_is_answered_at_once(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task = task_of(attached, 0)
    submit(client, task, number)
    node.hears(Submission)
    row = Finish(task, 0, number, ((task, 1, task, (), b"v"),))
    node.tells(CallStore(1, 0, [row], hopes=True))
    assert [word.token for word in node.said] == [1]


def test_small_objects_may_go_without_a_word_of_their_own(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task = task_of(attached, 0)
    made = ((task, BIG // 100, task, (number,), b""),)
    client.tells(CallStore(1, 0, [Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), number, made)]))
    node.hears(NewTasks)
    client.tells(words.Close(keep=False))
    assert not node.said
    node.tells(CallStore(7, 0, [Lease(number, 0)]))
    assert node.hears(LetGo) == [LetGo(CLIENT, (task,), ((),))]


def test_who_may_let_objects_go_is_told_for_whom_they_stay_and_need_not_ask(site: Site):
    (node, number), (client, attached) = site.node(), site.client()
    task, reader = task_of(attached, 0), task_of(attached, 1)
    made = ((task, BIG, task, (number,), b""),)
    put = Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), number, made)
    reads = Submit(TaskSpec(reader, inputs=(task,), outputs=(reader,)), (task,), number)
    client.tells(CallStore(1, 0, [put, reads, Release(task, CLIENT_HOLDER)]))
    assert node.hears(LetGo) == [LetGo(CLIENT, (task,), ((reader,),))]


def test_who_has_ended_before_it_is_said_that_objects_may_go_is_not_waited_for(site: Site):
    """It may have told the node already that it needs them no more, which would never hear of it again."""
    (node, number), (client, attached) = site.node(), site.client()
    tasks = [task_of(attached, index) for index in range(4)]
    rows = [
        Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), number, ((task, BIG // 100, task, (number,), b""),))
        for task in tasks[:2]
    ]
    reads = [Submit(TaskSpec(task, inputs=(*tasks[:2],), outputs=(task,)), (*tasks[:2],), number) for task in tasks[2:]]
    client.tells(CallStore(1, 0, [*rows, *reads]))
    client.tells(CallStore(2, 0, [Release(task, CLIENT_HOLDER) for task in tasks[:2]]))
    assert not node.hears(LetGo)
    site.server.store.apply(0, [Cancel(tasks[2], number)], 0)
    node.tells(CallStore(7, 0, [Lease(number, 0)]))
    assert node.hears(LetGo) == [LetGo(CLIENT, (*tasks[:2],), ((tasks[3],), (tasks[3],)))], "in one word"


def test_members_are_told_to_clients_when_they_change(site: Site):
    client, attached = site.client()
    assert not attached.members.infos
    _, number = site.node()
    site.server._look()
    now = client.hears(words.NowMembers)[-1]
    assert now.members.nodes == (number,)


def test_who_does_not_count_is_left_out(site: Site):
    (one, number), (silent, _), (client, _) = site.node(), site.node(), site.client()
    client.tells(Count())
    assert one.hears(Count) and silent.hears(Count)
    counted = Counted(Counters(number, 1, 2, 3, 4), [])
    one.tells(counted)
    assert not client.hears(words.Counts)
    silent.lose()
    assert client.hears(words.Counts) == [words.Counts([counted])]


def test_another_strategy_is_for_all_and_for_those_who_come(site: Site):
    (node, _), (client, _) = site.node(), site.client()
    client.tells(NewStrategy("flds"))
    assert node.hears(NewStrategy) == [NewStrategy("flds")]
    late = Party(site.server)
    late.tells(words.Enrol())
    assert late.hears(words.Enrolled)[0].strategy.startswith("flds")
    client.tells(NewStrategy("nonsense"))
    assert not node.hears(NewStrategy)


def test_tools_are_answered(site: Site):
    node, number = site.node()
    tool = Party(site.server)
    tool.tells(words.AskMembers(), words.Drain(number, 5.0), words.Drain(99, 5.0), words.EndSession("nobody"))
    assert tool.hears(words.NowMembers)[0].members.nodes == (number,)
    assert tool.hears(words.Done) == [words.Done()]
    assert [one.reason.partition(";")[0] for one in tool.hears(words.Refused)] == [
        "there is no node 99",
        "there is no session 'nobody'",
    ]
    assert node.hears(words.Depart) == [words.Depart(5.0)]


def test_a_node_that_is_away_cannot_be_drained(site: Site):
    node, number = site.node()
    tool = Party(site.server, "client")
    node.lose()
    tool.tells(words.Drain(number, 1.0))
    (refused,) = tool.hears(words.Refused)
    assert "does not answer just now" in refused.reason


def test_without_room_nobody_gets_a_session_and_all_else_goes_on(tmp_path: Path):
    loop = asyncio.new_event_loop()
    site = Site(loop, Book(tmp_path / "book"))
    (node, number), (client, attached) = site.node(), site.client("first", kept=True)
    (tmp_path / "book.part").mkdir()  # as if there were no room for it
    late = Party(site.server, "client")
    for _ in range(2):
        late.tells(words.Attach(b"n" * 16, "second", True))
        (refused,) = late.hears(words.Refused)
        assert "make room there" in refused.reason and late.is_open
    site.server.book._next_node += NODES_AT_ONCE
    new = Party(site.server)
    new.tells(words.Enrol())
    assert not new.said and not new.is_open, "it tries again, and is a node as soon as there is room"
    submit(client, task_of(attached, 0), number)
    assert node.hears(Submission)
    client.tells(words.Close(False))
    assert client.hears(words.Closed)
    (tmp_path / "book.part").rmdir()
    late.tells(words.Attach(b"n" * 16, "second", True))
    assert late.hears(words.Attached)
    site.server.close()
    loop.close()


def test_the_next_server_ends_what_was_to_end(tmp_path: Path):
    loop = asyncio.new_event_loop()
    before = Site(loop, Book(tmp_path / "book"))
    (_, number), (client, attached) = before.node(), before.client("night", kept=True)
    submit(client, task_of(attached, 0), number)
    client.tells(words.Close(True))
    tool = Party(before.server, "client")
    tool.tells(words.EndSession("night"))
    assert tool.hears(words.Done)
    assert before.server.sessions, "its task has not ended yet"
    before.server.close()
    after = Site(loop, Book(tmp_path / "book"), lease_ns=0)
    after.server._look_after()
    assert not after.server.sessions
    after.server.close()
    loop.close()


def test_what_a_task_prints_is_told_to_its_client_alone(site: Site):
    (node, _), (one, attached), (other, _) = site.node(), site.client(), site.client("other", nonce=b"x" * 16)
    printed = words.Printed(task_of(attached, 0), 1, b"hello")
    node.tells(printed)
    assert one.hears(words.Printed) == [printed]
    assert not other.hears(words.Printed)


def attach(site: Site, nonce: bytes, runs: bool, decisions: bool, name: str = "") -> tuple[Party, int]:
    party = Party(site.server, "client")
    party.tells(words.Attach(nonce, name, bool(name), runs=runs, decisions=decisions))
    (attached,) = party.hears(words.Attached)
    return party, attached.session


def test_nodes_take_notes_while_a_client_asks_and_each_client_hears_its_own(site: Site):
    early, _ = site.node()
    _, quiet = attach(site, b"0" * 16, False, False)
    assert not early.hears(words.TakeNotes)
    one, first = attach(site, b"1" * 16, True, False)
    two, second = attach(site, b"2" * 16, True, True)
    late, _ = site.node()
    assert early.hears(words.TakeNotes) == [words.TakeNotes([first]), words.TakeNotes([first, second], [second])]
    assert late.hears(words.TakeNotes) == [words.TakeNotes([first, second], [second])]
    ran = words.Ran(first, News(0, (), 0, 0), 5)
    learnt = words.Learnt(second, Sent(second << SESSION_BITS, 0, 1, 0, 0, 0, 0), 5)
    early.tells(ran, learnt, words.Ran(quiet, News(0, (), 0, 0), 5))
    assert one.hears(words.Ran) == [ran] and not one.hears(words.Learnt)
    assert two.hears(words.Learnt) == [learnt] and not two.hears(words.Ran)
    two.tells(words.Close(keep=True))
    assert early.hears(words.TakeNotes) == [words.TakeNotes([first])]
    one.tells(words.Close(keep=False))
    assert early.hears(words.TakeNotes) == [words.TakeNotes()]
    assert not site.node()[0].hears(words.TakeNotes)


def test_notes_are_not_taken_for_a_client_that_stays_away(site: Site):
    node, _ = site.node()
    client, session = attach(site, b"1" * 16, True, False, "kept")
    client.lose()
    site.server._look()
    assert node.hears(words.TakeNotes) == [words.TakeNotes([session])], "it may come back"
    site.server.sessions[session].gone_at_s = -1e9
    site.server._look()
    assert node.hears(words.TakeNotes) == [words.TakeNotes()] and session in site.server.sessions


def test_with_a_clients_key_nobody_is_a_node(site: Site):
    stranger = Party(site.server, "client")
    stranger.tells(words.Enrol())
    assert "node's key" in stranger.hears(words.Refused)[0].reason
    assert not site.server.nodes


@pytest.mark.parametrize("part", range(4))
def test_whatever_is_said_the_server_serves_on(site: Site, part: int, caplog: pytest.LogCaptureFixture):
    """By seed: good words with bytes changed, taken out and put in. Most are none; some are words nobody would say."""
    draw = Random(part)
    understood = 0
    for _ in range(25):
        (node, number), (client, attached) = site.node(), site.client(nonce=draw.randbytes(16))
        task = attached.next_task + 1
        function = Submit(
            TaskSpec(task - 1, FROM_OUTSIDE, outputs=(task - 1,)), (), -1, ((task - 1, 3, task - 1, (), b"f"),)
        )
        of_client = [
            CallStore(1, 0, [function, Submit(TaskSpec(task, task - 1, outputs=(task,), payload=b"x"), (), number)]),
            CallStore(2, 0, [Release(task, CLIENT_HOLDER)]),
            words.AskEnds([task]),
            words.CancelTasks((task,)),
            words.AskMembers(),
            words.AskSessions(),
            words.Drain(number, 5.0),
            words.EndSession(attached.name),
            words.Close(False),
            NewStrategy("daws"),
        ]
        of_node = [
            words.Enrol(number),
            words.AskFunction(task - 1),
            words.Printed(task, 1, b"text"),
            Learn(1 << 60, b"f"),
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
    assert understood > 50
    party, _ = site.client(nonce=b"somebody who is good")
    party.tells(words.AskMembers())
    assert party.hears(words.NowMembers)
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


def test_who_says_what_cannot_be_is_cut_off_in_one_line(site: Site, caplog: pytest.LogCaptureFixture):
    node, number = site.node()
    node.tells(CallStore(1, 99, [Lease(number, 0, None)]))
    assert not node.is_open
    assert len(caplog.records) == 1 and "it said what cannot be" in caplog.records[0].getMessage()
    again, _ = site.node()
    assert again.is_open
