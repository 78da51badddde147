"""Real workers: what is executed, what is reported, and that nobody suffers from what others do."""

import gc
import os
import pickle
import random
import re
import signal
from _socket import MSG_PEEK
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from daws.data.codec import load_file, pack
from daws.wire.frames import FrameReader
from daws.wire.worker import (
    MEMORY,
    STOPPED,
    TIMEOUT,
    Died,
    Ended,
    ObjectFile,
    Raised,
    Recalled,
    RunOptions,
)
from daws.workers.errors import RemoteError, RemoteTraceback, UnreadableError, WorkerStartError
from daws.workers.slots import Slot
from daws.workers.system import wait_for_turns
from tests.unit.workers import jobs
from tests.unit.workers.crew import Crew, gone, is_alive


class Big:
    """Something that a function keeps."""

    def count(self) -> int:
        return big_ones()


def big_ones() -> int:
    gc.collect()
    return sum([type(one).__name__ == "Big" for one in gc.get_objects()])


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path) as made:
        yield made


def test_executes(crew: Crew):
    assert crew.call(jobs.add, 2, 3) == 5
    assert crew.call(jobs.add, 2, slot=1) == 2
    assert crew.call(jobs.pid) == crew.pool.pids[0]


def test_a_batch_comes_back_in_order_and_in_few_pieces(crew: Crew):
    runs = [crew.give(jobs.add, number, slot=number % 2) for number in range(2000)]
    reports = crew.wait(*runs)
    assert [pickle.loads(report.results[0]) for report in reports] == list(range(2000))
    for slot in (0, 1):
        ends = [report.run for batch in crew.batches for report in batch if isinstance(report, Ended)]
        order = [run for run in ends if crew.orders[run][0] == slot]
        assert order == sorted(order)
    assert len(crew.batches) < 1000


def test_functions_of_main_travel_by_value(crew: Crew):
    def local(x: int) -> int:
        return x * 2

    assert crew.call(local, 4) == 8
    assert crew.call(lambda: __import__("sys").modules["__main__"].__dict__.get("main")) is None


def test_functions_that_are_forgotten_leave_nothing_in_workers(crew: Crew):
    big = Big()
    assert crew.call(big.count) == 1
    crew.pool.forget((crew.orders[0][1].function,))
    assert crew.call(big_ones) == 0
    assert crew.call(big_ones, slot=1) == 0, "it has never heard of it"


def test_a_function_is_learnt_anew(crew: Crew):
    assert crew.call(jobs.add, 1) == 1
    crew.pool.learn(0, cloudpickle.dumps(jobs.echo))
    assert crew.call(jobs.add, 1) == ((1,), {})


def test_slots_are_filled_with_inputs(crew: Crew):
    path = crew.folder / "object"
    path.write_bytes(pack("from a file").as_file(1).to_bytes())
    inputs = (pickle.dumps("inline"), ObjectFile(str(path)), ObjectFile("object"))
    found = crew.call(jobs.echo, Slot(1), [{"deep": Slot(0)}], Slot(2), inputs=inputs)
    assert found == (("from a file", [{"deep": "inline"}], "from a file"), {})


def test_large_results_go_to_files(crew: Crew):
    size = crew.call(jobs.several, 1, 100_000, outputs=("big",))
    data = (crew.folder / "big").read_bytes()
    assert len(data) == size
    assert load_file(crew.folder / "big") == [b"\0" * 100_000]
    assert [path.name for path in crew.folder.iterdir() if path.name.startswith("big")] == ["big"]


def test_large_results_go_to_segments(tmp_path: Path):
    pytest.importorskip("daws.data.segments")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Crew(tmp_path, 1, scratch=str(scratch)) as crew:
        small, large = crew.call(jobs.sizes, 10, 100_000, outputs=("7", "8"))
        assert small == bytes(10)
        assert Path(large.path).is_relative_to(scratch)
        assert Path(large.path).stat().st_size == large.size_bytes


def test_the_first_results_go_when_a_later_one_fails(crew: Crew):
    with pytest.raises(FileNotFoundError):
        crew.call(jobs.sizes, 100_000, 100_000, outputs=("first", "no/such/folder"))
    assert not [path for path in crew.folder.iterdir() if path.name.startswith("first")]


