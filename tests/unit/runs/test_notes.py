"""What is noted of runs, and what is forgotten."""

from msgspec import msgpack

from daws.core.events import ObjectsFetched
from daws.model.task import Input, Needs, ObjectTransfer, Ready, TaskSpec, spawned_id
from daws.runs.notes import RunNotes
from daws.wire.notes import News, RunLinks
from daws.wire.worker import Died, Ended, Raised, Recalled, Seed, Spawned, WaitReport, Written


def ready(task: int, kind: int = 3, cores: int = 1, sizes: tuple[int, ...] = ()) -> Ready:
    inputs = tuple(Input(number, size, -1, (0,), b"") for number, size in enumerate(sizes))
    return Ready(TaskSpec(task, kind, needs=None if cores == 1 else Needs(cores)), 0, 0, inputs)


def test_a_run_that_ended_is_a_row_with_all_its_numbers():
    notes = RunNotes(5)
    notes.sent(7, 1, ready(42, cores=2, sizes=(10, 20)), 0)
    notes.happened([ObjectsFetched((ObjectTransfer(0, 10, 1), ObjectTransfer(1, 20, 1)), (ObjectTransfer(2, 99, 1),))])
    news = notes.reported([Ended(7, 500, (b"abc", Written("file", 1000)), 10_000)])
    links = RunLinks(42, 10_000, ((0, 10), (1, 20)))
    assert news == News(5, ((42, 3, 5, 1, 10_000, 10_500, 2, 30, 1003, 1),), 1, 30, (links,))
    assert msgpack.decode(msgpack.encode(news), type=News) == news


def test_a_run_that_raised_is_marked():
    notes = RunNotes(0)
    notes.sent(7, 1, ready(42), 0)
    (row,) = notes.reported([Raised(7, 500, b"", 10_000)]).rows
    assert row[-1] == 0 and row[4:6] == (10_000, 10_500)


def test_runs_that_did_not_end_by_themselves_leave_nothing():
    notes = RunNotes(0)
    for run in (1, 2):
        notes.sent(run, 0, ready(run), 0)
    news = notes.reported([Died(1, -9), Recalled(2), Ended(3, 1, (), 1)])
    assert (news.rows, news.busy_count) == ((), 1)  # one executor had both
    news = notes.reported([Recalled(2)])
    assert (news.rows, news.busy_count) == ((), 0)


def test_what_a_run_read_and_made_is_told_if_there_is_something_to_tell():
    notes = RunNotes(0)
    notes.sent(7, 1, Ready(TaskSpec(1, 0, outputs=(1,)), 0, 0), 0)
    assert notes.reported([Ended(7, 5, (b"abc",), 10)]).links == ()
    spec = TaskSpec(2, 0, inputs=(1,), outputs=(2, 99), needs=Needs(1, memory_bytes=64))
    notes.sent(8, 1, Ready(spec, 0, 0, (Input(1, 3, 1, (0,), b"abc"),)), 0)
    news = notes.reported([Ended(8, 5, (b"", Written("file", 1000)), 20)])
    assert news.links == (RunLinks(2, 20, ((1, 3),), ((2, 0), (99, 1000)), (), 64),)
    assert msgpack.decode(msgpack.encode(news), type=News) == news


def test_a_run_that_creates_tasks_and_waits_has_phases():
    notes = RunNotes(0)
    notes.sent(7, 1, Ready(TaskSpec(1, 0, outputs=(1,)), 2, 0), 0)
    seed = Seed(0, b"")
    notes.reported([Spawned(7, (seed, seed)), WaitReport(7, 30, (1, 0)), Spawned(7, (seed,)), Spawned(9, (seed,))])
    first, second, third = (spawned_id(1, 2, number) for number in range(3))
    (links,) = notes.reported([WaitReport(7, 50, (2,)), Ended(7, 90, (b"x",), 10)]).links
    assert links == RunLinks(
        1, 10, (), ((1, 1),), ((30, (first, second), (second, first)), (50, (third,), (third,)), (90, (), ()))
    )
    notes.sent(8, 1, Ready(TaskSpec(2), 0, 0), 0)
    notes.reported([Spawned(8, (seed,)), Died(8, -9)])
    assert notes._created == {}
