"""What daws wants to reach beside the others, as data."""

from typing import Literal

from msgspec import Struct

Against = Literal["nothing", "floor", "processes", "graph", "peers"]
"""What a figure is compared with: a fixed number, the floor, `ProcessPoolExecutor`, the best peer that keeps a graph
itself, or the best of all peers."""


class Aim(Struct, frozen=True):
    """daws has at least `factor` × the other's figure + `plus`; at most, where less is better."""

    workload: str
    against: Against
    factor: float = 0.0
    plus: float = 0.0
    figure: str = "value"


AIMS = (
    Aim("futures", "nothing", plus=100_000),
    Aim("futures", "floor", 1 / 5),
    Aim("futures", "processes", 20),
    Aim("futures", "graph", 25),
    Aim("map", "processes", 0.5),
    Aim("trip", "floor", 2),
    Aim("trip", "processes", 0.6),
    Aim("trip", "peers", 1),
    *(
        aim
        for kind in ("pipeline", "tree", "random")
        for aim in (Aim(kind, "nothing", plus=25_000), Aim(kind, "graph", 15), Aim(kind, "processes", 4))
    ),
    Aim("objects", "peers", 1 / 1.5),
    Aim("objects", "peers", 1, figure="moved_bytes"),
    Aim("spin-1ms", "nothing", plus=0.90),
    Aim("spin-1ms", "floor", 1, plus=-0.07),
    Aim("spin-10ms", "nothing", plus=0.98),
    Aim("spin-10ms", "floor", 1, plus=-0.02),
    Aim("sleep-10ms", "nothing", plus=0.98),
    Aim("sleep-10ms", "floor", 1, plus=-0.02),
    Aim("commands", "nothing", plus=700),
    Aim("script", "nothing", plus=0.25),
    Aim("memory", "nothing", plus=800),
    Aim("million", "nothing", plus=0.8),
)
