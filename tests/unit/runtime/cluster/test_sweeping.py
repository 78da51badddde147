"""Sessions whose client is gone, or has left them to end: a sweeper over a store in memory."""

from collections import deque
from typing import Any

import pytest

from daws.core.config import NodeConfig
from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered, StoreChanged
from daws.model.states import READY
from daws.model.task import FIRST_SPAWNED_ID, FROM_OUTSIDE, Input, TaskSpec
from daws.runtime.cluster.sweeping import FIRST_TOKEN, Sweeper, is_sweepers
from daws.runtime.crew import TICK_NS
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.testing import members_of
from daws.testing.build import BIG
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, Submission, SubmissionTaken
from daws.wire.store import (
    SESSION_BITS,
    TO_END,
    AttachSession,
    Cancel,
    Clear,
    DetachSession,
    DropPlace,
    Finish,
    ListSessions,
    Row,
    SessionAttached,
    SessionList,
    Stopped,
    Submit,
    shard_of,
)
from tests.unit.runtime.cluster.conftest import SweepClock

LEASE_NS = 8 * TICK_NS
MEMBERS = members_of(2)
NOW_NS = 1 << 40


class Swept:
    """A sweeper, its store, and nodes that do as they are told. Calls are answered while they are made, or `later`."""

    def __init__(self, clock: SweepClock, shards: int = 1, replicated: bool = False, later: bool = False) -> None:
        self.store = MemoryStore(shards, LEASE_NS)
        self.store.join(MEMBERS.infos, NOW_NS)
        self.clock = clock
        self.told: list[tuple[int, Any]] = []
        self.calls: deque[CallStore] = deque()
        self.is_safe = True
        self.obedient = True
        self.now_ns = NOW_NS
        self.depth = self.deepest = 0  # calls that are made while another is
        self._later = later
        self._replicated = replicated
        self.sweeper = self.another()

    def another(self) -> Sweeper:
        config = NodeConfig(
            shard_count=self.store.shard_count, lease_ns=LEASE_NS, tick_ns_max=TICK_NS, replicated=self._replicated
        )
        return Sweeper(config, self._call, self._send)

    def _call(self, call: CallStore) -> None:
        self.calls.append(call)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if not self._later:
            self.answer()
        self.depth -= 1

    def answer(self) -> None:
        """Answer all calls that wait."""
        while self.calls:
            call = self.calls.popleft()
            answers = self.store.apply(call.shard, call.rows, self.now_ns)
            fine = answers.count(None) == len(answers)
            self.sweeper.hear(CallFine(call.token) if fine else StoreAnswered(call.token, answers))
            if self._replicated and self.is_safe:
                self.sweeper.hear(CallsSafe(call.shard, (call.token,)))

    def _send(self, node: int, message: Any) -> None:
        self.told.append((node, message))
        if not self.obedient:
            return
        if isinstance(message, CancelOrder):
            for task in message.tasks:
                (stopped,) = self.apply(task, Cancel(task, node))
                if isinstance(stopped, Stopped):
                    self.apply(task, Clear(node, (stopped.key,)))
            self.sweeper.hear(CancelTaken(node, message.batch))
        elif isinstance(message, LetGo):
            for task in message.tasks:
                self.apply(task, DropPlace(task, task, node))
        elif isinstance(message, Submission):
            self.sweeper.hear(SubmissionTaken(node, message.batch))

    def apply(self, task: int, *rows: Row) -> list[Any]:
        return self.store.apply(shard_of(task, self.store.shard_count), rows, self.now_ns)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.tick()
            self.now_ns += TICK_NS
            self.store.join(MEMBERS.infos, self.now_ns)
            self.sweeper.look(MEMBERS, self.listed())
            self.answer()

    def listed(self) -> SessionList:
        (answer,) = self.store.apply(0, [ListSessions()], self.now_ns)
        assert isinstance(answer, SessionList)
        return answer

    def session(self, name: str = "", kept: bool = False, nonce: bytes = b"n" * 16) -> int:
        (answer,) = self.store.apply(0, [AttachSession(nonce, name, kept)], self.now_ns)
        assert isinstance(answer, SessionAttached)
        return answer.session

    def abandon(self, session: int) -> None:
        self.store.session_leases[session] = 0

    def submit(self, task: int, node: int = 0) -> None:
        self.apply(task, Submit(TaskSpec(task, 1, outputs=(task,)), (), node))

    def put(self, task: int, places: tuple[int, ...], value: bytes = b"") -> None:
        made = (Input(task, BIG, task, places, value),)
        self.apply(task, Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), places[0] if places else -1, made))

    def records(self) -> dict[int, Record]:
        return {task: one for shard in self.store.shards for task, one in shard.records.items() if one is not None}

    def heard(self, kind: type) -> list[Any]:
        return [message for _, message in self.told if isinstance(message, kind)]


