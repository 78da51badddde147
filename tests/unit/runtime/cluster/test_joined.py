"""A cluster as its client knows it, without a store: what is said, and what is said again."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from daws.client.connect import connect
from daws.core.effects import CallStore
from daws.core.events import CallFine, StoreAnswered
from daws.data.files import ObjectFiles
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.errors import UnavailableError
from daws.model.states import CANCELLED, FAILED
from daws.model.task import FROM_OUTSIDE, TaskSpec
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import joined, words
from daws.runtime.cluster.joined import ENOUGH, FAREWELL_S, PACE_PER_NODE_S, JoinedCluster
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.words import Ends
from daws.wire.ends import Outcome
from daws.wire.store import CLIENT_HOLDER, DONE, REFUSED, STRUCK, UNKNOWN, Release, Submit
from tests.unit.runtime.cluster.machines import free_port


class Link:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def send(self, word: Any) -> None:
        self.said.append(word)


class Loop:
    """Does at once what is to be done soon, and nothing that is to be done later."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.now_s = 1000.0

    def time(self) -> float:
        return self.now_s

    def call_soon_threadsafe(self, function: Callable[..., None], *what: Any) -> None:
        function(*what)

    def call_later(self, delay_s: float, function: Callable[[], None]) -> None:
        self.later.append(function)

    def create_future(self) -> Any:
        class Ended:
            def done(self) -> bool:
                return False

            def set_result(self, value: object) -> None: ...

        return Ended()


class Client:
    """A joined cluster that is attached to session 1, with nodes 4 and 5."""

    def __init__(self, folder: Path, kept: bool = False) -> None:
        self.ended: list[Outcome] = []
        self.pending: list[int] = []
        files = ObjectFiles(None, folder, 1 << 20)
        self.joined = JoinedCluster(cast(Any, None), "", kept, files, cast(Any, self), lambda: self.pending, 1.0)
        self.loop = Loop()
        self.joined.loop = cast(Any, self.loop)
        self.joined._attached = cast(Any, self.loop.create_future())
        self.link = Link()
        self.joined._link = cast(Any, self.link)
        self.members = Members(3, tuple([NodeInfo(node, (ExecutorClass(1),)) for node in (4, 5)]))
        self.attach()

    def attach(self, members: Members | None = None) -> None:
        chosen = self.members if members is None else members
        self.joined.on_store([words.Attached(1, "session-1", 0, chosen, "daws")])

    def on_ended(self, outcomes: list[Outcome]) -> None:
        self.ended += outcomes
        self.pending = [task for task in self.pending if task not in {one.task for one in outcomes}]

    def submit(self, task: int, node: int, *parents: int) -> Submit:
        row = Submit(TaskSpec(task, inputs=parents, outputs=(task,)), parents, node)
        self.joined.new_tasks.append(row)
        self.pending.append(task)
        return row

    def calls(self) -> list[CallStore]:
        found = [one for one in self.link.said if isinstance(one, CallStore)]
        self.link.said = [one for one in self.link.said if not isinstance(one, CallStore)]
        return found

    def said(self, kind: type) -> list[Any]:
        found = [one for one in self.link.said if isinstance(one, kind)]
        self.link.said.clear()
        return found


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_functions_go_first_then_tasks_then_what_is_let_go_of(client: Client):
    row = client.submit(7, 4)
    client.joined.learn(6, b"code")
    client.joined.let_go.append(2)
    client.joined.wake()
    (call,) = client.calls()
    function, task, release = call.rows
    assert isinstance(function, Submit) and function.outputs[0][4] == b"code"
    assert task == row
    assert release == Release(2, CLIENT_HOLDER)


