"""Tasks that a client submits one by one, and holds (rules 6 and 7 in one row, where all of it is in one shard)."""

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, WAITING
from daws.model.task import FROM_OUTSIDE, Ready, TaskSpec
from daws.wire.store import (
    CLIENT_HOLDER,
    DONE,
    FAILED,
    REFUSED,
    UNKNOWN,
    AnswerType,
    Cancel,
    Claim,
    Committed,
    Inspect,
    Release,
    Remake,
    Satisfy,
    Submit,
)
from tests.contract.store.desk import ANN, BOB, OTHER, Contract, Desk, made

FIRST, SECOND, THIRD = 1, 2, 3


def submit(desk: Desk, task: int, *parents: int, node: int = ANN) -> AnswerType:
    """A task that makes an object with its own number, and reads those of its parents."""
    return desk(Submit(TaskSpec(task, inputs=parents, outputs=(task,)), parents, node))


def end(desk: Desk, task: int, node: int = ANN) -> Committed:
    answer = desk.done(task, node, 0, made(task, task, node))
    assert answer is not None
    return answer


class SessionsContract(Contract):
    def test_a_task_without_parents_is_ready_where_it_was_submitted(self, desk: Desk):
        assert submit(desk, FIRST) is None
        assert desk.state(FIRST) == READY and desk.story(FIRST).owner == ANN

    def test_a_parent_that_is_done_gives_its_objects(self, desk: Desk):
        submit(desk, FIRST)
        end(desk, FIRST)
        ready = submit(desk, SECOND, FIRST, node=BOB)
        assert isinstance(ready, Ready) and ready.inputs == (made(FIRST, FIRST, ANN),)
        assert desk.story(SECOND).owner == BOB
        assert isinstance(desk.finish(SECOND, BOB), Committed | None)

    def test_what_was_put_in_from_outside_is_done_and_read_like_anything_else(self, desk: Desk):
        put = Submit(TaskSpec(FIRST, FROM_OUTSIDE, outputs=(FIRST,)), (), ANN, (made(FIRST, FIRST, ANN),))
        assert desk(put) is None
        assert desk.state(FIRST) == STATE_DONE
        ready = submit(desk, SECOND, FIRST, node=BOB)
        assert isinstance(ready, Ready) and ready.inputs == (made(FIRST, FIRST, ANN),)
        assert desk.once(Release(FIRST)) == REFUSED, "the client holds it"
        assert desk(Remake(FIRST, SECOND, BOB, (ANN,))) == REFUSED, "nobody can make it again"

    def test_a_parent_that_is_not_done_is_waited_for(self, desk: Desk):
        submit(desk, FIRST)
        submit(desk, SECOND)
        end(desk, FIRST)
        assert submit(desk, THIRD, FIRST, SECOND) is None
        assert desk.state(THIRD) == WAITING and desk.story(THIRD).edges == (SECOND,)
        answer = end(desk, SECOND)
        (ready,) = answer.ready or (desk(Satisfy(THIRD, SECOND, ANN, (made(SECOND, SECOND, ANN),))),)
        assert isinstance(ready, Ready)
        assert sorted(ready.inputs, key=lambda one: one.object) == [made(FIRST, FIRST, ANN), made(SECOND, SECOND, ANN)]

    def test_a_parent_that_is_remade_is_waited_for_if_somebody_runs_it(self, desk: Desk):
        submit(desk, FIRST)
        end(desk, FIRST)
        ready = desk(Remake(FIRST, OTHER, BOB, (ANN,)))
        assert isinstance(ready, Ready)
        unclaimed = submit(desk, SECOND, FIRST)
        assert isinstance(unclaimed, Ready) and unclaimed.inputs == (made(FIRST, FIRST),), "it asks for it itself"
        desk(Claim(FIRST, -1, ready.move, BOB))
        assert submit(desk, THIRD, FIRST) is None
        answer = desk.done(FIRST, BOB, 1, made(FIRST, FIRST, BOB))
        assert answer is not None and THIRD in answer.children

    def test_what_is_held_stays_until_the_client_lets_go(self, desk: Desk):
        submit(desk, FIRST)
        assert end(desk, FIRST).held
        assert desk.once(Release(FIRST)) == REFUSED
        desk(Release(FIRST, CLIENT_HOLDER))
        assert desk.state(FIRST) == STATE_DONE, "its objects are still there"
        desk(Release(FIRST))
        assert desk(Inspect(FIRST)) == DONE

    def test_children_of_what_failed_are_born_so(self, desk: Desk):
        submit(desk, FIRST)
        desk.finish(FIRST, error="bad luck")
        assert submit(desk, SECOND, FIRST) is None
        assert desk.state(SECOND) == STATE_FAILED and "bad luck" in desk.story(SECOND).error
        assert desk.story(SECOND).cause == FIRST
        assert any(not isinstance(row, int) and row.task == SECOND for row in desk.log()), "the client hears of it"
        assert desk.finish(SECOND) == FAILED

    def test_children_of_what_was_cancelled_are_born_so(self, desk: Desk):
        submit(desk, FIRST)
        desk(Cancel(FIRST, ANN))
        submit(desk, SECOND, FIRST)
        assert desk.state(SECOND) == desk.state(FIRST)

    def test_parents_must_be_known(self, desk: Desk):
        assert submit(desk, SECOND, FIRST) == UNKNOWN
        assert desk.once(Inspect(SECOND)) == UNKNOWN