@pytest.fixture
def swept(clock: SweepClock) -> Swept:
    return Swept(clock)


def some_tasks(swept: Swept, session: int) -> list[int]:
    """A task that is ready, one that has ended, and an object that was put in; in several shards, if there are."""
    base = session << SESSION_BITS
    ready, done, put = base, base + 64, base + 128
    swept.submit(ready)
    swept.submit(done, 1)
    swept.apply(done, Finish(done, 0, 1, (Input(done, BIG, done, (1,), b""),)))
    swept.put(put, (0, 1))
    return [ready, done, put]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_an_abandoned_session_ends_and_leaves_nothing(
    clock: SweepClock, shards: int, replicated: bool, later: bool, caplog: pytest.LogCaptureFixture
):
    swept = Swept(clock, shards, replicated, later)
    session = swept.session()
    tasks = some_tasks(swept, session)
    swept.look(3)
    assert swept.store.sessions and swept.records() and not caplog.messages, "its client has a lease"
    swept.abandon(session)
    swept.look(5)
    assert caplog.messages == ["the client of session-1 is gone: it ends"]
    assert swept.deepest == 1, "an answer that comes while a call is made waits for its turn"
    assert not swept.store.sessions and not swept.records()
    (order,) = swept.heard(CancelOrder)
    assert order.tasks == (tasks[0],)
    assert {task for one in swept.heard(LetGo) for task in one.tasks} == set(tasks[1:])
    swept.told.clear()
    swept.look(3)
    assert not swept.told


def test_a_session_that_its_client_has_left_to_end_does(swept: Swept):
    session = swept.session("mine", kept=True)
    some_tasks(swept, session)
    rows = [AttachSession(b"n" * 16, session=session, why=TO_END), DetachSession(b"n" * 16, session, True)]
    swept.store.apply(0, rows, swept.now_ns)
    swept.look(5)
    assert not swept.store.sessions and not swept.records()


def test_a_kept_session_goes_on_without_its_client(swept: Swept, caplog: pytest.LogCaptureFixture):
    session = swept.session("night", kept=True)
    ready, done, put = some_tasks(swept, session)
    swept.abandon(session)
    swept.look(5)
    (entry,) = swept.store.sessions.values()
    assert entry.kept and not entry.nonce and not entry.ending, "its next client finds it free"
    assert {ready, done, put} == swept.records().keys() and swept.records()[ready].state == READY
    assert [one.spec.id for said in swept.heard(Submission) for one in said.tasks] == [ready], "its owner may not know"
    assert [*caplog.messages] == ["the client of night is gone: it goes on without one"]
    swept.told.clear()
    swept.look(3)
    assert not swept.told, "once is enough"
    assert swept.session("night", nonce=b"m" * 16) == session


def test_a_session_that_was_left_in_good_order_is_left_alone(swept: Swept):
    session = swept.session("night", kept=True)
    some_tasks(swept, session)
    swept.store.apply(0, [DetachSession(b"n" * 16, session, True)], swept.now_ns)
    swept.look(5)
    assert not swept.told and session in swept.store.sessions


@pytest.mark.parametrize("shards", [1, 3])
def test_functions_wait_until_no_task_needs_them(clock: SweepClock, shards: int):
    """A run has created a task, which outlives the client of its session."""
    swept = Swept(clock, shards)
    session = swept.session()
    function, spawned = session << SESSION_BITS, FIRST_SPAWNED_ID + 64
    swept.put(function, (), b"code")
    swept.submit(function + 1)
    swept.apply(spawned, Submit(TaskSpec(spawned, function, outputs=(spawned,)), (), 0))
    swept.abandon(session)
    swept.look(6)
    assert {function, spawned} <= swept.records().keys() and session in swept.store.sessions
    assert swept.records()[spawned].state == READY, "it is not cancelled"
    swept.apply(spawned, Finish(spawned, 0, 0, (Input(spawned, 1, spawned, (), b"v"),)))
    swept.look(6)
    assert not swept.records() and not swept.store.sessions


def test_a_sweeper_is_refused_a_session_whose_client_is_back(clock: SweepClock):
    swept = Swept(clock, later=True)
    session = swept.session(kept=True)
    some_tasks(swept, session)
    swept.abandon(session)
    clock.tick()
    listed = swept.listed()
    swept.session(nonce=b"n" * 16)  # before the sweeper has asked for it
    swept.sweeper.look(MEMBERS, listed)
    swept.answer()
    swept.look(3)
    (entry,) = swept.store.sessions.values()
    assert entry.nonce == b"n" * 16 and not swept.told
    swept.abandon(session)
    swept.look(3)
    assert not swept.store.sessions[session].nonce, "it is swept when it is abandoned again"


