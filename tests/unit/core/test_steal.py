"""Rounds of stealing and giving: who is asked, what follows, and what happens when nobody answers."""

from typing import Any

import msgspec
import pytest

from daws.core.effects import POLL, CallStore, Send, StartRun
from daws.core.events import ObjectsPut, RunEnded
from daws.core.node import SECOND_NS
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import Wish, parse_context
from daws.model.task import CLIENT, Input, NodeId
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy
from daws.testing import Driver, members_of, ready
from daws.wire.messages import (
    GIVEN,
    STOLEN,
    LoadQuery,
    LoadReply,
    Offer,
    StealDenied,
    StealRequest,
    Submission,
    SubmissionTaken,
    Taken,
)
from daws.wire.store import REFUSED, Committed, Granted, Lease, Leased

TICK = 0
NEWS_NS = 100_000_000


class Balance:
    """Ask nodes 1 and 2, take half; waits double from one second on."""

    mode = "steal"
    asks_load = True
    from_head = False
    follows_rumours = False
    wish = None

    def start_poll_ns(self) -> int:
        return SECOND_NS

    def start_neighbours(self, member_count: int) -> int:
        return 2

    def targets(self, view: Any, rng: Any) -> list[NodeId]:
        return [1, 2]

    def pick(self, view: Any, loads: list[tuple[NodeId, int]]) -> NodeId:
        load, node = max((load, node) for node, load in loads)
        return node if load else -1

    def amount(self, view: Any, available: int) -> int:
        return (available + 1) // 2

    def after_success(self, view: Any) -> tuple[int, int]:
        return SECOND_NS, 2

    def after_failure(self, view: Any) -> tuple[int, int]:
        return 2 * view.poll_ns, 2

    def explain(self, view: Any, loads: Any) -> dict[str, Any]:
        return {}


class Straight(Balance):
    asks_load = False


class Listener(Balance):
    follows_rumours = True


class Give(Balance):
    mode = "give"

    def pick(self, view: Any, loads: list[tuple[NodeId, int]]) -> NodeId:
        return min((load, node) for node, load in loads)[1]


class StraightGive(Give):
    asks_load = False


def strategy(balance: Balance | None = None) -> Strategy:
    return msgspec.structs.replace(parse_strategy("mlb"), balance=balance or Balance())


def looking(balance: Balance | None = None) -> Driver:
    """One of four nodes; it has nothing to do and has just asked two of the others."""
    node = Driver(strategy(balance), members=4, cores=1)
    node.fire(POLL)
    return node


def loaded(tasks: int, balance: Balance | None = None) -> Driver:
    """A node with one executor and so many tasks in its queue, one of which runs."""
    node = Driver(strategy(balance), cores=1)
    node.give(Submission(CLIENT, 0, tuple(ready(task) for task in range(tasks + 1))))
    node.expect(SubmissionTaken)
    node.expect(StartRun, task=0)
    return node


def asked(node: Driver) -> None:
    for to in (1, 2):
        node.expect(LoadQuery, to=to)


