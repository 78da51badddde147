"""The cost of failures for ADAGE and the other systems, and how much ADAGE's replicas help."""

from statistics import mean

from .shared.adage import (
    ADAGE,
    CLUSTER,
    HEARTBEAT_S,
    PAPER,
    PUBLISHED,
    SINGLE,
    SLOWED_TO,
    Found,
    Runs,
    cases_of,
    draw_groups,
    families_of,
    nodes_of,
    panels_of,
    percent,
    spread,
    workload_of,
)
from .shared.picture import finish, legend_below
from .shared.study import Asked, Claim, Report, Row, Study, Table

COMPARED = {ADAGE: "ADAGE", SINGLE: "ADAGE without replicas"} | PUBLISHED | {"random": "random"}
HEALTHY = (0, 0)
"""The number of nodes that crash and the number of nodes that are slow in a run without failures."""


def trouble_of(nodes: int) -> dict[tuple[int, int], str]:
    eighth, quarter = nodes // 8 or 1, nodes // 4
    return {
        (eighth, 0): f"{eighth} of {nodes} nodes crash",
        (quarter, 0): f"{quarter} of {nodes} nodes crash",
        (0, eighth): f"{eighth} of {nodes} nodes are slow",
    }


def run(asked: Asked) -> Report:
    families, nodes = families_of(asked), nodes_of(asked)
    trouble = trouble_of(nodes)
    runs = Runs(
        {
            (family, strategy, one): cases_of(
                asked, workload_of(asked, family), strategy, nodes, crashed=one[0], slowed=one[1]
            )
            for family in families
            for strategy in COMPARED
            for one in (HEALTHY, *trouble)
        },
        asked,
    )

    def longer(strategy: str, one: tuple[int, int]) -> list[float]:
        """The time in percent of the run without failures, as a mean over the workflows: one number for each seed."""
        each = [
            [
                percent(*pair)
                for pair in zip(runs.times(f, strategy, one), runs.times(f, strategy, HEALTHY), strict=True)
            ]
            for f in families
        ]
        return [mean(of_seed) for of_seed in zip(*each, strict=True)]

    tables = [
        Table(
            "Time in percent of that of the same system with nothing failing, mean of five workflows",
            ("trouble", "system", "spread"),
            "%",
            [
                Row((text, label, spread(values)), None, mean(values))
                for one, text in trouble.items()
                for strategy, label in COMPARED.items()
                for values in [longer(strategy, one)]
            ],
        ),
        Table(
            f"Execution time on {nodes} nodes",
            ("workflow", "trouble", "system", "spread"),
            "s",
            [
                Row((name, text, label, spread(runs.times(family, strategy, one))), None, s)
                for family, name in families.items()
                for one, text in {HEALTHY: "none", **trouble}.items()
                for strategy, label in COMPARED.items()
                for s in [runs.mean_s(family, strategy, one)]
            ],
        ),
    ]
    claims = [lost_in([found for f in families for s in COMPARED for one in trouble for found in runs.of(f, s, one)])]
    for one, text in trouble.items():
        times = {
            strategy: mean(percent(runs.mean_s(f, strategy, one), runs.mean_s(f, SINGLE, one)) for f in families)
            for strategy in COMPARED
        }
        cost = {label: mean(longer(strategy, one)) - 100 for strategy, label in PUBLISHED.items()}
        ours = PUBLISHED[ADAGE]
        claims += [
            Claim(
                f"Replicas shorten ADAGE's runs when {text}",
                times[ADAGE] < 100,
                f"with them it takes {times[ADAGE]:.1f} % of the time without, mean of five workflows",
            ),
            Claim(
                f"ADAGE loses less than MATRIX and Albatross when {text}",
                all(cost[ours] < value for label, value in cost.items() if label != ours),
                ", ".join(f"{label} {value:+.0f} %" for label, value in cost.items()),
            ),
        ]
    figure, (axes,) = panels_of(f"What failures cost, on {nodes} nodes", 1, 1, (9.6, 4.6))
    draw_groups(
        axes,
        list(trouble.values()),
        {label: [longer(strategy, one) for one in trouble] for strategy, label in COMPARED.items()},
        lambda height: f"{height:.0f}",
    )
    axes.margins(y=0.1)
    finish(axes, "", "time in % of that with nothing failing\nmean of five workflows")
    axes.axhline(100, color="#777777", linewidth=1, linestyle=":")
    legend_below(figure, axes, 5)
    return Report(tables, claims, WHY, figure)


def lost_in(found: list[Found]) -> Claim:
    lost, given_up, failed = (
        sum(column) for column in zip(*((o.lost, o.given_up, o.failed) for o in found), strict=True)
    )
    some = sum(one.failed > 0 for one in found)
    return Claim(
        "No task is lost, whatever crashes: each ends with its result, unless it was running on three nodes when they "
        "died, or needs one that was",
        lost == 0,
        f"{lost} of {sum(one.tasks for one in found):,} were lost; {given_up} were given up, in {some} of {len(found)} "
        f"runs, and {failed - given_up} that need them",
    )


WHY = (
    "The paper claims that replicas improve execution times and fault tolerance, but no failures were injected in "
    "its experiments, and in its published code the replicas of a task share one object, so that nothing races. "
    "There are no numbers to put beside these.",
    f"A dead node is noticed after {HEARTBEAT_S:g} s, as in the paper, and by all systems alike; in short workflows "
    "(CyberShake, Montage) that is most of what a crash costs. Its objects are gone: those that are still needed "
    "are made again, with their ancestors if need be. Inputs of the workflow survive with the client. A task that was "
    "running on three nodes when they died is taken for what kills them and is not tried again; a run in which that "
    "happens counts with the time that it took for the others.",
    "Replicas are made only of tasks that are given away, and given away are the least urgent ones of overloaded "
    "nodes. Which nodes will die nobody knows, so most replicas are of tasks that would have survived, and they "
    "take time from others.",
)

STUDY = Study(
    "adage-failures",
    "Failures and replicas",
    f"{PAPER}, sections III-D and III-E",
    "How much longer five workflows take when nodes crash or are slow, with replicas and without.",
    "Five workflows of 1,000 tasks. Crashes are spread evenly over the time that a run takes at least, and nodes do "
    f"not come back. Slow nodes run at {SLOWED_TO:g} of their speed from the beginning, and neither planners nor "
    f"nodes are told. The same nodes for all systems. Three seeds; ± is the standard deviation. {CLUSTER}",
    run,
    takes_files=True,
)
