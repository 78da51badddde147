"""Figure 12 of MATRIX: the recursion up to 131,072 cores, and why the published numbers do not follow from it."""

from typing import NamedTuple

from daws.bounds import recursion
from daws.compare.jobs import run_each
from daws.sim.profiles import profile
from daws.workloads import parse_workload

from .shared.matrix import DAGS, PAPER
from .shared.picture import Line, draw_lines, figure_of, finish, legend_below
from .shared.runs import RunsProgress
from .shared.study import Asked, Claim, Report, Row, Study, Table

PUBLISHED = {"bot": 2.33e6, "pipeline": 1.85e6, "fan-out": 1.16e6, "fan-in": 0.85215e6}
"""Tasks per second at 128K cores."""
NODES = (1, 16, 256, 4096, 65536)
PER_CORE = 1000


class Point(NamedTuple):
    """The numbers of one graph on one number of nodes: the recursion's, and the limit by work alone."""

    dag: str
    nodes: int
    tasks: int
    seconds: float
    wait_s: float
    work_s: float

    @property
    def levels(self) -> int:
        """The number of waits on the longest path. All other parts of that path are short."""
        return round(self.seconds / self.wait_s) if self.wait_s else 1


def point(case: tuple[str, int, int]) -> Point:
    dag, nodes, per_core = case
    graph = parse_workload(f"{dag}:per-core={per_core}").build(nodes, 2, 0)
    found = recursion(graph, 2 * nodes, profile("measured").net_bytes_per_s)
    work_s = graph.total_length_ns / 1e9 / (2 * nodes)
    return Point(dag, nodes, graph.task_count, found.seconds, found.wait_s, work_s)


def run(asked: Asked) -> Report:
    sizes, per_core = ((1, 16), 20) if asked.quick else (NODES, PER_CORE)
    found: dict[tuple[str, int], Point] = {}
    # One at a time: the largest need a third of a laptop's memory each.
    cases = [(dag, nodes, per_core) for nodes in sizes for dag in DAGS]
    progress = RunsProgress(len(cases), asked.quiet)
    with progress:
        for one in run_each(point, cases, 1):
            found[one.dag, one.nodes] = one
            progress.tick()
    last = sizes[-1]
    cores = f"{2 * last:,} cores"
    largest = {dag: found[dag, last] for dag in DAGS}
    speeds = {dag: one.tasks / one.seconds for dag, one in largest.items()}
    implied = {dag: one.tasks / PUBLISHED[dag] / one.levels for dag, one in largest.items()}
    tables = [
        Table(
            f"Throughput by the recursion at {cores}",
            ("graph",),
            "tasks/s",
            [Row((name,), PUBLISHED[dag], speeds[dag]) for dag, name in DAGS.items()],
            daws="recursion in daws",
        ),
        Table(
            f"Throughput if no core ever rests, at {cores}",
            ("graph",),
            "tasks/s",
            [Row((name,), PUBLISHED[dag], largest[dag].tasks / largest[dag].work_s) for dag, name in DAGS.items()],
            daws="no schedule above",
        ),
        Table(
            "Queue wait of every task",
            ("graph", "levels"),
            "s",
            [Row((name, str(largest[dag].levels)), implied[dag], largest[dag].wait_s) for dag, name in DAGS.items()],
            "that would give the paper's figure",
            "by the formula",
        ),
    ]
    order = sorted(DAGS, key=lambda dag: -speeds[dag])
    farthest = max(DAGS, key=lambda dag: abs(speeds[dag] / PUBLISHED[dag] - 1))
    impossible = [dag for dag in DAGS if speeds[dag] > largest[dag].tasks / largest[dag].work_s]
    waits = [implied[dag] for dag in DAGS]
    claims = [
        Claim(
            f"Figure 12 follows from the formula with Table 3's parameters (within 10 %) at {cores}",
            all(abs(speeds[dag] / PUBLISHED[dag] - 1) <= 0.1 for dag in DAGS),
            f"{DAGS[farthest]} is farthest off: {speeds[farthest] / 1e6:.2f} M/s against "
            f"{PUBLISHED[farthest] / 1e6:.2f} M/s",
        ),
        Claim(
            "BOT > Pipeline > Fan-Out > Fan-In",
            order == list(DAGS),
            ", ".join(f"{DAGS[dag]} {speeds[dag] / 1e6:.3f} M/s" for dag in order),
        ),
        Claim(
            "The recursion never promises more than all cores together can do",
            not impossible,
            f"{', '.join(DAGS[dag] for dag in impossible)}: it does" if impossible else "it does not",
        ),
        Claim(
            "One wait per task would explain all four numbers (within a factor of 1.5)",
            max(waits) <= 1.5 * min(waits),
            f"they need waits from {min(waits):.1f} to {max(waits):.1f} s",
        ),
    ]
    figure, (axes,) = figure_of("The recursion of MATRIX up to 128K cores (figure 12)", 1, (7.6, 5))
    x = [2 * nodes for nodes in sizes]
    for number, (dag, name) in enumerate(DAGS.items()):
        points = [found[dag, nodes] for nodes in sizes]
        draw_lines(axes, [Line(name, x, [one.tasks / one.seconds for one in points], number)])
        if not asked.quick:
            colour = axes.lines[-1].get_color()
            axes.plot([x[-1] * 1.25], [PUBLISHED[dag]], color=colour, marker="*", markersize=11, linestyle="none")
    works = [found["bot", nodes] for nodes in sizes]
    draw_lines(axes, [Line("no schedule above", x, [one.tasks / one.work_s for one in works], None)])
    axes.plot([], [], color="#333333", marker="*", markersize=11, linestyle="none", label="paper, at 128K cores")
    axes.set_yscale("log")
    finish(axes, "cores", "tasks per second", x, log_x=True)
    legend_below(figure, axes, 3)
    return Report(tables, claims, WHY, figure)


WHY = (
    "The published figures lie between what the formula gives for bags and what it gives for graphs. The formula "
    "charges each task of a queue of 1,000 tasks of 50 ms a wait of 24.98 s, once per level. That is half of the work "
    "for a bag, so its promise is twice what all cores can do; the other three pay it again on each of their levels.",
    "Turned around, each published figure says which wait would have given it (third table; transfers and lengths, "
    "which are below a second, are left out). For the bag that wait is longer than the whole queue, for the others it "
    "is a part of it, and no two are alike. So the figure was not computed with one wait from equation (1) and Table "
    "3. The bag's 2.33 M/s are 89 % of what all cores can do, about the efficiency that the paper measured for bags: "
    "measured waits would explain that, but the paper does not say so.",
    "Bandwidth and task size, which the paper does not give, hardly matter: 5 MB take 10 ms at 4 Gbit/s, and even at "
    "a tenth of that little beside 25 s per level.",
)

STUDY = Study(
    "figure12",
    "The recursion up to 128K cores",
    f"{PAPER}, figure 12",
    "What the paper's bound gives for 131 million tasks, and why that is not what was published.",
    "The recursion of section 3 as published (`daws.bounds.recursion`), Table 3's parameters, two cores per node. "
    "Nothing is simulated. At the largest size a graph needs up to 8 GB.",
    run,
)
