"""The session machine: it attaches, writes tasks, hands them out, hears how they end, and goes."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from daws.core.effects import CallStore, Send, SetTimer
from daws.core.events import CallFine, CallsSafe, Started, StoreAnswered, StoreChanged, TimerFired
from daws.core.node import NodeConfig
from daws.core.session import CLOSED, GAP, HANDLERS, OPEN, SessionCore
from daws.core.session_calls import ROWS_PER_CALL, SessionCalls
from daws.core.session_events import (
    CloseAsked,
    CommitsHeard,
    EndsHeard,
    GraphSubmitted,
    MembersHeard,
    Reconnected,
    SessionClosed,
    SessionEvent,
    SessionOpened,
    SessionRefused,
    TasksCancelled,
    TasksEnded,
    TasksLetGo,
    TasksSubmitted,
)
from daws.model.cluster import Members
from daws.model.session import brought_id
from daws.model.states import CANCELLED, DONE, FAILED, READY, WAITING
from daws.model.task import AGAIN, FIRST_SPAWNED_ID, FROM_OUTSIDE, SUSPECT, Input, TaskSpec
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.testing import members_of
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission, SubmissionTaken
from daws.wire.store import (
    CLIENT_HOLDER,
    REFUSED,
    SESSION_BITS,
    TO_SWEEP,
    UNDERWAY,
    UNKNOWN,
    AttachSession,
    Cancel,
    Create,
    Finish,
    Inspect,
    Open,
    Register,
    Release,
    Satisfy,
    Story,
    Submit,
    TrimLog,
    function_row,
)

MEMBERS = members_of(2)
BASE = 1 << SESSION_BITS
LEASE_NS = 1_000_000_000
T = TypeVar("T")


class Harness:
    """One client, a store that answers at once, and what the client wants done. No call reaches the store while calls
    are `lost`, or those with rows, or kinds of rows, that are `mute`."""

    def __init__(
        self, store: MemoryStore | None = None, nonce: bytes = b"nonce-1", now_ns: int = 0, **more: Any
    ) -> None:
        self.store = store or MemoryStore(more.pop("shards", 1), LEASE_NS)
        replicated = more.pop("replicated", False)
        config = NodeConfig(shard_count=self.store.shard_count, lease_ns=LEASE_NS, replicated=replicated)
        self.core = SessionCore(nonce, config, **more)
        self.now_ns = now_ns
        self.seen: list[Any] = []
        self.lost = False
        self.mute: tuple[Any, ...] = ()
        self.tokens: list[int] = []
        self.store.join(MEMBERS.infos, now_ns)
        self.step(Started(Members(1, MEMBERS.infos)))

    def step(self, *events: SessionEvent) -> list[Any]:
        """Returns what it wants done, calls included; those are answered at once."""
        todo: list[SessionEvent] = [*events]
        found: list[Any] = []
        while todo:
            out: list[Any] = []
            self.core.step(self.now_ns, todo, out)
            todo = []
            for call in of(CallStore, out):
                if self.lost or any(row in self.mute or type(row) in self.mute for row in call.rows):
                    continue
                answers = self.store.apply(call.shard, call.rows, self.now_ns)
                self.tokens.append(call.token)
                fine = answers.count(None) == len(answers)
                todo.append(CallFine(call.token) if fine else StoreAnswered(call.token, answers))
            found += out
        self.seen += found
        return found

    def tick(self, times: int = 1) -> list[Any]:
        found = []
        for _ in range(times):
            self.now_ns += LEASE_NS // 4
            self.store.join(MEMBERS.infos, self.now_ns)
            found += self.step(TimerFired(0))
        return found

    def submit(self, *tasks: int, parents: tuple[int, ...] = ()) -> list[Any]:
        specs = [TaskSpec(task, inputs=parents, outputs=(task,)) for task in tasks]
        return self.step(TasksSubmitted(tuple([Submit(spec, parents, -1) for spec in specs])))

    def finish(self, task: int, size: int = 100) -> int:
        """Returns on which node."""
        record = self.record(task)
        made = Input(task, size, task, (record.owner,), b"")
        shard = (task >> 6) % self.store.shard_count
        self.store.apply(shard, [Finish(task, record.attempt, record.owner, (made,))], self.now_ns)
        return record.owner

    def record(self, task: int) -> Record:
        record = self.store.record(task)
        assert record is not None
        return record

    def all_is_safe(self) -> None:
        self.step(*[CallsSafe(shard, tuple(self.tokens)) for shard in range(self.store.shard_count)])


def of(kind: type[T], found: Sequence[Any]) -> list[T]:
    return [one for one in found if isinstance(one, kind)]


def sent(kind: type[T], found: Sequence[Any]) -> list[tuple[int, T]]:
    return [(one.to, one.message) for one in of(Send, found) if isinstance(one.message, kind)]


def handed(found: Sequence[Any]) -> list[int]:
    return [ready.spec.id for _, one in sent(Submission, found) for ready in one.tasks]


def ends(found: Sequence[Any]) -> list[Outcome]:
    return [end for one in of(TasksEnded, found) for end in one.ends]


def test_a_session_is_opened_and_its_numbers_are_free():
    harness = Harness(name="mine")
    assert of(SessionOpened, harness.seen) == [SessionOpened(1, "mine", BASE)]
    assert harness.core.phase == OPEN and of(SetTimer, harness.seen)


def test_a_task_without_parents_is_written_then_handed_out_until_it_is_taken():
    harness = Harness()
    found = harness.submit(BASE)
    assert handed(found) == [BASE] == handed(harness.tick())
    ((node, message),) = sent(Submission, found)
    harness.step(SubmissionTaken(node, message.batch))
    assert handed(harness.tick()) == []


def test_a_task_waits_for_its_parents_and_is_handed_out_if_they_are_done():
    harness = Harness()
    harness.submit(BASE)
    assert handed(harness.submit(BASE + 1, parents=(BASE,))) == []
    harness.finish(BASE)
    assert handed(harness.submit(BASE + 2, parents=(BASE,))) == [BASE + 2]


def test_parents_in_other_shards_are_told_before_a_task_can_run():
    harness = Harness(shards=2)
    far = BASE + 64
    harness.submit(BASE)
    harness.finish(BASE)
    assert handed(harness.submit(far, parents=(BASE,))) == [far]
    harness.submit(BASE + 1)
    assert handed(harness.submit(far + 1, parents=(BASE + 1, far))) == []
    assert harness.record(far + 1).edges == (BASE + 1, far)


def test_what_parents_have_made_comes_in_the_call_that_opens_a_task():
    """Else a client may die after the task is open and before it has the objects of its parents."""
    harness = Harness(shards=3)
    far, near = BASE + 64, BASE + 65
    harness.submit(BASE, near)
    harness.finish(BASE)
    harness.mute = (Register(near, far + 2),)
    harness.submit(far + 2, parents=(near, BASE))
    harness.mute = ()
    (call,) = [one for one in of(CallStore, harness.tick()) if any(isinstance(row, Open) for row in one.rows)]
    assert [type(row) for row in call.rows if isinstance(row, Satisfy | Open)] == [Satisfy, Open]
    assert harness.record(far + 2).edges == (near,)


def test_a_call_is_not_cut_between_the_objects_of_parents_and_the_row_that_opens_a_task():
    calls = SessionCalls(False, 0)
    out: list[Any] = []
    for task in range(ROWS_PER_CALL):
        calls.ask(0, Open(task, 0))
    calls.ask(0, Open(ROWS_PER_CALL, 0))
    calls._waiting[0][ROWS_PER_CALL - 2 : ROWS_PER_CALL] = [Satisfy(5, 1, 0), Satisfy(5, 2, 0)]
    calls.flush(0, out)
    assert [len(call.rows) for call in out] == [ROWS_PER_CALL + 1]


def test_ends_are_read_from_the_log_and_told_once():
    harness = Harness()
    harness.submit(BASE, BASE + 1)
    harness.finish(BASE)
    assert [(end.task, end.state, end.outputs[0].object) for end in ends(harness.tick())] == [(BASE, 0, BASE)]
    harness.step(EndsHeard((Outcome(BASE), Outcome(BASE + 1))))
    harness.finish(BASE + 1)
    assert ends(harness.tick(3)) == [] and len(ends(harness.seen)) == 2


def test_a_call_that_was_not_answered_is_repeated_and_its_task_handed_out_with_care():
    harness = Harness()
    harness.lost = True
    assert handed(harness.submit(BASE)) == []
    harness.lost = False
    found = harness.tick()
    ((_, message),) = sent(Submission, found)
    assert handed(found) == [BASE] and message.tasks[0].mode == AGAIN | SUSPECT


def test_what_was_not_answered_is_sent_at_once_on_a_new_link():
    harness = Harness()
    harness.lost = True
    harness.submit(BASE)
    harness.lost = False
    assert handed(harness.step(Reconnected())) == [BASE]


def test_a_cancel_is_ordered_from_one_node_after_the_other():
    harness = Harness()
    harness.submit(BASE)
    orders = sent(CancelOrder, [*harness.step(TasksCancelled((BASE,))), *harness.tick(2)])
    assert {node for node, _ in orders} == {0, 1} and {order.tasks for _, order in orders} == {(BASE,)}
    harness.store.apply(0, [Cancel(BASE, 0)], harness.now_ns)
    harness.step(CancelTaken(0, orders[0][1].batch))
    found = harness.tick()
    assert [end.state for end in ends(found)] == [CANCELLED] and not sent(CancelOrder, found)


def test_a_task_is_let_go_of_when_those_that_read_it_are_written():
    harness = Harness()
    harness.submit(BASE)
    harness.lost = True
    harness.submit(BASE + 1, parents=(BASE,))
    assert not of(CallStore, harness.step(TasksLetGo((BASE,))))
    harness.lost = False
    harness.step(Reconnected())
    assert not harness.record(BASE).held


def test_what_is_let_go_of_is_told_to_those_who_have_it_until_it_is_gone():
    harness = Harness()
    harness.submit(BASE)
    owner = harness.finish(BASE, 10_000_000)
    found = [*harness.step(TasksLetGo((BASE,))), *harness.tick()]
    assert [node for node, _ in sent(LetGo, found)] == [owner, owner]
    harness.store.apply(0, [Release(BASE)], harness.now_ns)
    assert not sent(LetGo, harness.tick(2))


def test_another_client_goes_on_with_a_session_that_was_kept():
    first = Harness(name="mine", kept=True)
    first.submit(BASE, BASE + 1, BASE + 2)
    first.finish(BASE)
    first.step(TasksLetGo((BASE + 2,)))
    second = Harness(first.store, b"nonce-2", name="mine")
    assert of(SessionRefused, second.seen) == [SessionRefused(UNDERWAY)] and second.core.phase == CLOSED
    assert not of(SessionClosed, first.step(CloseAsked(True))), "hand-outs are on their way"
    for node, message in sent(Submission, first.seen):
        first.step(SubmissionTaken(node, message.batch))
    assert of(SessionClosed, first.seen) == [SessionClosed(True)]
    third = Harness(first.store, b"nonce-3", name="mine")
    (opened,) = of(SessionOpened, third.seen)
    assert opened.tasks == ((BASE, 1), (BASE + 1, 1)) and opened.next_task == BASE + 3 + GAP
    assert [(end.task, end.state) for end in ends(third.seen)] == [(BASE, 0)]
    assert sorted(handed(third.seen)) == [BASE + 1, BASE + 2], "their owners may not have heard of them"


def test_a_client_that_was_away_hears_that_its_session_cannot_be_kept():
    first = Harness()
    first.now_ns += 2 * LEASE_NS
    broom = Harness(first.store, b"broom", first.now_ns, session=1, why=TO_SWEEP)
    assert broom.core.phase == CLOSED, "nothing was left in it"
    assert of(SessionRefused, first.step(CloseAsked(True))) == [SessionRefused(REFUSED)]
    assert not of(SessionClosed, first.seen) and first.core.phase == CLOSED


def test_closing_cancels_lets_go_and_leaves_nothing():
    harness = Harness()
    harness.submit(BASE, BASE + 1)
    harness.finish(BASE)
    ((_, order),) = sent(CancelOrder, harness.step(CloseAsked(False)))
    assert order.tasks == (BASE + 1,)
    harness.store.apply(0, [Cancel(BASE + 1, 0)], harness.now_ns)
    harness.store.shards[0].outbox.clear()
    harness.step(CancelTaken(0, order.batch))
    harness.tick(8)
    assert of(SessionClosed, harness.seen) == [SessionClosed(False)]
    assert not harness.store.sessions and not any(harness.store.shards[0].records.values())


def test_a_sweeper_ends_an_abandoned_session():
    first = Harness()
    first.submit(BASE)
    first.finish(BASE)
    early = Harness(first.store, b"broom-1", session=1, why=TO_SWEEP)
    assert of(SessionRefused, early.seen)
    sweeper = Harness(first.store, b"broom-2", 2 * LEASE_NS, session=1, why=TO_SWEEP)
    sweeper.tick(8)
    assert of(SessionClosed, sweeper.seen) == [SessionClosed(False)] and not first.store.sessions


def test_a_sweeper_hands_out_what_a_session_has_that_is_kept():
    first = Harness(kept=True)
    first.submit(BASE)
    sweeper = Harness(first.store, b"broom", 2 * LEASE_NS, session=1, why=TO_SWEEP)
    ((node, message),) = sent(Submission, sweeper.seen)
    sweeper.step(SubmissionTaken(node, message.batch))
    assert of(SessionClosed, sweeper.seen) == [SessionClosed(True)]
    assert first.record(BASE).held and not first.store.sessions[1].nonce


def test_what_a_failover_has_lost_is_sent_again_until_it_is_safe():
    harness = Harness(replicated=True)
    assert not of(SessionOpened, harness.seen), "not before that is safe"
    harness.all_is_safe()
    assert of(SessionOpened, harness.seen)
    harness.submit(BASE)
    harness.store.shards[0].records.clear()
    assert handed(harness.step(StoreChanged(0))) == [BASE]
    assert harness.record(BASE).held
    harness.all_is_safe()
    harness.store.shards[0].records.clear()
    harness.step(StoreChanged(0))
    assert harness.store.record(BASE) is None, "the store has said that it cannot be lost any more"


@pytest.mark.parametrize("far", [BASE + 1, BASE + 64], ids=["same shard", "another shard"])
def test_a_parent_that_a_failover_has_lost_is_written_once_more_before_its_children_are_given_up(far):
    """The node that was to own it has died meanwhile, so it needs another one first."""
    harness = Harness(replicated=True, shards=2)
    harness.all_is_safe()
    harness.submit(BASE)
    harness.mute = (Submit, Register) if far == BASE + 1 else (Register,)
    harness.submit(far, parents=(BASE,))
    harness.mute = ()
    owner = harness.record(BASE).owner
    harness.store.shards[0].dead.add(owner)
    harness.store.shards[0].records.clear()
    harness.step(StoreChanged(0))
    left = tuple([info for info in MEMBERS.infos if info.id != owner])
    found = harness.step(MembersHeard(Members(2, left)))
    assert handed(found) == [BASE] and harness.record(far).state == WAITING
    assert not ends(harness.seen) and not sent(CancelOrder, harness.seen)


def test_what_is_said_again_after_a_failover_ends_a_task_only_if_it_still_needs_that_parent():
    harness = Harness(replicated=True, shards=2)
    harness.all_is_safe()
    done, cancelled, child, other = BASE, BASE + 1, BASE + 64, BASE + 65
    harness.submit(done, cancelled)
    harness.all_is_safe()
    harness.submit(child, parents=(done, cancelled))
    harness.submit(other, parents=(done, child))
    harness.finish(done)
    harness.store.apply(1, [Satisfy(one, done, 0) for one in (child, other)], harness.now_ns)
    harness.store.shards[0].records[done] = None  # let go of, and forgotten
    harness.step(StoreChanged(0))
    assert not sent(CancelOrder, harness.tick())
    harness.store.apply(0, [Cancel(cancelled, 0)], harness.now_ns)
    harness.step(StoreChanged(0))
    ((_, order),) = sent(CancelOrder, harness.seen)
    assert order.tasks == (child,) and not order.error


def test_an_answer_about_the_end_of_the_log_that_is_late_hides_no_end():
    harness = Harness(replicated=True, shards=2)
    harness.lost = True
    harness.all_is_safe()
    harness.lost = False
    harness.step(StoreChanged(1))
    assert of(SessionOpened, harness.seen), "both shards were asked anew"
    harness.submit(BASE)
    harness.finish(BASE)
    assert [end.task for end in ends(harness.tick(2))] == [BASE]


def test_a_client_that_was_replaced_hears_of_it():
    first = Harness(name="mine", kept=True)
    second = Harness(first.store, b"nonce-2", 2 * LEASE_NS, name="mine")
    assert of(SessionOpened, second.seen)
    first.now_ns = 2 * LEASE_NS
    assert of(SessionRefused, first.step(TimerFired(0))) == [SessionRefused(UNDERWAY)]


def test_an_answer_that_is_older_than_a_task_does_not_hide_that_its_owner_may_lack_it():
    """The client asks how a task has ended whose commit may have been dropped, and then whether its owner has it."""
    harness = Harness()
    harness.mute = (Submit,)
    harness.submit(BASE)
    harness.tick()  # the row is sent again: whether it has taken effect is not known
    harness.mute = (Inspect,)
    assert not handed(harness.tick())
    harness.core.ask(BASE, Inspect(BASE, True))
    (old,) = of(CallStore, harness.step(TasksLetGo(())))
    assert old.rows == [Inspect(BASE, True)]
    harness.step(StoreAnswered(old.token, [UNKNOWN]))
    harness.mute = ()
    assert handed(harness.tick()) == [BASE]


def test_a_task_that_is_not_written_is_asked_about_when_it_is():
    """A store that forgets takes a task that it does not know for one that has ended (seed 2000892)."""
    harness = Harness(store=MemoryStore(1, LEASE_NS, retired_max=1000))
    harness.mute = (Submit,)
    harness.submit(BASE)
    for number in range(BASE + 1, BASE + 3):
        harness.store.apply(0, [Submit(TaskSpec(number), (), 0), Finish(number, 0, 0, ())], harness.now_ns)
    harness.store.apply(0, [TrimLog(2)], harness.now_ns)
    harness.tick(3)
    assert not ends(harness.seen)
    harness.mute = ()
    found = harness.tick(2)
    assert [row for call in of(CallStore, found) for row in call.rows if row == Inspect(BASE, True)]
    assert not ends(harness.seen)


def test_each_loss_of_commits_is_asked_about():
    harness = Harness()
    harness.submit(BASE)
    harness.mute = (Inspect,)
    for number in (BASE + 1, BASE + 2):
        harness.store.apply(0, [Submit(TaskSpec(number), (), 0), Finish(number, 0, 0, ())], harness.now_ns)
    harness.store.apply(0, [TrimLog(2)], harness.now_ns)
    (old,) = [one for one in of(CallStore, harness.tick()) if Inspect(BASE, True) in one.rows]
    harness.finish(BASE)
    harness.store.apply(0, [TrimLog(3)], harness.now_ns)
    harness.tick()
    harness.step(StoreAnswered(old.token, [Story(READY, 0, 0, 0)] * len(old.rows)))
    harness.mute = ()
    assert [end.task for end in ends(harness.tick())] == [BASE]


def test_an_object_is_written_when_a_node_knows_that_it_has_it():
    """A task that reads it may be handed out, and come to its node, as soon as it is written."""
    harness = Harness()
    put = Submit(TaskSpec(BASE, FROM_OUTSIDE, outputs=(BASE,)), (), 1, (Input(BASE, 50_000, BASE, (1,), b""),))
    found = harness.step(TasksSubmitted((put, Submit(TaskSpec(BASE + 1, inputs=(BASE,)), (BASE,), -1))))
    ((node, message),) = sent(NewTasks, found)
    assert node == 1 and message.tasks == (put,) and harness.store.record(BASE) is None
    assert sent(NewTasks, harness.tick()) == [(1, message)] and not handed(harness.seen)
    assert handed(harness.step(SubmissionTaken(1, message.batch))) == [BASE + 1]


def test_tasks_of_a_session_that_another_client_ends_are_not_said_to_be_cancelled():
    """Its shards take no more tasks before this client hears that it has lost the session."""
    first = Harness(shards=2)
    sweeper = Harness(first.store, b"broom", 2 * LEASE_NS, session=1, why=TO_SWEEP)
    assert not of(SessionRefused, sweeper.seen)
    found = [*first.submit(BASE), *first.submit(BASE + 64, parents=(BASE,))]
    first.now_ns = 2 * LEASE_NS
    found += first.step(TimerFired(0))
    assert of(SessionRefused, found) and not ends(found)


def test_every_event_of_a_session_has_a_handler():
    mine = {
        *(TasksSubmitted, GraphSubmitted, TasksCancelled, TasksLetGo, EndsHeard, CommitsHeard, MembersHeard),
        *(Reconnected, CloseAsked),
    }
    shared = {Started, TimerFired, StoreAnswered, CallFine, CallsSafe, StoreChanged, SubmissionTaken, CancelTaken}
    assert set(HANDLERS) == mine | shared


def test_a_timer_that_fires_a_little_too_early_is_set_again():
    harness = Harness()
    (timer, *_) = of(SetTimer, harness.seen)
    for _ in range(8):
        harness.now_ns = timer.at_ns - 1000
        (timer,) = of(SetTimer, harness.step(TimerFired(0)))
        harness.now_ns = timer.at_ns
        found = harness.step(TimerFired(0))
        (timer,) = of(SetTimer, found)
    assert of(CallStore, harness.seen)[-1].rows, "its session is renewed"


def test_a_task_that_was_let_go_of_before_its_cancel_is_heard_is_cancelled():
    """A future that is cancelled and dropped at once: the client's thread may hear of that in either order."""
    harness = Harness()
    harness.submit(BASE)
    found = harness.step(TasksLetGo((BASE,)), TasksCancelled((BASE,)))
    ((node, order),) = sent(CancelOrder, found)
    assert order.tasks == (BASE,)
    harness.step(CancelTaken(node, order.batch))
    assert not harness.core.cancels.has_any, "nobody will tell of its end"


