"""A session and its driver, as its client has them: messages go out and come in, without a socket."""

import asyncio
import errno
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from daws.client.connect import connect
from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.data.files import ObjectFiles
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.errors import ClosedError, UnavailableError
from daws.model.session import SESSION_BITS
from daws.model.states import FAILED
from daws.model.task import FROM_OUTSIDE, Input, TaskSpec
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime import client as driver
from daws.runtime.cluster import joined, nodelinks
from daws.runtime.cluster.front import LOST
from daws.runtime.cluster.joined import ATTACH_AGAIN_S, FAREWELL_S, JoinedCluster
from daws.runtime.cluster.nodelinks import AGAIN_S, NodeLinks
from daws.runtime.cluster.noting import clock_ns
from daws.runtime.cluster.pace import ENOUGH, PACE_PER_NODE_S
from daws.runtime.cluster.reach import Reach
from daws.runtime.crew import TICK_NS
from daws.store.memory import MemoryStore
from daws.wire.cluster import AskEnds, ClusterIs, Ends, NowMembers, Refused
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.notes import Counters, News, Sent
from daws.wire.session import Count, Counted, Here, Learnt, Ran, Sealed, TaskPrinted, ToClient
from daws.wire.store import (
    CLIENT_HOLDER,
    REFUSED,
    STRUCK,
    TO_END,
    AttachSession,
    DetachSession,
    Finish,
    Release,
    SessionAttached,
    Submit,
)
from tests.unit.runtime.cluster.machines import free_port

BASE = 1 << SESSION_BITS
LEASE_NS = 4 * TICK_NS
NODES = (4, 5)
MEMBERS = Members(3, tuple([NodeInfo(node, (ExecutorClass(1),), addresses=(f"{node}:1",)) for node in NODES]))


