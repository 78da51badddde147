"""Ctrl-C in a real program: it ends at once, says what was lost, and leaves nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import daws
from daws.client import session as sessions
from daws.model.task import TaskSpec
from daws.runtime.ports import PlainTask

HEAD = """
import os, signal, sys, time
import daws

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it

def hang(gate):
    with open(gate, "w") as file:
        print(os.getpid(), file=file)
    time.sleep(1000)

def ready(cluster):
    print(cluster._folders.scratch, cluster._folders.memory, flush=True)

gate = sys.argv[1]
"""
WAYS = {
    "result": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    futures = [cluster.submit(hang, gate) for _ in range(3)]
    futures[0].result()
""",
    "gather": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    daws.gather([cluster.submit(hang, gate) for _ in range(3)], progress=True)
""",
    "the block": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    futures = [cluster.submit(hang, gate) for _ in range(3)]
    while True:  # a signal that comes just before a long sleep begins would be seen at its end
        time.sleep(0.05)
""",
    "leaving": """
with daws.Cluster(1) as cluster:
    ready(cluster)
    for _ in range(3):
        cluster.submit(hang, gate)
""",
    "the end": """
cluster = daws.Cluster(1)
ready(cluster)
futures = [cluster.submit(hang, gate) for _ in range(3)]
""",
    "no block": """
cluster = daws.Cluster(1)
ready(cluster)
futures = [cluster.submit(hang, gate) for _ in range(3)]
daws.wait(futures)
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c(way: str, tmp_path: Path):
    script, gate = tmp_path / "script.py", tmp_path / "gate"
    script.write_text(HEAD + WAYS[way])
    os.mkfifo(gate)
    command = [sys.executable, str(script), str(gate)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        folders = [name for name in process.stdout.readline().split() if name != "None"]
        worker = int(gate.read_text())  # the first task runs
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the group hears it
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.count("daws:") == 1 and "daws: 3 tasks were cancelled: KeyboardInterrupt\n" in errors
    assert errors.splitlines()[-1] == "KeyboardInterrupt" or way in ("no block", "the end")
    assert folders and not any(map(os.path.exists, folders))
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


UNRAISABLE = """
class Trap:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

class Empty:
    pass

def trap(_):
    signal.raise_signal(signal.SIGINT)

with daws.Cluster(1) as cluster:
    futures = [cluster.submit(time.sleep, 1000) for _ in range(3)]
    WAY
    for future in daws.as_completed(futures):
        pass
"""


@pytest.mark.parametrize("way", ["Trap()", "empty = Empty(); reference = weakref.ref(empty, trap); del empty"])
def test_ctrl_c_in_a_finaliser_or_a_weak_reference_is_not_lost(way: str):
    script = HEAD.replace("gate = sys.argv[1]", "import weakref") + UNRAISABLE.replace("WAY", way)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == -signal.SIGINT
    assert "daws: 3 tasks were cancelled: KeyboardInterrupt\n" in ended.stderr and "ignored" not in ended.stderr


OTHERS = """
import sys
import daws

seen = []
sys.unraisablehook = lambda what: seen.append(what.exc_type.__name__)

class Bad:
    def __del__(self):
        raise ValueError("on purpose")

with daws.Cluster(1) as cluster:
    bad = Bad()
    del bad
