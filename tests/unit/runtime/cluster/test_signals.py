"""Signals of batch systems and service managers: they go to every process of a node, often twice."""

import multiprocessing
import os
import signal
from pathlib import Path

from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines
from tests.unit.workers.test_vanishing import descendants


def open_gate(begun: str, gate: str) -> str:
    Path(begun).write_text("begun")  # a pipe: returns when the test reads it
    return Path(gate).read_text()


def terminate_children() -> list[int | None]:
    """Programs and processes that a task starts obey SIGTERM, although the worker itself does not."""
    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    process.terminate()
    process.join()
    pid = os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
    os.kill(pid, signal.SIGTERM)
    return [process.exitcode, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]


def test_two_signals_to_all_processes_of_a_node_are_one_order_to_leave(tmp_path: Path):
    begun, gate = str(tmp_path / "begun"), str(tmp_path / "gate")
    os.mkfifo(begun)
    os.mkfifo(gate)
    with Machines(tmp_path) as machines:
        node = machines.node(kind="processes")
        machines.wait_for(1)
        with machines.connect() as cluster:
            future = cluster.submit(open_gate, begun, gate)
            Path(begun).read_text()
            family = [node.pid, *descendants(node.pid)]
            assert len(family) >= 3, "the node, its fork server and a worker"
            for _ in range(2):
                for pid in family:
                    os.kill(pid, signal.SIGTERM)
            Path(gate).write_text("finished")
            assert future.result(DEADLINE_S) == "finished"
            assert node.wait() == 0
            assert not machines.members().infos


def test_what_tasks_start_still_obeys_sigterm(tmp_path: Path):
    with Machines(tmp_path) as machines:
        machines.node(kind="processes")
        with machines.connect() as cluster:
            assert cluster.submit(terminate_children).result(DEADLINE_S) == [-signal.SIGTERM, -signal.SIGTERM]
