"""What tasks print, log and warn of: it appears while they run, as if they ran here."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import daws
from daws import Cluster
from daws.client.printing import Printing
from daws.model.errors import TaskKilledError
from tests.unit.runtime.cluster.machines import wait_for_file

LONG_S = 60.0
LOGGER = "tests.of.daws"


class Seen:
    """What has appeared so far."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def look(self) -> None:
        out, err = self._capture.readouterr()
        self.out += out
        self.err += err

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONG_S
        while not holds():
            assert time.monotonic() < deadline, (self.out, self.err)
            time.sleep(0.005)
            self.look()


@pytest.fixture
def seen(capfd: pytest.CaptureFixture[str]) -> Seen:
    return Seen(capfd)


@pytest.fixture(scope="module", params=[{}, {"nodes": 2}], ids=["node on a thread", "node processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **request.param) as made:
        yield made


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """Of the root logger; all levels are as they were afterwards."""
    handler, level = Records(), logging.root.level
    logging.root.addHandler(handler)
    yield handler.records
    logging.root.removeHandler(handler)
    logging.root.setLevel(level)
    logging.getLogger(LOGGER).setLevel(logging.NOTSET)


def prints_and_waits(path: str) -> None:
    print("line one")
    print("a part", end="")
    sys.stderr.write("of errors\n")
    subprocess.run(["echo", "of a program"], check=True)
    wait_for_file(path)
    print(" of a line")


def test_lines_appear_while_their_task_runs(cluster: Cluster, seen: Seen, tmp_path: Path):
    future = cluster.submit(prints_and_waits, str(tmp_path / "go"))
    seen.until(lambda: "line one\n" in seen.out and "of errors\n" in seen.err and "of a program\n" in seen.out)
    assert not future.done()
    (tmp_path / "go").touch()
    future.result(LONG_S)
    seen.until(lambda: " of a line\n" in seen.out)


def parent_prints(path: str) -> None:
    print("parent begins", end="")
    daws.current().submit(print, "child").result()
    print(" and goes on")
    wait_for_file(path)


def test_a_task_that_has_waited_for_others_prints_as_any(cluster: Cluster, seen: Seen, tmp_path: Path):
    future = cluster.submit(parent_prints, str(tmp_path / "go"))
    seen.until(lambda: "parent begins and goes on\n" in seen.out)
    assert "child\n" in seen.out and not future.done()
    (tmp_path / "go").touch()
    future.result(LONG_S)


def test_programs_print_while_they_run(cluster: Cluster, seen: Seen, tmp_path: Path):
    loop = f"echo begun; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo over"
    future = cluster.run(loop)
    seen.until(lambda: "begun\n" in seen.out)
    quiet = cluster.run(f"echo secret; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done", show=False)
    (tmp_path / "go").touch()
    assert future.result(LONG_S).stdout == b"begun\nover\n"
    assert quiet.result(LONG_S).stdout == b"secret\n"
    seen.until(lambda: "over\n" in seen.out)
    assert "secret" not in seen.out and seen.out.count("begun") == 1


def prints_lines() -> None:
    print("one line\nand a part", end="")
    sys.stdout.writelines([" of", " another"])


def test_threads_of_nodes_print_here_too(capsys: pytest.CaptureFixture[str]):
    seen = Seen(capsys)
    with Cluster(1, nodes=2, kind="threads") as cluster:
        cluster.submit(prints_lines).result(LONG_S)
        seen.until(lambda: seen.out == "one line\nand a part of another")


def crashes() -> None:
    print("the last words")
    os.write(2, b"without an end")
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(LONG_S)  # another thread of the worker may be given the signal, a moment later


def test_what_a_worker_wrote_that_crashed_appears(cluster: Cluster, seen: Seen):
    error = cluster.submit(crashes).exception(LONG_S)
    assert isinstance(error, TaskKilledError)
    assert str(error).endswith("the last it wrote: the last words\nwithout an end")
    seen.until(lambda: "the last words\n" in seen.out and "without an end\n" in seen.err)


def test_what_workers_print_at_their_end_appears(seen: Seen):
    with Cluster(1, setup=lambda: print("set up"), teardown=lambda: print("torn down")) as cluster:
        assert cluster.submit(abs, -1).result(LONG_S) == 1
    seen.look()
    assert "set up\n" in seen.out and "torn down\n" in seen.out


def test_a_line_is_not_ended_by_another_task(seen: Seen):
    printing = Printing()
    printing.show(1, b"one begins", 1)
    printing.show(2, b"apart\n", 2)
    printing.show(1, b" and ends\n", 1)
    printing.show(1, b"one again", 1)
    printing.show(1, b"two\n", 2)
    printing.show(1, b"10%\r", 1)
    printing.show(1, b"20%\r", 2)
    seen.look()
    assert seen.out == "one begins and ends\none again\ntwo\n10%\r20%\r" and seen.err == "apart\n"


def dot(number: int) -> None:
    print(".", end="", flush=True)


def test_parts_of_lines_of_many_tasks_are_one_line(cluster: Cluster, seen: Seen):
    daws.gather([cluster.submit(dot, number) for number in range(8)])
    cluster.submit(print, "a line").result(LONG_S)
    seen.until(lambda: "a line\n" in seen.out)
    assert seen.out.endswith("........\na line\n")


def test_streams_that_cannot_take_it_break_nothing(monkeypatch: pytest.MonkeyPatch):
    class Narrow:
        encoding = "ascii"
        said = ""

        def write(self, text: str) -> None:
            text.encode("ascii")
            self.said += text

        def flush(self) -> None:
            raise OSError("closed")

    narrow = Narrow()
    monkeypatch.setattr(sys, "stdout", narrow)
    Printing().show(1, "é\n".encode(), 1)
    Printing().show(3, b"rubbish", 1)
    monkeypatch.setattr(sys, "stdout", None)
    Printing().show(1, b"nobody\n", 1)
    assert narrow.said == "\\xe9\n"


# -- logging -----------------------------------------------------------------------------------------------------------


def logs() -> None:
    log = logging.getLogger(LOGGER)
    log.debug("detail")
    log.info("hello %s", "you", extra={"count": 3, "lock": threading.Lock()})
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed")


def logs_in_a_task() -> None:
    daws.current().submit(logs).result()


@pytest.mark.parametrize("function", [logs, logs_in_a_task])
def test_records_of_tasks_are_handled_by_the_logging_of_this_program(
    cluster: Cluster, records: list[logging.LogRecord], seen: Seen, function: Callable[[], None]
):
    logging.root.setLevel(logging.INFO)
    future = cluster.submit(function)
    future.result(LONG_S)
    seen.until(lambda: len(records) >= 2)
    told, failed = records
    assert (told.name, told.levelname, told.getMessage(), told.funcName) == (LOGGER, "INFO", "hello you", "logs")
    assert told.pathname == __file__ and told.lineno == logs.__code__.co_firstlineno + 3
    assert told.process != os.getpid() and str(told.processName).startswith("worker-")
    assert told.count == 3 and "lock" in told.lock and isinstance(told.daws_task, int)  # type: ignore[attr-defined]
    assert 'raise ValueError("bad")' in (failed.exc_text or "")
    assert "ValueError: bad" in logging.Formatter("%(message)s").format(failed)


def test_levels_are_those_that_this_program_has_now(cluster: Cluster, records: list[logging.LogRecord], seen: Seen):
    cluster.submit(logs).result(LONG_S)
    seen.until(lambda: len(records) == 1)
    logging.getLogger(LOGGER).setLevel(logging.DEBUG)
    cluster.submit(logs).result(LONG_S)
    seen.until(lambda: len(records) == 4)
    logging.getLogger(LOGGER).setLevel(logging.NOTSET)
    cluster.submit(logs).result(LONG_S)
    seen.until(lambda: len(records) == 5)
    logging.disable(logging.ERROR)
    try:
        cluster.submit(logs).result(LONG_S)
    finally:
        logging.disable(logging.NOTSET)
    cluster.submit(logs).result(LONG_S)
    seen.until(lambda: len(records) == 6)
    assert [one.levelname for one in records] == ["ERROR", "DEBUG", "INFO", "ERROR", "ERROR", "ERROR"]


def floods() -> None:
    for number in range(5000):
        logging.getLogger(LOGGER).warning("number %d", number)


def test_records_that_were_left_out_are_told_when_their_task_has_ended(
    cluster: Cluster, records: list[logging.LogRecord], seen: Seen
):
    cluster.submit(floods).result(LONG_S)
    seen.until(lambda: any(one.name == "daws" for one in records))
    told = next(one for one in records if one.name == "daws")  # others follow if it takes longer than a second
    assert "log records were left out" in told.getMessage()


@pytest.mark.parametrize("where", [{"nodes": 2}, {"node": "process"}], ids=str)
def test_records_of_threads_of_node_processes_are_handled_here_too(
    records: list[logging.LogRecord], seen: Seen, where: dict[str, Any]
):
    logging.root.setLevel(logging.INFO)
    with Cluster(1, kind="threads", **where) as cluster:
        cluster.submit(logs).result(LONG_S)
        seen.until(lambda: len(records) >= 2)
        assert [one.getMessage() for one in records] == ["hello you", "failed"]
        assert str(records[0].processName).startswith("node-") and records[0].daws_task >= 0  # type: ignore[attr-defined]
        with pytest.warns(UserWarning, match="careful"):
            cluster.submit(warns, UserWarning).result(LONG_S)
            cluster.submit(logs).result(LONG_S)
            seen.until(lambda: len(records) >= 4)
        logging.root.setLevel(logging.ERROR)
        cluster.submit(logs).result(LONG_S)
        seen.until(lambda: len(records) >= 5)
        assert records[-1].levelname == "ERROR"
        logging.root.setLevel(logging.WARNING)
        cluster.submit(floods).result(LONG_S)
        seen.until(lambda: any(one.name == "daws" for one in records))
        told = next(one for one in records if one.name == "daws")  # others follow if it takes longer than a second
        assert "log records were left out" in told.getMessage()
        assert not seen.err


def configures() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=sys.stdout)
    logging.getLogger(LOGGER).info("as the task has it")


def test_a_task_that_configures_logging_has_its_way(records: list[logging.LogRecord], seen: Seen):
    with Cluster(1) as cluster:
        cluster.submit(configures).result(LONG_S)
        seen.until(lambda: "INFO: as the task has it\n" in seen.out)
    assert not records


UNCONFIGURED = """
import daws, logging

def work():
    import logging
    logging.getLogger("x").info("not this")
    logging.getLogger("x").warning("this")

with daws.Cluster(1) as cluster:
    cluster.submit(work).result()
"""


def test_without_a_configuration_warnings_go_to_the_error_output():
    run = subprocess.run([sys.executable, "-c", UNCONFIGURED], capture_output=True, text=True, timeout=60, check=True)
    assert (run.stdout, run.stderr) == ("", "this\n")


LEVELS = """
import logging
from msgspec import msgpack
from daws.client.functions import LevelWatch, levels_now

print(levels_now())
changes = []
watch = LevelWatch(lambda: changes.append(1))
logging.basicConfig(level=logging.INFO)
print(changes, msgpack.decode(watch.now()))
logging.getLogger("a.b").setLevel(10)
logging.getLogger("c").setLevel(10)
print(changes, msgpack.decode(watch.now()), logging.getLogger("a.b").isEnabledFor(10), logging.root.isEnabledFor(10))
for number in range(5000):
    logging.getLogger(f"many.loggers.{number}").setLevel(10)
kept = msgpack.decode(watch.now())
print(len(watch.now()) < 1 << 15, kept[""], kept["a.b"], len(kept) > 100)
"""


def test_levels_are_told_when_they_change():
    run = subprocess.run([sys.executable, "-c", LEVELS], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.splitlines() == [
        "b''",
        "[] {'': 20}",
        "[1] {'': 20, 'a.b': 10, 'c': 10} True False",
        "True 20 10 True",
    ]


# -- warnings ----------------------------------------------------------------------------------------------------------


class OwnWarning(UserWarning):
    pass


def warns(kind: Any) -> None:
    warnings.warn("careful", kind, stacklevel=1)


def test_a_warning_appears_once_however_many_workers_say_so(cluster: Cluster):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        daws.gather([cluster.submit(warns, OwnWarning) for _ in range(50)])
        cluster.submit(warns, UserWarning).result(LONG_S)
        deadline = time.monotonic() + LONG_S
        while len(caught) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert [one.category for one in caught] == [OwnWarning, UserWarning]
    assert caught[0].filename == __file__ and str(caught[0].message) == "careful"


def test_a_filter_that_makes_errors_of_warnings_breaks_nothing(seen: Seen):
    with Cluster(1) as cluster, warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster.submit(warns, UserWarning).result(LONG_S)
        seen.until(lambda: "UserWarning: careful" in seen.err)
        assert cluster.submit(abs, -1).result(LONG_S) == 1
