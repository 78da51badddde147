"""The cluster in the client's process: what the client hands in, and how its machine passes it on."""

from daws.core.session_events import PlainTasksSubmitted, TasksSubmitted
from daws.model.task import TaskSpec
from daws.runtime.ports import PlainTask
from daws.runtime.thread import _submitted
from daws.wire.store import Submit


def test_many_plain_tasks_are_one_event_of_columns():
    some = [PlainTask(task, 7, b"x") for task in range(10, 20)]
    assert _submitted(some) == PlainTasksSubmitted([*range(10, 20)], [7], [b"x"])


def test_tasks_of_different_sorts_keep_their_order():
    child = Submit(TaskSpec(3, 7, 0, (1,), (3,)), (1,), 0)
    assert _submitted([child]) == TasksSubmitted([child])
    mixed = _submitted([PlainTask(1, 7, b""), child, PlainTask(4, 8, b"")])
    assert isinstance(mixed, TasksSubmitted) and mixed.rows[1] is child
    assert [row.spec.id for row in mixed.rows] == [1, 3, 4]
    assert mixed.rows[2] == Submit(TaskSpec(4, 8, outputs=(4,), home=0), (), 0)
