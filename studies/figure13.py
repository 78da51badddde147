"""Figure 13 of MATRIX: the number of empty tasks that a cluster runs per second, beside CloudKon and Sparrow."""

from itertools import pairwise

from .shared.matrix import PAPER
from .shared.picture import Line, draw_lines, figure_of, finish, legend_below
from .shared.runs import Job, run_all
from .shared.study import Asked, Claim, Report, Row, Study, Table

PUBLISHED = {"daws": ("MATRIX", 67e3), "master-worker": ("CloudKon", 13e3), "sparrow": ("Sparrow", 7.3e3)}
"""Tasks per second on 64 instances, by the strategy that stands for each system in this study."""
NAMES = {"daws": "daws", "master-worker": "central queue, one task at a time", "sparrow": "sparrow"}
LENGTHS = {0.0: "nothing at all", 1.0: "1 ms to start a program"}
"""The lengths of tasks in milliseconds, and what each stands for."""
SIZES = (1, 4, 16, 64)


def run(asked: Asked) -> Report:
    per_core, sizes = (20, (1, 4)) if asked.quick else (1000, SIZES)
    strategies = list(PUBLISHED)
    jobs = {
        (strategy, length, nodes): Job(f"bot:per-core={per_core},length-ms={length:g},spread=constant", strategy, nodes)
        for strategy in strategies
        for length in LENGTHS
        for nodes in sizes
    }
    outcomes = run_all(list(jobs.values()), asked)
    speed = {key: outcomes[job].result.throughput for key, job in jobs.items()}
    last = sizes[-1]
    tables = [
        Table(
            f"Throughput on {last} nodes of two slots, tasks that take {what}",
            ("system in the paper", "strategy here"),
            "tasks/s",
            [Row((PUBLISHED[one][0], NAMES[one]), PUBLISHED[one][1], speed[one, length, last]) for one in strategies],
            daws="daws, simulated",
        )
        for length, what in LENGTHS.items()
    ]
    claims = []
    for length, what in LENGTHS.items():
        growth = speed["daws", length, last] / speed["daws", length, sizes[0]] / (last / sizes[0])
        ratio, against_sparrow = (
            speed["daws", length, last] / speed[other, length, last] for other in ("master-worker", "sparrow")
        )
        claims += [
            Claim(
                f"Throughput grows with the cluster ({what})",
                all(speed["daws", length, a] < speed["daws", length, b] for a, b in pairwise(sizes)),
                f"on {last} nodes each node runs {100 * growth:.0f} % of what one runs alone",
            ),
            Claim(
                f"Moving tasks in batches is at least 5 times as fast as fetching each from a queue ({what})",
                ratio >= 5,
                f"{ratio:.1f} times",
            ),
            Claim(
                f"Moving tasks in batches is at least 5 times as fast as probing for each of them ({what})",
                against_sparrow >= 5,
                f"{against_sparrow:.1f} times; 9.2 times in the paper",
            ),
        ]
    figure, axes = figure_of("Throughput of tasks that do nothing (MATRIX figure 13)", 2)
    for one, (length, what) in zip(axes, LENGTHS.items(), strict=True):
        for number, strategy in enumerate(strategies):
            y = [speed[strategy, length, nodes] for nodes in sizes]
            draw_lines(one, [Line(f"{NAMES[strategy]}, simulated", sizes, y, number)])
        for (system, value), marker in zip(PUBLISHED.values(), "*Xp", strict=True):
            one.plot(
                [64], [value], marker=marker, color="#000000", linestyle="none", label=f"{system}, measured in 2015"
            )
        one.set_yscale("log")
        one.set_title(what, fontsize=10, loc="left")
        finish(one, "nodes", "tasks per second", sizes, log_x=True)
    legend_below(figure, axes[0], 3)
    return Report(tables, claims, WHY, figure)


WHY = (
    "A simulation ends with the last run, not with its commit. Tasks of no length can all have run before the store "
    "has taken in their results: its one shard takes 5 µs for each, which is 200,000 per second whatever the "
    "cluster's size. So the first table says how fast tasks can be handed out and run, not how fast their results are "
    "kept; and a single task that is stolen near the end, which has to be claimed in the store, waits there behind all "
    "these results.",
    "These columns cannot agree, and a larger number here is no victory: the paper measured three systems on virtual "
    "machines of 2015, the simulator adds up the costs that it is told. Its tasks of no length are sent to executors "
    "in batches and cost nothing there, so the first table says only how much scheduling and messages alone would "
    "allow.",
    "MATRIX's 67,000 tasks per second are 1.9 ms per task and slot. The second table gives each task 1 ms, for "
    "starting a program. That number is an assumption, not a measurement, and it decides the result: 128 slots with 1 "
    "ms per task cannot run more than 128,000 per second.",
    "CloudKon itself is not modelled. A queue on one node, from which idle nodes take one task at a time, stands in "
    "for its queue service, which has many servers but answers slowly. Sparrow is its sampling "
    "without its Java, its frontends and their connections.",
    "There are 1,000 tasks per slot where the paper has 8,000, so that beginning and end weigh more here.",
)

STUDY = Study(
    "figure13",
    "Throughput of empty tasks",
    f"{PAPER}, figure 13",
    "How many tasks per second 1 to 64 nodes could run if tasks did nothing.",
    "A bag of 1,000 tasks per slot on nodes of two slots, with the costs of the profile `measured`.",
    run,
)