def test_thieves_get_what_begins_something_new_and_chains_go_on_where_they_are():
    with Driver("daws", cores=1) as node:
        node.give(ObjectsPut(((100, 9000),)))
        goes_on = ready(3, Input(100, 9000, 50, (0,), b""))
        node.give(Submission(CLIENT, 0, (ready(1), ready(2), goes_on, ready(4), ready(5))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=3)
        node.give(Submission(CLIENT, 1, (msgspec.structs.replace(goes_on, spec=ready(6).spec),)))
        node.drop(SubmissionTaken)
        assert stolen(node, StealRequest(1)) == [1, 2]
        assert stolen(node, StealRequest(1)) == [4]
        assert stolen(node, StealRequest(1)) == [5]
        assert stolen(node, StealRequest(1)) == [6], "rather than nothing"


def test_a_round_asks_and_turns_to_the_one_with_most():
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 3, 5))
        node.give(LoadReply(2, 7, 9))
        node.expect(StealRequest, to=2)
        node.give(Offer(2, 1, STOLEN, (ready(1),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        node.expect(StartRun, task=1)
        node.expect(Taken)
        assert node.core.search.failed_steals == 0 and node.core.transfer.steals == 1


def test_without_asking_for_loads_the_first_target_is_asked_for_work():
    with looking(Straight()) as node:
        node.expect(StealRequest, to=1)
        node.give(StealDenied(1))
        assert node.core.search.failed_steals == 1


def test_a_loaded_node_that_does_not_ask_for_loads_turns_to_its_first_target():
    """An answer need not have `leaves_name`: only thieves have one."""
    with loaded(4, StraightGive()) as node:
        node.fire(POLL)
        node.expect(StealRequest, to=1)


def test_after_a_failed_round_it_waits_longer_each_time_but_never_for_good():
    with looking() as node:
        waits = []
        for _ in range(4):
            asked(node)
            node.give(LoadReply(1, 0, 5), LoadReply(2, 0, 9))
            waits.append(node.timers[POLL] - node.now_ns)
            while POLL in node.timers and node.timers[POLL] > node.timers[TICK]:
                node.fire(TICK)
                node.answer(node.expect(CallStore), Leased())
            node.fire(POLL)
        asked(node)
        assert [wait // SECOND_NS for wait in waits] == sorted(wait // SECOND_NS for wait in waits)
        for number, wait in enumerate(waits):
            assert 0.5 <= wait / SECOND_NS / 2**number <= 1.5
        assert node.core.search.failed_steals_total == 4


def test_a_lost_reply_is_not_waited_for_for_ever():
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 3, 5))
        for _ in range(2):
            node.fire(TICK)
            node.answer(node.expect(CallStore), Leased())
        assert node.core.search.failed_steals == 1 and POLL in node.timers
        node.give(LoadReply(2, 3, 5))


def test_loot_that_has_gone_elsewhere_is_a_failed_round():
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 3, 5), LoadReply(2, 0, 0))
        node.expect(StealRequest, to=1)
        node.give(Offer(1, 1, STOLEN, (ready(1), ready(2))))
        node.answer(node.expect(CallStore), REFUSED, REFUSED)
        assert node.core.search.failed_steals == 1


def test_loot_of_an_older_round_leaves_no_round_half_open():
    """It is granted while the loads of the next round are still on their way, and these get lost."""
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 3, 5), LoadReply(2, 0, 0))
        node.expect(StealRequest, to=1)
        for _ in range(2):
            node.fire(TICK)
            node.answer(node.expect(CallStore), Leased())
        node.fire(POLL)
        asked(node)
        node.give(Offer(1, 1, STOLEN, (ready(1),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        node.drop(object)
        assert node.core.search.probe is None or node.core.search.stealing_since_ns >= 0


def test_one_round_at_a_time():
    with looking() as node:
        asked(node)
        node.give(StealDenied(1))
        node.give(LoadQuery(1))
        node.expect(LoadReply, to=1, stealable=0, load=0)


def test_a_victim_says_what_may_leave_and_gives_half_of_it():
    with loaded(5) as node:
        node.give(LoadQuery(1))
        node.expect(LoadReply, to=1, stealable=5, load=6)
        node.give(StealRequest(1))
        offer = node.expect(Offer, to=1, why=STOLEN)
        assert [one.spec.id for one in offer.tasks] == [3, 4, 5], "those that would run last"
        assert set(node.core.transfer.lent) == {3, 4, 5}


def test_a_victim_with_nothing_to_give_says_so():
    with loaded(0) as node:
        node.give(StealRequest(1))
        node.expect(StealDenied, to=1)


def test_a_victim_keeps_what_is_more_than_the_most():
    with Driver("mlb:most=3", cores=1) as node:
        node.give(Submission(CLIENT, 0, tuple(ready(task) for task in range(21))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=0)
        for left in (17, 14):
            node.give(StealRequest(1))
            assert len(node.expect(Offer, to=1, why=STOLEN).tasks) == 3
            assert node.core.queues.shared.count == left


def test_who_finds_nothing_turns_to_the_node_that_it_heard_of():
    with looking(Listener()) as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, 3, 9), LoadReply(2, 0, 0))
        node.expect(StealRequest, to=3)
        assert node.core.search.failed_steals == 0


def test_what_was_seen_counts_more_than_what_was_heard():
    with looking(Listener()) as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, 3, 9), LoadReply(2, 1, 1))
        node.expect(StealRequest, to=2)


