"""Another server answers: what was acknowledged is said again, in order and first; then a node asks what is its own."""

from daws.core.effects import CallStore, Restart, ResumeRun, StartRun, StopRun
from daws.core.events import CallsSafe, RunEnded, RunSpawned, RunWaits, StoreChanged
from daws.core.failover import LOOKS_TICKS, OWNED_MAX, ROUNDS
from daws.core.lease import _turn
from daws.core.node import SECOND_NS, NodeConfig
from daws.core.unsafe import RECONCILES
from daws.model.task import AGAIN, CLIENT, Ready, spawned_id
from daws.testing import Driver, ready
from daws.testing.build import not_fetched, object_at, task
from daws.wire.messages import PUSH, Offer, Submission, SubmissionTaken, Taken
from daws.wire.store import (
    DONE,
    OK,
    REFUSED,
    REMAKE_FOR,
    SATISFY,
    STRUCK,
    UNDERWAY,
    Available,
    Claim,
    Clear,
    Committed,
    Estate,
    Finish,
    Granted,
    Lease,
    Leased,
    Noted,
    Open,
    OutboxEntry,
    Owned,
    OwnedBy,
    Owners,
    Register,
    Remake,
    Resume,
    Satisfy,
    Spawn,
    Suspend,
    TakeOver,
    Unready,
    outbox_key,
)

TICK = 0
REPLICATED = NodeConfig(lease_ns=8 * SECOND_NS, replicated=True)


def forgetful(**more: object) -> Driver:
    return Driver(config=REPLICATED, **more)  # type: ignore[arg-type]


def has_claimed(node: Driver, id: int) -> StartRun:
    """The node got a task from node 1, and runs it."""
    node.give(Offer(1, 100 + id, PUSH, (ready(id),)))
    node.answer(node.expect_rows(Claim(id, 1, 0, 0)), Granted(1, 0))
    node.expect(Taken)
    return node.expect(StartRun, task=id)


def changes(node: Driver) -> CallStore:
    """Another server for shard 0: the node joins anew, and says again what it has said."""
    node.give(StoreChanged(0))
    again = node.expect(CallStore)
    lease = node.expect_rows(Lease(0, 0, node.core.info, asked_ns=node.now_ns))
    node.answer(lease, Leased())
    return again


def ticks(node: Driver, count: int = 1) -> CallStore | None:
    """Renewals are of no interest here; if one leaves with other rows, that call."""
    for _ in range(count):
        node.fire(TICK)
        call = next(one for one in node.effects if isinstance(one, CallStore) and isinstance(one.rows[0], Lease))
        node.effects.remove(call)
        if len(call.rows) > 1:
            return call
        node.answer(call, Leased())
    return None


def test_what_was_acknowledged_is_said_again_before_anything_new():
    with forgetful() as node:
        run = has_claimed(node, 5)
        again = changes(node)
        assert again.rows == [Claim(5, 1, 0, 0)]
        node.give(RunEnded(5, run.run, 1))
        node.nothing_left()
        node.answer(again, Granted(1, 0))
        node.expect_rows(Finish(5, 0, 0))


def test_what_is_safe_is_not_said_again():
    with forgetful() as node:
        node.give(Offer(1, 1, PUSH, (ready(5),)))
        claim = node.expect_rows(Claim(5, 1, 0, 0))
        node.answer(claim, Granted(1, 0))
        node.expect(Taken)
        node.expect(StartRun)
        node.give(CallsSafe(0, (claim.token,)))
        node.give(StoreChanged(0))
        node.expect_rows(Lease(0, 0, node.core.info))
        node.nothing_left()


def test_what_was_under_way_is_said_in_its_turn_and_its_first_answer_does_not_count():
    with forgetful() as node:
        run = has_claimed(node, 5)
        node.give(RunEnded(5, run.run, 1))
        early = node.expect_rows(Finish(5, 0, 0))
        again = changes(node)
        assert again.rows == [Claim(5, 1, 0, 0), Finish(5, 0, 0)]
        node.answer(early, REFUSED)
        node.answer(again, Granted(1, 0), Committed(outbox_key(5, SATISFY), (6,), mark=3))
        node.expect_rows(Satisfy(6, 5, 0, (), intent=node.core.executors.token - 1))


def test_what_is_refused_is_tried_again_and_nothing_about_it_counts_before():
    with forgetful() as node:
        run = has_claimed(node, 5)
        node.give(RunEnded(5, run.run, 1))
        node.answer(node.expect_rows(Finish(5, 0, 0)), None)
        again = changes(node)
        node.answer(again, REFUSED, REFUSED)
        ticks(node)
        second = node.expect_rows(Claim(5, 1, 0, 0), Finish(5, 0, 0))
        node.answer(second, Granted(1, 0), None)
        assert not node.core.keeping.resending


