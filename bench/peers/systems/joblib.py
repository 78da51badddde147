"""joblib's executor, loky. Futures come from the executor; `Parallel` itself was slower at `map`."""

from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.systems.base import System
from bench.peers.tasks import increment


class Joblib(System):
    name = "joblib"
    library = "joblib"
    package = "joblib"
    settings = "joblib's loky: get_reusable_executor(workers)"
    keeps_graph = False
    pending_count = 50_000

    def __init__(self, workers: int) -> None:
        from joblib.externals.loky import get_reusable_executor

        self.executor = get_reusable_executor(workers, timeout=None)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(function, *args)

    def map(self, items: Sequence[int], chunk: int | None) -> int:
        return sum(self.executor.map(increment, items, chunksize=chunk or 1))

    def close(self) -> None:
        self.executor.shutdown()
