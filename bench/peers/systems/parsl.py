"""Parsl: its high-throughput executor with worker processes, and its thread executor."""

from collections.abc import Callable
from typing import Any

from bench.peers.systems.base import TINY, System


class Parsl(System):
    name = "parsl"
    library = "parsl"
    package = "parsl"
    settings = "HighThroughputExecutor, one block of so many workers, 100 tasks sent ahead, no encryption, no log"

    def __init__(self, workers: int) -> None:
        import parsl
        from parsl.config import Config

        self.parsl = parsl
        self.kernel = parsl.load(
            Config(executors=[self._executor(workers)], strategy="none", initialize_logging=False, run_dir="parsl")
        )
        self.apps: dict[Callable[..., Any], Any] = {}

    def _executor(self, workers: int) -> Any:
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import LocalProvider

        return HighThroughputExecutor(
            address="127.0.0.1",
            max_workers_per_node=workers,
            cores_per_worker=0.01,  # as many as asked for, whatever the number of processors
            prefetch_capacity=100,
            encrypted=False,
            provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
        )

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        app = self.apps.get(function)
        if app is None:
            app = self.apps[function] = self.parsl.python_app(function)
        return app(*args)

    def close(self) -> None:
        self.kernel.cleanup()
        self.parsl.clear()


class ParslThreads(Parsl):
    name = "parsl-threads"
    settings = "ThreadPoolExecutor of so many threads, no log"
    does = TINY
    one_process = True

    def _executor(self, workers: int) -> Any:
        from parsl.executors import ThreadPoolExecutor

        return ThreadPoolExecutor(max_threads=workers)
