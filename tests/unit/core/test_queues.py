"""The ready queue against a naive one: a list that is sorted whenever somebody takes from it."""

from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from daws.core.queues import SORTED_MAX, ReadyQueue
from daws.model.context import Wish, parse_context, preference, rank_of
from daws.model.task import Needs, Ready
from daws.strategy.match.contexts import MatchContexts
from daws.testing import ready

CONTEXTS = ["", "gpu", "cpu", "gpu@1", "gpu@2..3", "gpu|cpu", "cpu>gpu", "any|gpu"]


def queue_of(*keys: float) -> ReadyQueue:
    queue = ReadyQueue(MatchContexts())
    for number, key in enumerate(keys):
        queue.push(key, number, ready(number))
    return queue


def popped(queue: ReadyQueue, context: str = "") -> list[int]:
    found = []
    while (one := queue.pop(parse_context(context))) is not None:
        found.append(one.spec.id)
    return found


def poured(queue: ReadyQueue, amount: int) -> set[int]:
    """What is moved to another queue, which counts as many."""
    other = ReadyQueue(MatchContexts())
    before = queue.count
    queue.pour_into(other, amount)
    assert queue.count + other.count == before
    assert len(queue.all()) == queue.count and len(other.all()) == other.count
    return {one.spec.id for one in other.all()}


def test_equal_keys_leave_in_the_order_in_which_they_came():
    assert popped(queue_of(0, 0, 0)) == [0, 1, 2]
    assert popped(queue_of(5, 5, 5)) == [0, 1, 2]


def test_smaller_keys_leave_first():
    assert popped(queue_of(3, -1, 0, 2, -5, 0)) == [4, 1, 2, 5, 3, 0]


@given(st.lists(st.integers(-3, 3)))
def test_order(keys: list[float]):
    assert popped(queue_of(*keys)) == [number for _, number in sorted((key, i) for i, key in enumerate(keys))]


def test_peek_shows_what_pop_takes():
    queue = queue_of(3, -1, 0)
    while queue.count:
        head = queue.peek()
        assert head is not None
        queue.pop_head()
        assert head.spec.id not in [one.spec.id for one in queue.all()]
    assert queue.peek() is None


def test_the_tail_is_cut_and_the_rest_stays_in_order():
    queue = queue_of(0, 0, 0, 0)
    assert [one.spec.id for one in queue.cut(2, False, None)] == [2, 3]
    assert popped(queue) == [0, 1]


def test_what_would_run_last_is_what_has_the_largest_key():
    queue = queue_of(-5, -1, -4)
    assert [one.spec.id for one in queue.cut(1, False, None)] == [1]
    assert popped(queue) == [0, 2]
    queue = queue_of(0, 3, -1, 0, 2)
    assert poured(queue, 3) == {1, 4, 3}, "those with key 0 come after those with larger ones"
    assert popped(queue) == [2, 0]


