"""What a record keeps of runs, and what it forgets."""

from daws.model.task import Needs, Ready, TaskSpec
from daws.runs.record import COLUMNS, RunRecord
from daws.wire.worker import Died, Ended, Raised, Recalled, Written


def ready(task: int, kind: int = 3, cores: int = 1, sizes: tuple[int, ...] = ()) -> Ready:
    inputs = tuple((number, size, -1, (0,), b"") for number, size in enumerate(sizes))
    return Ready(TaskSpec(task, kind, needs=None if cores == 1 else Needs(cores)), 0, 0, inputs)


def test_a_run_that_ended_is_a_row_with_all_its_numbers():
    record = RunRecord()
    record.sent(0, run=7, slot=1, ready=ready(42, cores=2, sizes=(10, 20)))
    assert (record.count, record.busy_count) == (0, 1)
    record.reported(0, [(1, Ended(7, 500, (b"abc", Written("file", 1000)), 10_000))])
    assert list(record.rows()) == [(42, 3, 0, 1, 10_000, 10_500, 2, 30, 1003, 1)]
    assert (record.count, record.busy_count, record.bytes_total) == (1, 0, 1033)
    assert len(COLUMNS) == len(next(iter(record.rows())))


def test_a_run_that_raised_is_marked():
    record = RunRecord()
    record.sent(0, 7, 1, ready(42))
    record.reported(0, [(1, Raised(7, 500, b"", 10_000))])
    (row,) = record.rows()
    assert row[-1] == 0 and row[4:6] == (10_000, 10_500)


def test_runs_that_did_not_end_by_themselves_leave_nothing():
    record = RunRecord()
    for run in (1, 2):
        record.sent(0, run, 0, ready(run))
    record.reported(0, [(0, Died(1, -9)), (0, Recalled(2)), (0, Ended(3, 1, (), 1))])
    assert (record.count, record.busy_count) == (0, 0)


def test_equal_numbers_of_two_nodes_are_two_runs():
    record = RunRecord()
    record.sent(0, 7, 0, ready(1))
    record.sent(1, 7, 0, ready(2))
    assert record.busy_count == 2
    record.reported(1, [(0, Ended(7, 1, (), 1))])
    assert list(record.task) == [2] and list(record.node) == [1]


def test_kinds_have_names():
    record = RunRecord()
    record.names[3] = "project"
    assert (record.name_of(3), record.name_of(4)) == ("project", "function 4")