def test_hearsay_is_left_to_those_who_follow_it():
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, 3, 9), LoadReply(2, 0, 0))
        assert node.core.search.failed_steals == 1


@pytest.mark.parametrize("rich", [0, 77], ids=["itself", "no member"])
def test_news_of_itself_or_of_strangers_are_none(rich: NodeId):
    with looking(Listener()) as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, rich, 9), LoadReply(2, 0, 0))
        assert node.core.search.failed_steals == 1


@pytest.mark.parametrize(("later_ns", "follows"), [(NEWS_NS, True), (NEWS_NS + 1, False)])
def test_news_expire(later_ns: int, follows: bool):
    with looking(Listener()) as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, 3, 9))
        node.give(LoadReply(2, 0, 0), later_ns=later_ns)
        if follows:
            node.expect(StealRequest, to=3)
        assert node.core.search.failed_steals == (not follows)


def test_news_are_followed_once():
    with looking(Listener()) as node:
        asked(node)
        node.give(LoadReply(1, 0, 5, 3, 9), LoadReply(2, 0, 0))
        node.expect(StealRequest, to=3)
        node.give(StealDenied(3))
        assert node.core.search.failed_steals == 1
        node.give(LoadQuery(1))
        node.expect(LoadReply, to=1, rich=-1, riches=0)


def test_news_are_passed_on_while_they_are_fresh_but_not_to_whom_they_concern():
    with looking() as node:
        asked(node)
        node.give(LoadReply(1, 4, 5))
        node.give(LoadQuery(2), LoadQuery(1), later_ns=NEWS_NS)
        node.expect(LoadReply, to=2, rich=1, riches=4)
        node.expect(LoadReply, to=1, rich=-1, riches=0)
        node.give(LoadQuery(2), later_ns=1)
        node.expect(LoadReply, to=2, rich=-1, riches=0)


def test_who_was_robbed_probably_has_more():
    with Driver(strategy(), cores=1) as node:
        node.give(Offer(2, 1, STOLEN, (ready(1), ready(2))))
        node.expect(CallStore)
        node.give(LoadQuery(1))
        node.expect(LoadReply, to=1, rich=2, riches=2)


def test_a_thief_gets_what_it_may_run():
    with Driver(strategy(), cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(0), ready(1), ready(2))))
        node.drop(SubmissionTaken)
        node.expect(StartRun)
        node.give(StealRequest(1, (parse_context("gpu"),)))
        node.expect(StealDenied, to=1)


def unlike(*infos: tuple[int, int]) -> Members:
    """Nodes with so many cores and so much memory."""
    return Members(
        1, tuple(NodeInfo(i, (ExecutorClass(cores),), memory_bytes=room) for i, (cores, room) in enumerate(infos))
    )


def stolen(node: Driver, request: StealRequest) -> list[int]:
    node.give(request)
    return [one.spec.id for one in node.expect(Offer, to=request.sender, why=STOLEN).tasks]