def test_new_tasks_go_together_while_nodes_have_enough_to_do(client: Client):
    for task in range(2 * ENOUGH):
        client.submit(task, 4)
    client.joined._turn()
    client.submit(100, 4)
    client.joined._turn()
    assert [len(call.rows) for call in client.calls()] == [2 * ENOUGH], "nobody waits for the other one yet"
    client.submit(101, 4)
    client.loop.later.pop()()
    assert [len(call.rows) for call in client.calls()] == [2]
    client.loop.now_s += 1
    client.submit(102, 4)
    client.joined._turn()
    assert len(client.calls()) == 1, "there was no other for long"


def test_new_tasks_do_not_wait_for_others_if_nodes_might_be_done_before(client: Client):
    for task in range(4 * ENOUGH):
        client.submit(task, 4)
    client.joined._turn()
    client.calls()
    client.joined.on_store([Ends([Outcome(task, ()) for task in range(2 * ENOUGH)])])
    client.loop.now_s += PACE_PER_NODE_S / 100
    client.submit(100, 4)
    client.joined._turn()
    assert len(client.calls()) == 1, "half of them were done in no time"
    client.joined.on_store([Ends([Outcome(task, ()) for task in range(2 * ENOUGH, 3 * ENOUGH)])])
    client.loop.now_s += 2 * PACE_PER_NODE_S / 3
    client.submit(101, 4)
    client.joined._turn()
    assert len(client.calls()) == 1, "there are too few left for all executors"


def test_new_tasks_do_not_wait_for_others_because_of_what_never_ends(client: Client):
    """Whoever put many objects in was slow from then on, though all nodes were idle."""
    for task in range(2 * ENOUGH):
        client.joined.learn(1000 + task, b"code")
        made = ((task, 5, task, (4,), b"hello"),)
        client.joined.new_tasks.append(Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), 4, made))
    client.joined._turn()
    client.submit(100, 4)
    client.joined._turn()
    assert [len(call.rows) for call in client.calls()] == [4 * ENOUGH, 1]


def test_what_was_too_much_for_one_turn_does_not_wait(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined, "BYTES_PER_TURN", 1)
    for task in range(2 * ENOUGH):
        client.submit(task, 4)
    client.joined._turn()
    for task in (100, 101):
        client.pending.append(task)
        client.joined.new_tasks.append(Submit(TaskSpec(task, outputs=(task,), payload=b"many"), (), 4))
    client.loop.now_s += 1
    client.joined._turn()
    assert [len(call.rows) for call in client.calls()] == [2 * ENOUGH, 1, 1] and not client.loop.later


def test_a_kept_session_lets_go_of_nothing(tmp_path: Path):
    client = Client(tmp_path, kept=True)
    client.joined.let_go.append(2)
    client.joined.wake()
    assert not client.calls()


def test_a_task_whose_home_is_gone_gets_another(client: Client):
    client.submit(7, 99)
    client.joined.wake()
    (call,) = client.calls()
    assert cast(Submit, call.rows[0]).node in (4, 5)


def test_without_nodes_tasks_wait(client: Client):
    client.joined.on_store([words.NowMembers(Members(4, ()))])
    client.submit(7, 4)
    client.joined.wake()
    assert not client.calls()
    client.joined.on_store([words.NowMembers(client.members)])
    assert len(client.calls()) == 1


def test_who_waits_without_nodes_is_told_so_once_and_when_they_are_back(
    client: Client, caplog: pytest.LogCaptureFixture
):
    client.joined.on_store([words.NowMembers(Members(4, ()))])
    client.joined._look_around()
    assert not caplog.messages  # nobody waits
    client.submit(7, 4)
    client.joined._look_around()
    client.joined._look_around()
    (line,) = caplog.messages
    assert "there are no nodes" in line and "'daws node' starts one" in line
    client.joined.on_store([words.NowMembers(client.members)])
    client.joined._look_around()
    client.joined._look_around()
    assert caplog.messages[1:] == ["there are nodes again"]


