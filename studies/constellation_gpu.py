"""Figure 11 of Constellation: a cluster with GPUs, which labels give to the tasks that use them."""

from msgspec import Struct

from daws.compare.picture import COLOURS
from daws.model.cluster import ExecutorClass
from daws.model.context import Label
from daws.model.graph_builder import GraphBuilder
from daws.sim.cluster import NodeGroup, joined
from daws.sim.kernel import Kernel
from daws.sim.plot import INK, Floats
from daws.sim.runlog import RunLog
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy

from .shared.picture import figure_of, finish, legend_below
from .shared.study import Asked, Claim, Report, Row, Study, Table
from .shared.supernova import NS_PER_S, PAIR_COUNT, PAPER, Span, add_steps, make_pairs, percent_over_time, run_jobs

NODES, CORES = 18, 8
CPU, GPU = "CPU", "GPU"
CPU_ONLY, WITH_GPU = "CPU only", "CPU and GPU"
PUBLISHED = {CPU_ONLY: 1740.0, WITH_GPU: 765.0}
SPEED = 1.0
"""The speed of a core. 1,052 pairs take 144 of these cores 1,740 s, and 48 cores of the other machine 5,243 s: the work
is the same.
"""
COPY_MB_PER_S = 25.0
"""The rate of copies from the head node to a scratch disk, for each pair. When a run begins, many pairs are copied at a
time.
"""
# Both fitted to figure 11b: the cores begin to run out of work after some 300 s, the GPUs after some 500 s.
LOAD = 0.02
"""The part of a tile's comparison that stays on the core: reading and preparing files."""
GPU_SPEED = 18.0
"""The speed of a GPU, relative to a core, for the rest of a comparison."""
TILE = {CPU_ONLY: (("compare", 1.0),), WITH_GPU: (("load", LOAD), ("compare", (1 - LOAD) / GPU_SPEED))}
STRATEGY = "constellation:assign=one,place=daws,t=0"
"""The strategy: tasks that read files of an earlier step stay where these are. Only a pair that has not begun can be
stolen.
"""


class Job(Struct, frozen=True):
    """One run: the number of pairs, with GPUs or without."""

    version: str
    pairs: int
    nodes: int

    def __str__(self) -> str:
        return self.version


class Outcome(Struct, frozen=True):
    """The result of a run, and the percentage of busy executors over time, by their label."""

    job: Job
    makespan_s: float
    edges_s: Floats
    busy: dict[str, Floats]

    def until_s(self, label: str, percent: float) -> float:
        """The time after which fewer executors than this percentage are busy, until the end."""
        enough = [edge for edge, busy in zip(self.edges_s[1:], self.busy[label], strict=True) if busy >= percent]
        return float(max(enough, default=0.0))


def executors_of(version: str) -> tuple[ExecutorClass, ...]:
    if version == CPU_ONLY:
        return (ExecutorClass(CORES, Label(CPU)),)
    return (ExecutorClass(CORES - 1, Label(CPU)), ExecutorClass(1, Label(GPU)))


def run_job(job: Job) -> Outcome:
    builder = GraphBuilder()
    gpu = job.version == WITH_GPU

    def label(step: str) -> str:
        return GPU if gpu and step == "compare" else CPU

    for pair in make_pairs(0, job.pairs):
        add_steps(builder, pair, label, SPEED * pair.size_mb / COPY_MB_PER_S, TILE[job.version])
    graph = builder.build()
    executors = executors_of(job.version)
    cluster = joined([NodeGroup(job.nodes, executors, SPEED)])
    logs: list[RunLog] = []

    def prepare(kernel: Kernel) -> None:
        logs.append(RunLog(kernel))

    result, _ = simulate(graph, cluster, parse_strategy(STRATEGY), Settings(), prepare=prepare)
    spans: dict[str, list[Span]] = {str(one.context): [] for one in executors}
    for kind, start_ns, end_ns in zip(graph.kind, logs[0].start_ns, logs[0].end_ns, strict=True):
        spans[label(graph.kinds[kind])].append(Span(start_ns / NS_PER_S, end_ns / NS_PER_S))
    busy = {}
    for one in executors:
        name = str(one.context)
        edges_s, busy[name] = percent_over_time(spans[name], one.count * job.nodes, result.makespan_s)
    return Outcome(job, result.makespan_s, edges_s, busy)