def test_a_thief_gets_nothing_that_is_too_wide_or_too_big_for_it():
    with Driver(strategy(), unlike((2, 0), (1, 5), (2, 0))) as node:
        node.give(Submission(CLIENT, 0, (ready(0, cores=2), ready(1, cores=2), ready(2), ready(3, memory_bytes=6))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=0)
        assert stolen(node, StealRequest(1)) == [2], "the one between them"
        node.give(StealRequest(1))
        node.expect(StealDenied, to=1)
        assert node.core.queues.shared.count == 2 and 2 in node.core.transfer.lent
        assert sorted(stolen(node, StealRequest(2)) + stolen(node, StealRequest(2))) == [1, 3]


def test_who_is_no_member_gets_only_what_asks_for_nothing():
    with Driver(strategy(), 3, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(0),)), Submission(CLIENT, 1, (ready(1, memory_bytes=1), ready(2))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=0)
        assert stolen(node, StealRequest(77)) == [2]
        node.give(StealRequest(77))
        node.expect(StealDenied, to=77)


def ranked(strategy_text: str) -> Driver:
    """Node 0 runs a task and shares five others, with ranks 3, 1, none, 5 and 1."""
    node = Driver(strategy_text, cores=1, members=members_of(3, 1, dict.fromkeys(range(3), "job|any")))
    contexts = ("job@3", "job@1", "", "job@5", "job@1")
    tasks = [ready(number + 1, context=text) for number, text in enumerate(contexts)]
    node.give(Submission(CLIENT, 0, (ready(0, context="job@9"),)), Submission(CLIENT, 1, tuple(tasks)))
    node.drop(SubmissionTaken)
    node.expect(StartRun, task=0)
    return node


@pytest.mark.parametrize(
    ("wish", "tasks"),
    [
        (None, [4, 1, 2, 5, 3]),  # the victim's order: the labels of the thief, the biggest rank first
        (Wish("biggest"), [4, 1, 2, 5, 3]),
        (Wish("smallest"), [3, 2, 5, 1, 4]),
        (Wish("any"), [1, 2, 3, 4, 5]),
        (Wish("biggest", high=3), [1, 2, 5, 3]),
        (Wish("smallest", low=1, high=4), [2, 5, 1]),
        (Wish("order", low=3), [4, 1]),
        (Wish("any", low=0, high=0), [3]),
        (Wish("any", low=6), []),
    ],
)
def test_a_victim_grants_wishes(wish: Wish | None, tasks: list[int]):
    with ranked("constellation:rank=biggest,count=9") as node:
        request = StealRequest(1, (parse_context("job|any"),), wish)
        if tasks:
            assert stolen(node, request) == tasks
        else:
            node.give(request)
            node.expect(StealDenied, to=1)
        assert node.core.queues.shared.count == 5 - len(tasks)


def test_wishes_do_not_go_beyond_what_the_thief_may_run():
    with ranked("constellation:count=9") as node:
        assert stolen(node, StealRequest(1, (parse_context("job@1..3"),), Wish("biggest"))) == [1, 2, 5]
        assert stolen(node, StealRequest(1, None, Wish("biggest"))) == [3]


def test_as_many_as_the_victim_wants_to_give():
    with ranked("constellation:count=2") as node:
        assert stolen(node, StealRequest(1, (parse_context("job"),), Wish("smallest"))) == [2, 5]


@pytest.mark.parametrize("balance", ["random-steal", "master-worker,assign=one"])
@pytest.mark.parametrize(
    ("text", "wish"),
    [("", None), (",take=order", None), (",take=smallest", Wish("smallest")), (",take-low=2", Wish("order", 2))],
)
def test_thieves_say_what_they_wish_for(balance: str, text: str, wish: Wish | None):
    with Driver(f"constellation:balance={balance}{text}", node=1) as node:
        node.fire(POLL)
        assert node.expect(StealRequest).wish == wish


def test_so_do_those_who_ask_for_loads_first():
    with Driver("mlb:take=biggest,take-high=7", 2, node=1) as node:
        node.fire(POLL)
        node.expect(LoadQuery, to=0)
        node.give(LoadReply(0, 5, 5))
        assert node.expect(StealRequest, to=0).wish == Wish("biggest", high=7)


def test_a_thief_says_which_executors_are_idle():
    members = members_of(3, contexts={0: "gpu"})
    with Driver(strategy(Straight()), members=members) as node:
        node.fire(POLL)
        assert node.expect(StealRequest, to=1).contexts == (parse_context("gpu"),)


