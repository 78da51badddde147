"""What a live client submits task by task, and what stays because it holds it."""

from daws.core.effects import DropObject, StartRun
from daws.core.events import RunEnded
from daws.core.moving import BATCHES_MAX
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT, TaskSpec
from daws.store.memory import MemoryStore
from daws.testing import Driver
from daws.testing.build import BIG
from daws.wire.messages import LetGo, NewTasks, SubmissionTaken
from daws.wire.store import DONE, Inspect, Submit

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
        assert node.core.batches is not None and len(node.core.batches) <= BATCHES_MAX


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


def test_small_values_need_no_holding_here():
    node, store = live()
    with node:
        submit(node, store, 1, (1, ()))
        end(node, store, 1, size_bytes=10)
        node.give(LetGo(CLIENT, (1,)))
        node.serve(store)
        assert not node.core.made and not node.core.objects
        assert store.apply(0, [Inspect(1)], 0) == [DONE]
