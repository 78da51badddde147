"""Figure 6 of ADAGE: when tasks are completed, on 1,024 nodes."""

from statistics import mean

import numpy as np

from daws.compare.picture import COLOURS, DASHES

from .adage3 import sizes_of
from .adage5 import SHOWN
from .shared.adage import (
    ADAGE,
    CLUSTER,
    FAIR,
    FAMILIES,
    PAPER,
    PUBLISHED,
    SYSTEMS,
    Found,
    Runs,
    cases_of,
    panels_of,
    spread,
    workload_of,
)
from .shared.picture import finish, legend_below
from .shared.study import Asked, Claim, Report, Row, Study, Table

BINS = 20
"""The number of equal parts into which the time of the slowest of the three systems is cut to find the peak."""
SHARES = (50, 90, 100)


def run(asked: Asked) -> Report:
    last = sizes_of(asked)[-1]
    runs = Runs(
        {
            (family, strategy): cases_of(asked, workload_of(asked, family), strategy, last)
            for family in SHOWN
            for strategy in SYSTEMS
        },
        asked,
    )
    tables = [
        Table(
            f"Until {share} % of all tasks are completed, on {last:,} nodes",
            ("workflow", "system", "spread"),
            "s",
            [
                Row((FAMILIES[family], label, spread(values)), None, mean(values))
                for family in SHOWN
                for strategy, label in SYSTEMS.items()
                for values in [[until(one, share) for one in runs.of(family, strategy)]]
            ],
        )
        for share in SHARES
    ]
    claims = []
    for family in SHOWN:
        until_s = max(max(runs.times(family, strategy)) for strategy in PUBLISHED)
        peaks = {
            label: mean(peak_of(one, until_s) for one in runs.of(family, strategy))
            for strategy, label in PUBLISHED.items()
        }
        halves = {
            label: mean(until(one, 50) for one in runs.of(family, strategy)) for strategy, label in PUBLISHED.items()
        }
        for what, found in (("the peak of completed tasks", peaks), ("half of all tasks", halves)):
            claims.append(
                Claim(
                    f"{FAMILIES[family]}: ADAGE reaches {what} before MATRIX and Albatross",
                    all(found[PUBLISHED[ADAGE]] < s for label, s in found.items() if label != PUBLISHED[ADAGE]),
                    ", ".join(f"{label} after {s:.0f} s" for label, s in found.items()),
                )
            )
    return Report(tables, claims, WHY, draw(runs, last))


def until(found: Found, share: int) -> float:
    """The time in seconds until this percentage of the tasks has ended."""
    return float(np.percentile(found.ends_s, share, method="inverted_cdf"))


def peak_of(found: Found, until_s: float) -> float:
    """The middle of the time in which most tasks ended."""
    counts, edges = np.histogram(found.ends_s, BINS, (0.0, until_s))
    most = int(counts.argmax())
    return float(edges[most] + edges[most + 1]) / 2


def draw(runs: Runs, nodes: int) -> object:
    figure, panels = panels_of(f"Completed tasks over time on {nodes:,} nodes (ADAGE figure 6)", 1, 2, (9.6, 4.4))
    for axes, family in zip(panels, SHOWN, strict=True):
        for number, (strategy, label) in enumerate(SYSTEMS.items()):
            ends = runs.of(family, strategy)[0].ends_s
            share = [100 * (place + 1) / len(ends) for place in range(len(ends))]
            style = {"color": COLOURS[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.5}
            axes.plot([0.0, *ends], [0.0, *share], label=label, **style)
        axes.set_title(FAMILIES[family], fontsize=10, loc="left")
        axes.set_ylim(0, 101)
        axes.set_xlim(left=0)
        finish(axes, "simulated time in s", "completed tasks in %")
    legend_below(figure, panels[0], 5)
    return figure


WHY = (
    "The paper draws how many tasks are completed in each interval and gives no numbers, so there is nothing to "
    "put beside ours but its words: ADAGE reaches the peak much faster. The picture adds completions up, because a "
    "peak depends on the width of the intervals; the claims look at both. Copies of tasks count too, but with a "
    "core for every task hardly any are made.",
    "Half of CyberShake's tasks take a second each and wait for tasks that wait for transfers, so its completions "
    "follow the links ([adage3](adage3.md)).",
)

STUDY = Study(
    "adage6",
    "When tasks are completed",
    f"{PAPER}, figure 6",
    "How soon the tasks of CyberShake and Montage are completed on 1,024 nodes.",
    f"The runs of [adage3](adage3.md) on the largest cluster. {FAIR} {CLUSTER}",
    run,
    takes_files=True,
)
