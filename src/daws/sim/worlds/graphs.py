"""Small graphs for the worlds: contexts, wide tasks, graphs that grow, tasks that are very short or kill their node."""

import numpy as np

from daws.model.context import Label, parse_context
from daws.model.graph import Graph, Growth
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.strategy.rng import SplitMix64

MS = 1_000_000
LARGE = (
    "bot:tasks=250,length-ms=80",
    "fan-out:tasks=250,degree=6,output-mb=1,length-ms=60",
    "random:tasks=250,layers=4,degree=3,output-mb=1,length-ms=60",
)
"""Workloads with so many ready tasks that a node that dies leaves some in every shard."""


def draw_length_ns(rng: SplitMix64) -> int:
    return (1 + rng.below(80)) * MS


def labelled_graph(rng: SplitMix64) -> Graph:
    """Tasks with contexts and priorities."""
    builder = GraphBuilder()
    handles: list[TaskHandle] = []
    for number in range(40):
        context = (None, Label("gpu"), Label("cpu"), parse_context("gpu|cpu"))[rng.below(4)]
        inputs = [handles[rng.below(len(handles))]] if handles and rng.below(2) else []
        handles.append(builder.add_task("step", draw_length_ns(rng), inputs, (20_000,), context, priority=number % 3))
    return builder.build()


def wide_graph(rng: SplitMix64) -> Graph:
    """Tasks that need up to four cores."""
    builder = GraphBuilder()
    handles: list[TaskHandle] = []
    for _ in range(40):
        inputs = list({handles[rng.below(len(handles))] for _ in range(2)}) if handles and rng.below(3) else []
        handles.append(builder.add_task("step", draw_length_ns(rng), inputs, (50_000,), cores=1 + rng.below(4)))
    return builder.build()


def growing_graph(rng: SplitMix64, waits: bool, roots: int = 4, longer: int = 1, held: bool = False) -> Graph:
    """Roots that create tasks that create tasks, and at the end a task that reads what the roots made.

    With `held`, tasks that were created belong to their creators.
    """
    growth = (
        Growth(0, 1, 1 + rng.below(3), draw_length_ns(rng) * longer, waits, held=held),
        Growth(1, 2, 1 + rng.below(2), draw_length_ns(rng), waits, held=held),
    )
    lengths = [draw_length_ns(rng) for _ in range(roots + 1)]
    return Graph(
        kinds=("root", "middle", "leaf", "end"),
        kind=np.array([0] * roots + [3]),
        length_ns=np.array(lengths),
        input_start=np.array([0] * (roots + 1) + [roots]),
        inputs=np.arange(roots),
        output_start=np.arange(roots + 2),
        object_bytes=np.array([30_000] * (roots + 1)),
        growth=growth,
    )


def short_graph(rng: SplitMix64) -> Graph:
    """Many tasks so short that nodes send them ahead, and some that create such tasks and wait for them.

    Nodes send nothing behind a run that is not known to be short. The tasks that wait are few and take milliseconds in
    half of the graphs. They are many and short as well in the others.
    """
    short, waiting, spawned = 0, 1, 2
    every, unit_ns = (12, MS) if rng.below(2) else (3, 10_000)
    kinds = [waiting if number % every == 1 else short for number in range(90)]
    lengths = [(1 + rng.below(20)) * unit_ns if kind == waiting else (30 + rng.below(400)) * 1000 for kind in kinds]
    count = len(kinds)
    return Graph(
        kinds=("short", "waiting", "spawned"),
        kind=np.array(kinds),
        length_ns=np.array(lengths),
        input_start=np.zeros(count + 1, np.int64),
        inputs=np.zeros(0, np.int64),
        output_start=np.zeros(count + 1, np.int64),
        object_bytes=np.zeros(0, np.int64),
        growth=(Growth(waiting, spawned, 1 + rng.below(3), (30 + rng.below(400)) * 1000, True),),
    )


def twofold_graph() -> Graph:
    """Tasks that each make a large object, which can get lost, and a small one, which cannot.

    Tasks that read the small one are still waiting for an executor when the large one has been made again.
    """
    builder = GraphBuilder()
    for _ in range(6):
        maker = builder.add_task("make", 10 * MS, (), (200_000, 100))
        for number in range(24):
            builder.add_task("read", 10 * MS, [maker.outputs[number % 2]])
    return builder.build()


def deadly_graph(rng: SplitMix64, alone: bool) -> tuple[Graph, int]:
    """A graph with one task that kills its node, and that task. It is the last to be ready, or one among others."""
    builder = GraphBuilder()
    count = 20
    killer = count - 1 if alone else rng.below(count)
    handles: list[TaskHandle] = []
    for number in range(count):
        inputs = [handles[-1 if alone else rng.below(number)]] if number > 3 and (alone or number < killer) else []
        kind = "killer" if number == killer else "step"
        handles.append(builder.add_task(kind, draw_length_ns(rng), inputs, (20_000,)))
    return builder.build(), killer