def test_ends_that_were_dropped_from_the_log_are_asked_for():
    harness = Harness()
    tasks = range(BASE, BASE + 6)
    harness.submit(*tasks)
    harness.lost = True
    harness.tick()
    for task in (BASE, BASE + 1):
        harness.finish(task)
    node = harness.record(BASE + 2).owner
    harness.store.apply(0, [Finish(BASE + 2, 0, node, (), "bad"), Cancel(BASE + 3, node)], harness.now_ns)
    gone = harness.record(BASE + 1)
    gone.more().remaking, gone.state = True, READY  # it was done, and its object got lost
    harness.store.apply(0, [TrimLog(4)], harness.now_ns)
    harness.finish(BASE + 4)
    harness.lost = False
    found = ends(harness.step(Reconnected())) + ends(harness.tick())
    states = {BASE: 0, BASE + 2: FAILED, BASE + 3: CANCELLED, BASE + 4: 0}
    assert {end.task: end.state for end in found} == states and len(found) == len(states)
    gone.rare, gone.state = None, DONE
    assert [end.task for end in ends(harness.tick())] == [BASE + 1], "its object is there again"
    harness.finish(BASE + 5)
    assert [end.task for end in ends(harness.tick())] == [BASE + 5], "it had not ended: the log goes on"
    assert [end.error for end in found if end.task == BASE + 2] == ["bad"]


