"""What is run, by name and in this order."""

from bench.scale.runs import Case

NODES = 100
EVEN, ONE = "daws", "daws:assign=one"
BAG_S = 100.0
GRAPH_S = 25.0
WARM_S = 5.0
BAG_MS = 100.0
DAG_MS = 200.0
"""On average. MATRIX's Table 3 has 50 ms on machines of their own; two processors for a hundred nodes are too few."""
DATA_SCALE = 0.004
"""Of Table 3's 5 MB on average, and of the 12 MB files of all-pairs: 20 kB and 48 kB."""
PAIRS_MS = 100.0
"""Of all-pairs as MATRIX has them: that is more than two processors carry, and is run to show it."""
KILLED_TASKS = 10_000
KILLED_NODES = 50
"""A hundred are done after ten seconds, and what else happens on two processors then changes that by more than a lost
node does."""
OFF_MAX = 0.10
"""Live and simulated makespans are to be that near to each other."""


def bag(name: str, slots: int, length_ms: float, seconds: float, strategy: str, aim: float, published: str) -> Case:
    tasks = int(seconds * slots * 1000 / length_ms)
    workload = f"bot:tasks={tasks},length-ms={length_ms:g},spread=constant"
    return Case(name, workload, strategy, 1.0, 1.0, aim, published, off_max=OFF_MAX)


def dag(kind: str, slots: int, seconds: float, published: str, length_ms: float = DAG_MS) -> Case:
    """Lengths and sizes are spread as in Table 3: evenly between 0 and twice their average."""
    workload, warm_up = [
        f"{kind}:tasks={int(s * slots * 1000 / length_ms)},length-ms={length_ms:g}" for s in (seconds, WARM_S)
    ]
    return Case(kind, workload, EVEN, 1.0, DATA_SCALE, 0.0, published, warm_up, OFF_MAX)


def all_pairs(slots: int, seconds: float, length_ms: float = DAG_MS) -> Case:
    counts = [max(2, round((s * slots * 1000 / length_ms) ** 0.5)) for s in (seconds, WARM_S)]
    workload, warm_up = [f"all-pairs:files={files},length-ms={length_ms:g}" for files in counts]
    name, off_max = f"all-pairs of {length_ms:g} ms", OFF_MAX if length_ms >= DAG_MS else 0.0
    return Case(name, workload, EVEN, 1.0, DATA_SCALE, 0.0, "85.9 %", warm_up, off_max)


def cases_of(slots: int, bag_s: float, graph_s: float) -> dict[str, Case]:
    """`slots` executors in all; each case has work for so many seconds if none of them ever rests."""
    found = [
        bag("bag of 100 ms, dealt evenly", slots, 100, bag_s, EVEN, 0.90, ""),
        bag("bag of 100 ms, all to one node", slots, 100, bag_s, ONE, 0.85, ""),
        bag("bag of 50 ms, dealt evenly", slots, 50, bag_s, EVEN, 0.85, "90 % and more"),
        dag("bot", slots, graph_s, "99.1 % of its bound"),
        dag("pipeline", slots, graph_s, "88.2 % of its bound"),
        dag("fan-out", slots, graph_s, "85.7 % of its bound"),
        dag("fan-in", slots, graph_s, "90.6 % of its bound"),
        all_pairs(slots, graph_s),
        all_pairs(slots, graph_s, PAIRS_MS),
    ]
    return {case.name: case for case in found}


def killed_case(tasks: int = KILLED_TASKS) -> Case:
    """Pipes of ten: whoever loses a node has lost what its tasks made."""
    return Case("a node is killed", f"pipeline:tasks={tasks},length-ms={DAG_MS:g}", EVEN, 1.0, DATA_SCALE)