def run(asked: Asked) -> Report:
    pairs, nodes = (PAIR_COUNT // 10, 2) if asked.quick else (PAIR_COUNT, NODES)
    outcomes = run_jobs(run_job, [Job(version, pairs, nodes) for version in PUBLISHED], asked)
    found = {one.job.version: one for one in outcomes}
    time_s = {version: found[version].makespan_s for version in PUBLISHED}
    mixed = found[WITH_GPU]
    speedup = time_s[CPU_ONLY] / time_s[WITH_GPU]
    cpu_s, gpu_s = mixed.until_s(CPU, 90), mixed.until_s(GPU, 90)
    full = sum(found[CPU_ONLY].busy[CPU] >= 95) / len(found[CPU_ONLY].busy[CPU])
    end_s = time_s[CPU_ONLY] - found[CPU_ONLY].until_s(CPU, 95)
    tables = [
        Table(
            f"Time for {pairs:,} pairs on {nodes} nodes",
            ("version",),
            "s",
            [Row((version,), PUBLISHED[version], time_s[version]) for version in PUBLISHED],
        ),
        Table(
            "With GPUs: how long at least 90 % are busy",
            ("executors",),
            "s",
            [Row((CPU,), 300.0, cpu_s), Row((GPU,), 500.0, gpu_s)],
            "paper, about",
        ),
    ]
    claims = [
        Claim("With GPUs it takes less than half the time", speedup > 2, f"{speedup:.2f} times as fast (paper: 2.27)"),
        Claim(
            "The ratio of the two is the paper's within 10 %",
            abs(speedup / (PUBLISHED[CPU_ONLY] / PUBLISHED[WITH_GPU]) - 1) <= 0.1,
            f"{speedup:.2f} against {PUBLISHED[CPU_ONLY] / PUBLISHED[WITH_GPU]:.2f}",
        ),
        Claim(
            "Without GPUs nearly all cores are busy for most of the time",
            full >= 0.5,
            f"95 % for {100 * full:.0f} % of it",
        ),
        Claim(
            "With GPUs the cores run out of work first, the GPUs later",
            cpu_s < gpu_s,
            f"90 % of them are busy until {cpu_s:.0f} s and {gpu_s:.0f} s",
        ),
        Claim(
            "Load is uneven at the end, because what was begun on a node stays there",
            end_s > 0.05 * time_s[CPU_ONLY],
            f"without GPUs the last {end_s:.0f} s have less than 95 % of the cores busy",
        ),
    ]
    figure, axes = figure_of("A cluster with GPUs (Constellation figure 11)", 2)
    for one, version in zip(axes, PUBLISHED, strict=True):
        for number, (name, busy) in enumerate(found[version].busy.items()):
            one.stairs(busy, found[version].edges_s, color=COLOURS[number], linewidth=1.6, label=f"{name} executors")
        one.axvline(PUBLISHED[version], color=INK, linestyle="--", linewidth=1, label="end in the paper")
        one.set_title(version, fontsize=10, loc="left")
        one.set_ylim(0, 103)
        one.set_xlim(0)
        finish(one, "time in s", "busy in %")
    legend_below(figure, axes[1])
    return Report(tables, claims, WHY, figure)


WHY = (
    "The lengths of steps are those of the 48-core machine (`studies/shared/supernova.py`), and a core here is taken "
    "to be as fast, because both took the same number of core seconds. In the study of four clusters a core of the "
    "same cluster is 1.3 times as fast, where the program has a node for itself.",
    "How much of a tile stays on the core and how fast a GPU is are not in the paper. Both were fitted to what "
    "the text says of figure 11b: when cores and GPUs run out of work, and when all is done. That these times are near "
    "the paper's, and in its order, therefore says little.",
    "The end is less uneven here. A node begins a pair only when one of its executors has nothing to do, and the "
    "largest are begun first, so that few and small ones are under way when the last is taken. That is also why nine "
    "tenths of them are busy for longer than in the paper although all is done sooner.",
    "Pictures come from the head node at 25 MB/s each. The paper speaks of a small delay at the start; a shared link "
    "would make the first pairs slower and later ones faster.",
)

STUDY = Study(
    "constellation-gpu",
    "CPU and GPU executors",
    f"{PAPER}, figure 11",
    "What labels do with 18 GPUs beside 144 cores.",
    "18 nodes of 8 cores and one GPU. Every step of 1,052 pairs is a task. Without GPUs each node has 8 executors "
    "labelled `CPU`; with them 7, and one labelled `GPU`, which compares tiles. What was begun on a node stays there "
    f"(strategy `{STRATEGY}`).",
    run,
)