@pytest.mark.parametrize("size", [7, 100_000])
def test_a_session_that_ends_waits_for_tasks_that_its_runs_have_left_behind(size: int):
    harness = Harness()
    harness.submit(BASE)
    function = brought_id(1, b"digest")
    created = FIRST_SPAWNED_ID | 77
    node = harness.finish(BASE)
    rows = [function_row(function, bytes(size)), Create(TaskSpec(created, function), owner=node)]
    harness.store.apply(0, rows, harness.now_ns)
    found = harness.step(CloseAsked(False)) + harness.tick(3)
    assert not sent(CancelOrder, found), "nobody has asked to cancel it"
    assert not of(SessionClosed, found) and harness.record(function).held
    harness.store.apply(0, [Finish(created, 0, node)], harness.now_ns)
    found = harness.tick(3)
    assert of(SessionClosed, found) and not harness.store.sessions
    assert not any(harness.store.shards[0].records.values()), "the function is gone, too"


def test_functions_of_runs_are_no_tasks_for_the_next_client():
    first = Harness(name="mine", kept=True)
    first.submit(BASE)
    first.store.apply(0, [function_row(brought_id(1, b"digest"), b"pickled")], 0)
    first.step(CloseAsked(True))
    second = Harness(first.store, b"nonce-2", 2 * LEASE_NS, name="mine")
    (opened,) = of(SessionOpened, second.seen)
    assert opened.tasks == ((BASE, 1),) and opened.next_task < BASE + 4 * GAP