def test_who_is_not_heard_after_some_rounds_lets_go():
    with forgetful() as node:
        has_claimed(node, 5)
        again = changes(node)
        for number in range(ROUNDS):
            node.answer(again, REFUSED)
            if number < ROUNDS - 1:
                ticks(node)
                again = node.expect_rows(Claim(5, 1, 0, 0))
        node.expect(StopRun, task=5)
        assert not node.core.keeping.resending and not node.core.executors.running


def test_a_second_change_begins_anew_with_all_of_it():
    with forgetful() as node:
        has_claimed(node, 5)
        has_claimed(node, 6)
        first = changes(node)
        assert first.rows == [Claim(5, 1, 0, 0), Claim(6, 1, 0, 0)]
        second = changes(node)
        assert second.rows == first.rows
        node.answer(first, REFUSED, REFUSED)  # of the server that is gone
        node.answer(second, Granted(1, 0), Granted(1, 0))
        third = changes(node)
        assert third.rows == first.rows, "the second server may have been replaced as well"
        node.answer(third, Granted(1, 0), Granted(1, 0))


def test_an_intent_is_carried_out_under_its_new_mark_and_cleared_when_that_is_safe():
    with forgetful() as node:
        run = has_claimed(node, 5)
        node.give(RunEnded(5, run.run, 1))
        node.answer(node.expect_rows(Finish(5, 0, 0)), None)
        key = outbox_key(5, SATISFY)
        node.answer(changes(node), Granted(1, 0), Committed(key, (6,), mark=9))
        told = node.expect(CallStore)
        node.answer(told, OK)
        ticks(node)
        node.nothing_left()
        tokens = tuple(token for order in node.core.keeping.order.values() for token in order)
        node.give(CallsSafe(0, tokens))
        call = ticks(node)
        assert call is not None and call.rows[1] == Clear(0, (key,), (9,))


def test_a_node_asks_what_it_owns_and_takes_what_it_does_not_have():
    with forgetful(cores=4) as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        look = ticks(node, LOOKS_TICKS[0] + 1)
        assert look is not None and look.rows[1] == Owned(0, RECONCILES, OWNED_MAX, True)
        ours = (Ready(task(5), 0, 1, (), AGAIN), Ready(task(7), 0, 3, (), AGAIN))
        node.answer(look, Leased(), Estate(ours), OwnedBy((0,)))
        node.answer(node.expect_rows(Claim(7, 0, 3, 0)), Granted(4, 0))
        node.expect(StartRun, task=7)


def test_a_task_that_was_lent_before_the_failover_runs_where_it_is_claimed_first():
    """The store has forgotten that node 1 had claimed the task, which node 1 says again: before us or after us."""
    for granted in (True, False):
        with forgetful(cores=2) as node:
            has_claimed(node, 5)
            node.answer(changes(node), Granted(1, 0))
            node.answer(looks(node), Leased(), Estate((Ready(task(7), 0, 1, (), AGAIN),)), OwnedBy((0, 1)))
            claim = node.expect_rows(Claim(7, 0, 1, 0))
            node.nothing_left()
            node.answer(claim, Granted(2, 0) if granted else REFUSED)
            if granted:
                assert node.expect(StartRun, task=7).ready.move == 2


def test_a_look_that_was_under_way_is_put_off_until_others_have_had_their_say():
    with forgetful() as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        assert Owned(0, RECONCILES, OWNED_MAX, True) in looks(node).rows
        again = changes(node)
        assert again.rows == [Claim(5, 1, 0, 0), Owners()]
        node.answer(again, Granted(1, 0), OwnedBy())
        assert Owned(0, RECONCILES, OWNED_MAX, True) in looks(node).rows


def test_a_node_that_was_struck_hears_so_from_shards_that_have_not_forgotten_it():
    """The shard of the members has forgotten that this node was taken over from, and has renewed its lease."""
    config = NodeConfig(lease_ns=8 * SECOND_NS, shard_count=2, replicated=True)
    with Driver(config=config) as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        look = looks(node)
        assert look.rows[1:] == [Owned(0, RECONCILES, OWNED_MAX, True), Owners()]
        other = node.expect_rows(Owned(0, RECONCILES, 0), Owners())
        assert other.shard == 1
        node.answer(other, STRUCK, OwnedBy((1,)))
        node.expect(Restart)
        node.effects.clear()


