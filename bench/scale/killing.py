"""A node that is killed in the middle of a graph: what that costs beside the same graph undisturbed.

Every run of a task leaves a byte in a file when it begins, so that those are counted that ran again.
"""

import os
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

import daws
from bench.scale.ground import Ground
from bench.scale.runs import CONNECT_S, Case, Live
from daws.client.connect import ConnectedCluster
from daws.model.graph import Graph
from daws.workflows.emulated import Emulated

LOOK_S = 0.01
DETECTION_S = 10.0


class Loss(Struct, frozen=True):
    """Times in seconds. `detected_s` passed from the kill until the node was no member any more, `rerun` is how many
    runs there were beyond one for each task; the longest chain of tasks takes `path_s`, so what has to be done again
    can take as long, one task after the other."""

    tasks: int
    undisturbed_s: float
    killed_s: float
    detected_s: float
    rerun: int
    rerun_work_s: float
    path_s: float

    @property
    def cost_s(self) -> float:
        return self.killed_s - self.undisturbed_s

    @property
    def is_good(self) -> bool:
        return self.detected_s < DETECTION_S and self.cost_s <= self.detected_s + self.path_s

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "cost_s": self.cost_s}


class Noted(Emulated):
    """Leaves a byte in a file when it begins."""

    __slots__ = ("path",)

    def __init__(self, kind: str, path: str) -> None:
        super().__init__(kind)
        self.path = path

    def __call__(self, *given: object) -> object:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, b".")
        finally:
            os.close(file)
        return super().__call__(*given)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[type[Emulated], tuple[str, str]]:  # type: ignore[override]
        return Noted, (self.__name__, self.path)


class Watched(Live):
    def __init__(self, cluster: ConnectedCluster, graph: Graph, path: Path) -> None:
        super().__init__(cluster, graph)
        self._kinds = [Noted(kind, str(path)) for kind in graph.kinds]


def kill_one(ground: Ground, case: Case) -> Loss:
    """The last node of the ground is not there afterwards."""
    graph = case.graph(ground.nodes, ground.executors)
    undisturbed_s, _, _ = carried_out(ground, graph, case, ground.folder / "undisturbed", kill=False)
    killed_s, detected_s, runs = carried_out(ground, graph, case, ground.folder / "killed", kill=True)
    rerun = runs - graph.task_count
    return Loss(
        tasks=graph.task_count,
        undisturbed_s=undisturbed_s,
        killed_s=killed_s,
        detected_s=detected_s,
        rerun=rerun,
        rerun_work_s=rerun * graph.total_length_ns / graph.task_count / 1e9,
        path_s=graph.critical_path_ns() / 1e9,
    )


def carried_out(ground: Ground, graph: Graph, case: Case, path: Path, kill: bool) -> tuple[float, float, int]:
    """How long it took, how long the node was missed after its death, and how many runs there were."""
    with daws.connect(ground.cluster, timeout=CONNECT_S) as cluster:
        cluster.use_strategy(case.strategy)
        live = Watched(cluster, graph, path)
        live.prepare()
        began_s = time.monotonic()
        live.start()
        killed_at_s = detected_at_s = 0.0
        while live.ended < graph.task_count and live.failed is None:
            time.sleep(LOOK_S)
            if kill and not killed_at_s and 2 * live.ended >= graph.task_count:
                ground.kill_last()
                killed_at_s = time.monotonic()
            if killed_at_s and not detected_at_s and len(cluster._joined.joined.members) < ground.nodes:
                detected_at_s = time.monotonic()
        took_s = time.monotonic() - began_s
    if live.failed is not None:
        raise live.failed[1]
    return took_s, detected_at_s - killed_at_s, path.stat().st_size