def test_several_results(crew: Crew):
    assert crew.call(jobs.several, 3, outputs=("a", "b", "c")) == [0, 1, 2]
    first, second = crew.call(jobs.several, 2, 100_000, outputs=("a", str(crew.folder / "b")))
    assert (crew.folder / "a").stat().st_size == first
    assert (crew.folder / "b").stat().st_size == second
    with pytest.raises(Exception, match=r"^several should return 2 results, it returned 3"):
        crew.call(jobs.several, 3, outputs=("a", "b"))
    with pytest.raises(Exception, match="should return 2 results, not a int"):
        crew.call(jobs.pid, outputs=("a", "b"))


def test_a_result_that_cannot_be_written_is_an_error_of_that_run_alone(crew: Crew):
    with pytest.raises(FileNotFoundError):
        crew.call(jobs.several, 1, 100_000, outputs=("no/such/folder",))
    assert crew.call(jobs.add, 1) == 1


def test_exceptions_come_with_their_traceback(crew: Crew):
    with pytest.raises(ValueError, match="what a pity") as caught:
        crew.call(jobs.fail, "what a pity")
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTraceback)
    assert "raise ValueError(text)" in str(cause)
    assert "daws/workers" not in str(cause)


def test_exceptions_with_constructors_of_their_own_travel(crew: Crew):
    with pytest.raises(jobs.Stubborn, match=r"^one and two$"):
        crew.call(jobs.raise_stubborn)


@pytest.mark.parametrize(
    "function, kind, message",
    [
        (jobs.raise_mute, "tests.unit.workers.jobs.Mute", "cannot be had"),
        (jobs.interrupt, "KeyboardInterrupt", ""),
    ],
)
def test_exceptions_that_cannot_travel_are_put_into_words(crew: Crew, function: Any, kind: str, message: str):
    if function is jobs.raise_mute:
        with pytest.raises(jobs.Mute) as muted:
            crew.call(function)
        assert "raise Mute" in str(muted.value.__cause__)
        return
    with pytest.raises(RemoteError) as caught:
        crew.call(function)
    assert caught.value.kind == kind
    assert message in str(caught.value)
    assert "jobs.py" in caught.value.trace
    assert pickle.loads(pickle.dumps(caught.value)).kind == kind


def test_an_exception_travels_without_what_cannot(crew: Crew):
    with pytest.raises(jobs.Holding, match="holding a generator") as caught:
        crew.call(jobs.raise_holding)
    assert "generator" in caught.value.held and "held" in caught.value.__notes__[0]
    assert "raise Holding" in str(caught.value.__cause__)


def test_what_cannot_be_pickled_or_unpickled_is_an_error_of_that_run_alone(crew: Crew):
    before = crew.pool.pids
    with pytest.raises(Exception, match=r"the result.* cannot be pickled"):
        crew.call(jobs.unpicklable)
    with pytest.raises(
        UnreadableError, match=r"^echo: the arguments cannot be loaded in a worker: ValueError: unpickled"
    ):
        crew.call(jobs.echo, jobs.Hostile())
    crew.pool.learn(77, b"rubbish")
    crew._functions["rubbish"] = 77
    with pytest.raises(UnreadableError, match="the function cannot be loaded"):
        crew.call("rubbish")  # type: ignore[arg-type]
    assert crew.call(jobs.add, 1) == 1
    assert crew.pool.pids == before


def test_sys_exit_ends_the_run_not_the_worker(crew: Crew):
    before = crew.pool.pids
    with pytest.raises(RemoteError, match="SystemExit: 3"):
        crew.call(jobs.leave, 3)
    assert crew.call(jobs.add, 1) == 1
    assert crew.pool.pids == before


