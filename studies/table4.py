"""Table 4 and figure 11 of MATRIX: the share of the possible throughput that its four graphs reach, up to 200 cores."""

from statistics import mean, stdev

from .shared.matrix import (
    DAG_CLUSTER,
    DAGS,
    FLDS,
    OUR_LINK,
    PAPER,
    PAPER_LINK,
    SEEDS,
    STRATEGIES,
    dag_jobs,
    last_jobs,
    sizes_in,
)
from .shared.picture import Line, draw_lines, figure_of, finish, legend_below
from .shared.runs import run_all
from .shared.study import Asked, Claim, Report, Row, Study, Table

PUBLISHED = {"bot": 99.14, "pipeline": 88.24, "fan-out": 85.69, "fan-in": 90.61}
"""Percent of the recursion's throughput, the mean over the sizes of figure 11."""
AIMS = {"bot": 99.0, "pipeline": 97.0, "fan-out": 95.0, "fan-in": 95.0}


def run(asked: Asked) -> Report:
    jobs = dag_jobs(asked)
    seeds = 1 if asked.quick else SEEDS
    at_end = {link: last_jobs(asked, link, count) for link, count in ((PAPER_LINK, seeds), (OUR_LINK, 1))}
    more = [job for some in at_end.values() for several in some.values() for job in several]
    outcomes = run_all([*jobs.values(), *more], asked)
    shares = {
        (dag, strategy, link): [100 * outcomes[job].bound_share for job in several]
        for link, some in at_end.items()
        for (dag, strategy, _), several in some.items()
    }
    sizes = sizes_in(jobs)
    bound = {key: 100 * outcomes[job].bound_share for key, job in jobs.items()}
    recursion = {key: 100 * outcomes[job].recursion_share for key, job in jobs.items()}
    last = sizes[-1]
    cores = f"{2 * last} cores"

    def row(of: dict[tuple[str, str, int], float], dag: str, strategy: str, over: list[int]) -> Row:
        return Row((DAGS[dag], STRATEGIES[strategy]), PUBLISHED[dag], mean(of[dag, strategy, nodes] for nodes in over))

    cases = [(dag, strategy) for dag in DAGS for strategy in STRATEGIES]
    keys = ("graph", "strategy")
    tables = [
        Table(
            "Share of the provable bound, mean over all sizes",
            keys,
            "%",
            [row(bound, *case, sizes) for case in cases],
            "paper, of its own bound",
        ),
        Table(
            f"Share of the provable bound at {cores}, mean of {seeds} seeds",
            (*keys, "deviation"),
            "%",
            [
                Row((DAGS[dag], STRATEGIES[strategy], spread_of(values)), PUBLISHED[dag], mean(values))
                for dag, strategy in cases
                for values in (shares[dag, strategy, PAPER_LINK],)
            ],
            "paper, of its own bound",
        ),
        Table(
            f"Share of the provable bound at {cores} with links of {OUR_LINK:g} Gbit/s",
            keys,
            "%",
            [
                Row((DAGS[dag], STRATEGIES[strategy]), PUBLISHED[dag], mean(shares[dag, strategy, OUR_LINK]))
                for dag, strategy in cases
            ],
            "paper, of its own bound",
        ),
        Table(
            "Share of the paper's recursion, mean over all sizes",
            keys,
            "%",
            [row(recursion, *case, sizes) for case in cases],
        ),
    ]
    claims = []
    for dag, aim in AIMS.items():
        published, ours = (mean(shares[dag, strategy, PAPER_LINK]) for strategy in STRATEGIES)
        claims.append(
            Claim(
                f"{DAGS[dag]} gets at least {aim:g} % of the provable bound at {cores}",
                min(published, ours) >= aim,
                f"{published:.1f} % with {STRATEGIES[FLDS]}, {ours:.1f} % with the default strategy",
            )
        )
    slower = {dag: mean(shares[dag, "daws", OUR_LINK]) for dag in DAGS}
    claims.append(
        Claim(
            f"With the default strategy all four do also with links of {OUR_LINK:g} Gbit/s",
            all(slower[dag] >= aim for dag, aim in AIMS.items()),
            ", ".join(f"{name} {slower[dag]:.1f} %" for dag, name in DAGS.items()),
        )
    )
    worst = min((key for key in bound if key[1] == FLDS), key=bound.__getitem__)
    claims.append(
        Claim(
            "FLDS with Table 3's parameters gets at least 85 % of what is possible at every size",
            bound[worst] >= 85,
            f"the lowest share of the provable bound is {bound[worst]:.1f} %: {DAGS[worst[0]]} on {2 * worst[2]} cores",
        )
    )
    beaten = [DAGS[dag] for dag in DAGS if any(recursion[dag, FLDS, nodes] > 100 for nodes in sizes)]
    claims.append(
        Claim(
            "The recursion is a bound: nothing is faster than it says",
            not beaten,
            f"{', '.join(beaten)} finished earlier" if beaten else "no run finished earlier",
        )
    )
    figure, (left, right) = figure_of("Four graphs with FLDS (MATRIX table 4 and figure 11)", 2)
    for number, (dag, name) in enumerate(DAGS.items()):
        x = [2 * nodes for nodes in sizes]
        found = [outcomes[jobs[dag, FLDS, nodes]] for nodes in sizes]
        draw_lines(left, [Line(name, x, [one.result.throughput for one in found], number)])
        draw_lines(left, [Line("", x, [one.result.tasks / one.recursion_s for one in found], number, True)])
        draw_lines(right, [Line(name, x, [bound[dag, FLDS, nodes] for nodes in sizes], number)])
        right.axhline(PUBLISHED[dag], color=left.lines[-1].get_color(), linewidth=1, linestyle=":")
    left.set_yscale("log")
    finish(left, "cores", "tasks per second; dotted: the recursion", x, log_x=True)
    finish(right, "cores", "share of the provable bound in %\ndotted: Table 4, of the paper's own bound", x, log_x=True)
    right.set_ylim(min(80.0, min(bound.values()) - 3), 101)
    legend_below(figure, left)
    return Report(tables, claims, WHY, figure)