def test_an_object_in_two_places_is_written_when_both_nodes_know_of_it():
    """A node that has not heard of an object in its place would take the object for lost."""
    harness = Harness()
    put = Submit(TaskSpec(BASE, FROM_OUTSIDE, outputs=(BASE,)), (), 1, (Input(BASE, 50_000, BASE, (0, 1), b""),))
    messages = dict(sent(NewTasks, harness.step(TasksSubmitted((put,)))))
    harness.step(SubmissionTaken(0, messages[0].batch))
    assert harness.store.record(BASE) is None
    harness.step(SubmissionTaken(1, messages[1].batch))
    assert harness.record(BASE).outputs[0].places == (0, 1)


def announced(harness: Harness) -> NewTasks:
    """Put an object on nodes 0 and 1, of which node 0 has heard; return the message to node 1."""
    put = Submit(TaskSpec(BASE, FROM_OUTSIDE, outputs=(BASE,)), (), 1, (Input(BASE, 50_000, BASE, (0, 1), b""),))
    messages = dict(sent(NewTasks, harness.step(TasksSubmitted((put,)))))
    harness.step(SubmissionTaken(0, messages[0].batch))
    return messages[1]


def test_tasks_do_not_wait_for_an_object_of_a_silent_member_which_stays_a_place():
    """Seed 3000091: the node that had heard died, and the silent one had the only copy."""
    harness = Harness()
    message = announced(harness)
    harness.tick(8)
    assert harness.record(BASE).outputs[0].places == (0, 1)
    assert sent(NewTasks, harness.tick()) == [(1, message)], "the other node has it, and is to hear of it"