def test_who_owns_something_and_is_no_member_any_more_is_taken_over_after_a_lease():
    """It had just joined when the store forgot that, and has died: nobody else would hear of it."""
    stranger = 1 << 32 | 7
    with forgetful(cores=4) as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        look = looks(node)
        assert look.rows[2] == Owners()
        node.answer(look, Leased(), Estate(), OwnedBy((-1, 0, 1, stranger)))
        since_ns = node.now_ns
        call = ticks(node, 100)
        while call is not None and call.rows[-1] == Owners():
            node.answer(call, Leased(), Estate(), OwnedBy((stranger,)))
            call = ticks(node, 100)
        assert call is not None and call.rows[-1] == TakeOver(stranger, 0)
        assert node.now_ns - since_ns > REPLICATED.lease_ns  # so long it could have joined again


def test_a_run_of_before_makes_way_for_the_next_attempt():
    """The store has forgotten that the task was ours when its former owner died; now we have it from the dead."""
    with forgetful(cores=2) as node:
        run = has_claimed(node, 5)
        node.give(StoreChanged(0))
        again = node.expect_rows(Claim(5, 1, 0, 0))
        dead = next(one for one in range(1, 99) if _turn(node.core, one) == 0)  # the first heir of whom is this node
        node.answer(node.expect(CallStore), Leased(None, (dead,)))
        node.answer(again, REFUSED)
        node.answer(node.expect_rows(TakeOver(dead, 0)), Estate((Ready(task(5), 1, 1),)))
        node.expect(StopRun, task=5, run=run.run)
        node.expect(StartRun, task=5)


def test_a_task_that_another_had_created_is_created_again_if_that_was_lost():
    """Two nodes have run the same attempt, as the store had forgotten the one; its word may be lost once more."""
    with forgetful() as node:
        run = has_claimed(node, 5)
        child = spawned_id(5, 0, 0)
        node.give(RunSpawned(5, run.run, ((task(-1), ()),)))
        node.answer(node.expect_rows(Spawn(5, 0, 0, (child,))), OK)
        create = node.expect(CallStore)
        node.answer(create, REFUSED)
        node.answer(node.expect_rows(Open(child, 0)), OK)
        again = changes(node)
        assert again.rows == [Claim(5, 1, 0, 0), Spawn(5, 0, 0, (child,)), *create.rows, Open(child, 0)]
        node.answer(again, Granted(1, 0), OK, REFUSED, OK)
        assert not node.core.keeping.resending, "that it is there is all that was wanted"


def waits_for_another(node: Driver) -> CallStore:
    """A run that has come from node 1 waits for task 6."""
    run = has_claimed(node, 5)
    node.give(RunWaits(5, run.run, (6,)))
    return node.expect_rows(Suspend(5, 0, 0, (6,)))


def test_a_run_that_waits_is_over_if_the_task_has_ended_elsewhere():
    with forgetful() as node:
        suspended = waits_for_another(node)
        node.answer(suspended, OK)
        node.answer(node.expect_rows(Register(6, 5, True)), OK)
        node.answer(node.expect_rows(Open(5, 0, True)), OK)
        again = changes(node)
        node.answer(again, *[DONE if isinstance(row, Claim | Suspend) else OK for row in again.rows])
        node.expect(StopRun, task=5)


def test_a_run_that_may_not_wait_is_over():
    with forgetful() as node:
        waits_for_another(node)
        again = changes(node)
        assert again.rows == [Claim(5, 1, 0, 0), Suspend(5, 0, 0, (6,))]
        node.answer(again, DONE, REFUSED)
        node.expect(StopRun, task=5)


def looks(node: Driver) -> CallStore:
    """Some time after all was said again, it asks what is its own; the call has a renewal before that."""
    look = ticks(node, LOOKS_TICKS[0] + 1)
    assert look is not None
    return look


def test_what_is_being_created_is_not_taken_for_what_is_ours_and_was_not_known():
    child = spawned_id(5, 0, 0)
    with forgetful(cores=4) as node:
        run = has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        node.give(RunSpawned(5, run.run, ((task(-1), ()),)))
        node.answer(node.expect_rows(Spawn(5, 0, 0, (child,))), OK)
        node.answer(node.expect(CallStore), OK)
        opening = node.expect_rows(Open(child, 0))
        look = looks(node)
        node.drop(CallStore)  # what was not answered is repeated meanwhile
        node.answer(look, Leased(), Estate((Ready(task(child), 0, 1, (), AGAIN),)), OwnedBy((0,)))
        node.nothing_left()
        node.answer(opening, Ready(task(child), 0, 1, ()))
        node.expect(StartRun, task=child)