class Loop:
    """Does at once what is to be done soon, and later what is to be done later: as a test says."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        self.now_s = 1000.0

    def time(self) -> float:
        return self.now_s

    def call_soon_threadsafe(self, function: Callable[..., None], *what: Any) -> None:
        function(*what)

    def call_later(self, delay_s: float, function: Callable[..., None], *what: Any) -> None:
        self.later.append((self.now_s + delay_s, function, what))

    def create_future(self) -> Any:
        return Future()

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        until_s = self.now_s + seconds
        while due := [one for one in self.later if one[0] <= until_s]:
            first = min(due, key=lambda one: one[0])
            self.later.remove(first)
            self.now_s = max(self.now_s, first[0])
            first[1](*first[2])
        self.now_s = until_s


class Links:
    """Links to nodes: what is sent is kept."""

    def __init__(self, *what: Any) -> None:
        _, _, _, self.address_of, self.received, self.undelivered, self.lost, _ = what
        self.sent: list[tuple[int, Any]] = []
        self.forgotten: list[int] = []
        self.forget = self.forgotten.append

    def send(self, node: int, message: Any) -> None:
        self.sent.append((node, message))

    def abort(self) -> None:
        pass


class Client:
    """The driver of a session, with nodes 4 and 5. Its link to the store keeps calls, which `answer` carries out."""

    def __init__(self, folder: Path, kept: bool = False, name: str = "", store: MemoryStore | None = None) -> None:
        self.heard: list[Any] = []
        self.ended: list[Outcome] = []
        self.pending: list[int] = []
        self.store = store or MemoryStore(1, LEASE_NS, direct=True)
        files = ObjectFiles(None, folder, 1 << 20)
        reach = SimpleNamespace(
            is_embedded=True,
            config=ClusterConfig(name="tests"),
            loss_level=30,
            store_where="host:1",
            keys=None,
            hello=lambda: None,
        )
        self.joined = JoinedCluster(cast(Any, reach), name, kept, files, cast(Any, self), lambda: self.pending, 1.0)
        self.loop = Loop()
        self.joined.loop = cast(Any, self.loop)
        self.joined._attached = cast(Any, self.loop.create_future())
        self.joined._closed = cast(Any, self.loop.create_future())
        self.joined._nodes = NodeLinks(cast(Any, self.loop), cast(Any, reach), self.joined._on_node)
        self.links = cast(Links, self.joined._nodes._links)
        self.said: list[Any] = []
        self.dressed: list[tuple[int, Any]] = []
        self.sealed: list[Any] = []
        self.joined._store.link = cast(Any, self)
        self.members = MEMBERS

    # -- as a link to the store, and as a listener ---------------------------------------------------------------------

    def send(self, word: Any) -> None:
        self.said.append(word)

    def dress(self, node: int, message: Any) -> Any:
        self.dressed.append((node, message))
        return message

    def learn(self, node: int, word: Any) -> None:
        self.sealed.append((node, word))

    async def close(self) -> None:
        pass

    def on_ended(self, outcomes: list[Outcome]) -> None:
        self.ended += outcomes
        self.pending = [task for task in self.pending if task not in {one.task for one in outcomes}]

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        self.heard.append((stream, text, task))

    def on_ran(self, news: Any) -> None:
        self.heard.append(news)

    def on_fact(self, fact: Any) -> None:
        self.heard.append(fact)

    def on_broken(self, error: BaseException) -> None:
        self.heard.append(error)

    # -- short ways ----------------------------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        return int(self.loop.now_s * 1e9)

    def tell_cluster(self, members: Members | None = None) -> None:
        """The store answers, for the first time or again."""
        chosen = self.members if members is None else members
        self.joined.on_store([ClusterIs(LEASE_NS, "daws", 1, chosen)])

    def answer(self) -> list[CallStore]:
        """Carry out the calls, and those that follow from their answers. Returns them."""
        made: list[CallStore] = []
        while calls := self.calls():
            made += calls
            for call in calls:
                answers = self.store.apply(call.shard, call.rows, self.now_ns)
                fine = answers.count(None) == len(answers)
                self.joined.on_store([CallFine(call.token) if fine else StoreAnswered(call.token, answers)])
        return made

    def submit(self, task: int, node: int, *parents: int) -> Submit:
        row = Submit(TaskSpec(task, inputs=parents, outputs=(task,)), parents, node)
        self.joined.new_tasks.append(row)
        self.pending.append(task)
        return row

    def end(self, *tasks: int) -> None:
        """Nodes tell that these have ended."""
        self.links.received(4, [Ends([Outcome(task) for task in tasks])])

    def calls(self, kind: type | None = None) -> list[CallStore]:
        """The calls since the last time, or those with rows of a kind."""
        found = [one for one in self.said if isinstance(one, CallStore)]
        if kind is not None:
            found = [one for one in found if any(isinstance(row, kind) for row in one.rows)]
        self.said = [one for one in self.said if one not in found]
        return found

    def asked(self, kind: type) -> list[Any]:
        found = [one for one in self.said if isinstance(one, kind)]
        self.said = [one for one in self.said if not isinstance(one, kind)]
        return found

    def told(self, kind: type) -> list[tuple[int, Any]]:
        """Messages of a kind to nodes, since the last time."""
        found = [one for one in self.links.sent if isinstance(one[1], kind)]
        self.links.sent = [one for one in self.links.sent if not isinstance(one[1], kind)]
        return found


def opened(client: Client) -> Client:
    client.tell_cluster()
    client.answer()
    assert client.joined._attached.done()
    client.said.clear()
    return client


@pytest.fixture(autouse=True)
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a driver is that of the last client, if there is one."""
    clients: list[Client] = []
    made = Client.__init__

    def make(self: Client, *what: Any, **more: Any) -> None:
        made(self, *what, **more)
        clients.append(self)

    monkeypatch.setattr(Client, "__init__", make)

    def now_s() -> float:
        return clients[-1].loop.now_s if clients else time.monotonic()

    now = SimpleNamespace(monotonic_ns=lambda: int(now_s() * 1e9), monotonic=now_s)
    monkeypatch.setattr(driver, "time", now)
    monkeypatch.setattr(nodelinks, "Links", Links)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return opened(Client(tmp_path))


def rows_of(calls: list[CallStore]) -> list[list[int]]:
    """The tasks that are submitted, by call."""
    return [[row.spec.id for row in call.rows if isinstance(row, Submit)] for call in calls]


