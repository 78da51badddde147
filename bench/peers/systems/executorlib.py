"""executorlib on one node, with workers that stay, and looking for news as often as it can."""

from collections.abc import Callable
from typing import Any

from bench.peers.systems.base import System

REFRESH_S = 0.0001


class Executorlib(System):
    name = "executorlib"
    library = "executorlib"
    package = "executorlib"
    settings = "SingleNodeExecutor(workers), workers that stay, refreshed every 0.1 ms"

    def __init__(self, workers: int) -> None:
        from executorlib import SingleNodeExecutor

        self.executor = SingleNodeExecutor(
            max_workers=workers, block_allocation=True, hostname_localhost=True, refresh_rate=REFRESH_S
        )

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(function, *args)

    def close(self) -> None:
        self.executor.shutdown()