def test_a_task_that_waits_hears_again_from_those_that_ended_meanwhile():
    """What it waits for is in another shard, which has forgotten nothing, and has told it in vain."""
    with forgetful() as node:
        run = has_claimed(node, 5)
        node.give(RunWaits(5, run.run, (7,)))
        node.answer(node.expect_rows(Suspend(5, 0, 0, (7,))), OK)
        node.answer(node.expect_rows(Register(7, 5, True)), OK)
        node.answer(node.expect_rows(Open(5, 0, True)), OK)
        again = changes(node)
        assert Suspend(5, 0, 0, (7,)) in again.rows
        node.answer(again, *[Granted(1, 0) if isinstance(row, Claim) else OK for row in again.rows])
        node.answer(node.expect_rows(Register(7, 5, True)), Available(()))
        node.answer(node.expect_rows(Satisfy(5, 7, 0, ())), Resume(0))
        node.expect(ResumeRun, task=5)


def test_a_look_finds_intents_that_this_node_has_never_heard_of():
    """A word of before the failover came late, and was taken for one of after it: moves have the same numbers again."""
    with forgetful(cores=4) as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        key = outbox_key(7, REMAKE_FOR)
        node.answer(looks(node), Leased(), Estate((), (OutboxEntry(key, REMAKE_FOR, 7, (6,), mark=4),)), OwnedBy((0,)))
        node.expect_rows(Remake(6, 7, 0, (), node.core.executors.token - 1, 4))


def test_intents_that_are_being_carried_out_are_not_begun_again():
    with forgetful(cores=4) as node:
        run = has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        node.give(RunEnded(5, run.run, 1))
        key = outbox_key(5, SATISFY)
        node.answer(node.expect_rows(Finish(5, 0, 0)), Committed(key, (6,), mark=9))
        node.expect(CallStore)  # the child is told, and has not answered
        entry = OutboxEntry(key, SATISFY, 5, (6,), mark=9)
        look = looks(node)
        node.drop(CallStore)  # what was not answered is repeated meanwhile
        node.answer(look, Leased(), Estate((), (entry,)), OwnedBy((0,)))
        node.nothing_left()


def test_a_move_that_the_store_has_forgotten_does_not_hide_the_same_move_when_it_comes_again():
    lost = object_at(8, 1)
    with forgetful() as node:
        node.give(Submission(CLIENT, 0, (ready(5, lost, move=2),)))
        node.expect(SubmissionTaken)
        node.give(StoreChanged(1))
        node.expect_fetch(8)
        node.give(not_fetched(8, 1))
        node.answer(node.expect_rows(Unready(5, 0, 2, (8,))), REFUSED)
        node.give(Submission(CLIENT, 1, (ready(5, move=1, mode=AGAIN),)))
        node.expect(SubmissionTaken)
        node.expect(StartRun, task=5)


def test_a_move_of_before_a_failover_does_not_hide_the_same_move_that_comes_after_it():
    """The task went back to waiting, and the store has forgotten how often the task had moved. A task that waits for
    long becomes ready when nobody looks for it any more, so nothing else would bring it back."""
    with forgetful() as node:
        node.give(Submission(CLIENT, 0, (ready(5, object_at(8, 1), move=2),)))
        node.expect(SubmissionTaken)
        node.expect_fetch(8)
        node.give(not_fetched(8, 1))
        unready = node.expect_rows(Unready(5, 0, 2, (8,)))
        node.answer(unready, Noted(outbox_key(5, REMAKE_FOR), 1))
        remake = node.expect(CallStore)
        node.answer(remake, UNDERWAY)
        node.give(CallsSafe(0, (unready.token, remake.token)))
        node.give(StoreChanged(0))
        node.give(Submission(CLIENT, 1, (ready(5, move=1, mode=AGAIN),)))
        node.expect(SubmissionTaken)
        node.expect(StartRun, task=5)
        node.effects.clear()


def test_what_the_store_gives_again_while_it_is_in_doubt_runs_once():
    with forgetful() as node:
        has_claimed(node, 5)
        node.answer(changes(node), Granted(1, 0))
        node.give(Submission(CLIENT, 0, (ready(5),)))
        node.expect(SubmissionTaken)


def test_who_is_struck_meanwhile_begins_anew():
    with forgetful() as node:
        has_claimed(node, 5)
        node.answer(changes(node), STRUCK)
        node.expect(Restart)