@pytest.mark.parametrize("function, args, code", [(jobs.drop, (7,), 7), (jobs.crash, (), -signal.SIGSEGV)])
def test_a_worker_that_dies_is_replaced_and_only_the_run_it_was_on_is_blamed(
    crew: Crew, function: Any, args: tuple[Any, ...], code: int
):
    before = [crew.give(jobs.add, number) for number in range(20)]
    culprit = crew.give(function, *args)
    behind = [crew.give(jobs.add, number) for number in range(20)]
    beside = [crew.give(jobs.add, number, slot=1) for number in range(20)]
    crew.wait(*before, culprit, *behind, *beside)
    died = crew.reports[culprit]
    assert isinstance(died, Died)
    assert (died.code, died.why) == (code, "")
    assert b"about to crash" in died.output or function is jobs.drop
    assert all(isinstance(crew.reports[run], Ended | Recalled) for run in before)
    assert all(isinstance(crew.reports[run], Recalled) for run in behind)
    assert all(isinstance(crew.reports[run], Ended) for run in beside)
    assert crew.call(jobs.add, 1) == 1


def test_reports_do_not_wait_for_a_long_run_behind_them(crew: Crew):
    short = [crew.give(jobs.add, number) for number in range(5)]
    fifo, word = crew.fifo(), crew.fifo("word")
    long = crew.give(jobs.await_word, fifo, word)
    crew.hear(fifo)
    assert all(isinstance(report, Ended) for report in crew.wait(*short))
    assert long not in crew.reports
    Path(word).write_text("go on")
    assert isinstance(crew.wait(long)[0], Ended)


def test_recall_hands_back_what_has_not_begun(crew: Crew):
    fifo, word = crew.fifo(), crew.fifo("word")
    long = crew.give(jobs.await_word, fifo, word)
    behind = [crew.give(jobs.add, number) for number in range(10)]
    crew.hear(fifo)
    for run in (*behind[5:], long):
        crew.pool.recall(0, run)
    assert crew.wait(*behind[5:]) == [Recalled(run) for run in behind[5:]]
    assert long not in crew.reports
    Path(word).write_text("go on")
    assert all(isinstance(report, Ended) for report in crew.wait(long, *behind[:5]))


def test_orders_sent_during_a_long_run_can_be_recalled(crew: Crew):
    fifo, word = crew.fifo(), crew.fifo("word")
    long = crew.give(jobs.await_word, fifo, word)
    crew.hear(fifo)
    later = crew.give(jobs.add, 1)
    crew.pool.flush()
    crew.pool.recall(0, later)
    assert crew.wait(later) == [Recalled(later)]
    Path(word).write_text("go on")
    crew.wait(long)


