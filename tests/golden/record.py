"""Record the golden journals anew, after a change that is meant to change what nodes do:

    .venv/bin/python -m tests.golden.record

A golden journal is what one node of a small simulation was given and what it did. It shows which decisions a
change has moved; if no decision was meant to move, the journals must not change.
"""

from pathlib import Path

from daws.core.journal import Journal
from daws.sim.cluster import cluster_of
from daws.sim.kernel import Kernel
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

FOLDER = Path(__file__).parent
RECIPES = {
    "steal": ("bot:tasks=12,length-ms=20", "mlb:assign=one", 2, 1),
    "data": ("random:tasks=10,output-mb=2,length-ms=30", "flds", 3, 1),
    "copies": ("fan-out:tasks=10,degree=3,output-mb=1,length-ms=30", "adage", 2, 1),
}
"""Name -> workload, strategy, number of nodes, and the node whose journal is kept."""


def record(name: str) -> Journal:
    workload, strategy, nodes, node = RECIPES[name]

    def prepare(kernel: Kernel) -> None:
        kernel.journals = {
            node: Journal(machine.info, kernel.strategy, kernel.config, kernel.seed)
            for node, machine in kernel.seats.items()
        }

    graph = parse_workload(workload).build(nodes, 1, 7)
    _, kernel = simulate(graph, cluster_of(nodes, 1), parse_strategy(strategy), Settings(seed=7), prepare=prepare)
    assert kernel.journals is not None
    journal: Journal = kernel.journals[node]
    return journal


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.journal"


if __name__ == "__main__":
    for name in RECIPES:
        path_of(name).write_bytes(record(name).to_bytes())
        print(path_of(name), path_of(name).stat().st_size, "bytes")