# -- a session is opened -----------------------------------------------------------------------------------------------


def test_a_session_is_opened_and_nodes_hear_whose_tasks_print_here(tmp_path: Path):
    client = Client(tmp_path)
    client.tell_cluster()
    assert not client.joined._attached.done()
    client.answer()
    made = client.joined
    assert (made.session, made.name, made.next_task, made.strategy) == (1, "session-1", BASE, "daws")
    assert client.told(Here) == [(node, Here(1)) for node in NODES]
    client.joined.on_store([NowMembers(Members(4, (*MEMBERS.infos[1:], NodeInfo(6, (ExecutorClass(1),)))))])
    assert client.told(Here) == [(6, Here(1))] and client.links.forgotten == [4]


def test_the_store_that_answers_again_is_asked_again_at_once(client: Client):
    client.submit(BASE, 4)
    client.joined.wake()
    (lost,) = client.calls(Submit)
    client.joined._ask(7, Future())
    client.said.clear()
    client.tell_cluster()
    assert lost in client.calls() and client.asked(AskEnds) == [AskEnds([7])]
    assert client.joined._machine is not None and client.joined.session == 1, "it is the same session"


def test_a_session_in_use_is_waited_for_while_its_client_may_be_dead(tmp_path: Path):
    store = MemoryStore(1, LEASE_NS, direct=True)
    client = Client(tmp_path, True, "night", store)
    store.apply(0, [AttachSession(b"other" * 4, "night", True)], client.now_ns)
    client.tell_cluster()
    client.answer()
    assert not client.joined._attached.done() and "in use by another client" in str(client.joined._no_answer())
    for _ in range(20):
        client.loop.pass_s(LEASE_NS / 20e9 + ATTACH_AGAIN_S)
        client.answer()
    assert client.joined._attached.done() and client.joined.session == 1


def test_a_session_whose_client_renews_its_lease_is_not_waited_for(tmp_path: Path):
    store = MemoryStore(1, LEASE_NS, direct=True)
    client = Client(tmp_path, True, "night", store)
    client.tell_cluster()
    for _ in range(4):
        store.apply(0, [AttachSession(b"other" * 4, "night", True)], client.now_ns)
        client.loop.pass_s(2 * ATTACH_AGAIN_S)
        client.answer()
    with pytest.raises(UnavailableError, match="session 'night' is in use by another client"):
        cast(Any, client.joined._attached).result(0)


def test_a_session_that_is_about_to_end_is_waited_for(tmp_path: Path):
    store = MemoryStore(1, LEASE_NS, direct=True)
    client = Client(tmp_path, True, "night", store)
    (other,) = store.apply(0, [AttachSession(b"other" * 4, "night", True)], client.now_ns)
    assert isinstance(other, SessionAttached)
    rows = [AttachSession(b"x" * 16, session=1, why=TO_END), DetachSession(b"x" * 16, 1, True)]
    store.apply(0, rows, client.now_ns)
    client.tell_cluster()
    client.answer()
    assert "about to end" in str(client.joined._no_answer())
    store.sessions.clear()
    client.loop.pass_s(2 * ATTACH_AGAIN_S)
    client.answer()
    assert client.joined.session == 2


def test_a_client_that_was_replaced_breaks_off(client: Client):
    client.store.apply(0, [AttachSession(b"x" * 16, session=1, why=TO_END)], client.now_ns)
    client.loop.pass_s(TICK_NS / 1e9)
    client.answer()
    (error,) = client.heard
    assert isinstance(error, UnavailableError) and "was away for too long" in str(error) and not error.retry


def test_what_has_ended_before_is_told_when_futures_are_there(tmp_path: Path):
    client = Client(tmp_path, True, "night")
    opened(client)
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    client.store.apply(0, [Finish(BASE, 0, 4, (Input(BASE, 1, BASE, (), b"v"),))], client.now_ns)
    client.store.apply(0, [DetachSession(client.joined._nonce, 1, True)], client.now_ns)
    after = Client(tmp_path, True, "night", client.store)
    after.loop.now_s = client.loop.now_s
    opened(after)
    assert after.joined.tasks == [(BASE, 1)] and after.joined.next_task > BASE
    assert not after.ended
    after.joined.tell_found()
    (outcome,) = after.ended
    assert (outcome.task, outcome.outputs[0].value) == (BASE, b"v")


