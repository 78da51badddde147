"""Real nodes, stores and clients on the loopback: they come, go, leave and are killed, and no task is lost."""

import functools
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daws
from daws.client.connect import ConnectedCluster
from daws.client.gathering import gather
from daws.client.waiting import wait
from daws.model.errors import ClusterError, UnavailableError, UsageError
from daws.runtime.cluster import asking
from daws.runtime.cluster.asking import ask
from daws.workers.errors import RemoteError
from tests.unit.client.inner_jobs import fibonacci
from tests.unit.runtime.cluster.machines import (
    DEADLINE_S,
    Machines,
    block,
    functions_here,
    leaves_sign,
    mixed,
    modes_of,
    reads_late,
    shout,
    until,
    wait_for_file,
)
from tests.valkey import LocalServer


@pytest.fixture(scope="module", params=["embedded", "valkey", "valkey in 7 shards"])
def three(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Machines]:
    """Three nodes that stay, around each kind of store."""
    folder = tmp_path_factory.mktemp("three")
    with ExitStack() as stack:
        url, shards = "embedded", 0
        if request.param != "embedded":
            server = LocalServer(folder / "server")
            stack.callback(server.kill)
            url, shards = server.url, 7 if "shards" in request.param else 1
        machines = stack.enter_context(Machines(folder, store=url, store_shards=shards))
        for _ in range(3):
            machines.node()
        machines.wait_for(3)
        yield machines


@pytest.fixture
def cluster(three: Machines) -> Iterator[ConnectedCluster]:
    with three.connect() as cluster:
        yield cluster


def test_tasks_objects_and_what_they_need(cluster: ConnectedCluster):
    assert gather([cluster.submit(pow, 2, number) for number in range(50)], timeout=DEADLINE_S) == [
        2**number for number in range(50)
    ]
    blocks = [cluster.submit(block, number) for number in range(12)]
    sums = [cluster.submit(mixed, *blocks[low : low + 4]) for low in range(0, 12, 4)]
    assert cluster.submit(mixed, *sums).result(DEADLINE_S) == block(sum(range(12)))
    assert blocks[7].result(DEADLINE_S) == block(7)
    assert cluster._nodes == cluster.workers == 3


def test_objects_of_all_sizes_go_between_nodes_of_threads_and_of_processes(tmp_path: Path):
    with Machines(tmp_path, lease_s=30.0) as machines:  # none is to be missed, however busy the machine is
        machines.node(2)
        machines.node(2, kind="processes")
        machines.wait_for(2)
        with machines.connect() as cluster:
            for size_bytes in (1_000, 30_000, 300_000):
                blocks = [cluster.submit(block, number, size_bytes, 0.05) for number in range(12)]
                sums = [cluster.submit(mixed, *blocks[low::3]) for low in range(3)]
                assert cluster.submit(mixed, *sums).result(DEADLINE_S) == block(sum(range(12)), size_bytes)
                assert blocks[7].result(DEADLINE_S) == block(7, size_bytes)


@pytest.mark.parametrize("mode", [0o755, 0o600])
def test_files_keep_their_modes_wherever_they_go(cluster: ConnectedCluster, mode: int):
    sizes = (10, 10_000, 300_000)  # inside messages, on the links of nodes, by streams
    line = "; ".join(f"head -c {size} /dev/zero > {size}; chmod {mode:o} {size}" for size in sizes)
    made = cluster.run(line, outputs=[str(size) for size in sizes])
    seen = [cluster.submit(modes_of, *made.outputs.values()) for _ in range(9)]
    assert gather(seen, timeout=DEADLINE_S) == [[mode] * 3] * 9
    assert modes_of(*[one.result(DEADLINE_S) for one in made.outputs.values()]) == [mode] * 3


def test_what_is_put_in_lies_on_two_nodes(cluster: ConnectedCluster):
    data = bytes(300_000)
    put = cluster.put(data)
    assert cluster.submit(len, put).result(DEADLINE_S) == len(data)
    session = cluster._open()
    assert len(set(session.stored[put.task][0].places)) == 2
    assert put.result(DEADLINE_S) == data


