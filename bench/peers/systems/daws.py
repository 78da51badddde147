"""daws itself: with worker processes, and with threads in the client for those who compare that."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import daws
from bench.peers.systems.base import EVERYTHING, TINY, System
from bench.peers.tasks import TRUE, increment


class Daws(System):
    name = "daws"
    library = "daws"
    settings = "Cluster(workers)"
    does = EVERYTHING | {"million"}
    is_peer = False
    pending_count = 100_000
    chunks = (None, 1_000, 10_000)
    kind: Literal["processes", "threads"] = "processes"

    def __init__(self, workers: int) -> None:
        self.cluster = daws.Cluster(workers, kind=self.kind)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.cluster.submit(function, *args)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.cluster.gather(futures)
        return found

    def map(self, items: Sequence[int], chunk: int | None) -> int:
        return sum(self.cluster.map(increment, items, chunk=chunk))

    def commands(self, count: int) -> None:
        command: Callable[..., Any] | None = getattr(self.cluster, "command", None)
        if command is None:
            return super().commands(count)
        self.gather([command([TRUE]) for _ in range(count)])
        return None

    def close(self) -> None:
        self.cluster.close()


class DawsThreads(Daws):
    name = "daws-threads"
    settings = 'Cluster(workers, kind="threads")'
    does = TINY
    one_process = True
    kind = "threads"


class DawsNodes(Daws):
    """A private cluster: its nodes and its store are processes, and all they say is a message."""

    name = "daws-nodes"
    settings = "Cluster(workers=1, nodes=workers)"
    does = EVERYTHING
    pending_count = 20_000

    def __init__(self, workers: int) -> None:
        self.cluster = daws.Cluster(1, nodes=workers)
