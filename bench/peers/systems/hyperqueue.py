"""HyperQueue. It runs programs; a Python function is a program that starts Python. It has no futures, but jobs of many.

Its client asks once a second whether a job has ended. So that this does not count, a last task that waits for all
others opens a named pipe on which the client waits.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.systems.base import System
from bench.peers.tasks import TRUE, no_op

QUIET: dict[str, Any] = {"stdout": None, "stderr": None}


class HyperQueue(System):
    name = "hyperqueue"
    library = "hyperqueue"
    package = "hyperqueue"
    settings = "LocalCluster with one worker of so many cores, no output files, one job for all tasks"
    does = frozenset({"futures", "commands", "script"})

    def __init__(self, workers: int) -> None:
        from hyperqueue import LocalCluster
        from hyperqueue.cluster import WorkerConfig

        self.cluster = LocalCluster(worker_config=WorkerConfig(cores=workers))
        self.client = self.cluster.client()

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        assert function is no_op and not args
        return None

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        self._run(lambda job: job.function(no_op, **QUIET), len(futures))
        return list(futures)

    def commands(self, count: int) -> None:
        self._run(lambda job: job.program([TRUE], **QUIET), count)

    def _run(self, add: Callable[[Any], Any], count: int) -> None:
        from hyperqueue import Job

        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "ended")
            os.mkfifo(pipe)
            job = Job(max_fails=None)
            tasks = [add(job) for _ in range(count)]
            job.program(["/bin/sh", "-c", f"echo > {pipe}"], deps=tasks, **QUIET)
            submitted = self.client.submit(job)
            with open(pipe, "rb") as ended:
                ended.read()
            if self.client.get_failed_tasks(submitted):
                raise RuntimeError("a task of HyperQueue failed")

    def close(self) -> None:
        self.cluster.stop()