def element(array: Any, at: int) -> float:
    return float(array[at])


def test_large_arguments_are_sent_once_and_never_stale(cluster: ConnectedCluster):
    array = np.zeros(200_000)
    made = [cluster.submit(element, array, 100_000) for _ in range(20)]
    assert len(cluster._joined.large) == 1
    array[100_000] = 1
    made.append(cluster.submit(element, {"a": array}["a"], 100_000))
    made.append(cluster.submit(functools.partial(element, array), 100_000))
    assert gather(made, timeout=DEADLINE_S) == [0] * 20 + [1, 1]
    assert cluster.submit(sum, [*range(300_000)]).result(DEADLINE_S) == sum(range(300_000))
    until(lambda: not len(cluster._joined.large))


def test_large_arguments_may_be_submitted_before_there_are_nodes(tmp_path: Path):
    with Machines(tmp_path) as machines, machines.connect() as cluster:
        made = [cluster.submit(element, np.full(100_000, 7.0), 5), cluster.submit(len, b"x" * 500_000)]
        machines.node()
        assert gather(made, timeout=DEADLINE_S) == [7, 500_000]


def test_a_failure_travels_whole(cluster: ConnectedCluster):
    future = cluster.submit(int, "no number")
    with pytest.raises(ValueError, match="no number") as caught:
        future.result(DEADLINE_S)
    assert isinstance(caught.value.__cause__, RemoteError) or "no number" in str(caught.value)


def test_tasks_that_create_tasks(cluster: ConnectedCluster):
    assert cluster.submit(fibonacci, 7).result(DEADLINE_S) == 13


def test_what_tasks_print_appears_here(three: Machines, capfd: pytest.CaptureFixture[str]):
    late = three.node(1, "processes")
    three.wait_for(4)
    with three.connect() as cluster:
        assert gather([cluster.submit(shout, "hello") for _ in range(40)], timeout=DEADLINE_S) == ["HELLO"] * 40
        nested = cluster.submit(nested_print)
        assert nested.result(DEADLINE_S) is None
        found = ""
        while found.count("hello\n") < 40 or "part of a nest\n" not in found:
            found += capfd.readouterr().out
    last = max(three.members().nodes)
    ask(three.folder, lambda tool: asking.drain(tool, last, 30.0))
    assert late.wait() == 0


def nested_print() -> None:
    daws.current().submit(print, "part", "of", "a", "nest").result()


