"""Figure 4 of ADAGE: two workflows of up to 10,000 tasks on 1,024 nodes."""

from .adage5 import SHOWN
from .shared.adage import (
    ADAGE,
    CLUSTER,
    FAIR,
    FAMILIES,
    PAPER,
    PUBLISHED,
    SYSTEMS,
    Runs,
    cases_of,
    draw_spread,
    files_of,
    panels_of,
    spread,
)
from .shared.picture import finish, legend_below
from .shared.study import Asked, Claim, Report, Row, Study, Table

TASKS = (1000, 3000, 10_000)
NODES = 1024


def workloads_of(asked: Asked, family: str) -> dict[int, str]:
    """The workloads by their number of tasks."""
    if asked.files is not None:
        return files_of(asked.files, family)
    return {tasks: f"{family}:tasks={tasks}" for tasks in ((60, 120) if asked.quick else TASKS)}


def run(asked: Asked) -> Report:
    nodes = 4 if asked.quick else NODES
    sizes = {family: workloads_of(asked, family) for family in SHOWN}
    runs = Runs(
        {
            (family, strategy, tasks): cases_of(asked, workload, strategy, nodes)
            for family in SHOWN
            for tasks, workload in sizes[family].items()
            for strategy in SYSTEMS
        },
        asked,
    )
    claims = []
    for family in SHOWN:
        first, *_, last = sizes[family]
        grown = {
            label: runs.mean_s(family, strategy, last) - runs.mean_s(family, strategy, first)
            for strategy, label in PUBLISHED.items()
        }
        ends = {label: runs.mean_s(family, strategy, last) for strategy, label in PUBLISHED.items()}
        ours = PUBLISHED[ADAGE]
        claims += [
            Claim(
                f"{FAMILIES[family]}: from {first:,} to {last:,} tasks ADAGE's time grows less than the others'",
                all(grown[ours] < s for label, s in grown.items() if label != ours),
                ", ".join(f"{label} by {s:.0f} s" for label, s in grown.items()),
            ),
            Claim(
                f"{FAMILIES[family]}: ADAGE is the fastest of the three with {last:,} tasks",
                ends[ours] == min(ends.values()),
                ", ".join(f"{label} {s:.0f} s" for label, s in ends.items()),
            ),
        ]
    rows = [
        Row((FAMILIES[family], f"{tasks:,}", label, spread(runs.times(family, strategy, tasks))), None, s)
        for family in SHOWN
        for tasks in sizes[family]
        for strategy, label in SYSTEMS.items()
        for s in [runs.mean_s(family, strategy, tasks)]
    ]
    table = Table(f"Execution time on {nodes:,} nodes", ("workflow", "tasks", "system", "spread"), "s", rows)
    figure, panels = panels_of(f"More tasks on {nodes:,} nodes (ADAGE figure 4)", 1, 2, (9.6, 4.4))
    for axes, family in zip(panels, SHOWN, strict=True):
        x = list(sizes[family])
        for number, (strategy, label) in enumerate(SYSTEMS.items()):
            draw_spread(axes, label, x, [runs.times(family, strategy, tasks) for tasks in x], number)
        axes.set_title(FAMILIES[family], fontsize=10, loc="left")
        axes.set_ylim(bottom=0)
        finish(axes, "tasks", "execution time in s", x, log_x=True)
    legend_below(figure, panels[0], 5)
    return Report([table], claims, WHY, figure)


WHY = (
    "The paper draws these times and gives no numbers, so its words alone can be compared: ADAGE's times grow slower.",
    "Ten times the tasks of CyberShake are ten times as many readers with ten times as many different files, so "
    "the links carry ten times as much. Ten times the tasks of Montage meet in the same few tasks, which then take "
    "ten times as long: the longest way through it grows from 362 s to 3,136 s of recorded time, and on 1,024 "
    "nodes all systems spend most of their time there.",
)

STUDY = Study(
    "adage4",
    "Up to 10,000 tasks on 1,024 nodes",
    f"{PAPER}, figure 4",
    "How long CyberShake and Montage take on 1,024 nodes as they grow to 10,000 tasks.",
    f"{FAIR} {CLUSTER}",
    run,
    takes_files=True,
)