def test_a_refusal_of_the_store_breaks_off(client: Client):
    with pytest.raises(UnavailableError, match="no replica"):
        client.joined._answer(lambda answer: client.joined.on_store([Refused("no replica")]))
    assert isinstance(client.heard[0], UnavailableError) and "no replica" in str(client.heard[0])
    for ask in (lambda: client.joined.outcome_of(BASE), client.joined.counters):
        with pytest.raises(UnavailableError, match="no replica"):
            ask()


# -- tasks go in -------------------------------------------------------------------------------------------------------


def test_functions_go_first_then_tasks_then_what_is_let_go_of(client: Client):
    row = client.submit(BASE + 7, 4)
    client.joined.learn(BASE + 6, b"code")
    client.joined.let_go.append(BASE + 2)
    client.joined.wake()
    written = [one for call in client.calls() for one in call.rows]
    function, task, release = [one for one in written if isinstance(one, Submit | Release)]
    assert isinstance(function, Submit) and function.outputs[0].value == b"code"
    assert task == row
    assert release == Release(BASE + 2, CLIENT_HOLDER)


def test_tasks_are_handed_to_their_owners_until_these_have_taken_them(client: Client):
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    ((node, submission),) = client.told(Submission)
    assert node == 4 and [one.spec.id for one in submission.tasks] == [BASE]
    assert (4, submission) in client.dressed, "the store's caller may add what it knows"
    client.loop.pass_s(TICK_NS / 1e9 + 0.1)
    assert client.told(Submission) == [(4, submission)]
    client.links.received(4, [SubmissionTaken(4, submission.batch)])
    client.loop.pass_s(TICK_NS / 1e9 + 0.1)
    assert not client.told(Submission)


def test_new_tasks_go_together_while_nodes_have_enough_to_do(client: Client):
    for task in range(2 * ENOUGH):
        client.submit(BASE + task, 4)
    client.joined._turn()
    client.submit(BASE + 100, 4)
    client.joined._turn()
    assert [*map(len, rows_of(client.calls(Submit)))] == [2 * ENOUGH], "nobody waits for the other one yet"
    client.submit(BASE + 101, 4)
    client.loop.pass_s(2 * PACE_PER_NODE_S)
    assert [*map(len, rows_of(client.calls(Submit)))] == [2]
    client.loop.now_s += 1
    client.submit(BASE + 102, 4)
    client.joined._turn()
    assert len(client.calls(Submit)) == 1, "there was no other for long"


def test_new_tasks_do_not_wait_for_others_if_nodes_might_be_done_before(client: Client):
    for task in range(4 * ENOUGH):
        client.submit(BASE + task, 4)
    client.joined._turn()
    client.calls()
    client.end(*range(BASE, BASE + 2 * ENOUGH))
    client.loop.now_s += PACE_PER_NODE_S / 100
    client.submit(BASE + 100, 4)
    client.joined._turn()
    assert len(client.calls(Submit)) == 1, "half of them were done in no time"
    client.end(*range(BASE + 2 * ENOUGH, BASE + 3 * ENOUGH))
    client.loop.now_s += 2 * PACE_PER_NODE_S / 3
    client.submit(BASE + 101, 4)
    client.joined._turn()
    assert len(client.calls(Submit)) == 1, "there are too few left for all executors"


def test_new_tasks_do_not_wait_for_others_because_of_what_never_ends(client: Client):
    """Whoever put many objects in was slow from then on, though all nodes were idle."""
    for task in range(BASE, BASE + 2 * ENOUGH):
        client.joined.learn(1000 + task, b"code")
        made = (Input(task, 5, task, (4,), b"hello"),)
        client.joined.new_tasks.append(Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), 4, made))
    client.joined._turn()
    client.submit(BASE + 100, 4)
    client.joined._turn()
    assert [*map(len, rows_of(client.calls(Submit)))] == [4 * ENOUGH, 1]


