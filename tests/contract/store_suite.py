"""What every store must do, row by row and rule by rule; run on each backend by a subclass (see test_memory_store.py).

A subclass says how to make a store and how to look at all of its state at once. Every row of every test is applied
twice: the second time must answer the same and change nothing. Nodes are called ANN, BOB and CAT; tasks have ids in
three different shards.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.states import (
    CANCELLED as STATE_CANCELLED,
)
from daws.model.states import (
    DONE as STATE_DONE,
)
from daws.model.states import (
    FAILED as STATE_FAILED,
)
from daws.model.states import READY, REMAKING, SUSPENDED, WAITING
from daws.model.task import (
    AGAIN,
    FIRST_SPAWNED_ID,
    REMAKE,
    REPLICA,
    SUSPECT,
    Input,
    NodeId,
    Ready,
    TaskSpec,
    spawned_id,
)
from daws.store.port import Store
from daws.wire.store import (
    ANNOUNCE,
    CANCELLED,
    CLIENT_HOLDER,
    DONE,
    FAILED,
    MOVE,
    OK,
    REFUSED,
    REMAKE_FOR,
    REPLICATE,
    RETRY,
    SATISFY,
    STOP,
    STRUCK,
    UNDERWAY,
    UNKNOWN,
    AddPlace,
    AnswerType,
    Available,
    Buried,
    Cancel,
    Claim,
    Clear,
    Committed,
    Create,
    DropPlace,
    Estate,
    Finish,
    Granted,
    Inspect,
    Lease,
    Leased,
    Locate,
    Log,
    LogRow,
    Noted,
    Open,
    OutboxEntry,
    ReadLog,
    Register,
    Release,
    Remake,
    Resume,
    Retain,
    Row,
    Satisfy,
    Spawn,
    Stopped,
    Story,
    Suspend,
    TakeOver,
    Unready,
    Watch,
    outbox_key,
    shard_of,
)

ANN, BOB, CAT, DAN = 1, 2, 3, 1 << 32 | 1  # DAN is Ann's second incarnation
PARENT, CHILD, OTHER, FAR = 1, 65, 130, 150
BIG = 1_000_000


def made(object_: int, producer: int, *places: NodeId) -> Input:
    return (object_, BIG, producer, places)


def info(node: NodeId) -> NodeInfo:
    return NodeInfo(node, (ExecutorClass(2),))


def same(one: AnswerType, other: AnswerType) -> bool:
    """None says that all is well and nothing follows, as `Committed(-1)` does; who gives a task again says so."""
    if isinstance(one, Ready) and one == other and one.mode & REMAKE:
        return True  # whoever asks for a remake has yet to claim it
    if isinstance(one, (Granted, Ready)) and isinstance(other, (Granted, Ready)):
        return msgspec.structs.replace(one, mode=one.mode | AGAIN) == other
    if isinstance(one, Committed) and isinstance(other, Committed) and len(one.ready) == len(other.ready):
        if not all(same(*pair) for pair in zip(one.ready, other.ready, strict=True)):
            return False
        one, other = (msgspec.structs.replace(answer, ready=()) for answer in (one, other))
    fine = (None, Committed(-1))
    return one == other or (one in fine and other in fine)


def bare(answer: Any) -> Any:
    """Without the marks of intents, which are any numbers that differ where intents do."""
    if isinstance(answer, Estate):
        return msgspec.structs.replace(answer, outbox=tuple(map(bare, answer.outbox)))
    if isinstance(answer, Granted) and answer.stop is not None:
        return msgspec.structs.replace(answer, stop=bare(answer.stop))
    return msgspec.structs.replace(answer, mark=0) if hasattr(answer, "mark") else answer


class Desk:
    """A store as one caller after the other sees it. Each row is sent twice."""

    def __init__(self, store: Store, snapshot: Callable[[Any], object]) -> None:
        self.store = store
        self.snapshot = snapshot
        self.now_ns = 0
        self.mark = 0  # of the last intent that was heard of

    def shard(self, row: Row) -> int:
        if isinstance(row, Create):
            task = row.spec.id
        elif isinstance(row, Clear):
            task = row.keys[0] >> 2 if row.keys else 0
        elif isinstance(row, TakeOver):
            return row.shard
        else:
            task = getattr(row, "task", 0)
        return shard_of(task, self.store.shard_count)

    def __call__(self, row: Row) -> AnswerType:
        (answer,) = self.store.apply(self.shard(row), [row], self.now_ns)
        before = self.snapshot(self.store)
        (again,) = self.store.apply(self.shard(row), [row], self.now_ns)
        assert same(answer, again), f"{row} was answered by {answer}, and when repeated by {again}"
        assert self.snapshot(self.store) == before, f"repeating {row} changed something"
        self.mark = getattr(answer, "mark", self.mark)
        return bare(answer)  # type: ignore[no-any-return]

    def once(self, row: Row) -> AnswerType:
        """As a caller who heard the answer at once, with marks."""
        (answer,) = self.store.apply(self.shard(row), [row], self.now_ns)
        return answer

    def create(
        self,
        task: int,
        parents: Sequence[int] = (),
        children: Sequence[int] = (),
        owner: NodeId = ANN,
        outputs: Sequence[int] = (),
        inputs: Sequence[int] = (),
        **more: Any,
    ) -> TaskSpec:
        spec = TaskSpec(task, inputs=tuple(inputs), outputs=tuple(outputs))
        assert self(Create(spec, tuple(parents), tuple(children), (), owner, **more)) == OK
        return spec

    def pair(self, owner: NodeId = ANN) -> None:
        """A task that makes object 7, and one that reads it."""
        self.create(PARENT, children=[CHILD], outputs=[7], owner=owner)
        self.create(CHILD, parents=[PARENT], inputs=[7])

    def finish(self, task: int, node: NodeId = ANN, attempt: int = 0, *outputs: Input, error: str = "") -> AnswerType:
        return self(Finish(task, attempt, node, outputs, error))

    def done(self, task: int, node: NodeId = ANN, attempt: int = 0, *outputs: Input) -> Committed | None:
        answer = self.finish(task, node, attempt, *outputs)
        assert answer is None or isinstance(answer, Committed)
        return answer

    def story(self, task: int) -> Story:
        answer = self(Inspect(task))
        assert isinstance(answer, Story)
        return msgspec.structs.replace(answer, history=())  # a store may keep one or not

    def state(self, task: int) -> int:
        return self.story(task).state

    def log(self) -> list[LogRow]:
        rows: list[LogRow] = []
        for shard in range(self.store.shard_count):
            (answer,) = self.store.apply(shard, [ReadLog(0)], self.now_ns)
            assert isinstance(answer, Log) and answer.next == len(answer.rows)
            rows += answer.rows
        return rows

    def join(self, *nodes: NodeId) -> None:
        for node in nodes:
            assert isinstance(self(Lease(node, 0, info(node))), Leased)

    def bury(self, dead: NodeId, heir: NodeId, limit: int = 1000) -> tuple[list[Ready], list[OutboxEntry]]:
        """Take over every shard, part by part."""
        ready: list[Ready] = []
        outbox: list[OutboxEntry] = []
        for shard in range(self.store.shard_count):
            part = 0
            while True:
                answer = self(TakeOver(dead, heir, part, limit, shard))
                assert isinstance(answer, Estate)
                ready += answer.ready
                outbox += answer.outbox
                part += 1
                if not answer.more:
                    break
        return sorted(ready, key=lambda one: one.spec.id), sorted(outbox, key=lambda one: one.key)

    def remake(self, task: int, waiter: int, node: NodeId, need: int = 0) -> Granted:
        """Have a task remade, and claim it."""
        ready = self(Remake(task, waiter, node, (), 0, need))
        assert isinstance(ready, Ready) and ready.mode & REMAKE
        assert self.story(task).owner == -1
        granted = self(Claim(task, -1, ready.move, node))
        assert isinstance(granted, Granted)
        return granted

    def lose(self) -> int:
        """PARENT ran on Ann, who is dead; Bob owns CHILD, finds out that object 7 is gone, and CHILD waits again.
        Returns what it needs."""
        self.pair()
        self.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        self.bury(ANN, CAT)
        ready = self(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        assert self(Unready(CHILD, BOB, ready.move, (PARENT,))) == Noted(outbox_key(CHILD, REMAKE_FOR), 0)
        return self.mark


class StoreContract:
    """The suite. `make(**options)` returns a store; `snapshot(store)` anything that compares equal for equal states."""

    lease_ns: ClassVar[int] = 1000

    def make(self, **options: Any) -> Store:
        raise NotImplementedError

    def snapshot(self, store: Any) -> object:
        raise NotImplementedError

    @pytest.fixture
    def desk(self) -> Desk:
        return Desk(self.make(), self.snapshot)

    # -- create ------------------------------------------------------------------------------------

    def test_a_task_without_parents_is_ready_and_owned(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        assert desk.story(PARENT) == Story(READY, BOB, 0, 0)

    def test_a_task_with_parents_waits_and_is_owned_by_nobody(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], owner=BOB)
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (PARENT, OTHER))

    def test_a_second_task_under_the_same_id_is_refused(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Create(TaskSpec(PARENT, kind=5), owner=BOB)) == REFUSED
        assert desk.story(PARENT).owner == ANN

    def test_create_repeated_late_changes_nothing(self, desk: Desk):
        spec = desk.create(PARENT)
        desk.done(PARENT)
        assert desk(Create(spec, owner=ANN)) == OK
        assert desk.state(PARENT) == STATE_DONE

    def test_who_was_taken_over_creates_nothing(self, desk: Desk):
        desk.bury(ANN, BOB)
        assert desk(Create(TaskSpec(PARENT), owner=ANN)) == STRUCK
        assert desk(Inspect(PARENT)) == UNKNOWN

    def test_rows_of_one_call_are_answered_in_order(self, desk: Desk):
        store = desk.store
        rows = [Create(TaskSpec(2), owner=ANN), Finish(2, 0, ANN), Inspect(2), Inspect(3)]
        created, finished, story, nothing = store.apply(0, rows, 0)
        assert created == OK and same(finished, None) and nothing == UNKNOWN
        assert isinstance(story, Story) and story.state == STATE_DONE

    def test_an_empty_call_is_answered(self, desk: Desk):
        assert desk.store.apply(0, [], 0) == []

    @pytest.mark.parametrize(
        "row",
        [
            Finish(9, 0, ANN),
            Satisfy(9, 1, ANN),
            Open(9, ANN),
            Claim(9, ANN, 0, BOB),
            Unready(9, ANN, 0, (1,)),
            Remake(9, 1, ANN),
            Register(9, 1),
            Cancel(9, ANN),
            Release(9),
            Locate(9),
            Inspect(9),
        ],
        ids=lambda row: type(row).__name__,
    )
    def test_a_task_that_is_not_there_yet_is_unknown(self, desk: Desk, row: Row):
        assert desk(row) == UNKNOWN

    @pytest.mark.parametrize(
        "row",
        [Spawn(9, 0, ANN, (10,)), Suspend(9, 0, ANN, (10,)), Retain(9, 5), AddPlace(9, 7, ANN), DropPlace(9, 7, ANN)],
    )
    def test_what_only_an_owner_or_holder_does_is_refused_where_there_is_no_task(self, desk: Desk, row: Row):
        assert desk(row) == REFUSED

    # -- rule 1: readiness is told -----------------------------------------------------------------

    def test_finish_commits_and_names_the_children_to_tell(self, desk: Desk):
        desk.pair()
        answer = desk.finish(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert isinstance(answer, Committed)
        assert (answer.key, answer.children) == (outbox_key(PARENT, SATISFY), (CHILD,))
        assert desk.state(PARENT) == STATE_DONE and desk.log() == [PARENT]

    def test_finish_of_a_leaf_leaves_nothing_to_tell(self, desk: Desk):
        desk.create(PARENT)
        assert same(desk.finish(PARENT), None)
        desk.create(CHILD, outputs=[7])
        assert desk.finish(CHILD, ANN, 0, made(7, CHILD, ANN)) == Committed(-1)
        assert desk.bury(ANN, BOB) == ([], [])

    def test_the_last_edge_makes_ready_and_the_caller_the_owner(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        assert desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),))) == OK
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (OTHER,))
        answer = desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB), made(9, OTHER, BOB))))
        assert isinstance(answer, Ready)
        assert answer.inputs == (made(7, PARENT, ANN), made(8, OTHER, BOB)), "what it does not read is left out"
        assert (answer.attempt, answer.move) == (0, 1)
        assert desk.story(CHILD) == Story(READY, BOB, 1, 0)

    def test_satisfy_is_told_again_only_to_the_caller_who_made_it_ready(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER])
        desk(Satisfy(CHILD, PARENT, ANN))
        first = desk(Satisfy(CHILD, OTHER, BOB))
        assert isinstance(first, Ready)
        assert desk(Satisfy(CHILD, OTHER, CAT)) == OK
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK, "another edge than the one that made it ready"
        assert desk(Satisfy(CHILD, OTHER, BOB)) == msgspec.structs.replace(first, mode=AGAIN)
        assert desk.story(CHILD).owner == BOB

    def test_satisfy_is_not_told_again_after_the_task_has_moved(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        ready = desk(Satisfy(CHILD, PARENT, BOB))
        assert isinstance(ready, Ready)
        desk(Claim(CHILD, BOB, ready.move, CAT))
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK
        desk(Claim(CHILD, CAT, ready.move + 1, BOB))
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK, "Bob has it by a claim now"

    def test_many_edges(self, desk: Desk):
        parents = list(range(100, 120))
        desk.create(CHILD, parents=parents)
        for parent in parents[:-1]:
            assert desk(Satisfy(CHILD, parent, ANN)) == OK
        assert isinstance(desk(Satisfy(CHILD, parents[-1], BOB)), Ready)

    def test_an_edge_that_never_was_changes_nothing(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        assert desk(Satisfy(CHILD, OTHER, BOB)) == OK
        assert desk.story(CHILD).edges == (PARENT,)

    def test_satisfy_of_an_ended_task_says_how_it_ended(self, desk: Desk):
        for task, end, code in ((CHILD, "", CANCELLED), (OTHER, "broken", FAILED)):
            desk.create(task, parents=[PARENT])
            desk(Cancel(task, ANN, end))
            assert desk(Satisfy(task, PARENT, BOB)) == code
        desk.create(FAR)
        desk.done(FAR)
        assert desk(Satisfy(FAR, PARENT, BOB)) == DONE

    def test_who_was_taken_over_cannot_become_owner_by_satisfy(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        desk.bury(ANN, BOB)
        desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB),)))
        assert desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),))) == STRUCK
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (PARENT,))
        answer = desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(answer, Ready)
        assert answer.inputs == (made(8, OTHER, BOB), made(7, PARENT, ANN)), "each of them once"

    def test_an_intent_stays_until_its_holder_clears_it(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        key = outbox_key(PARENT, SATISFY)
        assert desk(Clear(BOB, (key,))) == OK
        _, outbox = desk.bury(ANN, BOB)
        assert [(one.key, one.others, one.inputs) for one in outbox] == [(key, (CHILD,), (made(7, PARENT, ANN),))]
        assert desk(Clear(ANN, (key,))) == OK
        assert desk.bury(BOB, CAT)[1] == outbox, "Ann is not its holder any more"
        assert desk(Clear(CAT, (key,))) == OK
        assert desk.bury(CAT, 4)[1] == []

    def test_a_late_clear_spares_a_newer_intent_under_the_same_key(self, desk: Desk):
        desk.pair(owner=BOB)
        first = desk.once(Finish(PARENT, 0, BOB, (made(7, PARENT, BOB),)))
        assert isinstance(first, Committed)
        key = outbox_key(PARENT, SATISFY)
        desk(Clear(BOB, (key,), (first.mark,)))
        desk(DropPlace(PARENT, 7, BOB))
        desk.remake(PARENT, CHILD, BOB)
        second = desk.once(Finish(PARENT, 1, BOB, (made(7, PARENT, BOB),)))
        assert isinstance(second, Committed) and second.key == key and second.mark != first.mark
        desk(Clear(BOB, (key,), (first.mark,)))
        assert [entry.others for entry in desk.bury(BOB, CAT)[1]] == [(CHILD,)]
        desk(Clear(CAT, (key,), (second.mark,)))
        assert desk.bury(CAT, DAN)[1] == []

    def test_finish_repeated_after_its_intent_was_cleared_tells_nobody(self, desk: Desk):
        desk.pair()
        desk.done(PARENT)
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk.finish(PARENT) == Committed(-1, readers=(CHILD,)), "its objects may still be read"
        assert desk.log() == [PARENT]

    # -- rule 2: moving is claiming ----------------------------------------------------------------

    def test_claim_compares_owner_and_move(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, BOB, 0, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 1, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, CAT)) == Granted(1, 0)
        assert desk.story(PARENT) == Story(READY, CAT, 1, 0)

    def test_of_two_claims_the_first_wins(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == Granted(1, 0)
        assert desk(Claim(PARENT, ANN, 0, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, BOB)) == Granted(1, 0, AGAIN)

    def test_a_late_claim_fails_after_the_lender_took_it_back(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN)) == Granted(1, 0)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED
        assert desk.story(PARENT).owner == ANN

    def test_taking_back_fails_after_the_receiver_claimed(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        assert desk(Claim(PARENT, ANN, 0, ANN)) == REFUSED

    def test_a_claim_repeated_after_the_task_moved_on_fails(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        desk(Claim(PARENT, BOB, 1, CAT))
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_a_claim_repeated_after_its_claimer_took_the_task_back_fails(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        desk(Claim(PARENT, BOB, 1, BOB))
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_who_was_taken_over_cannot_claim(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        desk.bury(ANN, BOB)
        assert desk(Claim(PARENT, BOB, 0, ANN)) == STRUCK
        assert desk(Claim(PARENT, BOB, 0, ANN, REPLICATE)) == STRUCK

    @pytest.mark.parametrize("why", [MOVE, ANNOUNCE, RETRY, REPLICATE])
    def test_only_a_ready_task_can_be_claimed(self, desk: Desk, why: int):
        desk.create(CHILD, parents=[PARENT])
        assert desk(Claim(CHILD, -1, 0, BOB, why)) == REFUSED
        desk.create(OTHER)
        desk.done(OTHER)
        assert desk(Claim(OTHER, ANN, 0, BOB, why)) == DONE

    def test_a_retry_is_a_new_attempt(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN, RETRY)) == Granted(1, 1)
        assert desk.finish(PARENT, ANN, 0) == REFUSED
        desk.done(PARENT, ANN, 1)

    # -- rule 3: commit by run ---------------------------------------------------------------------

    def test_finish_by_another_node_or_attempt_is_refused(self, desk: Desk):
        desk.create(PARENT)
        assert desk.finish(PARENT, BOB) == REFUSED
        assert desk.finish(PARENT, ANN, 1) == REFUSED
        desk(Claim(PARENT, ANN, 0, BOB))
        assert desk.finish(PARENT, ANN) == REFUSED
        assert desk.log() == []
        desk.done(PARENT, BOB)
        assert desk.finish(PARENT, ANN) == DONE

    def test_finish_of_a_waiting_task_is_refused(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        assert desk.finish(CHILD, ANN) == REFUSED

    def test_the_first_of_several_runs_wins_and_the_others_are_named(self, desk: Desk):
        desk.pair()
        assert desk(Claim(PARENT, ANN, 0, BOB, REPLICATE)) == Granted(0, 0, REPLICA)
        assert desk(Claim(PARENT, ANN, 0, CAT, REPLICATE)) == Granted(0, 0, REPLICA)
        answer = desk.finish(PARENT, BOB, 0, made(7, PARENT, BOB))
        assert answer == Committed(outbox_key(PARENT, SATISFY), (CHILD,), (ANN, CAT))
        assert desk.finish(PARENT, ANN, 0, made(7, PARENT, ANN)) == DONE
        assert desk.finish(PARENT, CAT, 0, made(7, PARENT, CAT)) == DONE
        assert desk.log() == [PARENT]
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))

    def test_the_owner_may_win_too(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.finish(PARENT, ANN) == Committed(-1, (), (BOB,))
        assert desk.finish(PARENT, BOB) == DONE

    def test_replicas_are_limited_and_not_for_the_owner(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN, REPLICATE)) == REFUSED
        assert desk(Claim(PARENT, BOB, 0, CAT, REPLICATE)) == REFUSED, "Bob does not own it"
        granted = [desk(Claim(PARENT, ANN, 0, node, REPLICATE)) for node in (10, 11, 12, 13)]
        assert granted == [Granted(0, 0, REPLICA), Granted(0, 0, REPLICA), REFUSED, REFUSED]

    def test_a_new_attempt_strikes_replicas(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert desk.finish(PARENT, BOB) == REFUSED

    def test_a_replica_survives_that_its_owner_moves(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        desk(Claim(PARENT, ANN, 0, CAT))
        assert desk.finish(PARENT, BOB) == Committed(-1, (), (CAT,))

    # -- failures ----------------------------------------------------------------------------------

    def test_a_failure_names_the_children_to_fail_with_it(self, desk: Desk):
        desk.pair()
        answer = desk.finish(PARENT, error="disk full")
        assert answer == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "disk full")
        assert desk.log() == [(PARENT, STATE_FAILED, "disk full", ())]
        spread = desk(Cancel(CHILD, ANN, "disk full", PARENT))
        assert spread == Stopped(outbox_key(CHILD, STOP), (), (), "disk full")
        assert desk.story(CHILD).error == "disk full"
        assert desk.state(CHILD) == STATE_FAILED

    def test_a_failure_stops_the_other_runs(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.finish(PARENT, error="bad") == Stopped(outbox_key(PARENT, STOP), (), (BOB,), "bad")
        assert desk.finish(PARENT, BOB) == FAILED

    def test_the_intent_to_fail_the_children_outlives_the_node(self, desk: Desk):
        desk.pair()
        desk.finish(PARENT, error="bad")
        _, outbox = desk.bury(ANN, BOB)
        assert [(entry.verb, entry.others, entry.error) for entry in outbox] == [(STOP, (CHILD,), "bad")]

    # -- rule 9: cancel ----------------------------------------------------------------------------

    def test_cancel_names_children_and_who_may_be_running_it(self, desk: Desk):
        desk.pair()
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk(Cancel(PARENT, CAT)) == Stopped(outbox_key(PARENT, STOP), (CHILD,), (ANN, BOB))
        assert desk.log() == [(PARENT, STATE_CANCELLED, "", ())]
        assert desk(Cancel(PARENT, DAN)) == CANCELLED, "another caller need not spread it"

    def test_cancel_of_a_waiting_task_stops_nobody(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT], children=[OTHER])
        assert desk(Cancel(CHILD, CAT)) == Stopped(outbox_key(CHILD, STOP), (OTHER,), ())

    def test_after_a_cancel_everything_answers_cancelled(self, desk: Desk):
        desk.create(PARENT)
        desk(Cancel(PARENT, CAT))
        assert desk.finish(PARENT) == CANCELLED
        assert desk.finish(PARENT, error="bad") == CANCELLED
        assert desk(Claim(PARENT, ANN, 0, BOB)) == CANCELLED
        assert desk(Unready(PARENT, ANN, 0, (9,))) == CANCELLED
        assert desk(Remake(PARENT, CHILD, BOB)) == CANCELLED
        assert desk(Register(PARENT, CHILD)) == CANCELLED
        assert desk(Locate(PARENT)) == CANCELLED
        assert desk(Spawn(PARENT, 0, ANN, (9,))) == CANCELLED
        assert desk(Suspend(PARENT, 0, ANN, (9,))) == CANCELLED
        assert desk.log() == [(PARENT, STATE_CANCELLED, "", ())]

    def test_the_first_terminal_state_wins(self, desk: Desk):
        desk.create(PARENT)
        desk.done(PARENT)
        assert desk(Cancel(PARENT, CAT)) == DONE
        assert desk(Cancel(PARENT, CAT, "late")) == DONE
        desk.create(CHILD)
        desk.finish(CHILD, error="bad")
        assert desk(Cancel(CHILD, CAT)) == FAILED
        desk.create(OTHER)
        desk(Cancel(OTHER, CAT))
        assert desk(Cancel(OTHER, CAT, "late")) == Stopped(outbox_key(OTHER, STOP), (), (ANN,)), "as it was"
        assert [desk.state(task) for task in (PARENT, CHILD, OTHER)] == [STATE_DONE, STATE_FAILED, STATE_CANCELLED]
        assert len(desk.log()) == 3

    def test_a_cancel_spreads_through_whoever_takes_over(self, desk: Desk):
        desk.pair()
        desk(Cancel(PARENT, CAT))
        _, outbox = desk.bury(CAT, BOB)
        (entry,) = outbox
        assert (entry.verb, entry.task, entry.others, entry.nodes) == (STOP, PARENT, (CHILD,), (ANN,))
        assert desk(Clear(BOB, (entry.key,))) == OK
        assert desk.bury(BOB, DAN)[1] == []

    def test_who_was_taken_over_cannot_cancel(self, desk: Desk):
        """Its intent to spread the cancel would stand in an outbox that nobody looks at any more."""
        desk.pair(owner=BOB)
        desk.bury(ANN, BOB)
        assert desk(Cancel(PARENT, ANN)) == STRUCK
        assert desk(Cancel(PARENT, ANN, "bad")) == STRUCK
        assert desk.state(PARENT) == READY

    def test_cancelling_a_spawned_task_that_does_not_exist_keeps_it_from_coming_to_life(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        assert desk(Cancel(name, CAT)) == CANCELLED
        assert desk(Create(TaskSpec(name), owner=ANN, guarded=True)) == CANCELLED
        assert desk(Open(name, ANN)) == CANCELLED
        assert desk.bury(ANN, BOB) == ([], [])
        assert desk.log() == []

    # -- rule 4: death -----------------------------------------------------------------------------

    def test_members_and_their_versions(self, desk: Desk):
        first = desk(Lease(ANN, 0, info(ANN)))
        assert isinstance(first, Leased) and first.members is not None
        assert first.members.nodes == (ANN,)
        assert desk(Lease(ANN, first.members.version)) == Leased()
        second = desk(Lease(BOB, 0, info(BOB)))
        assert isinstance(second, Leased) and second.members is not None
        assert second.members.nodes == (ANN, BOB) and second.members.version > first.members.version
        assert desk(Lease(ANN, first.members.version)) == second

    def test_who_watches_learns_of_the_members_without_being_one(self, desk: Desk):
        desk.join(ANN, BOB)
        seen = desk(Watch(0))
        assert isinstance(seen, Leased) and seen.members is not None
        assert seen.members.nodes == (ANN, BOB) and seen.orphans == ()
        assert desk(Watch(seen.members.version)) == Leased()
        desk.now_ns = self.lease_ns
        later = desk(Watch(seen.members.version))
        assert isinstance(later, Leased) and later.members is not None and later.members.nodes == ()

    def test_who_never_joined_has_no_lease(self, desk: Desk):
        assert desk(Lease(ANN, 0)) == STRUCK

    def test_leases_run_out_by_the_clock_of_the_store(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        assert isinstance(desk(Lease(BOB, 0)), Leased)
        desk.now_ns = self.lease_ns
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.members is not None
        assert answer.members.nodes == (BOB,) and answer.orphans == (ANN,)

    def test_a_late_renewal_is_struck(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        desk(Lease(BOB, 0))
        desk.now_ns = self.lease_ns
        assert desk(Lease(ANN, 1)) == STRUCK, "nobody had noticed before"
        assert desk(Lease(ANN, 0, info(ANN))) == STRUCK, "not even by joining anew"
        assert isinstance(desk(Lease(DAN, 0, info(DAN))), Leased), "but as a new incarnation"

    def test_the_dead_are_orphans_until_they_are_buried(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        desk(Lease(BOB, 0))
        desk.now_ns = self.lease_ns
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.orphans == (ANN,)
        assert desk(Buried(ANN)) == OK
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.orphans == ()
        assert desk(Lease(ANN, 0, info(ANN))) == STRUCK

    def test_burying_somebody_who_lives_is_no_death(self, desk: Desk):
        desk.join(ANN)
        assert desk(Buried(ANN)) == OK
        assert isinstance(desk(Lease(ANN, 0)), Leased)

    def test_leaving_makes_an_orphan_at_once(self, desk: Desk):
        desk.join(ANN, BOB)
        answer = desk(Lease(ANN, 0, leaving=True))
        assert isinstance(answer, Leased) and answer.orphans == (ANN,)
        assert desk(Lease(ANN, 0)) == STRUCK

    def test_taking_over_makes_a_new_attempt_that_the_heir_owns(self, desk: Desk):
        desk.create(PARENT)
        desk.create(CHILD)
        desk.create(OTHER, owner=BOB)
        ready, outbox = desk.bury(ANN, BOB)
        assert [(one.spec.id, one.attempt, one.move, one.mode) for one in ready] == [
            (PARENT, 1, 1, SUSPECT),
            (CHILD, 1, 1, SUSPECT),
        ]
        assert outbox == []
        assert desk.finish(PARENT, ANN, 0) == REFUSED
        assert desk.finish(PARENT, ANN, 1) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, CAT)) == REFUSED, "an offer of the dead is void"
        desk.done(PARENT, BOB, 1)
        assert desk.story(OTHER).attempt == 0

    def test_taking_over_part_by_part(self, desk: Desk):
        store = Desk(self.make(shards=1), self.snapshot)
        for task in range(7):
            store.create(task)
        seen: list[int] = []
        for part in range(4):
            answer = store(TakeOver(ANN, BOB, part, 2))
            assert isinstance(answer, Estate) and answer.more == (part < 3)
            seen += [ready.spec.id for ready in answer.ready]
        assert seen == list(range(7))

    def test_an_earlier_part_asked_for_late_takes_nothing_more(self, desk: Desk):
        """Its answer would be dropped, and with it what it names."""
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(5):
            desk.create(task)
        desk.once(TakeOver(ANN, BOB, 0, 2))
        desk.once(TakeOver(ANN, BOB, 1, 2))
        late = desk.once(TakeOver(ANN, BOB, 0, 2))
        assert isinstance(late, Estate) and late.ready == () and late.outbox == ()
        last = desk.once(TakeOver(ANN, BOB, 2, 2))
        assert isinstance(last, Estate) and [one.spec.id for one in last.ready] == [4]

    def test_two_heirs_share_an_estate(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(4):
            desk.create(task)
        one = desk(TakeOver(ANN, BOB, 0, 2))
        other = desk(TakeOver(ANN, CAT, 0, 2))
        assert isinstance(one, Estate) and isinstance(other, Estate)
        assert [ready.spec.id for ready in one.ready + other.ready] == [0, 1, 2, 3]
        assert one.more and not other.more

    def test_the_dead_cannot_take_over(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        desk.bury(ANN, CAT)
        assert desk(TakeOver(BOB, ANN)) == STRUCK
        assert desk.story(PARENT).owner == BOB

    def test_an_heir_of_an_heir(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN)
        desk.create(OTHER)
        desk.bury(ANN, BOB)
        ready, outbox = desk.bury(BOB, CAT)
        assert [(one.spec.id, one.attempt) for one in ready] == [(OTHER, 2)]
        assert [entry.task for entry in outbox] == [PARENT]

    def test_a_task_that_killed_three_nodes_fails(self, desk: Desk):
        desk.pair(owner=10)
        for node in (10, 11, 12):
            if node > 10:
                story = desk.story(PARENT)
                granted = desk(Claim(PARENT, node, story.move, node, ANNOUNCE))
                assert granted == Granted(story.move + 1, story.attempt, SUSPECT)
            ready, outbox = desk.bury(node, node + 1)
        assert ready == []
        (entry,) = outbox
        assert (entry.verb, entry.task, entry.others) == (STOP, PARENT, (CHILD,))
        assert "3 nodes" in entry.error
        assert desk.state(PARENT) == STATE_FAILED

    def test_innocent_tasks_in_the_queue_of_dying_nodes_are_not_failed(self, desk: Desk):
        tasks = [PARENT, CHILD, OTHER, FAR]
        for task in tasks:
            desk.create(task, owner=10)
        for node in range(10, 20):
            ready, outbox = desk.bury(node, node + 1)
            assert [one.spec.id for one in ready] == tasks and outbox == []
        assert [desk.story(task).attempt for task in tasks] == [10] * 4

    def test_a_suspect_that_moved_before_it_ran_is_not_blamed(self, desk: Desk):
        desk.create(PARENT, owner=10)
        for node in range(10, 20):
            desk.bury(node, node + 1)
            move = desk.story(PARENT).move
            desk(Claim(PARENT, node + 1, move, node + 1, ANNOUNCE))
            desk(Claim(PARENT, node + 1, move + 1, ANN))
            desk(Claim(PARENT, ANN, move + 2, node + 1))
        assert desk.state(PARENT) == READY

    def test_a_dead_replica_cannot_commit(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.bury(BOB, CAT) == ([], [])
        assert desk.finish(PARENT, BOB) == REFUSED
        desk.done(PARENT, ANN)

    # -- rule 5: lost objects ----------------------------------------------------------------------

    def test_unready_goes_back_to_waiting_for_what_is_gone(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),)))
        ready = desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB),)))
        assert isinstance(ready, Ready)
        assert desk(Unready(CHILD, CAT, ready.move, (PARENT,))) == REFUSED
        assert desk(Unready(CHILD, BOB, ready.move + 1, (PARENT,))) == REFUSED
        assert desk(Unready(CHILD, BOB, ready.move, (PARENT,))) == Noted(outbox_key(CHILD, REMAKE_FOR), 0)
        assert desk.story(CHILD).edges == (PARENT,) and desk.state(CHILD) == WAITING
        assert desk.finish(CHILD, BOB) == REFUSED
        need = desk.mark
        assert desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, ANN),))) == OK, (
            "a row that was said before it was lost"
        )
        assert desk.story(CHILD).edges == (PARENT,)
        again = desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, CAT),), 0, need))
        assert isinstance(again, Ready)
        assert again.inputs == (made(8, OTHER, BOB), made(7, PARENT, CAT))

    def test_the_intent_to_remake_outlives_the_node(self, desk: Desk):
        desk.lose()
        _, outbox = desk.bury(BOB, CAT)
        assert [(one.verb, one.task, one.others) for one in outbox] == [(REMAKE_FOR, CHILD, (PARENT,))]

    def test_the_intent_to_remake_ends_with_a_task_that_was_cancelled_meanwhile(self, desk: Desk):
        desk.lose()
        move = desk.story(CHILD).move
        assert isinstance(desk(Cancel(CHILD, CAT)), Stopped)
        assert desk(Unready(CHILD, BOB, move - 1, (PARENT,))) == CANCELLED, "Bob has not heard the first answer"
        _, outbox = desk.bury(BOB, CAT)
        assert not [one for one in outbox if one.verb == REMAKE_FOR]

    def test_what_a_remake_spawned_stands_on_its_own_feet(self, desk: Desk):
        need = desk.lose()
        desk.remake(PARENT, CHILD, BOB, need)
        assert desk(Spawn(PARENT, 1, BOB, (spawned_id(PARENT, 1, 0),))) == OK
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        desk.bury(BOB, CAT)
        desk.remake(PARENT, OTHER, CAT)
        _, outbox = desk.bury(CAT, DAN)
        assert not [one for one in outbox if one.verb == STOP], "there is nothing to be stopped"

    def test_a_remake_runs_once_however_many_ask(self, desk: Desk):
        need = desk.lose()
        ready = desk(Remake(PARENT, CHILD, BOB, (), 0, need))
        assert isinstance(ready, Ready)
        assert (ready.mode & REMAKE, ready.attempt) == (REMAKE, 1)
        assert desk(Remake(PARENT, OTHER, CAT)) == ready, "nobody has claimed it yet"
        assert desk(Claim(PARENT, -1, ready.move, CAT)) == Granted(ready.move + 1, 1, REMAKE)
        assert desk(Claim(PARENT, -1, ready.move, BOB)) == REFUSED
        assert desk(Remake(PARENT, CHILD, BOB, (), 0, need)) == UNDERWAY
        assert desk.story(PARENT).state == REMAKING

    def test_the_end_of_a_remake_tells_only_those_who_asked(self, desk: Desk):
        need = desk.lose()
        assert desk(Register(PARENT, FAR)) == Available((made(7, PARENT, ANN),))
        desk.remake(PARENT, CHILD, BOB, need)
        desk(Clear(CAT, (outbox_key(PARENT, SATISFY),)))
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and answer.children == (CHILD,) and answer.needs == (need,)
        assert {*answer.readers} == {CHILD, FAR}, "but all its children may read what it made"
        assert desk.log() == [PARENT], "its future has had its value for long"
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))

    def test_a_remake_does_not_cut_short_what_was_still_to_be_told(self, desk: Desk):
        """Cat has not told all children of the first commit when the remake for one of them ends."""
        desk.create(PARENT, children=[CHILD, OTHER], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        desk.create(OTHER, parents=[PARENT], inputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk.bury(ANN, CAT)
        ready = desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        desk(Unready(CHILD, CAT, ready.move, (PARENT,)))
        need = desk.mark
        desk.remake(PARENT, CHILD, CAT, need)
        desk.done(PARENT, CAT, 1, made(7, PARENT, CAT))
        _, outbox = desk.bury(CAT, BOB)
        (told,) = [entry for entry in outbox if entry.verb == SATISFY]
        pairs = {*zip(told.others, told.needs, strict=True)}
        assert {(CHILD, need), (OTHER, 0)} <= pairs

    def test_what_still_has_a_place_is_not_remade(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(AddPlace(PARENT, 7, BOB))
        assert desk(Remake(PARENT, CHILD, CAT, (ANN,))) == Available((made(7, PARENT, BOB),))
        assert desk.state(PARENT) == STATE_DONE
        assert isinstance(desk(Remake(PARENT, CHILD, CAT, (BOB,))), Ready)

    def test_freed_objects_can_be_remade(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk(Release(PARENT)) == OK
        desk.remake(PARENT, CHILD, BOB)
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and answer.children == (CHILD,)

    def test_what_was_forgotten_cannot_be_remade(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Release(PARENT))
        assert desk(Remake(PARENT, CHILD, BOB)) == REFUSED

    def test_who_was_taken_over_remakes_nothing(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk.bury(ANN, BOB)
        ready = desk(Remake(PARENT, CHILD, ANN))
        assert isinstance(ready, Ready), "anybody may say that it is lost"
        assert desk(Claim(PARENT, -1, ready.move, ANN)) == STRUCK
        assert desk(Claim(PARENT, -1, ready.move, BOB)) == Granted(ready.move + 1, 1, REMAKE)

    def test_a_failed_remake_fails_its_waiters_and_keeps_its_own_value(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Finish(PARENT, 1, BOB, (), "bad")) == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "bad")
        assert desk.state(PARENT) == STATE_DONE and desk.log() == [PARENT]
        assert isinstance(desk(Cancel(CHILD, BOB, "bad", PARENT)), Stopped)
        assert desk.state(CHILD) == STATE_FAILED

    def test_a_failed_remake_outlives_the_node(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        desk.finish(PARENT, BOB, 1, error="bad")
        _, outbox = desk.bury(BOB, CAT)
        stops = [entry for entry in outbox if entry.verb == STOP]
        assert [(one.task, one.others, one.error) for one in stops] == [(PARENT, (CHILD,), "bad")]

    def test_a_cancel_does_not_reach_a_remake(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Cancel(PARENT, CAT)) == DONE
        assert desk.state(PARENT) == REMAKING

    def test_a_remake_that_cannot_get_its_own_inputs_fails_those_who_wait_for_it(self, desk: Desk):
        """FAR made an input of PARENT, whose object CHILD reads. Both objects are lost, and FAR cannot run again."""
        desk.create(FAR, children=[PARENT], outputs=[6])
        desk.create(PARENT, parents=[FAR], children=[CHILD], inputs=[6], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        desk.done(FAR, ANN, 0, made(6, FAR, ANN))
        desk(Satisfy(PARENT, FAR, ANN, (made(6, FAR, ANN),)))
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        ready = desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        desk.bury(ANN, CAT)
        desk(Unready(CHILD, BOB, ready.move, (PARENT,)))
        remake = desk.remake(PARENT, CHILD, BOB, desk.mark)
        assert isinstance(desk(Unready(PARENT, BOB, remake.move, (FAR,))), Noted)
        desk.remake(FAR, PARENT, BOB, desk.mark)
        assert desk.finish(FAR, BOB, 1, error="bad") == Stopped(outbox_key(FAR, STOP), (PARENT,), (), "bad")
        answer = desk(Cancel(PARENT, BOB, "bad", FAR))
        assert answer == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "bad")
        assert isinstance(desk(Cancel(CHILD, BOB, "bad", PARENT)), Stopped)
        assert [desk.state(task) for task in (FAR, PARENT, CHILD)] == [STATE_DONE, STATE_DONE, STATE_FAILED]

    def test_a_remake_that_is_taken_over_goes_on_as_one(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        ready, _ = desk.bury(BOB, CAT)
        assert [(one.spec.id, one.mode, one.attempt) for one in ready] == [(PARENT, REMAKE | SUSPECT, 2)]
        answer = desk.done(PARENT, CAT, 2, made(7, PARENT, CAT))
        assert answer is not None and CHILD in answer.children

    def test_places_come_and_go(self, desk: Desk):
        desk.create(PARENT, outputs=[7], children=[CHILD])
        assert desk(Locate(PARENT)) == UNDERWAY
        assert desk(AddPlace(PARENT, 7, BOB)) == REFUSED
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(AddPlace(PARENT, 7, BOB)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, ANN, BOB),))
        assert desk(DropPlace(PARENT, 7, ANN)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))
        desk.bury(CAT, BOB)
        assert desk(AddPlace(PARENT, 7, CAT)) == REFUSED

    # -- rule 6: references ------------------------------------------------------------------------

    def test_a_record_is_forgotten_once_freed(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Release(PARENT)) == OK
        for row in (Inspect(PARENT), Finish(PARENT, 0, ANN), Satisfy(PARENT, 9, BOB), Cancel(PARENT, BOB)):
            assert desk(row) == DONE
        assert desk(Claim(PARENT, ANN, 0, BOB)) == DONE
        assert desk(Unready(PARENT, ANN, 0, (9,))) == DONE
        assert desk(Create(TaskSpec(PARENT, outputs=(7,)), owner=ANN)) == DONE
        for other in (Locate(PARENT), Register(PARENT, CHILD), Retain(PARENT, 5), AddPlace(PARENT, 7, BOB)):
            assert desk(other) == REFUSED
        assert desk.log() == [PARENT]

    def test_a_record_waits_for_its_children_to_be_forgotten(self, desk: Desk):
        desk.create(PARENT, children=[CHILD], outputs=[7])
        desk.create(CHILD, parents=[PARENT], children=[OTHER], inputs=[7], outputs=[8])
        desk.create(OTHER, parents=[CHILD], inputs=[8])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk.done(CHILD, BOB, 0, made(8, CHILD, BOB))
        assert desk(Release(PARENT)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        desk(Satisfy(OTHER, CHILD, BOB, (made(8, CHILD, BOB),)))
        desk(Clear(BOB, (outbox_key(CHILD, SATISFY),)))
        desk.done(OTHER, BOB)
        assert desk(Release(OTHER)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        assert desk(Release(CHILD)) == OK
        assert [desk(Inspect(task)) for task in (PARENT, CHILD, OTHER)] == [DONE] * 3

    def test_a_sink_that_somebody_holds_is_kept_and_its_parent_too(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk(Retain(CHILD, 5))
        desk.done(CHILD, BOB)
        assert desk(Release(PARENT)) == OK
        assert all(isinstance(desk(Inspect(task)), Story) for task in (PARENT, CHILD))

    def test_a_freed_record_is_forgotten_when_its_last_intent_is_cleared(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk.done(CHILD, BOB)
        desk(Release(CHILD))
        assert desk(Release(PARENT)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk(Inspect(PARENT)) == DONE

    def test_a_record_with_any_intent_left_is_kept(self, desk: Desk):
        """CHILD was remade for and has ended, but the intent that remade its parent is not yet cleared."""
        need = desk.lose()
        desk.remake(PARENT, CHILD, BOB, need)
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert isinstance(desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, BOB),), 0, need)), Ready)
        desk.done(CHILD, BOB)
        desk(Release(CHILD))
        _, outbox = desk.bury(BOB, CAT)
        assert (REMAKE_FOR, CHILD) in [(entry.verb, entry.task) for entry in outbox]

    def test_a_task_that_lost_an_input_once_can_still_wait_for_others(self, desk: Desk):
        need = desk.lose()
        desk.remake(PARENT, CHILD, BOB, need)
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert isinstance(desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, BOB),), 0, need)), Ready)
        desk(Suspend(CHILD, 0, BOB, (FAR,)))
        assert desk(Satisfy(CHILD, FAR, CAT)) == OK
        assert desk(Open(CHILD, BOB)) == Resume(BOB)

    def test_holders_keep_a_record(self, desk: Desk):
        desk.create(PARENT, outputs=[7], held=True)
        desk(Retain(PARENT, 5))
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Release(PARENT)) == REFUSED
        assert desk(Release(PARENT, CLIENT_HOLDER)) == OK
        assert desk(Release(PARENT)) == REFUSED
        assert desk(Release(PARENT, 5)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, ANN),))
        assert desk(Release(PARENT)) == OK
        assert desk(Inspect(PARENT)) == DONE

    def test_release_of_a_task_that_is_not_done_frees_nothing(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        assert desk(Release(PARENT)) == OK
        assert desk.state(PARENT) == READY

    # -- rule 7: growing graphs --------------------------------------------------------------------

    def test_a_guarded_task_waits_until_it_is_opened(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        desk.create(PARENT)
        assert desk(Spawn(PARENT, 0, ANN, (name,))) == OK
        desk.create(name, parents=[OTHER], guarded=True)
        desk.create(OTHER, owner=BOB)
        assert desk(Register(OTHER, name)) == OK
        assert desk(Satisfy(name, OTHER, BOB)) == OK
        assert desk.state(name) == WAITING
        ready = desk(Open(name, ANN))
        assert isinstance(ready, Ready) and desk.story(name).owner == ANN
        assert desk(Open(name, BOB)) == OK

    def test_register_with_a_task_that_is_done_answers_its_objects(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Register(PARENT, CHILD)) == Available((made(7, PARENT, ANN),))

    def test_register_with_a_task_that_failed_says_so(self, desk: Desk):
        desk.create(PARENT)
        desk.finish(PARENT, error="bad")
        assert desk(Register(PARENT, CHILD)) == FAILED

    def test_a_registered_child_is_told(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Register(PARENT, CHILD)) == OK
        answer = desk.finish(PARENT)
        assert isinstance(answer, Committed)
        assert (answer.key, answer.children) == (outbox_key(PARENT, SATISFY), (CHILD,))

    def test_a_child_that_registers_during_a_remake_is_told_at_its_end(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Register(PARENT, FAR)) == OK
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and {CHILD, FAR} <= {*answer.children}

    def test_spawned_tasks_are_named_in_the_log(self, desk: Desk):
        desk.create(PARENT)
        first, second = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        desk(Spawn(PARENT, 0, ANN, (first,)))
        desk(Spawn(PARENT, 0, ANN, (second,)))
        desk.done(PARENT)
        assert desk.log() == [(PARENT, STATE_DONE, "", (first, second))]

    def test_only_the_owner_of_this_attempt_spawns(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Spawn(PARENT, 1, ANN, (FIRST_SPAWNED_ID,))) == REFUSED
        assert desk(Spawn(PARENT, 0, BOB, (FIRST_SPAWNED_ID,))) == REFUSED
        desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert desk(Spawn(PARENT, 0, ANN, (FIRST_SPAWNED_ID,))) == REFUSED

    def test_children_of_an_attempt_that_did_not_commit_are_to_be_cancelled(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        _, outbox = desk.bury(ANN, BOB)
        assert [(entry.verb, entry.task, entry.others, entry.error) for entry in outbox] == [
            (STOP, PARENT, (name,), "")
        ]
        desk.done(PARENT, BOB, 1)
        assert desk.log() == [PARENT]

    def test_children_of_an_attempt_that_is_retried_are_to_be_cancelled(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        granted = desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert granted == Granted(1, 1, 0, Stopped(outbox_key(PARENT, STOP), (name,)))
        assert [(entry.verb, entry.others) for entry in desk.bury(ANN, BOB)[1]] == [(STOP, (name,))]

    def test_children_of_a_committed_attempt_live_on_when_it_is_remade(self, desk: Desk):
        desk.create(PARENT, children=[CHILD], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        desk.create(name, owner=BOB)
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk.bury(ANN, CAT)
        desk(Unready(CHILD, BOB, desk.story(CHILD).move, (PARENT,)))
        desk.remake(PARENT, CHILD, CAT, desk.mark)
        _, outbox = desk.bury(CAT, BOB)
        assert [entry for entry in outbox if entry.verb == STOP] == []

    def test_children_of_failed_and_cancelled_tasks_are_named(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        desk.pair()
        desk(Spawn(PARENT, 0, ANN, (name,)))
        assert desk(Cancel(PARENT, BOB)) == Stopped(outbox_key(PARENT, STOP), (CHILD, name), (ANN,))

    # -- rule 8: suspending ------------------------------------------------------------------------

    def suspended(self, desk: Desk) -> tuple[int, int]:
        """PARENT runs on Ann and waits for two tasks that it has spawned."""
        desk.create(PARENT)
        names = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        desk(Spawn(PARENT, 0, ANN, names))
        for name in names:
            desk.create(name, owner=BOB)
        assert desk(Suspend(PARENT, 0, ANN, names)) == OK
        for name in names:
            assert desk(Register(name, PARENT, True)) == OK
        return names

    def test_a_suspended_task_is_resumed_by_its_last_edge(self, desk: Desk):
        first, second = self.suspended(desk)
        assert desk.state(PARENT) == SUSPENDED
        assert desk(Satisfy(PARENT, first, BOB)) == OK
        assert desk(Satisfy(PARENT, second, BOB)) == OK
        assert desk(Open(PARENT, ANN)) == Resume(ANN)
        assert desk(Satisfy(PARENT, second, CAT)) == Resume(ANN), "whoever took over the intent hears it too"
        assert desk.story(PARENT) == Story(READY, ANN, 0, 0)
        desk.done(PARENT)

    def test_a_suspended_task_is_resumed_by_any_end_of_what_it_waits_for(self, desk: Desk):
        first, second = self.suspended(desk)
        desk(Open(PARENT, ANN))
        desk(Satisfy(PARENT, first, BOB))
        assert desk.finish(first, BOB) == Committed(outbox_key(first, SATISFY), (PARENT,))
        failed = desk.finish(second, BOB, error="bad")
        assert failed == Stopped(outbox_key(second, STOP), (), (), "bad", (PARENT,)), "who watches is told, not failed"
        assert desk(Satisfy(PARENT, second, BOB)) == Resume(ANN)
        assert desk.state(PARENT) == READY

    def test_who_watches_is_told_by_whoever_takes_over(self, desk: Desk):
        first, second = self.suspended(desk)
        desk.done(first, BOB)
        desk(Cancel(second, BOB))
        _, outbox = desk.bury(BOB, CAT)
        told = {(entry.task, entry.verb, entry.others, entry.watchers) for entry in outbox}
        assert told == {(first, SATISFY, (PARENT,), ()), (second, STOP, (), (PARENT,))}

    def test_watching_what_has_ended_is_answered_at_once(self, desk: Desk):
        desk.create(PARENT)
        desk.create(OTHER)
        desk.done(OTHER)
        assert desk(Register(OTHER, PARENT, True)) == Available(())
        desk.create(FAR)
        desk(Cancel(FAR, BOB))
        assert desk(Register(FAR, PARENT, True)) == CANCELLED

    def test_a_suspended_task_can_be_cancelled(self, desk: Desk):
        names = self.suspended(desk)
        assert desk(Cancel(PARENT, BOB)) == Stopped(outbox_key(PARENT, STOP), names, (ANN,))
        assert desk(Satisfy(PARENT, names[0], BOB)) == CANCELLED

    def test_a_suspended_task_that_is_taken_over_runs_again_from_the_start(self, desk: Desk):
        first, _ = self.suspended(desk)
        ready, outbox = desk.bury(ANN, BOB)
        assert [(one.spec.id, one.attempt) for one in ready] == [(PARENT, 1)]
        assert [entry.verb for entry in outbox] == [STOP]
        assert desk.state(PARENT) == READY
        assert desk(Satisfy(PARENT, first, CAT)) == OK, "the new attempt waits for nobody"

    def test_a_suspended_run_can_still_end(self, desk: Desk):
        """Its worker died while it waited, or it gave up waiting."""
        self.suspended(desk)
        answer = desk.finish(PARENT, error="killed")
        assert isinstance(answer, Stopped)
        assert desk.state(PARENT) == STATE_FAILED

    def test_a_suspended_run_can_be_retried(self, desk: Desk):
        self.suspended(desk)
        names = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        stop = Stopped(outbox_key(PARENT, STOP), names)
        assert desk(Claim(PARENT, ANN, 0, ANN, RETRY)) == Granted(1, 1, 0, stop)
        assert desk.state(PARENT) == READY

    def test_a_suspended_task_cannot_be_moved(self, desk: Desk):
        self.suspended(desk)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_a_spawn_that_was_repeated_after_its_suspend_is_no_late_one(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Suspend(PARENT, 0, ANN, (name,)))
        assert desk(Spawn(PARENT, 0, ANN, (name,))) == OK

    def test_a_late_suspend_does_not_suspend_again(self, desk: Desk):
        first, second = self.suspended(desk)
        for name in (first, second):
            desk(Satisfy(PARENT, name, BOB))
        desk(Open(PARENT, ANN))
        assert desk(Suspend(PARENT, 0, ANN, (first, second))) == OK
        assert desk.state(PARENT) == READY, "all that it would wait for has ended"
        third = spawned_id(PARENT, 0, 2)
        assert desk(Suspend(PARENT, 0, ANN, (first, third))) == OK
        assert desk.state(PARENT) == SUSPENDED, "here something is new"
        assert third in desk.story(PARENT).edges

    def test_only_the_owner_of_this_attempt_suspends(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Suspend(PARENT, 0, BOB, (CHILD,))) == REFUSED
        assert desk(Suspend(PARENT, 1, ANN, (CHILD,))) == REFUSED
        desk.create(OTHER, parents=[PARENT])
        assert desk(Suspend(OTHER, 0, -1, (CHILD,))) == REFUSED

    def test_waiting_for_many(self, desk: Desk):
        desk.create(PARENT)
        on = tuple(range(100, 120))
        desk(Suspend(PARENT, 0, ANN, on))
        for task in on:
            assert desk(Satisfy(PARENT, task, BOB)) == OK
        assert desk(Open(PARENT, ANN)) == Resume(ANN)

    # -- rule 10: the log --------------------------------------------------------------------------

    def test_the_log_is_numbered_and_read_in_parts(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(10):
            desk.create(task)
            desk.done(task)
        assert desk(ReadLog(0, 4)) == Log(4, [0, 1, 2, 3])
        assert desk(ReadLog(4, 4)) == Log(8, [4, 5, 6, 7])
        assert desk(ReadLog(8, 4)) == Log(10, [8, 9])
        assert desk(ReadLog(10, 4)) == Log(10, [])

    def test_each_shard_has_a_log_of_its_own(self, desk: Desk):
        desk = Desk(self.make(shards=2), self.snapshot)
        for task in (0, 64, 128):
            desk.create(task)
            desk.done(task)
        assert desk.store.apply(0, [ReadLog(0)], 0) == [Log(2, [0, 128])]
        assert desk.store.apply(1, [ReadLog(0)], 0) == [Log(1, [64])]

    def test_the_log_says_how_each_task_ended(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(3):
            desk.create(task)
        desk.done(0)
        desk.finish(1, error="bad")
        desk(Cancel(2, ANN))
        assert desk.log() == [0, (1, STATE_FAILED, "bad", ()), (2, STATE_CANCELLED, "", ())]
