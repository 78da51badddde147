"""What a live client submits task by task, and what stays because it holds it."""

import pytest

from daws.core.effects import CallStore, DropObject, EffectType, Send, StartRun
from daws.core.events import Pressure, RunEnded, Started, StoreAnswered
from daws.core.node import SECOND_NS, NodeConfig, NodeCore
from daws.core.transfer import BATCHES_MAX
from daws.model.cluster import Members
from daws.model.task import CLIENT, FROM_OUTSIDE, Input, TaskSpec
from daws.store.memory import MemoryStore
from daws.strategy import parse_strategy
from daws.testing import Driver, members_of, ready
from daws.testing.build import BIG
from daws.wire.messages import LetGo, NewTasks, PlainTasks, Releases, Submission, SubmissionTaken
from daws.wire.store import CLIENT_HOLDER, DONE, CloseSession, Inspect, Leased, Release, Submit, Unheld

MS = 1_000_000


def live(cores: int = 1) -> tuple[Driver, MemoryStore]:
    node = Driver("mlb", members=1, cores=cores, config=NodeConfig(lease_ns=8 * SECOND_NS, freed_batch=1))
    return node, MemoryStore(direct=True)


def submit(node: Driver, store: MemoryStore, batch: int, *tasks: tuple[int, tuple[int, ...]]) -> None:
    rows = [Submit(TaskSpec(task, inputs=above, outputs=(task,)), above, 0) for task, above in tasks]
    node.give(NewTasks(CLIENT, batch, tuple(rows)))
    node.expect(SubmissionTaken, batch=batch)
    node.serve(store)


def end(node: Driver, store: MemoryStore, task: int, size_bytes: int = BIG) -> None:
    node.give(RunEnded(task, node.expect(StartRun, task=task).run, MS, (size_bytes,)))
    node.serve(store)


def test_tasks_run_in_the_order_of_their_edges():
    node, store = live(cores=2)
    with node:
        submit(node, store, 1, (1, ()), (2, (1,)), (3, (1, 2)))
        for task in (1, 2, 3):
            end(node, store, task)
        assert store.shards[0].log == [1, 2, 3]


@pytest.mark.parametrize("kinds, payloads", [([3], [b""]), ([3, 3, 4], [b"x", b"y", b""])])
@pytest.mark.parametrize("strategy", ["mlb", "daws", "heft", "flds"])
@pytest.mark.parametrize("pressed", [False, True])
def test_plain_tasks_are_as_those_that_are_spelled_out(strategy, pressed, kinds, payloads):
    columns = PlainTasks(CLIENT, 1, [5, 6, 7], kinds, payloads)
    specs = [
        TaskSpec(5 + at, kinds[at % len(kinds)], outputs=(5 + at,), home=0, payload=payloads[at % len(payloads)])
        for at in range(3)
    ]
    told = []
    for message in (columns, NewTasks(CLIENT, 1, tuple([Submit(spec, (), 0) for spec in specs]))):
        node = Driver(strategy, members=1)
        if pressed:
            node.give(Pressure(True))
        labelled = ready(1, context="gpu", move=1)
        node.give(Submission(CLIENT, 9, (labelled,) if pressed else ()), message, message)
        told.append(
            (node.effects, node.core.queues.shared.all(), node.core.queues.dedicated.all(), node.core.fetching.staged)
        )
    assert told[0] == told[1]
    starts = [start.ready.spec for start in told[0][0] if isinstance(start, StartRun)]
    assert starts == specs[: 1 if pressed else 2]


def test_a_batch_that_comes_twice_is_taken_once():
    node, store = live(cores=2)
    with node:
        submit(node, store, 7, (1, ()))
        submit(node, store, 7, (1, ()))
        end(node, store, 1)


def test_not_every_batch_is_remembered_for_ever():
    node, store = live(cores=1)
    with node:
        for batch in range(3 * BATCHES_MAX):
            submit(node, store, batch)
        assert len(node.core.transfer.batches) <= BATCHES_MAX


def test_the_latest_batches_are_remembered_whatever_numbers_clients_begin_with():
    node, store = live(cores=1)
    with node:
        for batch in range(1_000_000, 1_000_000 + BATCHES_MAX):
            submit(node, store, batch)
        for batch in range(10):  # of a client that counts from somewhere else
            submit(node, store, batch)
        assert len(node.core.transfer.batches) <= BATCHES_MAX
        submit(node, store, 7, (1, ()))
        assert not node.core.executors.running, "it has come before"


def test_what_the_client_holds_stays_until_it_lets_go():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1)
        assert node.core.has(1)
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        node.expect(DropObject, object=1)
        node.serve(store)
        assert store.apply(0, [Inspect(1)], 0) == [DONE], "its record is gone too"


