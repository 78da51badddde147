"""What the studies of MATRIX share: its paper, its four graphs, its sizes and the strategy that it ran."""

from .runs import Job
from .study import Asked

PAPER = "MATRIX (2015)"
DAGS = {"bot": "BOT", "pipeline": "Pipeline", "fan-out": "Fan-Out", "fan-in": "Fan-In"}
FLDS = "flds:t=0.5,tt=10"
"""FLDS with the parameters of the paper's Table 3; the polling interval has an upper bound of its own here."""
STRATEGIES = {FLDS: "flds as in Table 3", "daws": "daws"}
SIZES = (1, 4, 16, 32, 64, 100)
"""Nodes of two cores: 2 to 200 cores."""
CLUSTER = (
    "Nodes have two cores and a link of 4 Gbit/s in each direction, with the costs of the profile `measured`; the "
    "paper does not say what network its cluster had."
)


def dag_jobs(asked: Asked) -> dict[tuple[str, str, int], Job]:
    """By graph, strategy and nodes: the runs behind Table 4 and figures 9 and 11."""
    per_core, sizes = (20, (1, 4)) if asked.quick else (1000, SIZES)
    return {
        (dag, strategy, nodes): Job(f"{dag}:per-core={per_core}", strategy, nodes)
        for dag in DAGS
        for strategy in STRATEGIES
        for nodes in sizes
    }


def sizes_in(jobs: dict[tuple[str, str, int], Job]) -> list[int]:
    return sorted({nodes for _, _, nodes in jobs})