def test_what_tasks_log_is_handled_here(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with Machines(tmp_path) as machines:
        machines.node(1, "processes")
        machines.wait_for(1)
        with machines.connect() as one, machines.connect() as other:
            for cluster, level in ((one, logging.INFO), (other, logging.WARNING), (one, logging.INFO)):
                caplog.set_level(level, "tests.of.logs")
                cluster.submit(nested_log).result(DEADLINE_S)
            until(lambda: len(caplog.messages) >= 5)
    assert caplog.messages == ["told", "warned", "warned", "told", "warned"]


def nested_log() -> None:
    daws.current().submit(log_twice).result()


def log_twice() -> None:
    logging.getLogger("tests.of.logs").info("told")
    logging.getLogger("tests.of.logs").warning("warned")


def test_a_cancelled_task_is_stopped_everywhere(cluster: ConnectedCluster, tmp_path: Path):
    running = [cluster.submit(wait_for_file, str(tmp_path / "never")) for _ in range(3)]
    below = cluster.submit(abs, running[0])
    waiting = cluster.submit(abs, -1)
    cluster.cancel(running)
    until(lambda: all(one.done() for one in (*running, below)))
    assert all(one.cancelled() for one in (*running, below))
    (tmp_path / "never").touch()
    assert waiting.result(DEADLINE_S) == 1


def test_another_strategy_for_all(cluster: ConnectedCluster):
    cluster.use_strategy("mlb")
    assert cluster.submit(abs, -3).result(DEADLINE_S) == 3
    cluster.use_strategy("daws")
    assert [one.node for one in cluster.counters()] == sorted(cluster._joined.engine.members.nodes)


def test_two_clients_do_not_disturb_each_other(three: Machines):
    with three.connect() as one, three.connect() as other:
        mine = [one.submit(abs, -number) for number in range(100)]
        theirs = [other.submit(block, number) for number in range(20)]
        assert gather(mine, timeout=DEADLINE_S) == list(range(100))
        assert gather(theirs, timeout=DEADLINE_S) == [block(number) for number in range(20)]


def bring(data: bytes) -> int:
    """Runs a function of its own, with the data in it."""
    return int(daws.current().submit(lambda: len(data)).result())


def test_nodes_keep_nothing_of_sessions_that_have_ended(three: Machines):
    for number in range(5):
        with three.connect() as cluster:
            data = bytes([number]) * 1000
            assert gather([cluster.submit(lambda data=data: len(data)) for _ in range(8)]) == [1000] * 8
            assert cluster.submit(bring, data).result() == 1000

    with three.connect() as cluster:

        def is_little_left() -> bool:
            kept = dict(gather([cluster.submit(functions_here) for _ in range(12)]))
            return len(kept) == 3 and max(kept.values()) <= 4  # this function, and modules

        until(is_little_left)


def leave_behind(folder: str, count: int) -> None:
    """Submits tasks with a function of its own, and does not wait for them."""

    def leave_sign(number: int) -> None:
        time.sleep(0.2)
        Path(folder, str(number)).touch()

    for number in range(count):
        daws.current().submit(leave_sign, number)


def test_what_nobody_waits_for_finds_its_function_after_its_session_has_ended(three: Machines, tmp_path: Path):
    with three.connect() as cluster:
        cluster.submit(leave_behind, str(tmp_path), 15).result()
    with three.connect() as other:  # so that nodes hear of an end
        assert other.submit(abs, -1).result() == 1
    until(lambda: len(list(tmp_path.iterdir())) == 15)


def test_sessions_are_listed_kept_and_gone_on_with(three: Machines):
    with three.connect("work", keep=True) as cluster:
        for number in range(10):
            cluster.submit(block, number)
    with three.connect("work") as again:
        assert gather(again.futures(), timeout=DEADLINE_S) == [block(number) for number in range(10)]
        more = again.submit(abs, -5)
        assert more.result(DEADLINE_S) == 5
        again.detach()
    (info,) = [one for one in ask(three.folder, asking.sessions) if one.name == "work"]
    assert (info.done, info.attached, info.kept) == (11, False, True)
    ask(three.folder, lambda tool: asking.end_session(tool, "work"))
    with three.connect("work") as empty:
        assert empty.futures() == []


def test_leaving_waits_or_cancels_and_says_so(three: Machines, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    with three.connect() as cluster:
        for number in range(9):
            cluster.submit(leaves_sign, str(tmp_path / str(number)))
    assert len(list(tmp_path.iterdir())) == 9
    with pytest.raises(ValueError), three.connect() as cluster:
        pending = [cluster.submit(wait_for_file, str(tmp_path / "gate")) for _ in range(5)]
        raise ValueError("on purpose")
    (tmp_path / "gate").touch()  # threads cannot be stopped
    assert all(future.done() for future in pending)
    assert "daws: 5 tasks were cancelled: ValueError: on purpose\n" in capfd.readouterr().err


def test_items_of_maps_that_failed_and_that_nobody_saw_are_told(three: Machines, capfd: pytest.CaptureFixture[str]):
    with three.connect() as cluster:
        cluster.map(divmod, range(300), [0] * 300, chunk=30)
    said = capfd.readouterr().err
    assert "daws: 300 items of maps failed and nobody asked for the result: ZeroDivisionError: " in said
    with three.connect() as cluster:
        ended = daws.progress(cluster.map(divmod, range(300), [0, 1] * 150, chunk=30))
        assert sum(item.state == "failed" for item in ended) == 150
    assert "nobody asked" not in capfd.readouterr().err


def test_a_client_that_is_killed_leaves_a_kept_session_that_goes_on(three: Machines, tmp_path: Path):
    script = textwrap.dedent(
        f"""
        import os, signal, daws
        from tests.unit.runtime.cluster.machines import block, mixed
        cluster = daws.connect({str(three.folder)!r}, session="killed", keep=True)
        blocks = [cluster.submit(block, number, 80_000, 0.01) for number in range(30)]
        total = cluster.submit(mixed, *blocks)
        blocks[0].result(60)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=DEADLINE_S)
    assert ended.returncode == -signal.SIGKILL
    with three.connect("killed") as again:
        *blocks, total = again.futures()
        assert total.result(DEADLINE_S) == block(sum(range(30)))
        assert blocks[3].result(DEADLINE_S) == block(3)


def test_wrong_use_is_refused_in_a_line(three: Machines, tmp_path: Path):
    with pytest.raises(UsageError, match="give the session a name"):
        three.connect(keep=True)
    with (
        three.connect(session="mine"),
        pytest.raises(UnavailableError, match="in use by another client; it is free when"),
    ):
        three.connect(session="mine")
    with pytest.raises(ClusterError, match="there is no"):
        Machines.connect(_Folder(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(UnavailableError, match="no node 77"):
        ask(three.folder, lambda tool: asking.drain(tool, 77, 1.0))


class _Folder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder


# -- nodes that come and go --------------------------------------------------------------------------------------------


def test_a_node_that_joins_late_gets_work_and_one_that_is_drained_leaves_none_behind(tmp_path: Path):
    with Machines(tmp_path) as machines:
        first = machines.node()
        (number,) = machines.wait_for(1).nodes
        with machines.connect() as cluster:
            blocks = [cluster.submit(block, index, 80_000, 0.02) for index in range(60)]
            machines.node()
            machines.wait_for(2)
            ask(machines.folder, lambda tool: asking.drain(tool, number, 5.0))
            assert first.wait() == 0
            assert machines.wait_for(1).nodes != (number,)
            sums = [cluster.submit(mixed, *blocks[low : low + 6]) for low in range(0, 60, 6)]
            expected = [block(sum(range(low, low + 6))) for low in range(0, 60, 6)]
            assert gather(sums, timeout=DEADLINE_S) == expected
            assert gather(blocks, timeout=DEADLINE_S) == [block(index) for index in range(60)]


def counted_block(folder: str, number: int) -> bytes:
    """Leaves a file for each time that it was called."""
    handle, _ = tempfile.mkstemp(dir=folder)
    os.close(handle)
    return block(number, 200_000)


@pytest.mark.parametrize("store", ["embedded", "valkey", "valkey in 5 shards"])
def test_a_drain_hands_over_what_is_still_needed(tmp_path: Path, store: str):
    """Two of three nodes leave one after the other: what was put in is still there, and nothing is made again."""
    runs = tmp_path / "runs"
    runs.mkdir()
    with ExitStack() as stack:
        url, shards = "embedded", 0
        if store != "embedded":
            server = LocalServer(tmp_path / "server")
            stack.callback(server.kill)
            url, shards = server.url, 5 if "shards" in store else 1
        # Nobody is killed here: leases that a busy machine does not break.
        machines = stack.enter_context(Machines(tmp_path, lease_s=30.0, store=url, store_shards=shards))
        nodes = {}
        for count in range(1, 4):
            before = machines.members().nodes
            process = machines.node()
            (number,) = set(machines.wait_for(count).nodes) - set(before)
            nodes[number] = process
        with machines.connect() as cluster:
            data = cluster.put(block(1, 300_000))
            blocks = [cluster.submit(counted_block, str(runs), number) for number in range(12)]
            assert not wait(blocks, timeout=DEADLINE_S).not_done
            for left, number in enumerate([*nodes][:2]):
                ask(machines.folder, partial(asking.drain, node=number, within_s=DEADLINE_S))
                assert nodes[number].wait() == 0
                machines.wait_for(2 - left)
            assert cluster.submit(len, data).result(DEADLINE_S) == 300_000
            assert gather(blocks, timeout=DEADLINE_S) == [block(number, 200_000) for number in range(12)]
            assert len(list(runs.iterdir())) == 12


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_is_killed_at_any_time_costs_no_task(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    with Machines(tmp_path) as machines:
        nodes = [machines.node(kind="threads" if seed else "processes") for _ in range(3)]
        machines.wait_for(3)
        with machines.connect() as cluster:
            data = cluster.put(block(1, 200_000))
            blocks = [cluster.submit(block, number, 80_000, 0.01) for number in range(80)]
            sums = [cluster.submit(mixed, *blocks[low : low + 5]) for low in range(76)]
            total = cluster.submit(mixed, *sums)
            seen = cluster.submit(len, data)
            gather(blocks[: rng.randrange(1, 60)], timeout=DEADLINE_S)
            nodes[rng.randrange(3)].kill()
            late = cluster.submit(mixed, *blocks[:3])
            expected = [sum(range(low, low + 5)) for low in range(76)]
            assert total.result(DEADLINE_S)[0] == sum(expected) % 251
            assert seen.result(DEADLINE_S) == 200_000
            assert late.result(DEADLINE_S)[0] == 3
            assert [one[0] for one in gather(sums, timeout=DEADLINE_S)] == [one % 251 for one in expected]
            assert gather(blocks, timeout=DEADLINE_S) == [block(number) for number in range(80)]
            assert data.result(DEADLINE_S) == block(1, 200_000)


@pytest.mark.parametrize("kind", ["embedded", "valkey"])
def test_what_a_task_of_a_task_made_may_be_lost_before_it_is_read(tmp_path: Path, kind: str):
    with ExitStack() as stack:
        url = "embedded"
        if kind == "valkey":
            server = LocalServer(tmp_path / "server")
            stack.callback(server.kill)
            url = server.url
        machines = stack.enter_context(Machines(tmp_path, store=url))
        for _ in range(2):
            machines.node()
        machines.wait_for(2)
        cluster = stack.enter_context(machines.connect())
        creator = cluster.submit(reads_late, str(tmp_path))
        made = tmp_path / "made"
        until(made.exists)
        # The other executor of this cluster is the creator's: what ran before this one is in the store as well.
        assert cluster.submit(abs, -1).result(DEADLINE_S) == 1
        os.kill(int(made.read_text()), signal.SIGKILL)
        machines.wait_for(1)
        (tmp_path / "go").touch()
        assert creator.result(DEADLINE_S) == 200_000


def test_a_node_that_was_cut_off_begins_anew_and_commits_nothing_twice(tmp_path: Path):
    with Machines(tmp_path) as machines:
        nodes = [machines.node() for _ in range(2)]
        before = set(machines.wait_for(2).nodes)
        with machines.connect() as cluster:
            tasks = [cluster.submit(block, number, 80_000, 0.05) for number in range(40)]
            tasks[0].result(DEADLINE_S)
            nodes[0].signal(signal.SIGSTOP)
            machines.wait_for(1)
            nodes[0].signal(signal.SIGCONT)
            after = set(machines.wait_for(2).nodes)
            assert after != before, "the one that was cut off has a new number"
            assert gather(tasks, timeout=DEADLINE_S) == [block(number) for number in range(40)]


def test_results_that_went_with_a_node_are_made_again_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Machines(tmp_path) as machines:
        nodes = [machines.node() for _ in range(2)]
        machines.wait_for(2)
        with machines.connect() as cluster:
            tasks = [cluster.submit(block, number, 80_000, 0.01) for number in range(40)]
            wait(tasks, timeout=DEADLINE_S)
            nodes[0].kill()
            (left,) = machines.wait_for(1).nodes
            session = cluster._joined
            results = session.results
            until(lambda: session.engine.members.nodes == (left,))
            lost = {one.object for one in tasks if results.places(one.object) != (left,)}
            assert len(lost) > 5
            made_again = []

            def load(object_: int) -> object:
                made_again.append({*results._again})
                return results.load(object_)

            monkeypatch.setattr(session, "load", load)
            assert cluster.gather(tasks) == [block(number) for number in range(40)]
            assert made_again[0] == lost and not results._again


def test_the_last_node_dies_and_the_next_one_takes_over(tmp_path: Path):
    with Machines(tmp_path) as machines:
        node = machines.node()
        machines.wait_for(1)
        with machines.connect() as cluster:
            tasks = [cluster.submit(block, number, 80_000, 0.02) for number in range(30)]
            tasks[3].result(DEADLINE_S)
            node.kill()
            machines.wait_for(0)
            more = cluster.submit(abs, -8)
            machines.node()
            assert gather(tasks, timeout=DEADLINE_S) == [block(number) for number in range(30)]
            assert more.result(DEADLINE_S) == 8


def test_everything_is_killed_and_a_kept_session_goes_on(tmp_path: Path):
    with Machines(tmp_path) as machines:
        machines.node()
        machines.wait_for(1)
        with machines.connect("work", keep=True) as cluster:
            blocks = [cluster.submit(block, number, 80_000, 0.02) for number in range(30)]
            total = cluster.submit(mixed, *blocks)
            blocks[5].result(DEADLINE_S)
            for process in machines.processes:
                process.kill()
                process.wait()
            machines.start("store")
            machines.node()
            assert total.result(DEADLINE_S) == block(sum(range(30)))
            cluster.detach()
        for process in machines.processes:
            process.kill()
            process.wait()
        machines.node()  # which starts the store
        with machines.connect("work") as again:
            assert gather(again.futures(), timeout=DEADLINE_S)[-1] == block(sum(range(30)))
        with machines.connect() as last:
            assert last.submit(abs, -1).result(DEADLINE_S) == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_store_that_is_killed_comes_back_with_all_that_it_knew(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    with Machines(tmp_path) as machines:
        for _ in range(2):
            machines.node()
        machines.wait_for(2)
        with machines.connect() as cluster:
            blocks = [cluster.submit(block, number, 80_000, 0.01) for number in range(60)]
            gather(blocks[: rng.randrange(1, 50)], timeout=DEADLINE_S)
            machines.store.kill()
            machines.store.wait()
            sums = [cluster.submit(mixed, *blocks[low : low + 5]) for low in range(50)]
            assert [one[0] for one in gather(sums, timeout=DEADLINE_S)] == [(5 * low + 10) % 251 for low in range(50)]
            assert gather(blocks, timeout=DEADLINE_S) == [block(number) for number in range(60)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_the_end_of_the_terminal_are_a_drain(tmp_path: Path, number: signal.Signals):
    with Machines(tmp_path) as machines:
        node = machines.node()
        machines.wait_for(1)
        node.signal(number)
        assert node.wait() == 0
        assert not machines.members().infos


def test_what_fails_because_of_another_raises_what_that_raised(cluster: ConnectedCluster):
    late = cluster.submit(int, "no number")
    child = cluster.submit(abs, cluster.submit(abs, cluster.submit(int, "no number")))
    nested = cluster.submit(nested_chain)
    for one in (child, cluster.submit(abs, late)):
        with pytest.raises(ValueError, match="no number") as raised:
            one.result(DEADLINE_S)
        assert "invalid literal" in str(raised.value.__cause__)
        assert f"task {one.task} (abs) was not run: it needs" in raised.value.__notes__[0]
    assert nested.result(DEADLINE_S) == ["ValueError"] * 2


def nested_chain() -> list[str]:
    here = daws.current()
    bad = here.submit(int, "no number")
    return [type(here.submit(abs, one).exception()).__name__ for one in (bad, here.submit(abs, bad))]


def test_who_goes_on_with_a_session_finds_what_was_raised(three: Machines):
    with three.connect("chains", keep=True) as before:
        child = before.submit(abs, before.submit(int, "no number"))
        wait([child], DEADLINE_S)
        later = before.submit(abs, before.submit(abs, child))
        wait([later], DEADLINE_S)
    with three.connect("chains") as after:
        errors = [one.exception(DEADLINE_S) for one in after.futures()]
    assert [type(one) for one in errors] == [ValueError] * 4
    assert "was not run" in errors[-1].__notes__[0]  # type: ignore[union-attr]
