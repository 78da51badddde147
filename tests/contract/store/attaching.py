"""Sessions: who uses them, for how long, and what they have."""

from daws.model.session import brought_id
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import READY, WAITING
from daws.model.task import FIRST_SPAWNED_ID, FROM_OUTSIDE, Input, Ready, TaskSpec
from daws.wire.store import (
    CANCELLED,
    CLIENT_HOLDER,
    DONE,
    LOG_END,
    OK,
    REFUSED,
    SESSION_BITS,
    TO_END,
    TO_SWEEP,
    UNDERWAY,
    AnswerType,
    AttachSession,
    Available,
    Cancel,
    Claim,
    Clear,
    CloseSession,
    Create,
    DetachSession,
    FindHeld,
    Finish,
    ForgetSession,
    HeldTask,
    HeldTasks,
    Inspect,
    ListSessions,
    Locate,
    Log,
    LoggedEnd,
    ReadLog,
    Register,
    Release,
    Remake,
    Satisfy,
    SessionAttached,
    SessionEntry,
    SessionList,
    Stopped,
    Submit,
    Unready,
    function_row,
)
from tests.contract.store.desk import ANN, BOB, Contract, Desk, made

CREATED = FIRST_SPAWNED_ID | 64 << 6
BROUGHT = brought_id(1, b"digest")
ONE, TWO, BROOM = b"one", b"two", b"broom"
FIRST = 1 << SESSION_BITS
FAR = FIRST + 64
"""A task of the same session in another shard, if there are several."""


def attach(desk: Desk, nonce: bytes, name: str = "", **more: object) -> AnswerType:
    return desk(AttachSession(nonce, name, **more))  # type: ignore[arg-type]


def listed(desk: Desk) -> SessionList:
    answer = desk(ListSessions())
    assert isinstance(answer, SessionList)
    return answer


def submit(desk: Desk, task: int, *parents: int) -> AnswerType:
    return desk(Submit(TaskSpec(task, inputs=parents, outputs=(task,)), parents, ANN))