def test_a_loaded_node_gives_to_the_idlest():
    with loaded(4, Give()) as node:
        node.fire(POLL)
        asked(node)
        node.give(LoadReply(1, 0, 3), LoadReply(2, 0, 1))
        offer = node.expect(Offer, to=2, why=GIVEN)
        assert len(offer.tasks) == 2 and node.core.transfer.gives == 2
        assert POLL in node.timers, "and looks again later"


def test_who_has_nothing_left_to_give_stops_looking():
    with Driver(strategy(Give()), cores=1) as node:
        assert POLL not in node.timers


@pytest.mark.parametrize("mode", ["steal", "give"])
def test_replies_to_nothing_are_dropped(mode: str):
    with Driver(strategy(Give() if mode == "give" else Balance())) as node:
        node.give(LoadReply(1, 3, 5))
        node.give(StealDenied(1))
        assert node.core.search.failed_steals == 0


def ended(node: Driver, task: int = 1) -> CallStore:
    """A task that others wait for runs on the only executor, and ends: its commit is on its way."""
    node.give(Submission(CLIENT, 0, (ready(task),)))
    node.expect(SubmissionTaken)
    node.give(RunEnded(task, node.expect(StartRun, task=task).run, SECOND_NS))
    return node.expect(CallStore)


def test_who_waits_for_its_own_commit_does_not_look_for_work_elsewhere_yet():
    with Driver(strategy(), members=4, cores=1) as node:
        del node.timers[POLL]
        node.core.search.poll_armed = False
        call = ended(node)
        assert call.hopes, "it has to be woken by the answer, whatever it is"
        node.give(LoadQuery(3))
        node.expect(LoadReply)
        node.nothing_left()
        node.answer(call, Committed(-1, readers=(2,), ready=(ready(2),)))
        assert not node.expect(StartRun, task=2).ready.inputs, "the commit brought work"


def test_who_hoped_in_vain_looks_for_work():
    with Driver(strategy(), members=4, cores=1) as node:
        del node.timers[POLL]
        node.core.search.poll_armed = False
        node.answer(ended(node), Committed(-1))
        asked(node)


def test_an_answer_that_got_lost_is_not_hoped_for_for_ever():
    with Driver(strategy(), members=4, cores=1) as node:
        del node.timers[POLL]
        node.core.search.poll_armed = False
        ended(node)
        for _ in range(2):
            node.drop(CallStore)
            node.fire(TICK)
        node.drop(CallStore)
        renewal = next(call for call in node.core.store.calls.values() if type(call.rows[-1]) is Lease and call.hopes)
        node.answer(renewal, Leased())
        asked(node)


def test_a_busy_node_hopes_for_nothing():
    with Driver(strategy(), cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1), ready(2))))
        node.expect(SubmissionTaken)
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, SECOND_NS))
        node.expect(StartRun, task=2)
        assert not node.expect(CallStore).hopes


def test_copies_are_given_of_tasks_that_nobody_else_has_and_of_none_too_often():
    """One copy each: first half of the tail, then what was before it; when all have theirs, a round is in vain."""
    with Driver("adage:copies=1,gift-max=2,assign=one", members=3, cores=1) as node:
        node.give(Submission(CLIENT, 0, tuple(ready(task, home=0) for task in range(5))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=0)
        handed = []
        for _ in range(4):
            node.fire(POLL)
            for query in range(node.drop(LoadQuery)):
                node.give(LoadReply(query + 1, 0, 0))
            messages = [effect.message for effect in node.effects if isinstance(effect, Send)]
            handed.append([one.spec.id for sent in messages if isinstance(sent, Offer) for one in sent.tasks])
            node.drop(Offer)
        assert handed == [[3, 4], [2], [1], []]
        assert node.core.queues.dedicated.count == 0 and node.core.queues.shared.count == 4
        assert node.core.search.failed_steals_total == 1