def test_an_object_is_written_without_the_place_of_a_node_that_is_silent_because_it_is_dead():
    harness = Harness()
    announced(harness)
    harness.step(MembersHeard(Members(99, MEMBERS.infos[:1])))
    harness.lost = True
    rows = [row for call in of(CallStore, harness.tick(8)) for row in call.rows if isinstance(row, Submit)]
    assert {row.outputs[0].places for row in rows} == {(0,)}


def test_an_object_that_no_node_knows_of_is_not_written():
    harness = Harness()
    put = Submit(TaskSpec(BASE, FROM_OUTSIDE, outputs=(BASE,)), (), 1, (Input(BASE, 50_000, BASE, (1,), b""),))
    harness.step(TasksSubmitted((put,)))
    harness.tick(8)
    assert harness.store.record(BASE) is None


def test_a_client_that_decides_late_to_keep_its_session_leaves_when_that_is_safe():
    """Seed 3005017: a failover lost that the session was to be kept, and a sweeper ended it."""
    harness = Harness(replicated=True)
    harness.all_is_safe()
    found = harness.step(CloseAsked(keep=True))
    rows = [row for call in of(CallStore, found) for row in call.rows]
    assert [row.kept for row in rows if isinstance(row, AttachSession)] == [True]
    assert not of(SessionClosed, harness.tick())
    harness.all_is_safe()
    harness.tick()
    assert of(SessionClosed, harness.seen) == [SessionClosed(kept=True)]


def test_a_task_that_is_gone_has_not_ended_for_a_client_whose_session_is_another_ones():
    """Seed 3005070: what a client does that has the session now is no end of tasks for the client before."""
    harness = Harness()
    harness.submit(BASE)
    harness.finish(BASE)
    harness.mute = (AttachSession,)
    harness.store.apply(0, [Release(BASE, CLIENT_HOLDER)], harness.now_ns)
    harness.core.ends.find(harness.core, BASE)
    harness.step(EndsHeard(()))
    harness.tick(5)
    assert not ends(harness.seen), "the store has not said since that the session is ours"
    harness.mute = ()
    harness.tick(4)
    assert [(end.task, end.outputs) for end in ends(harness.seen)] == [(BASE, ())]
