"""Tasks dealt out like cards: equal shares in a shuffled order."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, spread
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site
from daws.strategy.rng import hash_one, hash_u64

if TYPE_CHECKING:
    from daws.model.columns import Int64s
    from daws.model.graph import Graph

RUN_MAX = 8
ROUNDS_MIN = 16
"""Runs of tasks that each node gets at least, so that the unevenness at the end is small beside the rest."""


class AssignDealt(ParameterizedAnswer, frozen=True):
    """Rounds of one task for each node, each round in an order drawn by the seed.

    This is as even as round robin and as free of patterns as a hash. Round robin has accidental locality: in an
    all-pairs of 500 files on 100 nodes it hands each node the pairs of the same five files, but not on 101 nodes. Helps
    bags of tasks. Hurts when neighbouring tasks read the same data.
    """

    def plan(self, graph: Graph, site: Site) -> Plan:
        return Plan(spread(graph, site.members, lambda tasks, able: dealt(tasks, able, site.seed)))

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        able = members.capable(newcomer.needs)
        turn, position = divmod(newcomer.turn, len(able))
        return able[_dealt(turn, len(able), seed)[position]]

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        found = capable(graph, site.members)
        number = found.class_of[task]
        able_count = len(found.positions[number])
        return {
            "round": int((found.class_of[:task] == number).sum()) // able_count,
            "able_count": able_count,
            "choice": int(self.plan(graph, site).homes[task]),
        }


def dealt(tasks: Int64s, able: Int64s, seed: int) -> Int64s:
    """The node that gets each task."""
    import numpy as np

    # Sorting by (round, hash) shuffles within each round and keeps tasks of one round near each other.
    rounds = np.arange(len(tasks)) // len(able)
    order = np.lexsort((hash_u64(tasks, seed), rounds))
    homes = np.empty(len(tasks), np.int64)
    homes[order] = able[np.arange(len(tasks)) % len(able)]
    return homes


def dealt_by_runs(tasks: Int64s, able: Int64s, seed: int) -> Int64s:
    """The node that gets each task, with several neighbouring tasks dealt as one card. Neighbours share a shard of the
    store, so their ends can share a call. The rest that does not fill a round is dealt one by one."""
    import numpy as np

    each = len(tasks) // len(able)
    run = min(RUN_MAX, each // ROUNDS_MIN)
    if run < 2:
        return dealt(tasks, able, seed)
    whole = each // run * run * len(able)
    return np.concatenate([np.repeat(dealt(tasks[:whole:run], able, seed), run), dealt(tasks[whole:], able, seed)])


@lru_cache(maxsize=64)
def _dealt(turn: int, count: int, seed: int) -> tuple[int, ...]:
    """The place that gets the first task of one round, the second, and so on, as in a plan for tasks with equal
    needs."""
    order = sorted(range(count), key=lambda position: hash_one(turn * count + position, seed))
    places = [0] * count
    for place, position in enumerate(order):
        places[position] = place
    return tuple(places)
