"""The cases of the benchmark, each run in a process of its own so that memory can be told apart."""

from msgspec import Struct


class Case(Struct, frozen=True):
    """One simulation. `repeat` takes the best of so many runs in one process, to be less at the mercy of others;
    `processes` takes the median of so many processes, for runs of a tenth of a second."""

    name: str
    workload: str
    nodes: int
    cores: int = 2
    strategy: str = "daws"
    check: bool = False
    repeat: int = 1
    processes: int = 1
    tasks_per_s_min: float = 0.0
    efficiency_min: float = 0.0


CASES = (
    Case("bag", "bot:tasks=1000000", 1024, repeat=3, tasks_per_s_min=60_000),
    Case("bag, checked", "bot:tasks=1000000", 1024, check=True, repeat=3, tasks_per_s_min=40_000),
    Case(
        "fan-out", "fan-out:per-core=200", 512, strategy="flds", repeat=3, tasks_per_s_min=25_000, efficiency_min=0.85
    ),
    Case(
        "pipeline", "pipeline:per-core=200", 512, strategy="flds", repeat=3, tasks_per_s_min=25_000, efficiency_min=0.85
    ),
    Case("fan-in", "fan-in:per-core=200", 512, strategy="flds", repeat=3, tasks_per_s_min=25_000),
    Case("all-pairs", "all-pairs:files=300", 100, strategy="flds"),
    Case("few nodes", "bot:per-core=100", 64, processes=9),
    Case("many nodes", "bot:per-core=100", 16_384),
    Case("idle nodes, few", "bot:tasks=10", 1_000),
    Case("idle nodes, many", "bot:tasks=10", 100_000),
)
HUGE = (
    Case("a million on few", "bot:tasks=1000000", 64),
    Case("a million on many", "bot:tasks=1000000", 16_384),
    Case("huge", "bot:tasks=5000000", 100_000),
)
