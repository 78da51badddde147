"""Figure 9 of MATRIX: throughput of its four graphs up to 200 cores."""

from .shared.matrix import DAG_CLUSTER, DAGS, FLDS, PAPER, STRATEGIES, dag_jobs, sizes_in
from .shared.picture import Line, draw_lines, figure_of, finish, legend_below
from .shared.runs import run_all
from .shared.study import Asked, Claim, Report, Row, Study, Table

LENGTH_S = 0.05
BAG_EFFICIENCY = 90.0
"""The efficiency in percent "at all scales": the only number that the paper gives with this figure."""
LINEAR = 0.9
"""The smallest share of the throughput per core at the smallest size that counts as linear."""


def run(asked: Asked) -> Report:
    jobs = dag_jobs(asked)
    outcomes = run_all(list(jobs.values()), asked)
    sizes = sizes_in(jobs)
    speed = {key: outcomes[job].result.throughput for key, job in jobs.items()}
    efficiency = {key: 100 * outcomes[job].result.efficiency for key, job in jobs.items()}
    tables = [
        Table(
            "Throughput with FLDS",
            ("graph", "cores"),
            "tasks/s",
            [Row((name, f"{2 * n}"), None, speed[dag, FLDS, n]) for dag, name in DAGS.items() for n in sizes],
        ),
        Table(
            "Efficiency of the bag, of which the paper says 90 % and more",
            ("strategy", "cores"),
            "%",
            [
                Row((name, f"{2 * n}"), None, efficiency["bot", strategy, n])
                for strategy, name in STRATEGIES.items()
                for n in sizes
            ],
        ),
    ]
    last = sizes[-1]
    bag = [efficiency["bot", FLDS, nodes] for nodes in sizes]
    per_core = {
        name: speed[dag, FLDS, last] / last / (speed[dag, FLDS, sizes[0]] / sizes[0]) for dag, name in DAGS.items()
    }
    slowest = min(per_core, key=per_core.__getitem__)
    order = sorted(DAGS, key=lambda dag: -speed[dag, FLDS, last])
    claims = [
        Claim("The bag is at least 90 % efficient at all sizes", min(bag) >= BAG_EFFICIENCY, f"{min(bag):.1f} %"),
        Claim(
            "Throughput grows linearly with the cores",
            per_core[slowest] >= LINEAR,
            f"at {2 * last} cores each core does {100 * per_core[slowest]:.1f} % of what it does at {2 * sizes[0]}, "
            f"in the worst case ({slowest})",
        ),
        Claim(
            f"BOT > Pipeline > Fan-Out > Fan-In at {2 * last} cores",
            order == list(DAGS),
            " > ".join(f"{DAGS[dag]} ({speed[dag, FLDS, last]:,.0f}/s)" for dag in order),
        ),
    ]
    figure, (left, right) = figure_of("Throughput of four graphs with FLDS (MATRIX figure 9)", 2)
    x = [2 * nodes for nodes in sizes]
    for number, (dag, name) in enumerate(DAGS.items()):
        draw_lines(left, [Line(name, x, [speed[dag, FLDS, nodes] for nodes in sizes], number)])
        draw_lines(right, [Line(name, x, [efficiency[dag, FLDS, nodes] for nodes in sizes], number)])
    draw_lines(left, [Line("all cores always busy", x, [cores / LENGTH_S for cores in x], None)])
    left.set_ylim(bottom=0)
    finish(left, "cores", "tasks per second")
    finish(right, "cores", "efficiency in %", x, log_x=True)
    right.set_ylim(min(80.0, min(efficiency.values()) - 3), 101)
    legend_below(figure, left, 5)
    return Report(tables, claims, WHY, figure)


WHY = (
    "The paper draws the throughputs but gives no numbers, so there is nothing to put beside ours except what it says "
    "in words. Bags, pipes and Fan-Out differ by little here: a tree of degree 10 with 200,000 tasks has only three "
    "levels that are narrower than 200 cores.",
    "With slower links Fan-In does not scale with Table 3's t = 0.5 ([table4](table4.md) has it at 4 Gbit/s).",
)

STUDY = Study(
    "figure9",
    "Throughput of four graphs",
    f"{PAPER}, figure 9",
    "How the throughput of four graphs grows with the cluster, up to 200 cores.",
    f"The runs of [table4](table4.md), as throughput. {DAG_CLUSTER}",
    run,
)
