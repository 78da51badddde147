"""A node that is killed in the middle of a graph: what that costs beside the same graph undisturbed.

Every run of a task leaves a byte in a file when it begins, so that those are counted that ran again.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

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
ROUNDS = 5
LIMIT_S = 600.0
"""Of one run: whatever it still waits for then will not come."""


class Round(Struct, frozen=True):
    """The graph undisturbed, and then with a node less from its middle on. `detected_s` passed from the kill until the
    node was no member any more, `rerun` is how many runs there were beyond one for each task."""

    undisturbed_s: float
    killed_s: float
    detected_s: float
    rerun: int

    @property
    def cost_s(self) -> float:
        return self.killed_s - self.undisturbed_s


class Loss(Struct, frozen=True):
    """What a killed node costs. The longest chain of tasks takes `path_s`: so long may it take to do again what has to
    be done one after the other. A task takes `task_s` on average."""

    tasks: int
    rounds: tuple[Round, ...]
    task_s: float
    path_s: float

    def median(self, name: str) -> float:
        return float(median([getattr(one, name) for one in self.rounds]))

    @property
    def rerun_work_s(self) -> float:
        return self.median("rerun") * self.task_s

    @property
    def limit_s(self) -> float:
        """What it may cost: until the node is missed, and to run again what has to be."""
        return self.median("detected_s") + self.path_s

    @property
    def is_good(self) -> bool:
        return self.median("detected_s") < DETECTION_S and self.median("cost_s") <= self.limit_s

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "rounds": [{**asdict(one), "cost_s": one.cost_s} for one in self.rounds]}


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


def kill_some(
    ground: Ground, case: Case, rounds: int = ROUNDS, told: Callable[[Round], None] = lambda one: None
) -> Loss:
    """One node in each round; they are not there afterwards. What else happens on the machine changes a run by seconds:
    so the two kinds of runs take turns, after one that nobody measures."""
    graph = case.graph(ground.nodes, ground.executors)
    carried_out(ground, graph, case, ground.folder / "warm", kill=False)
    found: list[Round] = []
    for number in range(rounds):
        undisturbed_s, _, _ = carried_out(ground, graph, case, ground.folder / f"undisturbed-{number}", kill=False)
        killed_s, detected_s, runs = carried_out(ground, graph, case, ground.folder / f"killed-{number}", kill=True)
        found.append(Round(undisturbed_s, killed_s, detected_s, runs - graph.task_count))
        told(found[-1])
    task_s = graph.total_length_ns / graph.task_count / 1e9
    return Loss(graph.task_count, tuple(found), task_s, graph.critical_path_ns() / 1e9)


def carried_out(ground: Ground, graph: Graph, case: Case, path: Path, kill: bool) -> tuple[float, float, int]:
    """How long it took, how long the node was missed after its death, and how many runs there were."""
    with daws.connect(ground.cluster, timeout=CONNECT_S) as cluster:
        cluster.use_strategy(case.strategy)
        live = Watched(cluster, graph, path)
        live.prepare()
        nodes = len(ground.processes)
        began_s = time.monotonic()
        live.start()
        killed_at_s = detected_at_s = ended_at_s = 0.0
        while not ended_at_s or (killed_at_s and not detected_at_s):
            time.sleep(LOOK_S)
            members = len(cluster._joined.engine.members)
            if live.failed is not None:
                raise live.failed[1]
            if time.monotonic() > began_s + LIMIT_S:
                ended = f"{live.ended:,} of {graph.task_count:,} tasks have ended after {LIMIT_S:.0f} s"
                raise TimeoutError(f"{ended}; {members} nodes are there, and {len(ground.processes)} should be")
            if kill and not killed_at_s and 2 * live.ended >= graph.task_count:
                ground.kill_last()
                killed_at_s = time.monotonic()
            if killed_at_s and not detected_at_s and members < nodes:
                detected_at_s = time.monotonic()
            if not ended_at_s and live.ended == graph.task_count:
                ended_at_s = time.monotonic()
    return ended_at_s - began_s, detected_at_s - killed_at_s, path.stat().st_size