def test_what_was_too_much_for_one_turn_does_not_wait(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined, "BYTES_PER_TURN", 1)
    for task in range(2 * ENOUGH):
        client.submit(BASE + task, 4)
    client.joined._turn()
    for task in (BASE + 100, BASE + 101):
        client.pending.append(task)
        client.joined.new_tasks.append(Submit(TaskSpec(task, outputs=(task,), payload=b"many"), (), 4))
    client.loop.now_s += 1
    client.joined._turn()
    assert [*map(len, rows_of(client.calls(Submit)))] == [2 * ENOUGH, 1, 1]


def test_a_task_is_not_let_go_of_before_those_that_read_it_are_submitted(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(joined, "TASKS_PER_TURN", 1)
    monkeypatch.setattr(client.joined, "wake", lambda: None)
    client.submit(BASE, 4)
    client.submit(BASE + 1, 4, BASE)
    client.joined.let_go.append(BASE)
    client.joined._take_in()
    client.answer()
    assert [*client.joined.let_go] == [BASE]
    client.joined._take_in()
    assert Release(BASE, CLIENT_HOLDER) in [row for call in client.answer() for row in call.rows]


def test_a_kept_session_lets_go_of_nothing(tmp_path: Path):
    client = opened(Client(tmp_path, kept=True))
    client.joined.let_go.append(BASE)
    client.joined.wake()
    assert not client.calls()


def test_a_task_whose_home_is_gone_gets_another(client: Client):
    client.submit(BASE, 99)
    client.joined.wake()
    (call,) = client.calls(Submit)
    assert cast(Submit, call.rows[-1]).node in NODES


def test_without_nodes_tasks_wait(client: Client):
    client.joined.on_store([NowMembers(Members(4, ()))])
    client.submit(BASE, 4)
    client.joined.wake()
    assert not client.calls(Submit)
    client.joined.on_store([NowMembers(Members(5, MEMBERS.infos))])
    assert rows_of(client.calls(Submit)) == [[BASE]]


def test_a_client_that_waits_without_nodes_is_told_so_once_and_when_they_are_back(
    client: Client, caplog: pytest.LogCaptureFixture
):
    client.joined.on_store([NowMembers(Members(4, ()))])
    client.joined._look_around()
    assert not caplog.messages  # nobody waits
    client.submit(BASE, 4)
    client.joined._look_around()
    client.joined._look_around()
    (line,) = caplog.messages
    assert "there are no nodes" in line and "'daws node' starts one" in line
    client.joined.on_store([NowMembers(client.members)])
    client.joined._look_around()
    client.joined._look_around()
    assert caplog.messages[1:] == ["there are nodes again"]


def test_a_task_that_its_node_can_own_no_more_gets_another_and_has_not_failed(client: Client):
    client.submit(BASE, 4)
    client.joined.wake()
    (call,) = client.calls(Submit)
    client.joined.on_store([StoreAnswered(call.token, [STRUCK] * len(call.rows))])
    client.joined.on_store([NowMembers(Members(9, MEMBERS.infos[1:]))])
    (call,) = client.calls(Submit)
    assert cast(Submit, call.rows[-1]).node == 5 and not client.ended


def test_what_can_never_run_fails(client: Client):
    client.submit(BASE + 7, 4, BASE + 3)
    client.joined.wake()
    (call,) = client.calls(Submit)
    client.joined.on_store([StoreAnswered(call.token, [REFUSED] * len(call.rows))])
    assert client.asked(AskEnds) == [AskEnds([BASE + 7])]
    client.joined.on_store([Ends([Outcome(BASE + 7, (), FAILED, LOST.format(BASE + 7))])])
    (outcome,) = client.ended
    assert (outcome.task, outcome.state) == (BASE + 7, FAILED)
    assert "what it needs is gone" in outcome.error, "the store knows nothing better"


# -- ends --------------------------------------------------------------------------------------------------------------


def test_each_end_is_told_once_whoever_tells_it(client: Client):
    for task in (BASE, BASE + 1):
        client.submit(task, 4)
    client.joined.wake()
    client.answer()
    client.links.received(4, [Ends([Outcome(BASE)])])
    sealed = Sealed([Outcome(BASE + 1)], (b"before", b"after"))
    client.links.received(5, [sealed])
    client.joined.on_store([Ends([Outcome(BASE), Outcome(BASE + 1)])])
    assert client.ended == [Outcome(BASE), Outcome(BASE + 1)]
    assert client.sealed == [(5, sealed)], "the store's caller learns what the node knows of the store"


def test_ends_that_nobody_tells_are_read_from_the_store(client: Client):
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    client.store.apply(0, [Finish(BASE, 0, 4, (Input(BASE, 1, BASE, (), b"v"),))], client.now_ns)
    for _ in range(5):
        client.loop.pass_s(0.2)
        client.answer()
    assert [(one.task, one.outputs[0].value) for one in client.ended] == [(BASE, b"v")]


def test_what_a_failed_task_has_raised_is_asked_for_before_its_end_is_told(client: Client):
    for task in (BASE, BASE + 1):
        client.submit(task, 4)
    client.joined.wake()
    client.answer()
    with_it = Outcome(BASE, (), FAILED, "it failed", b"failure")
    client.links.received(4, [Ends([with_it, Outcome(BASE + 1, (), FAILED, "it failed")])])
    assert client.ended == [with_it] and client.asked(AskEnds) == [AskEnds([BASE + 1])]
    client.tell_cluster()
    assert client.asked(AskEnds) == [AskEnds([BASE + 1])], "the answer may have been lost with the link"
    known = Outcome(BASE + 1, (), FAILED, "it failed", b"what it raised")
    client.joined.on_store([Ends([known])])
    assert client.ended == [with_it, known]
    client.joined.on_store([Ends([known])])
    assert len(client.ended) == 2


def test_a_question_about_an_end_is_repeated_for_a_store_that_has_lost_it(client: Client):
    """The task runs again then, and has not ended when the store is asked."""
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    client.links.received(4, [Ends([Outcome(BASE, (), FAILED, "it failed")])])
    client.joined._ask(BASE + 1, Future())
    client.asked(AskEnds)
    client.joined.on_store([Ends([])])
    client.joined._look_around()
    (again,) = client.asked(AskEnds)
    assert sorted(again.tasks) == [BASE, BASE + 1]


def test_without_a_store_a_failure_is_told_as_it_is_known(client: Client):
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    client.joined._store.link = None
    client.links.received(4, [Ends([Outcome(BASE, (), FAILED, "it failed")])])
    assert [one.error for one in client.ended] == ["it failed"]


def test_whoever_asks_for_an_end_hears_it_with_all_others(client: Client):
    one: Future[Outcome] = Future()
    two: Future[Outcome] = Future()
    client.joined._ask(BASE, one)
    client.joined._ask(BASE, two)
    client.joined.on_store([Ends([Outcome(BASE)])])
    assert one.result(0) == two.result(0) == Outcome(BASE)


# -- cancels and questions ---------------------------------------------------------------------------------------------


def test_a_cancel_is_ordered_of_one_node_after_the_other_until_one_has_it(client: Client):
    client.submit(BASE, 4)
    client.joined.cancel((BASE,))
    assert not client.told(CancelOrder), "the task is on its way to the store"
    client.answer()
    ((first, order),) = client.told(CancelOrder)
    assert order.tasks == (BASE,)
    client.loop.pass_s(TICK_NS / 1e9 + 0.1)
    ((second, again),) = client.told(CancelOrder)
    assert again == order and {first, second} == set(NODES)
    client.links.received(second, [CancelTaken(second, order.batch)])
    client.loop.pass_s(TICK_NS / 1e9 + 0.1)
    assert not client.told(CancelOrder)


def counted(node: int, *started: int) -> Counted:
    return Counted(Counters(node, 1, 2, 3, 4), [*started], 1)


def test_a_cancel_of_waiting_tasks_spares_those_that_run(client: Client):
    for task in (BASE, BASE + 1, BASE + 2):
        client.submit(task, 4)
    client.joined.wake()
    client.answer()
    client.joined.cancel((BASE, BASE + 1, BASE + 2), running=False)
    assert sorted(client.told(Count)) == [(4, Count(1)), (5, Count(1))] and not client.told(CancelOrder)
    client.links.received(4, [counted(4, BASE)])
    client.links.received(5, [counted(5, BASE + 2)])
    ((_, order),) = client.told(CancelOrder)
    assert order.tasks == (BASE + 1,)


def test_a_strategy_is_told_to_the_store_and_then_to_nodes_before_they_count(client: Client):
    client.joined._use_strategy("flds")
    asked: Future[list[Counted]] = Future()
    client.joined._nodes.ask(asked)
    assert client.asked(NewStrategy) == [NewStrategy("flds")]
    to_four = [message for node, message in client.links.sent if node == 4 and isinstance(message, NewStrategy | Count)]
    assert to_four == [NewStrategy("flds"), Count(1)]
    client.links.received(4, [counted(4)])
    client.joined.on_store([NowMembers(Members(4, MEMBERS.infos[:1]))])
    assert asked.result(0) == [counted(4)], "a node that is gone is not waited for"


def test_what_tasks_print_and_notes_go_to_the_listener(client: Client):
    news, fact = News(4, (), 0, 0), Sent(BASE, 4, 1, 0, 0, 0, 0)
    now_ns = clock_ns()
    said: list[ToClient] = [
        TaskPrinted(BASE, 1, b"hello"),
        Ran(1, news, now_ns),
        Learnt(1, fact, now_ns),
    ]
    client.links.received(4, said)
    assert client.heard == [(1, b"hello", BASE), news, fact]


def test_a_node_whose_link_is_lost_hears_again_whose_session_it_is(client: Client):
    client.told(Here)
    client.links.lost(4)
    assert not client.told(Here), "it may be gone, and it may be found out in a moment"
    client.loop.pass_s(2 * AGAIN_S)
    assert client.told(Here) == [(4, Here(1))]
    client.links.lost(5)
    client.joined.on_store([NowMembers(Members(4, MEMBERS.infos[:1]))])
    client.loop.pass_s(2 * AGAIN_S)
    assert not client.told(Here)


def test_a_node_that_this_client_cannot_reach_is_named_once(client: Client, caplog: pytest.LogCaptureFixture):
    for _ in range(3):
        client.links.undelivered(4, [Count()], "no route to host")
    assert len(caplog.messages) == 1 and "node 4 cannot be reached: no route to host" in caplog.messages[0]
    client.links.received(4, [TaskPrinted(BASE, 1, b"hello")])
    client.links.undelivered(4, [Count()], "no route to host")
    client.links.undelivered(99, [Count()], "no member")
    assert len(caplog.messages) == 2


def test_a_timer_of_an_earlier_attempt_to_attach_is_ignored(tmp_path: Path):
    store = MemoryStore(1, LEASE_NS, direct=True)
    client = Client(tmp_path, True, "night", store)
    store.apply(0, [AttachSession(b"other" * 4, "night", True)], client.now_ns)
    client.tell_cluster()
    client.answer()
    store.apply(0, [DetachSession(b"other" * 4, 1, True)], client.now_ns)
    machine = client.joined._machine
    client.loop.pass_s(2 * ATTACH_AGAIN_S)
    client.answer()
    assert machine is not client.joined._machine and client.joined._attached.done()
    assert machine is not None and machine.phase != client.joined._machine.phase  # type: ignore[union-attr]
    client.loop.pass_s(3 * TICK_NS / 1e9)


def test_nobody_waits_for_an_answer_of_a_thread_that_has_ended(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(driver, "ALIVE_S", 0.0)
    with pytest.raises(ClosedError, match="closed before it could answer"):
        client.joined.outcome_of(BASE)


# -- leaving -----------------------------------------------------------------------------------------------------------


def leave(client: Client, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    async def sleep(seconds: float) -> None:
        client.loop.pass_s(seconds)
        meanwhile()

    monkeypatch.setattr("daws.runtime.cluster.joined.asyncio.sleep", sleep)
    asyncio.run(client.joined._leave_session())


def test_a_session_that_is_not_kept_is_left_to_end(client: Client, monkeypatch: pytest.MonkeyPatch):
    client.submit(BASE, 4)
    client.joined.wake()
    client.answer()
    leave(client, monkeypatch, client.answer)  # type: ignore[arg-type]
    (entry,) = client.store.sessions.values()
    assert entry.ending and not entry.nonce and client.joined._closed.done()
    assert not client.joined.lost, "it ends with its tasks"


def test_a_kept_session_is_left_when_all_tasks_are_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    client = opened(Client(tmp_path, kept=True))
    monkeypatch.setattr(joined, "TASKS_PER_TURN", 2)
    for task in range(5):
        client.submit(BASE + task, 4)

    def go_on() -> None:
        client.answer()
        for node, submission in client.told(Submission):
            client.links.received(node, [SubmissionTaken(node, submission.batch)])

    leave(client, monkeypatch, go_on)
    (entry,) = client.store.sessions.values()
    assert entry.kept and not entry.nonce and not entry.ending
    assert all(client.store.record(BASE + task) for task in range(5)) and not client.joined.lost


def test_a_kept_session_that_ends_meanwhile_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    client = opened(Client(tmp_path, kept=True))
    client.store.apply(0, [AttachSession(b"x" * 16, session=1, why=TO_END)], client.now_ns)
    client.joined._is_closing = True
    began_s = client.loop.now_s
    leave(client, monkeypatch, client.answer)  # type: ignore[arg-type]
    assert client.loop.now_s - began_s < FAREWELL_S / 2 and not client.heard
    assert "could not be kept" in caplog.text


def test_a_kept_session_waits_for_a_store_that_is_slow_and_counts_what_one_that_is_stuck_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    client = opened(Client(tmp_path, kept=True))
    monkeypatch.setattr(joined, "TASKS_PER_TURN", 1)
    for task in range(5):
        client.submit(BASE + task, 4)
    answered: set[int] = set()
    began_s = client.loop.now_s

    def slowly() -> None:
        """Four seconds for each task, until only one is left."""
        client.loop.now_s += 4.0
        for call in client.calls(Submit):
            if len(answered) < 4 and call.token not in answered:
                answered.add(call.token)
                client.joined.on_store([CallFine(call.token)])
                break

    leave(client, monkeypatch, slowly)
    assert client.joined.lost == 1
    assert client.loop.now_s - began_s > FAREWELL_S + 4 * 4.0 - 4.0


def test_streams_to_nodes_that_are_gone_are_not_kept(client: Client):
    class Idle:
        def close_if_idle(self, since_s: float) -> bool:
            return True

    infos = (NodeInfo(4, (ExecutorClass(1),), addresses=("host:1", "host:2")),)
    client.joined.on_store([NowMembers(Members(4, infos))])
    client.joined._objects._sources = {"host:2": cast(Any, Idle()), "gone:2": cast(Any, Idle())}
    client.joined._close_idle()
    assert [*client.joined._objects._sources] == ["host:2"]


def test_who_can_open_no_loop_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def too_many() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(uvloop, "new_event_loop", too_many)
    with pytest.raises(UnavailableError, match="Too many open files; raise the limit"):
        Client(tmp_path).joined.start()


def test_a_store_that_hangs_up_on_everybody_is_not_called_all_the_time(tmp_path: Path):
    config = ClusterConfig(name="lab", port=free_port())
    init_cluster(tmp_path / "lab", config)
    store, calls = Reach(tmp_path / "lab", "store"), [0]

    def close_links(link: Any) -> None:
        calls[0] += 1
        link.close()

    async def main() -> None:
        door = await store.serve(store.store_address, close_links)
        try:
            with pytest.raises(UnavailableError, match="does not answer"):
                await asyncio.to_thread(connect, tmp_path / "lab", timeout=1.0)
        finally:
            door.close()

    uvloop.run(main())
    assert 2 <= calls[0] <= 5
