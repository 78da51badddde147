"""The common code of the studies of MATRIX: its paper, its four graphs, its sizes and its strategy."""

from .runs import Job
from .study import Asked

PAPER = "MATRIX (2015)"
DAGS = {"bot": "BOT", "pipeline": "Pipeline", "fan-out": "Fan-Out", "fan-in": "Fan-In"}
FLDS = "flds:t=0.5,tt=10"
"""FLDS with the parameters of the paper's Table 3; the polling interval has an upper bound of its own here."""
STRATEGIES = {FLDS: "flds as in Table 3", "daws": "daws"}
SIZES = (1, 4, 16, 32, 64, 100)
"""Numbers of nodes with two cores each: 2 to 200 cores."""
SEEDS = 3
"""The number of seeds at the largest size."""
CLUSTER = (
    "Nodes have two cores and a link of 4 Gbit/s in each direction, with the costs of the profile `measured`; the "
    "paper does not say what network its cluster had."
)
PAPER_LINK, OUR_LINK = 10.0, 4.0
"""Gbit/s: of the four graphs the paper of 2014 says that t = 0.5 is 5 of 10 Gbit/s; ours is that of other studies."""
DAG_CLUSTER = (
    "Nodes have two cores and a link of 10 Gbit/s in each direction, as the paper of 2014 says of these runs, with the "
    "costs of the profile `measured` otherwise."
)

Case = tuple[str, str, int]
"""Graph, strategy and nodes."""


def dag_jobs(asked: Asked) -> dict[Case, Job]:
    """The runs behind Table 4 and figures 9 and 11."""
    _, sizes = _scale(asked)
    return {(dag, strategy, nodes): dag_job(asked, dag, strategy, nodes) for dag, strategy, nodes in _cases(sizes)}


def last_jobs(asked: Asked, link: float, seeds: int) -> dict[Case, list[Job]]:
    """The runs at the largest size, once for each seed."""
    _, sizes = _scale(asked)
    return {
        (dag, strategy, nodes): [dag_job(asked, dag, strategy, nodes, link, seed) for seed in range(seeds)]
        for dag, strategy, nodes in _cases(sizes[-1:])
    }


def dag_job(asked: Asked, dag: str, strategy: str, nodes: int, link: float = PAPER_LINK, seed: int = 0) -> Job:
    per_core, _ = _scale(asked)
    costs = (("net_bytes_per_s", link * 1.25e8),)
    return Job(f"{dag}:per-core={per_core}", strategy, nodes, seed=seed, costs=costs)


def _scale(asked: Asked) -> tuple[int, tuple[int, ...]]:
    """The tasks per core, and the numbers of nodes."""
    return (20, (1, 4)) if asked.quick else (1000, SIZES)


def _cases(sizes: tuple[int, ...]) -> list[Case]:
    return [(dag, strategy, nodes) for dag in DAGS for strategy in STRATEGIES for nodes in sizes]


def sizes_in(jobs: dict[tuple[str, str, int], Job]) -> list[int]:
    return sorted({nodes for _, _, nodes in jobs})