print(seen)
"""


def test_other_exceptions_of_finalisers_are_handled_as_before():
    ended = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("['ValueError']\n", "")


# -- Ctrl-C in the middle of submit ------------------------------------------------------------------------------------


class Interrupted:
    """In the place of something that submit calls: the first call is interrupted, before or after it does its work."""

    def __init__(self, function: Any, is_done: bool) -> None:
        self.function = function
        self.is_done = is_done
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        result = self.function(*args) if self.calls > 1 or self.is_done else None
        if self.calls == 1:
            raise KeyboardInterrupt
        return result


@pytest.mark.parametrize("name", ["TaskSpec", "Submit"])
def test_a_task_whose_submit_was_interrupted_is_not_waited_for(name: str, monkeypatch: pytest.MonkeyPatch):
    with daws.Cluster(1) as cluster:
        monkeypatch.setattr(sessions, name, Interrupted(getattr(sessions, name), is_done=False))
        with pytest.raises(KeyboardInterrupt):
            cluster.options(priority=1).submit(abs, -1)
        assert not cluster._open().futures  # leaving would wait for it, for ever
        assert cluster.options(priority=1).submit(abs, -1).result(60) == 1


@pytest.mark.parametrize("args", [(), (-1,), (-1.0, [1])])
def test_a_plain_task_whose_submit_was_interrupted_is_not_waited_for(args: tuple[Any, ...], monkeypatch: Any):
    with daws.Cluster(1) as cluster:
        monkeypatch.setattr(sessions, "PlainTask", Interrupted(PlainTask, is_done=False))
        with pytest.raises(KeyboardInterrupt):
            cluster.submit(first_of, *args)
        assert not cluster._open().futures
        assert cluster.submit(first_of, *args).result(60) == (args[0] if args else None)


def first_of(*args: Any) -> Any:
    return args[0] if args else None


def test_an_interrupted_submit_leaves_no_counts(monkeypatch: Any):
    with daws.Cluster(1) as cluster:
        session = cluster._open()
        monkeypatch.setattr(sessions, "TaskSpec", Interrupted(TaskSpec, is_done=False))
        with pytest.raises(KeyboardInterrupt):
            cluster.options(outputs=2).submit(divmod, b"x" * 200_000, 2)
        assert not session.brake.sizes and not session.outputs


def test_a_second_ctrl_c_while_closing_leaves_no_future_pending(capfd: Any):
    cluster = daws.Cluster(1)
    session: Any = cluster._open()
    futures = [cluster.submit(time.sleep, 60) for _ in range(3)]
    stop, session.engine.stop = session.engine.stop, Interrupted(session.engine.stop, is_done=False)
    with pytest.raises(KeyboardInterrupt), cluster:
        raise ZeroDivisionError
    stop()
    assert [future.cancelled() for future in futures] == [True] * 3
    assert "3 tasks" in capfd.readouterr().err


def test_ctrl_c_while_many_are_cancelled_ends_all_of_them():
    with daws.Cluster(1) as cluster:
        session: Any = cluster._open()
        futures = [cluster.submit(time.sleep, 60) for _ in range(5)]
        session._end_cancelled = Interrupted(session._end_cancelled, is_done=False)
        with pytest.raises(KeyboardInterrupt):
            cluster.cancel(futures)
        assert [future.cancelled() for future in futures] == [True] * 5


def test_the_hook_of_the_program_is_back_when_the_last_cluster_is_closed():
    before = sys.unraisablehook
    with daws.Cluster(1), daws.Cluster(1):
        assert sys.unraisablehook is not before
    assert sys.unraisablehook is before


@pytest.mark.parametrize("is_done", [False, True])
def test_a_cluster_whose_waking_was_interrupted_can_be_woken(is_done: bool, tmp_path: Path):
    with daws.Cluster(1) as cluster:
        engine: Any = cluster._open().engine
        while engine.awake:
            time.sleep(0.01)
        call, engine._call = engine._call, Interrupted(engine._call, is_done)
        with pytest.raises(KeyboardInterrupt):
            cluster.submit(Path.touch, tmp_path / "made")
        engine._call = call
    assert (tmp_path / "made").exists()


def test_ctrl_c_in_a_callback_of_a_future_that_has_ended_is_raised():
    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with daws.Cluster(1) as cluster:
        future = cluster.submit(abs, -1)
        future.result(60)
        with pytest.raises(KeyboardInterrupt):
            future.add_done_callback(stop)


class Shell:
    """IPython's shell, as far as a session asks for it."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Any] = {}
        self.events = self

    def register(self, event: str, callback: Any) -> None:
        self.callbacks[event] = callback


def test_an_interrupted_cell_of_a_notebook_cancels_the_tasks_that_it_has_submitted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with daws.Cluster(1) as cluster:
        before = cluster.submit(abs, -1)
        shell.callbacks["pre_run_cell"]()
        first = cluster.submit(time.sleep, 1000)
        shell.callbacks["post_run_cell"](SimpleNamespace(error_in_exec=ValueError()))
        assert not first.done()
        shell.callbacks["pre_run_cell"]()
        tasks = [cluster.submit(time.sleep, 1000) for _ in range(3)]
        shell.callbacks["post_run_cell"](SimpleNamespace(error_in_exec=KeyboardInterrupt()))
        assert [task.state for task in tasks] == ["cancelled"] * 3 and not first.done()
        assert "3 tasks that it had submitted are cancelled" in capsys.readouterr().err
        assert first.cancel() and before.result(60) == 1


def _waited_for(futures: list[daws.Future[Any]]) -> list[threading.Thread]:
    """Threads that wait for futures, whatever becomes of these."""

    def wait_for(future: daws.Future[Any]) -> None:
        with suppress(Exception):
            future.result()

    threads = [threading.Thread(target=wait_for, args=(future,), daemon=True) for future in futures]
    for thread in threads:
        thread.start()
    return threads


def test_ctrl_c_while_results_are_kept_closes_the_cluster_all_the_same(monkeypatch: pytest.MonkeyPatch):
    def interrupted(session: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sessions.Session, "_keep_results", interrupted)
    cluster = daws.Cluster(1)
    (waiter,) = _waited_for([cluster.submit(time.sleep, 1000)])
    engine = cluster._open().engine
    with pytest.raises(KeyboardInterrupt):
        cluster.close(cancel=True)
    waiter.join(30)
    assert engine._thread is None and not waiter.is_alive()


def test_callbacks_that_exit_while_a_cluster_is_closed_leave_no_thread_waiting():
    def leave(future: Any) -> None:
        sys.exit(3)

    cluster = daws.Cluster(1)
    futures = [cluster.submit(time.sleep, 1000) for _ in range(5)]
    for future in futures:
        future.add_done_callback(leave)
    waiters = _waited_for(futures)
    with suppress(SystemExit):
        cluster.close(cancel=True)
    for waiter in waiters:
        waiter.join(30)
    assert not any(waiter.is_alive() for waiter in waiters)
    assert all(future.done() for future in futures)