def test_a_kept_session_waits_for_a_store_that_is_slow_and_counts_what_one_that_is_stuck_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    client = Client(tmp_path, kept=True)
    monkeypatch.setattr("daws.runtime.cluster.joined.TASKS_PER_TURN", 1)
    for task in range(5):
        client.submit(task, 4)

    async def sleep(_: float) -> None:  # four seconds for each call, until only one is left
        client.loop.now_s += 4.0
        if len(client.joined._calls) > 1 or client.joined.new_tasks:
            client.joined.on_store([CallFine(min(client.joined._calls))])

    monkeypatch.setattr("daws.runtime.cluster.joined.asyncio.sleep", sleep)
    asyncio.run(client.joined._hand_in())
    assert client.joined.lost == 1
    assert client.loop.now_s > 1000 + FAREWELL_S + 4 * 4.0 - 4.0


def test_what_was_not_answered_is_said_again_and_what_may_have_ended_asked_for(client: Client):
    client.submit(7, 4)
    client.joined.wake()
    client.submit(8, 4, 7)
    client.joined.wake()
    first, second = client.calls()
    client.joined.on_store([CallFine(first.token)])
    client.pending = [7, 8]
    client.attach()
    assert client.calls() == [second]
    assert client.link.said == [words.AskEnds([7, 8])]


def test_a_cancel_is_said_again_until_its_task_has_ended(client: Client):
    client.joined._link = None
    client.joined.cancel((7, 8))
    client.joined._link = cast(Any, client.link)
    client.attach()
    assert client.said(words.CancelTasks) == [words.CancelTasks((7, 8))]
    client.joined.on_store([Ends([Outcome(8, (), CANCELLED, "")])])
    client.attach()
    assert client.said(words.CancelTasks) == [words.CancelTasks((7,))]


def test_what_the_store_did_not_take_is_said_once_more_in_its_order(client: Client):
    rows = [client.submit(7, 4), client.submit(8, 5, 7), client.submit(9, 4), client.submit(10, 4)]
    client.joined.wake()
    (call,) = client.calls()
    client.joined.on_store([StoreAnswered(call.token, [STRUCK, UNKNOWN, DONE, None])])
    assert [row.spec for row in client.joined.new_tasks] == [rows[0].spec, rows[1].spec]
    (again,) = client.loop.later
    again()
    (call,) = client.calls()
    assert [cast(Submit, row).spec.id for row in call.rows] == [7, 8]
    assert all(cast(Submit, row).node in (4, 5) for row in call.rows)
    assert not client.ended


def test_what_can_never_run_fails(client: Client):
    client.submit(7, 4, 3)
    client.joined.wake()
    (call,) = client.calls()
    client.joined.on_store([StoreAnswered(call.token, [REFUSED])])
    (outcome,) = client.ended
    assert (outcome.task, outcome.state) == (7, FAILED)
    assert "what it needs is gone" in outcome.error


def test_whoever_asks_for_an_end_hears_it_with_all_others(client: Client):
    from concurrent.futures import Future

    one: Future[Outcome] = Future()
    two: Future[Outcome] = Future()
    client.joined._ask(7, one)
    client.joined._ask(7, two)
    client.joined.on_store([Ends([Outcome(7)])])
    assert one.result(0) == two.result(0) == Outcome(7)
    assert client.ended == [Outcome(7)]


def test_streams_to_nodes_that_are_gone_are_not_kept(client: Client):
    class Idle:
        def close_if_idle(self, since_s: float) -> bool:
            return True

    client.joined._reach = cast(Any, SimpleNamespace(config=ClusterConfig(name="tests")))
    infos = (NodeInfo(4, (ExecutorClass(1),), addresses=("host:1", "host:2")),)
    client.joined.on_store([words.NowMembers(Members(4, infos))])
    client.joined._sources = {"host:2": cast(Any, Idle()), "gone:2": cast(Any, Idle())}
    client.joined._close_idle()
    assert [*client.joined._sources] == ["host:2"]


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