def switches(worker: int) -> int:
    """How often the threads of a worker have gone to sleep."""
    said = "".join([path.read_text() for path in Path(f"/proc/{worker}/task").glob("*/status")])
    return sum(map(int, re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", said, re.MULTILINE)))


def test_a_long_run_is_hardly_disturbed(crew: Crew):
    worker = crew.call(jobs.pid)
    before = switches(worker)
    crew.call(jobs.nap_ns, 1_000_000_000)
    assert switches(worker) - before < 150  # 300 with a thread that looks for orders at every tick


def test_the_next_orders_do_not_disturb_a_run_but_a_recall_does(tmp_path: Path):
    with Crew(tmp_path, 1, setup=cloudpickle.dumps(jobs.wait_for_the_bell)) as crew:
        crew.call(jobs.nap_ns, 20_000_000)
        fifo, word = crew.fifo(), crew.fifo("word")
        long = crew.give(jobs.await_word, fifo, word)
        worker = crew.hear(fifo)
        jobs.nap_ns(20_000_000)  # until then it looks around every now and then
        before = switches(worker)
        later = []
        for number in range(50):
            later.append(crew.give(jobs.add, number))
            crew.pool.flush()
            jobs.nap_ns(1_000_000)
        assert switches(worker) - before < 10
        crew.pool.recall(0, later[-1])
        assert crew.wait(later[-1]) == [Recalled(later[-1])]
        assert long not in crew.reports
        Path(word).write_text("go on")
        assert all(isinstance(report, Ended) for report in crew.wait(long, *later[:-1]))


@pytest.mark.parametrize("size_bytes", [150_000, 2_000_000])
def test_a_recall_behind_much_else_is_heard(tmp_path: Path, size_bytes: int):
    """More than is read at once, and more than the socket takes."""
    with Crew(tmp_path, 1, setup=cloudpickle.dumps(jobs.wait_for_the_bell)) as crew:
        crew.call(jobs.nap_ns, 20_000_000)
        fifo, word = crew.fifo(), crew.fifo("word")
        long = crew.give(jobs.await_word, fifo, word)
        crew.hear(fifo)
        jobs.nap_ns(20_000_000)
        large, later = crew.give(jobs.size, bytes(size_bytes)), crew.give(jobs.add, 1)
        crew.pool.recall(0, later)
        assert crew.wait(later) == [Recalled(later)]
        assert long not in crew.reports
        Path(word).write_text("go on")
        assert all(isinstance(report, Ended) for report in crew.wait(long, large))


def test_short_runs_behind_a_long_one_are_reported_together(tmp_path: Path):
    with Crew(tmp_path, 1, setup=cloudpickle.dumps(jobs.wait_for_the_bell)) as crew:
        crew.call(jobs.nap_ns, 20_000_000)
        crew.give(jobs.nap_ns, 20_000_000)
        short = [crew.give(jobs.add, number) for number in range(100)]
        fifo, word = crew.fifo(), crew.fifo("word")
        last = crew.give(jobs.await_word, fifo, word)
        crew.hear(fifo)
        reader = FrameReader()
        said = crew.pool._links[0].sock.recv_into(reader.room, 0, MSG_PEEK)
        assert len(reader.arrived(said)) < 20, "not each by itself"
        Path(word).write_text("go on")
        crew.wait(*short, last)


def test_workers_sleep_as_long_as_they_are_told(crew: Crew):
    assert crew.call(jobs.timer_slack_ns) == 1


@pytest.mark.parametrize("function", [jobs.hang, jobs.spin])
def test_kill_stops_a_run(crew: Crew, function: Any):
    fifo = crew.fifo()
    run, behind = crew.give(function, fifo), crew.give(jobs.add, 1)
    pid = crew.hear(fifo)
    crew.pool.kill(0, run)
    died, recalled = crew.wait(run, behind)
    assert (died.why, died.code) == (STOPPED, -signal.SIGKILL)
    assert recalled == Recalled(behind)
    assert gone([pid])
    crew.pool.kill(0, run)  # too late, and no harm
    assert crew.call(jobs.add, 1) == 1


def test_killing_a_run_that_waits_leaves_the_one_that_runs_alone(crew: Crew):
    fifo, word = crew.fifo(), crew.fifo("word")
    long, behind = crew.give(jobs.await_word, fifo, word), crew.give(jobs.hang, fifo)
    crew.hear(fifo)
    crew.pool.kill(0, behind)
    assert crew.wait(behind) == [Recalled(behind)]
    Path(word).write_text("go on")
    assert isinstance(crew.wait(long)[0], Ended)


def test_time_limits(crew: Crew):
    limit = RunOptions(timeout_ns=500_000_000)
    assert crew.call(jobs.add, 1) == 1  # imports what the limited runs need
    before = crew.give(jobs.add, 1, options=limit)
    fifo = crew.fifo()
    run, behind = crew.give(jobs.hang, fifo, "still here", options=limit), crew.give(jobs.add, 1, options=limit)
    ended, died, recalled = crew.wait(before, run, behind)
    assert isinstance(ended, Ended)
    assert (died.why, died.output) == (TIMEOUT, b"still here\n")
    assert recalled == Recalled(behind)


def test_memory_limits(crew: Crew):
    fifo = crew.fifo()
    run = crew.give(jobs.grow, fifo, 200, options=RunOptions(memory_bytes=100 << 20))
    crew.pool.flush()
    assert crew.wait(run)[0].why == MEMORY


def test_output_is_kept_per_run(crew: Crew):
    first = crew.give(jobs.speak, "one\n", "wrong\n", "from a program")
    second = crew.give(jobs.add, 1)
    third = crew.give(jobs.speak, "no line end")
    fourth = crew.give(jobs.speak, "nobody asked", options=RunOptions(capture=False))
    crew.wait(first, second, third, fourth)
    assert crew.printed == {first: b"one\nfrom a program\nwrong\n", third: b"no line end"}


@pytest.mark.parametrize("function, amount", [(jobs.speak_much, 50_000), (jobs.write_much, 40)])
def test_only_the_end_of_much_output_is_kept(crew: Crew, function: Any, amount: int):
    run, behind = crew.give(function, amount), crew.give(jobs.add, 1)
    crew.wait(run, behind)
    _, _, kept = crew.printed[run].rpartition(b" bytes of output are left out]\n")
    # Twice as much if the last report before the end of the run came when hardly anything was left to write.
    assert (1 << 16) - 100 < len(kept) < 2 << 16 and len(crew.printed[run]) < 1 << 20
    assert crew.printed[run].endswith(
        b"the end" if function is jobs.write_much else b"line   49999 " + b"x" * 80 + b"\n"
    )
    assert behind not in crew.printed
    assert sum(path.stat().st_size for path in crew.folder.iterdir()) < 1000


def test_a_task_that_closes_its_output_takes_it_from_nobody_else(crew: Crew):
    run, behind = crew.give(jobs.close_output), crew.give(jobs.speak, "hear, hear")
    crew.wait(run, behind)
    assert crew.printed == {behind: b"hear, hear"}


@pytest.mark.parametrize("how, said", [("forget", None), ("wrap", b"in its own stream")])
def test_a_task_that_puts_a_stream_of_its_own_in_place_does_so_for_itself(crew: Crew, how: str, said: bytes | None):
    run, behind = crew.give(jobs.replace_output, how), crew.give(jobs.speak, "hear, hear", "and here")
    crew.wait(run, behind)
    assert (crew.printed.get(run), crew.printed[behind]) == (said, b"hear, hearand here")


def test_a_task_that_closes_everything_costs_its_worker(crew: Crew):
    run = crew.give(jobs.close_everything)
    assert isinstance(crew.wait(run)[0], Died)
    assert crew.call(jobs.add, 1) == 1


def test_a_task_that_changes_the_directory_changes_it_for_itself(crew: Crew, tmp_path: Path):
    home = crew.call(jobs.here)
    assert home == os.getcwd()
    moved, behind = crew.give(jobs.move, str(tmp_path)), crew.give(jobs.here)
    crew.wait(moved, behind)
    assert crew.call(jobs.here) == home
    assert pickle.loads(crew.wait(behind)[0].results[0]) == home


def test_a_forked_copy_of_a_worker_does_not_report(crew: Crew):
    fifo = crew.fifo()
    run = crew.give(jobs.fork_and_return, fifo)
    behind = [crew.give(jobs.add, number) for number in range(3)]
    copy = crew.hear(fifo)
    reports = crew.wait(run, *behind)
    assert pickle.loads(reports[0].results[0]) == "parent"
    assert gone([copy])
    assert crew.call(jobs.fork_and_exit, 5) == 5


def test_children_of_tasks_end_with_their_worker(crew: Crew):
    child = crew.call(jobs.leave_child, False)
    assert is_alive(child)
    assert crew.call(jobs.add, 1) == 1
    os.kill(crew.pool.pids[0], signal.SIGKILL)
    assert gone([child])


def test_the_environment_follows_the_options(crew: Crew):
    names = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "JOB_COLOUR")
    options = RunOptions(cores=3, devices=(0, 2), environment=(("JOB_COLOUR", "red"),))
    assert crew.call(jobs.environment, *names, options=options) == ["3", "0,2", "red"]
    assert crew.call(jobs.environment, *names) == ["1", os.environ.get("CUDA_VISIBLE_DEVICES"), None]


def test_streams_of_the_set_up_stay(tmp_path: Path):
    with Crew(tmp_path, 1, setup=cloudpickle.dumps(jobs.mute)) as crew:
        crew.call(jobs.replace_output, "forget")
        crew.call(jobs.speak, "nobody hears this")
        assert not crew.printed


def test_set_up_and_tear_down(tmp_path: Path):
    marks = [tmp_path / "down-0"]
    down = cloudpickle.dumps(lambda: jobs.mark(str(marks[0])))
    with Crew(tmp_path, 1, setup=cloudpickle.dumps(jobs.setup_value), teardown=down) as crew:
        assert crew.call(jobs.environment, "JOB_SETUP") == ["done"]
        assert not marks[0].exists()
    assert marks[0].exists()


@pytest.mark.parametrize(
    "setup, message",
    [
        (lambda: jobs.fail("no licence"), "the set-up of workers fails: ValueError: no licence"),
        (lambda: jobs.drop(9), "workers end as soon as they are started .exit code 9."),
    ],
)
def test_workers_that_cannot_start_are_an_error_and_no_loop(tmp_path: Path, setup: Any, message: str):
    with pytest.raises(WorkerStartError, match=message):
        Crew(tmp_path, 2, setup=cloudpickle.dumps(setup))


def test_workers_are_not_as_patient_as_a_node_that_has_time(crew: Crew):
    wait_for_turns(True)
    try:
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
        fifo = crew.fifo()
        run = crew.give(jobs.hang, fifo)
        crew.hear(fifo)
        os.kill(crew.pool._server.pid, signal.SIGKILL)
        assert isinstance(crew.wait(run)[0], Died)
        assert crew.call(os.sched_getscheduler, 0) == os.SCHED_OTHER
    finally:
        wait_for_turns(False)


def test_the_fork_server_is_replaced_too(crew: Crew):
    fifo = crew.fifo()
    run, behind = crew.give(jobs.hang, fifo), crew.give(jobs.add, 1)
    pids = [crew.hear(fifo), *crew.pool.pids]
    assert crew.pool._server is not None
    os.kill(crew.pool._server.pid, signal.SIGKILL)
    died, recalled = crew.wait(run, behind)
    assert isinstance(died, Died)
    assert isinstance(recalled, Recalled)
    assert crew.call(jobs.add, 1) == 1
    assert crew.call(jobs.add, 1, slot=1) == 1
    assert gone(pids)


def test_workers_do_not_care_about_interrupts(crew: Crew):
    before = crew.pool.pids
    fifo, word = crew.fifo(), crew.fifo("word")
    run = crew.give(jobs.await_word, fifo, word)
    crew.hear(fifo)
    for pid in before:
        os.kill(pid, signal.SIGINT)
    Path(word).write_text("go on")
    assert isinstance(crew.wait(run)[0], Ended)
    assert crew.pool.pids == before
    assert crew.printed == {}


def test_large_orders_and_large_reports(crew: Crew):
    data = os.urandom(5_000_000)
    runs = [crew.give(jobs.echo, data) for _ in range(3)]
    for report in crew.wait(*runs):
        assert pickle.loads(report.results[0]) == ((data,), {})


def test_closing_ends_what_runs_and_leaves_nothing(tmp_path: Path):
    with Crew(tmp_path) as crew:
        fifo = crew.fifo()
        child = crew.call(jobs.leave_child, True, slot=1)
        run = crew.give(jobs.hang, fifo)
        crew.hear(fifo)
        pids = [*crew.pool.pids, child]
    assert isinstance(crew.reports[run], Died)
    assert not any(map(is_alive, pids))
    assert not crew.folder.exists()
    with pytest.raises(WorkerStartError, match="is closed"):
        crew.give(jobs.add, 1)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_when_workers_are_killed_at_random(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    with Crew(tmp_path) as crew:
        left = 3000
        kills = 12
        while left or len(crew.reports) < len(crew.orders):
            for _ in range(min(left, rng.randrange(1, 400))):
                crew.give(jobs.nap_ns, rng.choice((0, 0, 0, 20_000, 200_000)), slot=rng.randrange(2))
                left -= 1
            goal = rng.randrange(len(crew.reports), len(crew.orders) + 1) if left else len(crew.orders)
            if kills:
                kills -= 1
                # A worker that dies before it is ready counts as one that cannot be started.
                ready = [link.pid for link in crew.pool._links if link.is_fit]
                if ready:
                    pid = rng.choice(ready)
                    crew.pool.flush()
                    with suppress(ProcessLookupError):  # killed before, which the pool has not heard yet
                        os.kill(pid, signal.SIGKILL)
            crew.until(lambda goal=goal: len(crew.reports) >= goal)  # type: ignore[misc]
        assert crew.reports.keys() == crew.orders.keys()
        assert sum(isinstance(report, Died) for report in crew.reports.values()) <= 12
        assert not any(isinstance(report, Raised) for report in crew.reports.values())
        assert [crew.call(jobs.add, slot, slot=slot) for slot in (0, 1)] == [0, 1]