def test_a_task_that_reads_what_the_client_has_let_go_of_keeps_it():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1)
        submit(node, store, 2, (2, (1,)))
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        assert node.core.has(1), "task 2 still reads it"
        end(node, store, 2)
        node.expect(DropObject, object=1)
        assert node.core.has(2), "the client holds task 2"


def test_a_node_that_is_no_member_yet_takes_no_objects():
    """A reader that asks the store for the members would not find it among them, and give the objects up."""
    members = members_of(2)
    info = members_of(3).infos[2]
    core = NodeCore(info, parse_strategy("mlb"), NodeConfig(), 1)
    put = Submit(TaskSpec(1, FROM_OUTSIDE, outputs=(1,)), (), 0, (Input(1, BIG, 1, (2,), b""),))
    out: list[EffectType] = []
    core.step(0, [Started(members)], out)
    (join,) = [effect for effect in out if isinstance(effect, CallStore)]
    out.clear()
    core.step(5, [NewTasks(CLIENT, 1, (put,))], out)
    assert not out and not core.has(1)
    core.step(10, [StoreAnswered(join.token, [Leased(Members(2, (*members.infos, info)))])], out)
    out.clear()
    core.step(15, [NewTasks(CLIENT, 1, (put,))], out)  # once more, because nobody has taken it
    assert Send(CLIENT, SubmissionTaken(2, 1)) in out and core.has(1)
    assert [effect.rows for effect in out if isinstance(effect, CallStore)] == [[put]]


def test_of_two_places_of_what_was_put_in_the_second_lets_go_too():
    """Whoever is the first says that nobody reads it any more; then the store knows of no places."""
    node, store = live()
    made = (Input(1, BIG, 1, (7, 0), b""),)
    put = Submit(TaskSpec(1, FROM_OUTSIDE, outputs=(1,)), (), 7, made)
    store.apply(0, [put], 0)
    with node:
        node.give(NewTasks(CLIENT, 1, (put,)))
        node.expect(SubmissionTaken, batch=1)
        node.serve(store)
        assert node.core.has(1)
        store.apply(0, [Release(1, CLIENT_HOLDER), Release(1)], 0)  # by the client, and by node 7
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        node.expect(DropObject, object=1)
        node.serve(store)


def test_small_values_need_no_holding_here():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1, size_bytes=10)
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        assert not node.core.objects.made and not node.core.objects.sizes
        assert store.apply(0, [Inspect(1)], 0) == [DONE]


def test_what_the_client_lets_go_of_stays_for_readers_that_were_submitted_elsewhere():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1)
        store.apply(0, [Submit(TaskSpec(2, inputs=(1,), outputs=(2,)), (1,), 5)], 0)  # at another node
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        assert node.core.has(1), "task 2 has yet to read it"
        node.give(Releases(5, ((1, 2),)))
        node.expect(DropObject, object=1)
        node.serve(store)


def test_who_is_told_for_whom_objects_stay_does_not_ask_the_store():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1)
        submit(node, store, 2, (2, ()))
        end(node, store, 2)
        node.give(LetGo(CLIENT, (1, 2), ((7,), ())))
        node.expect(DropObject, object=2)
        node.expect_rows(Release(2))
        assert node.core.has(1), "task 7, of which nobody has heard here, has yet to read it"
        node.give(Releases(5, ((1, 7),)))
        node.expect(DropObject, object=1)
        node.expect_rows(Release(1))


def test_who_hears_that_the_client_has_let_go_tells_who_has_the_objects():
    node = Driver("mlb", members=3)
    with node:
        node.give(LetGo(CLIENT, (1,)))
        node.answer(node.expect_rows(Release(1, CLIENT_HOLDER)), Unheld((2,), (7,)))
        assert node.expect(Send, to=2).message == LetGo(0, (1,))


def test_what_the_client_has_put_here_goes_if_its_session_has_ended_meanwhile():
    node, store = live()
    with node:
        store.apply(0, [CloseSession(0)], 0)
        node.give(
            NewTasks(
                CLIENT, 1, (Submit(TaskSpec(1, FROM_OUTSIDE, outputs=(1,)), (), 0, (Input(1, BIG, 1, (0,), b""),)),)
            )
        )
        node.expect(SubmissionTaken, batch=1)
        assert node.core.has(1)
        node.serve(store)
        node.expect(DropObject, object=1)
        node.effects.clear()


def test_what_the_client_has_put_here_is_read_here_and_goes_when_nobody_needs_it():
    node, store = live()
    with node:
        put = Submit(TaskSpec(1, FROM_OUTSIDE, outputs=(1,)), (), 0, (Input(1, BIG, 1, (0,), b""),))
        node.give(NewTasks(CLIENT, 1, (put,)))
        node.expect(SubmissionTaken, batch=1)
        node.serve(store)
        assert node.core.has(1)
        submit(node, store, 2, (2, (1,)))
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        assert node.core.has(1), "task 2 still reads it"
        end(node, store, 2)
        node.expect(DropObject, object=1)
        assert not node.core.has(1)