class AttachingContract(Contract):
    def test_sessions_are_numbered_and_named(self, desk: Desk):
        assert attach(desk, ONE) == SessionAttached(1, "session-1", False)
        assert attach(desk, TWO, "mine", kept=True) == SessionAttached(2, "mine", True)
        entries = (SessionEntry(1, "session-1", False, ONE), SessionEntry(2, "mine", True, TWO))
        assert listed(desk) == SessionList(entries, (1, 2), (desk.now_ns + self.lease_ns,) * 2)

    def test_a_new_session_may_have_a_number_that_its_client_has(self, desk: Desk):
        assert attach(desk, ONE, "mine", proposal=7) == SessionAttached(7, "mine", False)
        assert attach(desk, ONE, "mine", proposal=7) == SessionAttached(7, "mine", False), "it is repeated"
        assert attach(desk, TWO, "mine", proposal=8) == UNDERWAY, "a name goes before a number"
        assert attach(desk, TWO) == SessionAttached(8, "session-8", False), "no number is given twice"

    def test_a_renewed_lease_tells_that_a_client_is_alive(self, desk: Desk):
        attach(desk, ONE)
        desk.now_ns += 5
        attach(desk, ONE, session=1)
        assert listed(desk).until_ns == (desk.now_ns + self.lease_ns,)

    def test_a_client_that_asks_again_has_its_session(self, desk: Desk):
        attach(desk, ONE, "mine")
        assert attach(desk, ONE, "mine", session=1) == SessionAttached(1, "mine", False)

    def test_a_session_has_one_client(self, desk: Desk):
        attach(desk, ONE, "mine", kept=True)
        assert attach(desk, TWO, "mine") == UNDERWAY
        assert attach(desk, BROOM, session=1, why=TO_SWEEP) == UNDERWAY

    def test_a_client_that_is_gone_for_a_lease_can_be_replaced(self, desk: Desk):
        attach(desk, ONE, "mine", kept=True)
        desk.now_ns = self.lease_ns - 1
        attach(desk, ONE, session=1)
        desk.now_ns = 2 * self.lease_ns - 2
        assert attach(desk, TWO, "mine") == UNDERWAY
        desk.now_ns += 1
        assert listed(desk).attached == ()
        assert attach(desk, TWO, "mine") == SessionAttached(1, "mine", True, clients=2)
        assert attach(desk, ONE, session=1) == UNDERWAY
        desk.now_ns += self.lease_ns
        assert attach(desk, ONE, session=1) == REFUSED, "it went on with another client"

    def test_a_client_that_was_away_for_long_goes_on_if_nobody_came(self, desk: Desk):
        attach(desk, ONE)
        desk.now_ns = 5 * self.lease_ns
        assert attach(desk, ONE, session=1) == SessionAttached(1, "session-1", False)
        assert listed(desk).attached == (1,)

    def test_a_client_that_detaches_leaves_its_session_to_others(self, desk: Desk):
        attach(desk, ONE, "mine")
        assert desk(DetachSession(ONE, 1, True)) == OK
        assert listed(desk) == SessionList((SessionEntry(1, "mine", True, b""),))
        assert attach(desk, BROOM, session=1, why=TO_SWEEP) == REFUSED
        assert attach(desk, TWO, "mine") == SessionAttached(1, "mine", True, clients=2)
        assert desk(DetachSession(ONE, 1, False)) == OK, "comes late"
        assert desk(DetachSession(ONE, 1, True)) == OK, "comes late, and the session goes on"
        assert listed(desk).attached == (1,)

    def test_a_client_that_was_away_cannot_keep_a_session_that_a_sweeper_ends(self, desk: Desk):
        attach(desk, ONE)
        desk.now_ns = self.lease_ns
        attach(desk, BROOM, session=1, why=TO_SWEEP)
        assert desk(DetachSession(ONE, 1, True)) == REFUSED
        desk(DetachSession(BROOM, 1, False))
        assert desk(DetachSession(ONE, 1, True)) == REFUSED, "it has ended"
        assert desk(DetachSession(ONE, 1, False)) == OK

    def test_a_session_that_has_ended_is_gone_and_its_number_is_not_given_again(self, desk: Desk):
        attach(desk, ONE, "mine")
        desk(DetachSession(ONE, 1, False))
        assert listed(desk) == SessionList()
        assert attach(desk, ONE, session=1) == REFUSED
        assert attach(desk, TWO, "mine") == SessionAttached(2, "mine", False)

    def test_a_sweeper_ends_what_is_not_kept(self, desk: Desk):
        attach(desk, ONE)
        assert attach(desk, BROOM, why=TO_SWEEP) == REFUSED, "which one?"
        desk.now_ns = self.lease_ns
        assert attach(desk, BROOM, session=1, why=TO_SWEEP) == SessionAttached(1, "session-1", False, True, 2)
        assert attach(desk, BROOM, session=1, why=TO_SWEEP) == SessionAttached(1, "session-1", False, True, 2)
        desk.now_ns += self.lease_ns
        assert attach(desk, ONE, session=1) == REFUSED
        assert attach(desk, TWO, "session-1") == CANCELLED
        another = SessionAttached(1, "session-1", False, True, 3)
        assert attach(desk, b"another broom", session=1, why=TO_SWEEP) == another, "the first one is dead, too"

    def test_a_sweeper_looks_after_what_is_kept(self, desk: Desk):
        attach(desk, ONE, "mine", kept=True)
        desk.now_ns = self.lease_ns
        assert attach(desk, BROOM, session=1, why=TO_SWEEP) == SessionAttached(1, "mine", True, False, 2)
        desk(DetachSession(BROOM, 1, True))
        assert attach(desk, TWO, "mine") == SessionAttached(1, "mine", True, False, 3)

    def test_a_session_can_be_ended_whoever_uses_it(self, desk: Desk):
        attach(desk, ONE, "mine", kept=True)
        assert attach(desk, TWO, "mine", why=TO_END) == SessionAttached(1, "mine", True, True, 2)
        assert attach(desk, ONE, session=1) == UNDERWAY
        assert attach(desk, b"three", "other", why=TO_END) == REFUSED

    def test_a_closed_session_gets_no_more_tasks(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        submit(desk, FIRST)
        assert desk(CloseSession(1)) == OK
        assert submit(desk, FIRST + 1) == CANCELLED
        assert desk(Create(TaskSpec(FIRST + 2), (FIRST,), guarded=True)) == CANCELLED
        assert desk.once(Inspect(FIRST + 1)) == DONE == desk.once(Inspect(FIRST + 2)), "they never will be there"
        never = FIRST + 1
        asked = Finish(never, 0, ANN), Claim(never, BOB, 0, ANN), Unready(never, ANN, 0, ()), Satisfy(never, FIRST, ANN)
        assert [desk.once(row) for row in (*asked, Cancel(never, ANN))] == [DONE] * 5
        asked_of_others = Remake(never, FIRST, ANN), Register(never, FIRST), Locate(never)
        assert [desk.once(row) for row in asked_of_others] == [REFUSED] * 3
        assert desk.once(Release(never)) == OK
        assert desk(FindHeld(1)).next == FIRST + 1  # type: ignore[union-attr]
        assert submit(desk, FIRST) is None, "it was there before"
        assert submit(desk, 2 << SESSION_BITS) is None, "another session"

    def test_sessions_that_are_closed_in_any_order_get_no_more_tasks(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for session in (5, 2, 3, 9, 4, 7, 8):
            desk(CloseSession(session))
        for session in range(12):
            answer = submit(desk, (session << SESSION_BITS) + 1)
            assert answer == (CANCELLED if session in (2, 3, 4, 5, 7, 8, 9) else None), session

    def test_an_object_whose_nodes_have_died_is_no_function(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        desk(Submit(TaskSpec(FIRST, FROM_OUTSIDE, outputs=(FIRST,)), (), ANN, (made(FIRST, FIRST, ANN),)))
        desk(Remake(FIRST, FIRST + 1, ANN, (ANN,)))
        assert desk(FindHeld(1)) == HeldTasks(FIRST + 1, (HeldTask(FIRST, 1, STATE_DONE, True, True),))

    def test_many_tasks_of_a_closed_session_at_once(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        desk(CloseSession(1))
        rows = [Submit(TaskSpec(FIRST + number), (), ANN) for number in range(40)]
        assert desk.store.apply(0, rows, 0) == [CANCELLED] * 40

    def test_a_session_is_forgotten_when_all_has_ended_and_nobody_holds_it(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        assert desk(ForgetSession(9)) == OK, "nothing is there"
        for task in (5, FIRST, FIRST + 1, FIRST + 2):
            desk.create(task, outputs=[task], held=task == FIRST)
        desk.done(5, ANN, 0, made(5, 5, ANN))
        desk.done(FIRST, ANN, 0, made(FIRST, FIRST, ANN))
        stopped = desk.once(Cancel(FIRST + 1, ANN))
        assert isinstance(stopped, Stopped)
        assert desk(ForgetSession(1)) == UNDERWAY
        desk(Release(FIRST, CLIENT_HOLDER))
        desk.done(FIRST + 2)
        assert desk(ForgetSession(1)) == UNDERWAY, "somebody is to spread that it was cancelled"
        desk.once(Clear(ANN, (stopped.key,), (stopped.mark,)))
        assert desk(ForgetSession(1)) == OK
        assert [desk(Inspect(task)) for task in (FIRST, FIRST + 1, FIRST + 2)] == [DONE] * 3
        assert desk.state(5) == STATE_DONE
        assert desk(FindHeld(1)) == HeldTasks(FIRST)
        assert submit(desk, FIRST) == CANCELLED == submit(desk, FIRST + 1), "a copy of a row that comes late"

    def test_what_a_session_has_is_found_in_parts(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        assert desk(FindHeld(1)) == HeldTasks(FIRST)
        submit(desk, 5)
        submit(desk, FIRST)
        submit(desk, FIRST + 1, FIRST)
        function = Input(FIRST + 2, 8, FIRST + 2, (), b"function")
        desk(Submit(TaskSpec(FIRST + 2, FROM_OUTSIDE, outputs=(FIRST + 2,)), (), -1, (function,)))
        submit(desk, FIRST + 3)
        desk(Cancel(FIRST + 3, ANN))
        desk(Release(FIRST + 3, CLIENT_HOLDER))
        found = desk(FindHeld(1, limit=3))
        assert isinstance(found, HeldTasks) and found.next == FIRST + 4 and found.more
        assert found.tasks == (
            HeldTask(FIRST, 1, READY, True, True),
            HeldTask(FIRST + 1, 1, WAITING, True, True),
            HeldTask(FIRST + 2, 1, STATE_DONE, True, False),
        )
        rest = desk(FindHeld(1, FIRST + 3))
        assert rest == HeldTasks(FIRST + 4, (HeldTask(FIRST + 3, 1, STATE_CANCELLED, False, True),))

    def test_tasks_that_their_owner_may_not_have_heard_of_are_found(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        submit(desk, FIRST)
        submit(desk, FIRST + 1, FIRST)
        found = desk(FindHeld(1))
        assert isinstance(found, HeldTasks)
        assert [(owner, ready.spec.id) for owner, ready in found.ready] == [(ANN, FIRST)]
        desk.done(FIRST, ANN, 0, made(FIRST, FIRST, ANN))
        ready = submit(desk, FIRST + 2, FIRST)
        assert isinstance(ready, Ready)
        found = desk(FindHeld(1))
        assert isinstance(found, HeldTasks)
        assert [(owner, one.spec.id, one.inputs) for owner, one in found.ready] == [(ANN, FIRST + 2, ready.inputs)]

    def test_tasks_that_their_parents_may_not_know_are_found(self, desk: Desk):
        desk = Desk(self.make(shards=2), self.snapshot)
        submit(desk, FIRST)
        spec = TaskSpec(FAR, inputs=(FIRST,), outputs=(FAR,))
        desk(Create(spec, (FIRST,), guarded=True, held=True))
        (found,) = desk.store.apply(desk.shard(Create(spec)), [FindHeld(1)], 0)
        assert isinstance(found, HeldTasks)
        assert found.unfinished == (Submit(spec, (FIRST,), -1),)

    def test_the_log_is_read_for_one_session(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in (3, FIRST, 4, FIRST + 1, FIRST + 2):
            desk.create(task)
            if task != FIRST + 1:
                desk.done(task)
        desk(Cancel(FIRST + 1, ANN))
        assert desk(ReadLog(0, 100, 1)) == Log(5, [FIRST, FIRST + 2, LoggedEnd(FIRST + 1, STATE_CANCELLED, "", ())])
        assert desk(ReadLog(2, 2, 1)) == Log(4, [FIRST + 2])
        assert desk(ReadLog(LOG_END)) == Log(5, [])

    # -- what runs of a session have created -------------------------------------------------------------

    def test_functions_that_runs_bring_in_are_kept_once(self, desk: Desk):
        row = function_row(BROUGHT, b"pickled")
        assert desk(row) == OK
        assert desk(function_row(BROUGHT, b"another")) == REFUSED
        assert desk(Locate(BROUGHT)) == Available((Input(BROUGHT, 7, BROUGHT, (), b"pickled"),))
        assert desk(Release(BROUGHT)) == REFUSED, "the session holds it"

    def test_what_runs_have_created_is_found_when_it_is_asked_for(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        submit(desk, FIRST)
        desk(function_row(BROUGHT, b"pickled"))
        desk(function_row(brought_id(2, b"other"), b"of another session"))
        for task, kind, held in ((CREATED, BROUGHT, True), (CREATED + 1, FIRST + 9, False), (CREATED + 2, 5, False)):
            desk(Create(TaskSpec(task, kind, outputs=(task,)), owner=ANN, held=held))
        assert desk(FindHeld(1)).tasks == (HeldTask(FIRST, 1, READY, True, True),)  # type: ignore[union-attr]
        found = desk(FindHeld(1, spawned=True))
        assert isinstance(found, HeldTasks) and (found.next, found.spawned) == (FIRST + 1, 2)
        function = HeldTask(BROUGHT, 1, STATE_DONE, True, False)
        assert found.tasks == (HeldTask(FIRST, 1, READY, True, True), function)
        for task in (CREATED, CREATED + 1):
            desk.done(task, ANN, 0, made(task, task, ANN))
        found = desk(FindHeld(1, FIRST + 1, 1, spawned=True))
        assert isinstance(found, HeldTasks) and found.spawned == 0 and found.more
        assert found.tasks == (HeldTask(CREATED, 1, STATE_DONE, True, False),), "a run has died and holds it"
        assert desk(FindHeld(1, CREATED + 1, 1, spawned=True)) == HeldTasks(FIRST + 1, (function,))

    def test_what_runs_have_created_is_forgotten_with_the_session(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        other = brought_id(2, b"other")
        desk(function_row(BROUGHT, b"pickled"))
        desk(function_row(other, b"of another session"))
        desk(Create(TaskSpec(CREATED, BROUGHT, outputs=(CREATED,)), owner=ANN))
        desk(CloseSession(1))
        desk(Create(TaskSpec(CREATED + 1, BROUGHT), owner=ANN))
        assert desk.state(CREATED + 1) == READY, "the tasks of a session may create others after its client has gone"
        assert desk(ForgetSession(1)) == UNDERWAY
        desk.done(CREATED, ANN, 0, made(CREATED, CREATED, ANN))
        desk.done(CREATED + 1)
        assert desk(ForgetSession(1)) == UNDERWAY, "its function is held"
        desk.once(Release(BROUGHT, CLIENT_HOLDER))
        assert desk(ForgetSession(1)) == OK
        assert [desk(Inspect(task)) for task in (BROUGHT, CREATED, CREATED + 1)] == [DONE] * 3
        assert desk(FindHeld(1, spawned=True)) == HeldTasks(FIRST)
        assert desk.state(other) == STATE_DONE
        assert desk(function_row(BROUGHT, b"pickled")) == CANCELLED, "a copy of the row that comes late"

    def test_functions_that_come_after_their_session_was_forgotten_are_not_kept(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        row = function_row(BROUGHT, b"pickled")
        desk(CloseSession(1))
        desk(Create(TaskSpec(CREATED, BROUGHT), owner=ANN))
        assert desk(ForgetSession(1)) == UNDERWAY
        assert desk(row) == OK, "tasks of the session are left that may need it"
        desk.done(CREATED)
        desk.once(Release(BROUGHT, CLIENT_HOLDER))
        assert desk(ForgetSession(1)) == OK
        late = brought_id(1, b"of a run that nobody waits for")
        assert desk(function_row(late, b"pickled")) == CANCELLED
        assert desk(Locate(late)) == REFUSED, "it is not there, and will never be"
        assert desk(FindHeld(1, spawned=True)) == HeldTasks(FIRST)
        assert desk(function_row(brought_id(2, b"other"), b"pickled")) == OK, "of another session"
