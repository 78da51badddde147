"""The pool of threads behaves as the pool of processes, as far as threads can."""

import threading
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from daws.data import codec
from daws.data.envelope import opened, sealed
from daws.data.tags import folder_of, tag_of
from daws.wire.worker import STOPPED, TIMEOUT, Died, Ended, ObjectFile, Prepare, Recalled, RunOptions
from daws.workers.errors import RemoteError, WorkerStartError
from daws.workers.modules import ModulesInUse
from daws.workers.running import Runner
from daws.workers.slots import Slot
from tests.unit.workers import jobs
from tests.unit.workers.crew import Crew

GATES: dict[str, tuple[threading.Event, threading.Event]] = {}


def pass_gate(name: str) -> str:
    """Says that it has begun, and waits."""
    begun, may_end = GATES[name]
    begun.set()
    may_end.wait()
    return threading.current_thread().name


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> Iterator[tuple[str, threading.Event, threading.Event]]:
    name = request.node.name
    GATES[name] = threading.Event(), threading.Event()
    yield name, *GATES[name]
    GATES[name][1].set()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path, kind="threads") as made:
        yield made
    assert not made.folder.exists()


def test_executes(crew: Crew):
    assert crew.call(jobs.add, 2, 3) == 5
    assert crew.call(jobs.several, 2, 100_000, outputs=("a", "b"), slot=1) == [
        (crew.folder / name).stat().st_size for name in "ab"
    ]
    runs = [crew.give(jobs.add, number, slot=number % 2) for number in range(500)]
    assert all(isinstance(report, Ended) for report in crew.wait(*runs))


def test_values_come_and_go_without_files(tmp_path: Path):
    with Crew(tmp_path, kind="threads", inline_max_bytes=100, held_max_bytes=10_000) as crew:
        held = ObjectFile("", 7, held=sealed(7, codec.dumps(b"x" * 5_000)))
        (report,) = crew.wait(crew.give(jobs.echo, Slot(0), inputs=(held,), outputs=("8",)))
        assert isinstance(report, Ended) and isinstance(report.results[0], bytes)
        assert codec.loads(opened(memoryview(report.results[0]), 8)) == ((b"x" * 5_000,), {})
        run = crew.give(jobs.echo, Slot(0), b"y" * 10_000, inputs=(held,), outputs=("a",))
        (report,) = crew.wait(run)
        assert isinstance(report, Ended) and report.results == ((crew.folder / "a").stat().st_size,)


def test_a_file_that_has_no_file_yet_is_one_for_its_reader(tmp_path: Path):
    runner = Runner(Prepare("x", str(tmp_path), 100), lambda group: None, is_process=False)
    file = runner.file(ObjectFile("", held=b"what is in it"), "data.txt")
    assert file.read_bytes() == b"what is in it"


def test_raises(crew: Crew):
    with pytest.raises(ValueError, match="what a pity"):
        crew.call(jobs.fail, "what a pity")
    with pytest.raises(RemoteError, match="SystemExit: 3"):
        crew.call(jobs.leave, 3)
    assert crew.call(jobs.add, 1) == 1


def test_recall_and_kill(crew: Crew, gate: tuple[str, threading.Event, threading.Event]):
    name, begun, _ = gate
    long, first, second, third = crew.give(pass_gate, name), *(crew.give(jobs.add, number) for number in range(3))
    begun.wait()
    crew.pool.recall(0, first)
    crew.pool.recall(0, long)
    crew.pool.kill(0, second)
    assert crew.wait(first, second) == [Recalled(first), Recalled(second)]
    assert long not in crew.reports
    crew.pool.kill(0, long)
    died, ended = crew.wait(long, third)
    assert died == Died(long, -9, b"", STOPPED)
    assert isinstance(ended, Ended)


def test_time_limits(crew: Crew, gate: tuple[str, threading.Event, threading.Event]):
    run = crew.give(pass_gate, gate[0], options=RunOptions(timeout_ns=50_000_000))
    behind = crew.give(jobs.add, 1)
    died, ended = crew.wait(run, behind)
    assert died.why == TIMEOUT
    assert isinstance(ended, Ended)


def test_closing_answers_for_what_runs(tmp_path: Path, gate: tuple[str, threading.Event, threading.Event]):
    with Crew(tmp_path, kind="threads") as crew:
        run, behind = crew.give(pass_gate, gate[0]), crew.give(jobs.add, 1)
        gate[1].wait()
    assert [type(crew.reports[one]) for one in (run, behind)] == [Died, Recalled]


def test_hooks(tmp_path: Path):
    marks = tmp_path / "up", tmp_path / "down"
    up, down = (cloudpickle.dumps(lambda mark=mark: jobs.mark(str(mark))) for mark in marks)
    with Crew(tmp_path, 1, kind="threads", setup=up, teardown=down) as crew:
        assert marks[0].exists()
        assert crew.call(jobs.add, 1) == 1
        assert not marks[1].exists()
    assert marks[1].exists()
    with pytest.raises(WorkerStartError, match="the set-up of workers fails: ValueError: no licence"):
        Crew(tmp_path, kind="threads", setup=cloudpickle.dumps(lambda: jobs.fail("no licence")))


def test_threads_that_need_modules_of_their_client_at_once_put_nothing_aside_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: tuple[str, threading.Event, threading.Event]
):
    """What the second put aside, the first was importing."""
    name, begun, may_end = gate
    made: list[ModulesInUse] = []

    class Slow(ModulesInUse):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)
            pass_gate(name)

    monkeypatch.setattr("daws.workers.modules.ModulesInUse", Slow)
    tag = tag_of(1, b"d" * 32)
    Path(folder_of(tag, str(tmp_path))).mkdir()
    runner = Runner(Prepare("runner", str(tmp_path), 1000, "", str(tmp_path)), lambda run: None, is_process=False)
    for number in (1, 2):
        runner.learn(number, tag + cloudpickle.dumps(jobs.add))
    threads = [threading.Thread(target=runner._unpickled, args=(number,)) for number in (1, 2)]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    threads[1].join(0.1)  # time enough to do harm
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert len(made) == 1