def test_a_session_is_swept_once_however_slow_the_store_is(clock: SweepClock, caplog: pytest.LogCaptureFixture):
    swept = Swept(clock, later=True)
    swept.abandon(swept.session())
    for _ in range(3):
        clock.tick()
        swept.sweeper.look(MEMBERS, swept.listed())
    assert len(caplog.messages) == 1
    swept.answer()
    swept.look(3)
    assert not swept.store.sessions and len(caplog.messages) == 1


def test_of_two_sweepers_one_ends_a_session_and_the_other_takes_its_place(swept: Swept):
    session = swept.session()
    some_tasks(swept, session)
    swept.abandon(session)
    swept.obedient = False
    swept.look(2)
    assert session in swept.store.sessions
    first, swept.sweeper = swept.sweeper, swept.another()
    swept.obedient = True
    swept.look(2)
    assert session in swept.store.sessions, "the first one has a lease"
    swept.look(LEASE_NS // TICK_NS + 5)
    assert not swept.store.sessions and not swept.records()
    first.look(MEMBERS, swept.listed())
    swept.look(2)


def test_orders_are_repeated_until_a_node_has_carried_them_out(swept: Swept):
    session = swept.session()
    tasks = some_tasks(swept, session)
    swept.abandon(session)
    swept.obedient = False
    swept.look(4)
    orders, let_go = swept.heard(CancelOrder), swept.heard(LetGo)
    assert len(orders) > 1 and {one.batch for one in orders} == {orders[0].batch}
    assert len({node for node, one in swept.told if isinstance(one, CancelOrder)}) == 2, "any node can do it"
    assert len(let_go) > 4 and session in swept.store.sessions
    swept.obedient = True
    swept.look(6)
    assert not swept.store.sessions and swept.records().keys().isdisjoint(tasks)


def test_calls_that_were_not_answered_are_made_again(clock: SweepClock):
    swept = Swept(clock, later=True)
    session = swept.session()
    some_tasks(swept, session)
    swept.abandon(session)
    for _ in range(40):
        swept.look()
        clock.tick()
        swept.sweeper.look(MEMBERS, swept.listed())
        swept.calls.clear()  # all lost
    assert not swept.store.sessions and not swept.records()


def test_nothing_follows_from_an_end_that_may_be_lost(clock: SweepClock):
    swept = Swept(clock, replicated=True)
    session = swept.session()
    some_tasks(swept, session)
    swept.abandon(session)
    swept.is_safe = False
    swept.look(4)
    (entry,) = swept.store.sessions.values()
    assert entry.ending and not swept.told, "the store may yet forget that it ends"
    swept.is_safe = True
    swept.sweeper.hear(StoreChanged(0))
    swept.look(5)
    assert not swept.store.sessions and not swept.records()


def test_a_sweeper_whose_calls_are_forgotten_begins_anew(clock: SweepClock):
    """They were answered, and it will never be said that they are safe."""
    swept = Swept(clock, replicated=True)
    session = swept.session()
    some_tasks(swept, session)
    swept.abandon(session)
    swept.is_safe = False
    swept.look(4)
    swept.is_safe = True
    swept.look(4)
    assert session in swept.store.sessions
    swept.sweeper.begin_anew()
    swept.look(LEASE_NS // TICK_NS + 6)
    assert not swept.store.sessions and not swept.records()


def test_several_sessions_are_swept_side_by_side(swept: Swept):
    sessions = [swept.session(nonce=bytes([index] * 16)) for index in range(1, 5)]
    for session in sessions:
        some_tasks(swept, session)
    for session in sessions[:3]:
        swept.abandon(session)
    swept.store.session_leases[sessions[3]] = 1 << 60
    swept.look(5)
    assert [*swept.store.sessions] == sessions[3:]
    assert {task >> SESSION_BITS for task in swept.records()} == {sessions[3]}
    batches = [one.batch for one in swept.heard(CancelOrder)]
    assert len(set(batches)) == 3, "a node takes no two orders with one number"


def test_calls_of_a_sweeper_are_told_from_those_of_the_node(swept: Swept, monkeypatch: pytest.MonkeyPatch):
    made: list[CallStore] = []

    def call(one: CallStore) -> None:
        made.append(one)
        swept._call(one)

    monkeypatch.setattr(swept.sweeper, "_call", call)
    swept.abandon(swept.session())
    swept.look(5)
    assert len(made) >= 5 and all(is_sweepers(one.token) for one in made) and not is_sweepers(FIRST_TOKEN - 1)
    tokens = [one.token for one in made]
    assert len(set(tokens)) == len(tokens)


def test_an_answer_to_nothing_that_is_known_does_no_harm(swept: Swept):
    swept.sweeper.hear(CallFine(FIRST_TOKEN + (7 << 32)))
    swept.sweeper.hear(StoreAnswered(FIRST_TOKEN, [None]))
    swept.sweeper.hear(SubmissionTaken(0, 5))
    assert not swept.calls and not swept.told