def spread_of(values: list[float]) -> str:
    return f"{stdev(values):.1f}" if len(values) > 1 else "–"


WHY = (
    "With t = 0.5 the network decides whether Fan-In scales. Most inputs of up to 10 MB arrive within half of a task's "
    "time on either network, so FLDS shares nearly every task and is MLB: data goes where tasks happen to be. At 10 "
    "Gbit/s that costs little. At 4 Gbit/s it does not scale, although all links together could carry what is moved "
    "in a sixth of the time: a few of them are waited for. The default keeps more such tasks with their data and "
    "loses a few points there; Fan-In is the one that it could do better.",
    "Shares of the provable bound and shares of the paper's own bound are different things, so the first two tables "
    "stand beside Table 4 but do not repeat it. What can be compared is the distance to the best that is known to be "
    "possible, and there the provable bound is the stricter judge: no schedule at all can be above 100 %.",
    "Shares of the recursion do not reproduce. It charges every task the mean wait in a full queue. A bag therefore "
    "gets about half of what it promises, because the last task of a queue waits for all others; graphs with several "
    "levels are charged a full queue on every level and finish several times earlier than it says. With Table 3's "
    "parameters the formula cannot give the theory lines of figure 11; which numbers did is not in the paper. "
    "See [bounds](../bound.md).",
    "The simulator's costs are those of a small modern cluster, not of the paper's machines. The paper's losses "
    "contain a store that is polled and one lock around all networking; ours contain messages, transfers and idle "
    "ends alone.",
)

STUDY = Study(
    "table4",
    "Share of the bound on four graphs",
    f"{PAPER}, table 4 and figure 11",
    "How close four graphs come to the best possible time, from 2 to 200 cores.",
    "Table 3's parameters: 1,000 tasks per core of 0 to 100 ms, outputs of 0 to 10 MB, degrees and pipes of 10, FLDS "
    f"with t = 0.5 and tt = 10 s; beside it the default strategy. {DAG_CLUSTER}",
    run,
)