def test_a_small_part_of_a_long_queue_is_never_what_runs_next():
    """Finding the exact end of a long queue for each of many small steals would cost more than it brings."""
    count = 4 * SORTED_MAX
    queue = queue_of(*[-(number * 7919 % count) - 1 for number in range(count)])
    loot = [one.spec.id for one in queue.cut(10, False, None)]
    assert len(loot) == 10 and all(count - 1 - number * 7919 % count >= 10 for number in loot)
    rest = popped(queue)
    assert rest == sorted(rest, key=lambda number: -(number * 7919 % count))
    exact = queue_of(*[-(number * 7919 % count) - 1 for number in range(count)])
    taken = exact.cut(count // 2, False, None)
    assert sorted(one.spec.id * 7919 % count for one in taken) == list(range(count // 2))


def test_the_head_is_cut():
    queue = queue_of(4, 3, 2, 1)
    assert [one.spec.id for one in queue.cut(2, True, None)] == [3, 2]
    assert popped(queue) == [1, 0]


def test_no_more_than_there_is_can_be_cut():
    assert len(queue_of(0, 1, 2).cut(10, False, None)) == 3
    assert queue_of().cut(10, False, None) == []


@given(st.lists(st.integers(-3, 3)), st.integers(0, 10))
def test_what_is_cut_and_what_is_left_is_all(keys: list[float], amount: int):
    queue = queue_of(*keys)
    loot = [one.spec.id for one in queue.cut(amount, False, None)]
    assert len(loot) == min(amount, len(keys))
    rest = popped(queue)
    assert sorted(loot + rest) == list(range(len(keys)))
    assert rest == [number for _, number in sorted((keys[i], i) for i in rest)]


def test_executors_get_what_they_may_run():
    queue = ReadyQueue(MatchContexts())
    for number, context in enumerate(["gpu", "", "cpu", "gpu@5"]):
        queue.push(0, number, ready(number, context=context))
    assert popped(queue, "gpu@1..3") == [0]
    assert popped(queue, "cpu>any") == [2, 1]
    assert popped(queue, "gpu") == [3]


def test_labels_that_are_equally_good_share_one_order():
    for executor in ("gpu|cpu", "cpu|gpu", "any|gpu|cpu"):
        queue = ReadyQueue(MatchContexts())
        for number, context in enumerate(["gpu", "cpu", "gpu", "cpu"]):
            queue.push(-(number % 2), number, ready(number, context=context))
        assert popped(queue, executor) == [1, 3, 0, 2], executor


def test_a_priority_list_goes_label_by_label():
    queue = ReadyQueue(MatchContexts())
    for number, context in enumerate(["", "gpu@5", "gpu@1", "", "gpu@5"]):
        queue.push(-number, number, ready(number, context=context))
    assert popped(queue, "gpu@1>any>gpu@5") == [2, 3, 0, 4, 1]


def test_plain_tasks_and_those_that_take_any_executor_share_one_order():
    queue = ReadyQueue(MatchContexts())
    for number, (key, context) in enumerate([(0, ""), (0, "any|gpu"), (0, ""), (-1, "any|gpu"), (-2, ""), (1, "")]):
        queue.push(key, number, ready(number, context=context))
    assert popped(queue) == [4, 3, 0, 1, 2, 5]


def test_thieves_with_several_kinds_of_executors_get_what_comes_first_for_any_of_them():
    queue = ReadyQueue(MatchContexts())
    for number in range(4):
        queue.push(-(number % 2), number, ready(number, context="gpu" if number % 2 else ""))
    loot = queue.cut(3, True, (None, parse_context("gpu")))
    assert [one.spec.id for one in loot] == [1, 3, 0]


def test_a_task_with_several_labels_is_taken_once():
    queue = ReadyQueue(MatchContexts())
    queue.push(0, 1, ready(1, context="gpu|cpu"))
    assert popped(queue, "gpu") == [1]
    assert popped(queue, "cpu") == [] and queue.count == 0
    queue.push(0, 2, ready(1, context="gpu|cpu"))
    assert popped(queue, "cpu") == [1], "and when it comes back, once more"
    assert popped(queue, "gpu") == []


def test_a_task_that_comes_again_is_not_taken_for_its_first_self():
    """It was taken under one label; its other entry still stands in the queue when a new attempt of it comes."""
    queue = ReadyQueue(MatchContexts())
    queue.push(0, 1, ready(1, context="gpu|cpu"))
    assert popped(queue, "gpu") == [1]
    queue.push(5, 2, ready(1, context="gpu|cpu", attempt=1))
    assert [one.attempt for one in queue.all()] == [1] and queue.count == 1
    found = queue.pop(parse_context("cpu"))
    assert found is not None and found.attempt == 1
    assert popped(queue, "cpu") == popped(queue, "gpu") == [] and queue.count == 0


def test_thieves_get_the_tail_of_what_they_may_run():
    queue = ReadyQueue(MatchContexts())
    for number, key in enumerate((-3, -2, -1)):
        queue.push(key, 2 * number, ready(number, context="gpu"))
        queue.push(key, 2 * number + 1, ready(10 + number, context="disk"))
    gpu = parse_context("gpu")
    assert [one.spec.id for one in queue.cut(1, False, (gpu,))] == [2], "what would run last"
    assert [one.spec.id for one in queue.cut(1, True, (gpu,))] == [0]
    assert [one.spec.id for one in queue.cut(9, False, (gpu,))] == [1]
    assert queue.cut(9, False, None) == [] and queue.count == 3


def test_what_is_poured_keeps_its_order():
    queue, other = queue_of(3, 1, 2, 0, 0), queue_of(1.5)
    other.pop(None)
    other.push(2.5, 9, ready(9))
    queue.pour_into(other, 4)
    assert popped(queue) == [3]
    assert popped(other) == [4, 1, 2, 9, 0]


def test_a_task_with_several_labels_is_cut_once():
    queue = ReadyQueue(MatchContexts())
    queue.push(1, 1, ready(1, context="gpu|disk"))
    queue.push(2, 2, ready(2, context="disk"))
    assert poured(queue, 1) == {2}, "what would run last, under whichever label"
    assert poured(queue, 9) == {1}
    assert queue.count == 0 and queue.pop(parse_context("disk")) is None


def test_whatever_they_need_the_last_are_cut():
    queue = ReadyQueue(MatchContexts())
    queue.push(0, 1, ready(1))
    queue.push(5, 2, ready(2, context="gpu"))
    queue.push(-5, 3, ready(3))
    assert poured(queue, 2) == {2, 1} and poured(queue, 9) == {3}


def test_entries_that_nobody_here_would_ever_skip_are_thrown_out():
    queue = ReadyQueue(MatchContexts())
    for sequence in range(1000):
        queue.push(0, sequence, ready(sequence % 3, context="gpu|cpu"))
        assert popped(queue, "gpu") == [sequence % 3]
    assert queue.labelled is not None and len(queue.labelled["cpu"]) <= 100
    assert queue.all() == []


def rank(one: Ready) -> int:
    return rank_of(one.spec.needs.context if one.spec.needs is not None else None)


class QueueMachine(RuleBasedStateMachine):
    """Any sequence of pushes, pops and cuts, with all kinds of contexts."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReadyQueue(MatchContexts())
        self.naive: list[tuple[float, int, Ready]] = []
        self.sequence = 0

    @rule(key=st.integers(-2, 2), task=st.integers(0, 9), context=st.sampled_from(CONTEXTS))
    def push(self, key: int, task: int, context: str) -> None:
        if all(one[2].spec.id != task for one in self.naive):
            self.sequence += 1
            entry = (float(key), self.sequence, ready(task, context=context))
            self.queue.push(*entry)
            self.naive.append(entry)

    @rule(context=st.sampled_from(CONTEXTS))
    def pop(self, context: str) -> None:
        first = self.first(context)
        assert self.queue.pop(parse_context(context)) == first
        if first is not None:
            self.remove([first])

    @rule(amount=st.integers(1, 4), from_head=st.booleans(), context=st.sampled_from(CONTEXTS))
    def cut(self, amount: int, from_head: bool, context: str) -> None:
        contexts = None if not context else (parse_context(context),)
        loot = self.queue.cut(amount, from_head, contexts)
        assert all(self.fits(one, context) for one in loot)
        fitting = [one for one in self.naive if self.fits(one[2], context)]
        assert len(loot) == min(amount, len(fitting))
        if not from_head:
            assert {id(one) for one in loot} == {id(one) for one in self.last(amount, context)}
        for one in loot:
            assert not from_head or one == self.first(context)
            self.remove([one])

    def last(self, amount: int, context: str) -> list[Ready]:
        found: dict[int, Ready] = {}
        for tier in context.split(">"):
            fitting = [one for one in self.naive if self.fits(one[2], tier) and one[1] not in found]
            late = sorted(fitting, key=itemgetter(0, 1))[max(0, len(fitting) - amount + len(found)) :]
            found |= {number: one for _, number, one in late}
        return list(found.values())

    def first(self, context: str) -> Ready | None:
        """Under the first label of a priority list for which there is any task, the one with the smallest key."""
        for tier in context.split(">"):
            if fitting := [one for one in self.naive if self.fits(one[2], tier)]:
                return min(fitting, key=itemgetter(0, 1))[2]
        return None

    @rule(
        amount=st.integers(1, 4),
        from_head=st.booleans(),
        contexts=st.lists(st.sampled_from(CONTEXTS), max_size=2),
        wish=st.builds(Wish, st.sampled_from(("order", "biggest", "smallest", "any")), st.integers(-1, 2)),
        odd=st.booleans(),
    )
    def select(self, amount: int, from_head: bool, contexts: list[str], wish: Wish, odd: bool) -> None:
        """The naive way: all that fit, sorted by rank; `odd` stands for a thief that cannot run every task."""

        def able(needs: Needs | None) -> bool:
            return not odd or needs is None

        offered = tuple(map(parse_context, contexts)) if contexts else None
        loot = self.queue.select(amount, from_head, offered, wish, able)
        fitting = [
            one
            for _, _, one in self.naive
            if any(self.fits(one, context) for context in contexts or [""])
            and able(one.spec.needs)
            and rank(one) >= wish.low
        ]
        assert len(loot) == min(amount, len(fitting)) and all(one in fitting for one in loot)
        ranks = sorted(map(rank, fitting), reverse=wish.by == "biggest")[:amount]
        if wish.by in ("biggest", "smallest"):
            assert list(map(rank, loot)) == ranks
        self.remove(loot)

    def fits(self, one: Ready, context: str) -> bool:
        wanted = one.spec.needs.context if one.spec.needs is not None else None
        return preference(wanted, parse_context(context)) >= 0

    def remove(self, taken: list[Ready]) -> None:
        for one in taken:
            (entry,) = [known for known in self.naive if known[2] == one]
            self.naive.remove(entry)

    @invariant()
    def agrees(self) -> None:
        assert self.queue.count == len(self.naive)
        assert sorted(one.spec.id for one in self.queue.all()) == sorted(one[2].spec.id for one in self.naive)


TestQueueMachine = QueueMachine.TestCase


def test_one_task_is_taken_out_wherever_it_stands():
    queue = ReadyQueue(MatchContexts())
    queue.push(0, 1, ready(1))
    queue.push(3, 2, ready(2))
    queue.push(4, 3, ready(3))
    queue.push(5, 4, ready(4, context="gpu|disk"))
    for task, left in ((2, 3), (1, 2), (4, 1)):
        found = queue.take_task(task)
        assert found is not None and found.spec.id == task
        assert queue.count == left and len(queue.all()) == left
    assert queue.take_task(9) is None
    assert queue.pop(parse_context("gpu")) is None and popped(queue) == [3]


def best(queue: ReadyQueue, window: int, worth: dict[int, float], context: str = "") -> int:
    found = queue.take_best(
        window, (parse_context(context),), lambda needs: True, lambda one: worth.get(one.spec.id, 0.0)
    )
    assert len(queue.all()) == queue.count
    return -1 if found is None else found.spec.id


def test_the_most_worthy_of_the_first_is_taken():
    for keys in ((0.0,) * 5, (1.0, 2.0, 3.0, 4.0, 5.0)):
        queue = queue_of(*keys)
        worth = {1: 3.0, 2: 5.0, 3: -1.0, 4: 9.0}
        assert [best(queue, 3, worth) for _ in range(6)] == [2, 1, 4, 0, -1, -1]
        assert queue.count == 1


def test_the_most_worthy_among_what_an_executor_may_run():
    queue = ReadyQueue(MatchContexts())
    queue.push(0.0, 1, ready(1))
    assert best(queue, 9, {}, "gpu") == -1
    queue.push(0.0, 2, ready(2, context="gpu|cpu"))
    assert best(queue, 9, {1: 5.0}, "gpu") == 2
    assert best(queue, 9, {}) == 1


def test_the_plain_ones_are_alike_as_long_as_nothing_else_joins_them():
    queue = ReadyQueue(MatchContexts())
    queue.push_plain([ready(1, kind=7), ready(2, kind=7)], 7)
    queue.push_plain([ready(3, kind=7)], 7)
    assert [queue.alike] == [7]
    queue.push_plain([ready(4, kind=8)], 8)
    assert queue.alike is None
    queue.push_plain([ready(5, kind=8)], 8)
    assert queue.alike is None, "others stand before it"
    assert popped(queue) == [1, 2, 3, 4, 5]
    queue.push_plain([ready(6, kind=8)], 8)
    assert [queue.alike] == [8]
    queue.push(0, 1, ready(7, kind=8, timeout_ns=5))
    assert queue.alike is None
