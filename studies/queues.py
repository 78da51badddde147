"""Strategies of AIMES and Swift on the same batch queues. The paper has no such comparison."""

from collections.abc import Sequence
from typing import Any

from .shared.picture import Line, draw_lines, figure_of, finish, legend_below
from .shared.pilots import (
    AS_AIMES_MET,
    AS_RECORDED,
    BAG,
    FOUR,
    PAPER,
    PATIENT,
    PilotJob,
    Times,
    queues_of,
    run_all,
    seeds_of,
    times_of,
)
from .shared.study import Asked, Claim, Report, Row, Study, Table

SEEDS = 10
SWIFT, EARLY = "swift, 20 pilots each", "early binding, 2 pilots"
LATE, LATE_FOUR = "late binding, 2 pilots", "late binding, 4 pilots"
STRATEGIES = {
    SWIFT: f"swift:pilots-each=20,spare-s=600,{PATIENT}",
    "early binding, 1 pilot": "aimes:bind=early,pilots=1",
    EARLY: "aimes:bind=early,pilots=2",
    LATE: "aimes:pilots=2",
    LATE_FOUR: "aimes:pilots=4",
    "by prediction": "aimes:acquire=by-prediction",
}
WAITS = {"long waits": AS_RECORDED, "short waits": AS_AIMES_MET}
TASKS = (8, 32, 256, 2048)
IDEAL_S = 900.0

Key = tuple[str, str, int]
"""The key of a group of runs: waits, strategy, number of tasks."""


def run(asked: Asked) -> Report:
    sizes = TASKS[:2] if asked.quick else TASKS
    jobs = {
        (waits, name, tasks): [
            PilotJob(strategy, BAG.format(tasks=tasks), queues_of(FOUR, some), seed)
            for seed in range(seeds_of(tasks, SEEDS, asked))
        ]
        for waits, some in WAITS.items()
        for name, strategy in STRATEGIES.items()
        for tasks in sizes
    }
    reports = run_all([job for some in jobs.values() for job in some], asked)
    times = {key: times_of([reports[job] for job in some]) for key, some in jobs.items()}
    tables = [
        table("Time to completion, mean", "s", {key: one.ttc_s for key, one in times.items()}),
        table("Time to completion, deviation", "s", {key: one.deviation_s for key, one in times.items()}),
        table("Time until the first pilot was active, mean", "s", {key: one.tw_s for key, one in times.items()}),
        table("Core time that pilots held, mean", "h", {key: one.held_h for key, one in times.items()}),
    ]
    claims = []
    for waits in WAITS:
        tied = [size for size in sizes if times[waits, LATE, size].ttc_s >= times[waits, EARLY, size].ttc_s]
        swift, late = (times[waits, name, sizes[0]] for name in (SWIFT, LATE))
        claims += [
            Claim(
                f"With {waits}: late binding ends before early binding to the same two pilots, whatever the size",
                not tied,
                compared(times, waits, EARLY, LATE, sizes),
            ),
            Claim(
                f"With {waits}: few pilots and late binding vary less than many small ones and tied tasks",
                late.deviation_s < swift.deviation_s,
                f"{sizes[0]} tasks take {late.ttc_s:,.0f} ± {late.deviation_s:,.0f} s and "
                f"{swift.ttc_s:,.0f} ± {swift.deviation_s:,.0f} s",
            ),
        ]
    few, many = ([times["long waits", name, n].tw_s for n in sizes] for name in (LATE, LATE_FOUR))
    claims.append(
        Claim(
            "With long waits: four resources instead of two never make the first pilot later, and some sooner",
            all(a <= b for a, b in zip(many, few, strict=True)) and many != few,
            f"{', '.join(f'{a:,.0f} and {b:,.0f} s' for a, b in zip(many, few, strict=True))} with "
            f"{', '.join(f'{n:,}' for n in sizes)} tasks",
        )
    )
    return Report(tables, claims, WHY, draw(times, sizes))


def table(title: str, unit: str, values: dict[Key, float]) -> Table:
    rows = [Row((waits, name, f"{tasks:,}"), None, value) for (waits, name, tasks), value in values.items()]
    return Table(title, ("waits", "strategy", "tasks"), unit, rows)


def compared(times: dict[Key, Times], waits: str, first: str, second: str, sizes: Sequence[int]) -> str:
    parts = [f"{times[waits, second, n].ttc_s:,.0f} and {times[waits, first, n].ttc_s:,.0f} s" for n in sizes]
    return f"{', '.join(parts)} with {', '.join(f'{n:,}' for n in sizes)} tasks"


def draw(times: dict[Key, Times], sizes: Sequence[int]) -> Any:
    figure, panels = figure_of("The same bags and the same queues for every strategy", len(WAITS), (10.4, 5))
    for axes, waits in zip(panels, WAITS, strict=True):
        for number, name in enumerate(STRATEGIES):
            found = [times[waits, name, size] for size in sizes]
            # Side by side, so that error bars can be told apart.
            x = [size * 1.06 ** (number - len(STRATEGIES) / 2) for size in sizes]
            draw_lines(axes, [Line(name, x, [one.ttc_s for one in found], number)])
            low = [min(one.deviation_s, 0.9 * one.ttc_s) for one in found]
            axes.errorbar(
                x,
                [one.ttc_s for one in found],
                [low, [one.deviation_s for one in found]],
                fmt="none",
                color=axes.lines[-1].get_color(),
                capsize=2,
                linewidth=0.7,
            )
        axes.axhline(IDEAL_S, linestyle="--", color="#333333", linewidth=0.8, label="ideal")
        axes.set(xscale="log", yscale="log")
        axes.set_title(waits, fontsize=10, color="#333333")
        finish(axes, "tasks of 15 minutes", "time to completion in s (mean, deviation)", sizes)
    legend_below(figure, panels[0])
    return figure


WHY = (
    "The paper's Swift runs met long queues and its AIMES runs short ones, so its tables compare days as much as "
    "strategies ([`aimes`](aimes.md)). Here every strategy meets the same ones: those that XDMoD recorded of all jobs "
    "(long waits), and those of AIMES's own runs (short waits). There is nothing in the paper to put beside these "
    "numbers; its conclusions are the claims.",
    "Whoever ties tasks to pilots or resources waits for the slowest of them, and Swift's short pilots wait again for "
    "each round of tasks. With late binding the first pilot is enough. It is asked for longer, so that it could do "
    "everything alone, and most of its core time stays unused when others come soon.",
    "With four pilots instead of two each is half as large, and smaller is not always sooner: XDMoD's jobs of up to "
    "512 cores waited three times as long on Gordon as those of up to 1,024, which decides 2,048 tasks here.",
    "Bags of 2,048 tasks met only the first three of the ten days, so their times can be compared between strategies, "
    "but not with those of smaller bags.",
    "Queues here do not depend on what is asked for, except on its size: that long jobs wait longer than short ones "
    "was not recorded, and would speak for small pilots.",
)

STUDY = Study(
    "queues",
    "The same queues for every strategy",
    f"{PAPER}, section VI",
    "Early and late binding, few pilots and many, when all of them meet the same batch queues.",
    "Bags of tasks of 15 minutes on four resources, 10 runs of each with up to 256 tasks and 3 with more, every one on "
    "another day; the same days for all.",
    run,
)
