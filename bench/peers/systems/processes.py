"""`concurrent.futures.ProcessPoolExecutor`. It keeps no graph: the client does."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench.peers.systems.base import System
from bench.peers.tasks import increment


class Processes(System):
    name = "processes"
    library = "concurrent.futures"
    settings = "ProcessPoolExecutor(workers), workers forked"
    keeps_graph = False
    pending_count = 50_000

    def __init__(self, workers: int) -> None:
        self.executor = ProcessPoolExecutor(workers, mp_context=get_context("fork"))

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(function, *args)

    def map(self, items: Sequence[int], chunk: int | None) -> int:
        return sum(self.executor.map(increment, items, chunksize=chunk or 1))

    def close(self) -> None:
        self.executor.shutdown()
