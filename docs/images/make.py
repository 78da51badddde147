"""Draw the pictures of the documentation again: `.venv/bin/python docs/images/make.py`."""

from pathlib import Path

from daws.sim.cluster import cluster_of
from daws.sim.plot import draw_panels, panel_of
from daws.sim.simulate import simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

HERE = Path(__file__).parent
WORKLOAD = "all-pairs:files=150"
NODES, CORES = 64, 2
POLICIES = {"mlb": "balance above all", "mdl": "locality above all", "flds": "both, with limits"}


def main() -> None:
    runs = []
    for policy in POLICIES:
        graph = parse_workload(WORKLOAD).build(NODES, CORES, seed=0)
        runs.append(simulate(graph, cluster_of(NODES, CORES), parse_strategy(policy)))
    until_s = max(result.makespan_s for result, _ in runs)
    panels = [
        panel_of(
            result,
            kernel,
            f"{result.strategy}: {about}\n{result.makespan_s:.0f} s, efficiency {result.efficiency:.0%}",
            until_s,
        )
        for (result, kernel), about in zip(runs, POLICIES.values(), strict=True)
    ]
    heading = "Busy executors over time: all pairs of 2 × 150 files on 64 nodes"
    draw_panels(panels, HERE / "policies.png", heading, columns=3, size=(9.6, 3.2))


if __name__ == "__main__":
    main()
