"""Figure 5 of ADAGE: throughput of two workflows over the number of nodes."""

from statistics import mean

from .adage3 import OTHERS, scaling, sizes_of
from .shared.adage import (
    ADAGE,
    ALBATROSS,
    CLUSTER,
    FAIR,
    FAMILIES,
    MATRIX,
    PAPER,
    SYSTEMS,
    Runs,
    draw_spread,
    panels_of,
    percent,
    spread,
)
from .shared.picture import finish, legend_below
from .shared.study import Asked, Claim, Report, Row, Study, Table

SHOWN = ("cybershake", "montage")
GREATER = {
    ("cybershake", ALBATROSS): 83,
    ("cybershake", MATRIX): 1377,
    ("montage", ALBATROSS): 11,
    ("montage", MATRIX): 50,
}
"""Percent by which ADAGE's throughput at 1,024 nodes is above the other's, from the paper's text."""


def run(asked: Asked) -> Report:
    runs, sizes = scaling(asked, SHOWN), sizes_of(asked)
    last = sizes[-1]

    def speeds(family: str, strategy: str, nodes: int) -> list[float]:
        return [one.tasks / one.makespan_s for one in runs.of(family, strategy, nodes)]

    rows, claims = [], []
    for family in SHOWN:
        ours = speeds(family, ADAGE, last)
        shares = {
            label: [percent(*pair) for pair in zip(ours, speeds(family, other, last), strict=True)]
            for other, label in OTHERS.items()
        }
        for other, label in OTHERS.items():
            best = mean(percent(one.makespan_s, one.bound_s) for one in runs.of(family, other, last))
            key = (FAMILIES[family], label, spread(shares[label]), f"{best:.0f} %")
            rows.append(Row(key, 100.0 + GREATER[family, other], mean(shares[label])))
        claims.append(
            Claim(
                f"{FAMILIES[family]}: at {last:,} nodes ADAGE completes more tasks per second than both",
                all(mean(values) > 100 for values in shares.values()),
                ", ".join(f"{mean(values):.0f} % of {label}'s" for label, values in shares.items()),
            )
        )
        rising = [mean(speeds(family, ADAGE, nodes)) for nodes in sizes]
        claims.append(
            Claim(
                f"{FAMILIES[family]}: ADAGE's throughput grows with every step up to {last:,} nodes",
                rising == sorted(rising),
                ", ".join(f"{speed:.2f}/s on {nodes:,}" for speed, nodes in zip(rising, sizes, strict=True)),
            )
        )
    table = [
        Row((FAMILIES[family], f"{nodes:,}", label, spread(values)), None, mean(values))
        for family in SHOWN
        for nodes in sizes
        for strategy, label in SYSTEMS.items()
        for values in [speeds(family, strategy, nodes)]
    ]
    tables = [
        Table(
            f"ADAGE's throughput at {last:,} nodes in percent of the other system's",
            ("workflow", "system", "spread", "the bound allows at most"),
            "%",
            rows,
        ),
        Table("Throughput", ("workflow", "nodes", "system", "spread"), "tasks/s", table),
    ]
    return Report(tables, claims, why(runs, last), draw(runs, sizes))


def draw(runs: Runs, sizes: tuple[int, ...]) -> object:
    figure, panels = panels_of("Throughput of two workflows (ADAGE figure 5)", 1, 2, (9.6, 4.4))
    for axes, family in zip(panels, SHOWN, strict=True):
        for number, (strategy, label) in enumerate(SYSTEMS.items()):
            each = [[one.tasks / one.makespan_s for one in runs.of(family, strategy, nodes)] for nodes in sizes]
            draw_spread(axes, label, sizes, each, number)
        axes.set_title(FAMILIES[family], fontsize=10, loc="left")
        axes.set_ylim(bottom=0)
        finish(axes, "nodes of four cores", "tasks per second", sizes, log_x=True)
    legend_below(figure, panels[0], 5)
    return figure


def why(runs: Runs, last: int) -> tuple[str, ...]:
    """The explanations of the page. The numbers about bounds beside MATRIX are taken from its runs."""
    most = mean(percent(one.makespan_s, one.bound_s) for one in runs.of("montage", MATRIX, last))
    paper = 100 + GREATER["montage", MATRIX]
    beside = "less" if most < paper else "more"
    montage = (
        f"Montage. No schedule completes more tasks per second than the bound allows: {most:.0f} % of those of the "
        f"MATRIX of this page, which is {beside} than the paper's {paper} %"
        + (": its MATRIX was farther from the best." if most < paper else ".")
    )
    return (WHY[0], montage, *WHY[1:])


WHY = (
    "These are the runs of [adage3](adage3.md), where it says why CyberShake does not reproduce. With 1,000 tasks "
    "there is little to gain beyond 256 nodes, which have a core for every task; what changes from there on is how "
    "far data is spread.",
    "For CyberShake the paper has a throughput 14 times that of MATRIX at 1,024 nodes. So its MATRIX was hardly "
    "faster there than on a few nodes. Why, we cannot tell, because its model is not published. MATRIX's own code "
    "stops stealing for good after a while, which could do that; here it never does.",
)

STUDY = Study(
    "adage5",
    "Throughput of two workflows",
    f"{PAPER}, figure 5",
    "How many tasks of CyberShake and Montage 1 to 1,024 nodes complete per second.",
    f"The runs of [adage3](adage3.md), as throughput. {FAIR} {CLUSTER}",
    run,
    takes_files=True,
)
