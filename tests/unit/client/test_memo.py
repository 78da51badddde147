"""Results that are reused: by later clusters, as long as nothing has changed; and why a task ran again."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daws
from daws.client.brake import COUNTED_BYTES_MIN
from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.client.memo import MemoFuture
from daws.client.session import Session
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines, wait_for_file

Open = Callable[[], Cluster]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memo"


@pytest.fixture
def again(folder: Path) -> Iterator[Open]:
    """Makes a new cluster with the same folder; the one before is closed."""
    made: list[Cluster] = []

    def again() -> Cluster:
        close()
        made.append(Cluster(1, kind="threads", memo=folder))
        return made[-1]

    def close() -> None:
        while made:
            made.pop().close()

    yield again
    close()


def logged(path: str, value: Any) -> Any:
    """Says that it ran."""
    with open(path, "a") as file:
        file.write("ran\n")
    return value


def runs(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def two(x: int) -> tuple[int, int]:
    return x, -x


def odd(x: int) -> int:
    if x % 2 == 0:
        raise ValueError(f"{x} is even")
    return x


def made(text: str) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names["f"]


def test_a_result_is_found_by_the_next_cluster(again: Open, tmp_path: Path):
    path = tmp_path / "log"
    cluster = again()
    first = cluster.options(memo=True).submit(logged, str(path), {"a": [1, 2]})
    assert first.result() == {"a": [1, 2]} and first.memo == "ran: it never ran before"
    cluster = again()
    second = cluster.options(memo=True).submit(logged, str(path), {"a": [1, 2]})
    assert second.done() and second.result() == {"a": [1, 2]}
    assert second.memo is not None and second.memo.startswith("reused: ")
    assert "reused: " in str(second.explain())
    assert runs(path) == 1
    assert (cluster.memo.reused, cluster.memo.ran) == (1, 0)
    assert cluster.submit(logged, str(path), 5).memo is None, "without memo nobody looks"


def test_why_a_task_ran_again(again: Open, folder: Path):
    cluster = again()

    def why(*args: Any, text: str = "def f(x, y): return x + y", **options: Any) -> str:
        nonlocal cluster
        cluster = again()
        future = cluster.options(memo=True, **options).submit(made(text), *args)
        assert future.result() == args[0] + args[1]
        assert future.memo is not None
        return str(future.memo)

    assert why(1, 2) == "ran: it never ran before"
    assert why(1, 2).startswith("reused")
    assert why(1, 3) == "ran: argument 2 changed"
    assert why(5, 7) == "ran: it never ran with these arguments"
    assert why(1, 2, text="def f(x, y): return y + x") == "ran: the function changed"
    assert why(1, 2, text="# moved\ndef f(x, y): return x + y").startswith("reused"), "the first version is there still"
    assert why(1, 2, text="def f(x, y): return y + x", version="v2") == "ran: its memo version changed"
    cluster.close()
    for path in folder.glob("*/*.memo"):
        path.unlink()
    assert why(1, 2) == "ran: its result is not there any more"
    cluster.close()
    (path,) = folder.glob("*/*.memo")
    path.write_bytes(path.read_bytes()[:-1])
    assert why(1, 2) == "ran: its result was damaged: it was cut off"
    assert why(1, 2).startswith("reused")


def test_modules_of_ones_own_count(again: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "memo_below.py").write_text("K = 1\n")
    (tmp_path / "memo_above.py").write_text("import memo_below\ndef f(x): return x + memo_below.K\n")
    above = importlib.import_module("memo_above")
    try:
        assert again().options(memo=True).submit(above.f, 1).result() == 2
        assert str(again().options(memo=True).submit(above.f, 1).memo).startswith("reused")
        (tmp_path / "memo_below.py").write_text("K = 10\n")
        importlib.reload(sys.modules["memo_below"])
        future = again().options(memo=True).submit(above.f, 1)
        assert (future.result(), future.memo) == (11, "ran: module memo_below changed")
    finally:
        del sys.modules["memo_above"], sys.modules["memo_below"]


def test_graphs_are_looked_up_before_anything_runs(again: Open, tmp_path: Path):
    path = str(tmp_path / "log")

    def graph(cluster: Cluster, value: int) -> Any:
        first = cluster.options(memo=True).submit(logged, path, value)
        return first, cluster.options(memo=True).submit(logged, path, [first, 1])

    first, last = graph(again(), 3)
    assert last.result() == [3, 1]
    first, last = graph(again(), 3)
    assert (first.result(), last.result(), last.memo[:6]) == (3, [3, 1], "reused")
    assert runs(tmp_path / "log") == 2
    cluster = again()
    first, last = graph(cluster, 4)
    assert (last.result(), last.memo) == ([4, 1], "ran: argument 2 changed")
    plain = cluster.submit(logged, path, first)
    assert plain.result() == 4, "what was reused can be read by tasks without memo"


def test_results_of_tasks_without_memo(again: Open, tmp_path: Path):
    cluster = again()
    gate = tmp_path / "gate"
    pending = cluster.submit(wait_for_file, str(gate))
    future = cluster.options(memo=True).submit(str, pending)
    assert future.memo == "ran, and is not kept: argument 1 is the result of a task without memo"
    gate.touch()
    assert future.result() == str(os.getpid())
    put = cluster.put([1, 2])
    assert cluster.options(memo=True).submit(len, put).result() == 2
    assert str(again().options(memo=True).submit(len, [1, 2]).memo).startswith("reused"), (
        "what has ended counts as its value"
    )


def test_large_results_are_mapped_and_sent_on(again: Open):
    assert again().options(memo=True).submit(np.arange, 100_000).result().sum() == 4_999_950_000
    cluster = again()
    future = cluster.options(memo=True).submit(np.arange, 100_000)
    assert isinstance(future, MemoFuture)
    total = cluster.submit(np.sum, future)
    assert total.result() == 4_999_950_000
    assert cluster.submit(np.add, future, future).result()[-1] == 199_998
    array = future.result()
    assert array[-1] == 99_999
    array[-1] = 0  # its reader's own
    assert cluster.submit(np.sum, future).result() == 4_999_950_000, "also after somebody has read it"


def test_several_outputs(again: Open):
    first, second = again().options(outputs=2, memo=True).submit(two, 3)
    assert (first.result(), second.result()) == (3, -3)
    cluster = again()
    first, second = cluster.options(outputs=2, memo=True).submit(two, 3)
    assert (first.result(), second.result(), str(second.memo)[:6]) == (3, -3, "reused")
    one, other = (cluster.options(memo=True).submit(abs, which) for which in (first, second))
    assert (one.result(), other.result(), other.memo) == (3, 3, "ran: it never ran before")
    assert cluster.options(memo=True).submit(two, 3).result() == (3, -3), "one output is another call"


def test_map_looks_up_each_item(again: Open, tmp_path: Path):
    path = str(tmp_path / "log")
    mapped = again().options(memo=True).map(logged, [path] * 6, range(6), chunk=4)
    assert list(mapped) == [*range(6)]
    cluster = again()
    mapped = cluster.options(memo=True).map(logged, [path] * 9, range(1, 10))
    assert list(mapped) == [*range(1, 10)] and mapped[6] == 7 and len(mapped) == 9
    assert runs(tmp_path / "log") == 10
    assert (cluster.memo.reused, cluster.memo.ran) == (5, 4)
    assert "4 because argument 2 changed" in repr(cluster.memo)


def test_time_limits_and_estimates_are_those_of_items_as_in_any_map(again: Open, monkeypatch: pytest.MonkeyPatch):
    cluster = again()
    asked: list[Any] = []
    plain: Any = cluster._session
    submit = plain.submit_several

    def noted(*given: Any) -> Any:
        asked.append(given)
        return submit(*given)

    monkeypatch.setattr(plain, "submit_several", noted)
    limited = cluster.options(memo=True, timeout=DEADLINE_S)
    assert list(limited.map(abs, range(20))) == [*range(20)]
    assert [len(args[0]) for _, args, *_ in asked] == [1] * 20
    asked.clear()
    assert list(cluster.options(memo=True, expected=2).map(abs, range(20, 40), chunk=10)) == [*range(20, 40)]
    assert [options.estimate_ns for *_, options, _ in asked] == [20_000_000_000] * 2


def test_failures_are_not_kept(again: Open):
    for _ in range(2):
        cluster = again()
        with pytest.raises(ValueError, match="2 is even"):
            cluster.options(memo=True).submit(odd, 2).result()
        mapped = cluster.options(memo=True).map(odd, [1, 2, 3])
        assert (mapped[0], mapped[2]) == (1, 3)
        with pytest.raises(ValueError, match="2 is even"):
            mapped[1]
    assert (cluster.memo.reused, cluster.memo.ran) == (2, 2)


def test_the_same_call_twice_at_one_time(again: Open, tmp_path: Path):
    cluster = again()
    gate = tmp_path / "gate"
    first = cluster.submit(wait_for_file, str(gate))
    one, other = (cluster.options(memo=True).submit(pow, 2, 5) for _ in range(2))
    assert one is other
    gate.touch()
    assert one.result() == 32 and first.result()


def test_two_clients_at_one_time(folder: Path):
    with Cluster(1, kind="threads", memo=folder) as one, Cluster(1, kind="threads", memo=folder) as other:
        results = [[cluster.options(memo=True).submit(pow, at, 2) for at in range(40)] for cluster in (one, other)]
        assert [[future.result() for future in half] for half in results] == [[at * at for at in range(40)]] * 2
    with Cluster(1, kind="threads", memo=folder) as cluster:
        assert all(cluster.options(memo=True).submit(pow, at, 2).done() for at in range(40))


def test_tasks_with_a_decorator_and_files(again: Open, tmp_path: Path):
    path = tmp_path / "data"
    path.write_text("one two")

    @daws.task(memo=True)
    def words(file: daws.File) -> int:
        return len(file.read_text().split())

    with again():
        assert words(daws.File(path)).result() == 2
    os.utime(path, (5, 5))
    with again():
        future = words(daws.File(path))
        assert future.memo is not None and future.memo.startswith("reused")
        assert words.options(memo=False)(daws.File(path)).memo is None
        path.write_text("one two three")
        future = words(daws.File(path))
        assert (future.result(), future.memo) == (3, "ran: argument 1 changed")


def test_what_is_refused(again: Open, tmp_path: Path):
    with Cluster(1, kind="threads") as cluster:
        with pytest.raises(daws.UsageError, match=r"daws.Cluster\(memo="):
            cluster.options(memo=True).submit(pow, 2, 3)
        with pytest.raises(daws.UsageError, match=r"daws.Cluster\(memo="):
            cluster.options(memo=True).map(pow, [1], [2])
        with pytest.raises(daws.UsageError, match=r"daws.Cluster\(memo="):
            cluster.options(memo=True).run("true")
        with pytest.raises(daws.UsageError, match="name a folder"):
            _ = cluster.memo
    cluster = again()
    for wrong, cure in ({"memo": "2"}, "memo=True, version='2'"), ({"version": "2"}, "give memo=True"):
        with pytest.raises(daws.UsageError, match=cure):
            cluster.options(**wrong)  # type: ignore[call-overload]
    with pytest.raises(daws.UsageError, match=r"cluster\.options\(memo=True\)\.map"):
        cluster.map(pow, [1], [2], memo=True)  # type: ignore[call-overload]
    with pytest.raises(daws.UsageError, match="memo=3"):
        cluster.options(memo=3)  # type: ignore[call-overload]
    with pytest.raises(daws.UnpicklableError, match="argument 1"):
        cluster.options(memo=True).submit(id, threading.Lock())
    with pytest.raises(daws.UsageError, match="memo="):
        Cluster(1, memo=__file__)


def test_a_parameter_called_memo_is_the_functions_own(again: Open):
    cluster = again()
    future = cluster.submit(made("def f(x, memo): return x, memo"), 1, memo=True)
    assert future.result() == (1, True) and future.memo is None
    with pytest.raises(daws.UsageError, match=r"cluster\.options\(memo=True\)\.submit"):
        cluster.submit(pow, 2, exp=3, memo=True)


def test_a_full_disk_costs_no_result(again: Open, folder: Path, caplog: pytest.LogCaptureFixture):
    cluster = again()
    (folder / "calls").write_text("in the way, where a folder should be")
    assert [cluster.options(memo=True).submit(abs, -at).result() for at in range(3)] == [0, 1, 2]
    cluster.close()
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1 and "daws memo" in lines[0]


def test_the_environment_names_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAWS_MEMO", str(folder))
    with Cluster(1, kind="threads") as cluster:
        assert cluster.options(memo=True).submit(pow, 2, 3).result() == 8
    assert [*folder.glob("*/*.memo")]


def test_workers_and_nodes_of_their_own(folder: Path, tmp_path: Path):
    """Large results come from other processes."""
    for _ in range(2):
        with Cluster(1, nodes=2, memo=folder) as cluster:
            futures = [
                cluster.options(memo=True).submit(logged, str(tmp_path / "log"), bytes([at]) * 200_000)
                for at in range(4)
            ]
            assert [future.result()[-1] for future in futures] == [0, 1, 2, 3]
    assert runs(tmp_path / "log") == 4


def test_a_cluster_of_many_machines(folder: Path, tmp_path: Path):
    with Machines(tmp_path) as machines:
        machines.node()
        machines.wait_for(1)
        for _ in range(2):
            with daws.connect(machines.folder, memo=folder, timeout=DEADLINE_S) as cluster:
                small = cluster.options(memo=True).submit(logged, str(tmp_path / "log"), 7)
                large = cluster.options(memo=True, version="v1").submit(logged, str(tmp_path / "log"), bytes(200_000))
                read = cluster.submit(len, large)
                assert (small.result(DEADLINE_S), read.result(DEADLINE_S)) == (7, 200_000)
        assert small.memo is not None and large.memo is not None
        assert small.memo.startswith("reused") and large.memo.startswith("reused")
        assert runs(tmp_path / "log") == 2


def test_a_call_right_after_the_result_does_not_run_again(again: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """However soon it ended: here before the one who submitted it has come back."""
    cluster, ran, may_keep = again(), tmp_path / "ran", threading.Event()
    folder: Any = cluster._open().memo_tasks().folder
    keep, submit = folder.keep, Session.submit_several

    def ended(self: Session, *args: Any) -> Any:
        futures = submit(self, *args)
        futures[0].result(DEADLINE_S)
        return futures

    def later(*args: Any) -> Any:
        assert may_keep.wait(DEADLINE_S)
        return keep(*args)

    monkeypatch.setattr(folder, "keep", later)
    monkeypatch.setattr(Session, "submit_several", ended)
    first = cluster.options(memo=True).submit(logged, str(ran), 5)
    assert cluster.options(memo=True).submit(logged, str(ran), 5) is first
    may_keep.set()
    assert (first.result(), runs(ran)) == (5, 1)


def test_items_of_a_map_right_after_the_results_do_not_run_again(
    again: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cluster, ran, asked = again(), tmp_path / "ran", threading.Event()
    folder: Any = cluster._open().memo_tasks().folder
    keep, find = folder.keep, folder.find

    def later(*args: Any) -> Any:
        asked.wait(0.2)  # in vain, if whoever asks waits for us
        return keep(*args)

    def found(key: str) -> Any:
        try:
            return find(key)
        finally:
            asked.set()

    assert list(cluster.options(memo=True).map(logged, [str(ran)] * 3, range(3))) == [0, 1, 2]
    monkeypatch.setattr(folder, "keep", later)
    assert list(cluster.options(memo=True).map(logged, [str(ran)] * 3, range(3, 6))) == [3, 4, 5]
    monkeypatch.setattr(folder, "find", found)
    assert cluster.options(memo=True).submit(logged, str(ran), 4).result(DEADLINE_S) == 4
    assert list(cluster.options(memo=True).map(logged, [str(ran)] * 6, range(6))) == [*range(6)]
    assert runs(ran) == 6


@pytest.mark.parametrize("outputs", [1, 2])
def test_an_interrupted_call_leaves_nothing_behind(again: Open, monkeypatch: pytest.MonkeyPatch, outputs: int):
    cluster = again()
    session: Any = cluster._session
    seen: list[Any] = []

    def interrupt(*_: Any) -> None:
        seen.extend(*session.memo_tasks().running.values())  # as a callback would
        raise KeyboardInterrupt

    big = "x" * COUNTED_BYTES_MIN
    with monkeypatch.context() as patch:
        patch.setattr(session.brake, "add", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster.options(memo=True, outputs=outputs).submit(divmod if outputs == 2 else len, big)
    assert not session.watched and not session.memo_tasks().running and not session.outputs
    assert len(seen) == outputs
    for future in seen:
        with pytest.raises(TaskCancelledError, match="was not submitted after all: KeyboardInterrupt"):
            future.result(DEADLINE_S)
    assert cluster.options(memo=True).submit(len, big).result(DEADLINE_S) == len(big)


def test_two_threads_with_the_same_call_run_it_once(again: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cluster, ran, both = again(), tmp_path / "ran", threading.Barrier(2)
    folder: Any = cluster._open().memo_tasks().folder
    find = folder.find

    def found(key: str) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # in vain, if they do not look at the same time
        return find(key)

    monkeypatch.setattr(folder, "find", found)
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(cluster.options(memo=True).submit(logged, str(ran), 5).result()))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert (results, runs(ran)) == ([5, 5], 1)
