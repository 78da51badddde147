"""Dask distributed. Graphs are given whole, which is its best way; other tasks one by one."""

from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.systems.base import Parents, System
from bench.peers.tasks import deepest

SETTINGS = {
    # What costs time and is of no use here: sampling of what tasks do, spilling, and stealing between two workers.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


class Dask(System):
    name = "dask"
    library = "distributed"
    package = "distributed"
    settings = (
        "LocalCluster(workers, 1 thread each, no dashboard), no profiling, spilling or stealing; graphs given whole"
    )

    def __init__(self, workers: int) -> None:
        import dask
        from distributed import Client, LocalCluster

        dask.config.set(SETTINGS)
        self.cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        )
        self.client = Client(self.cluster)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.client.submit(function, *args, pure=False)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.client.gather(list(futures))
        return found

    def run_graph(self, parents: Parents, sinks: Sequence[int]) -> list[int]:
        from dask import delayed

        task = delayed(deepest, pure=False, traverse=False)
        tasks: list[Any] = []
        for above in parents:
            tasks.append(task(*[tasks[one] for one in above]))
        return self.gather(self.client.compute([tasks[sink] for sink in sinks], optimize_graph=False))

    def close(self) -> None:
        self.client.close()
        self.cluster.close()
