"""Data on the nodes or on a shared file system: how much locality helps ADAGE and the other systems."""

from statistics import mean
from typing import Any

from .shared.adage import (
    ADAGE,
    ALBATROSS,
    CLUSTER,
    PAPER,
    POLL,
    SINGLE,
    SYSTEMS,
    Case,
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

COMPARED = {ADAGE: "ADAGE", SINGLE: "ADAGE without replicas"} | SYSTEMS
BLIND = {f"mlb:{POLL}": "MATRIX (MLB, blind to data)", f"mdl:{POLL}": "MATRIX (MDL, data above all)"}
HERE, SHARED, CODE = "files on the nodes", "shared file system", "as in the published code"
SETTINGS = (HERE, SHARED, CODE)
PLACED = {
    ADAGE: "ADAGE",
    SINGLE: "ADAGE without replicas",
    f"flds:{POLL},assign=hashed": "MATRIX",
    ALBATROSS: "Albatross",
}


def run(asked: Asked) -> Report:
    families, nodes = families_of(asked), nodes_of(asked)
    named = {HERE: COMPARED | BLIND, SHARED: COMPARED | BLIND, CODE: PLACED}

    def cases(family: str, setting: str, strategy: str) -> list[Case]:
        if setting == CODE:  # one task at a time on each node, so more nodes
            return cases_of(asked, workload_of(asked, family), strategy, 4 * nodes, cores=1, has_shared_files=True)
        return cases_of(asked, workload_of(asked, family), strategy, nodes, has_shared_files=setting == SHARED)

    runs = Runs(
        {
            (family, setting, label): cases(family, setting, strategy)
            for family in families
            for setting, systems in named.items()
            for strategy, label in systems.items()
        },
        asked,
    )
    tables = [
        Table(
            f"Execution time: {setting}",
            ("workflow", "system", "spread"),
            "s",
            [
                Row((name, label, spread(runs.times(family, setting, label))), None, s)
                for family, name in families.items()
                for label in named[setting].values()
                for s in [runs.mean_s(family, setting, label)]
            ],
        )
        for setting in SETTINGS
    ]
    tables.append(
        Table(
            f"Data moved between {nodes} nodes",
            ("workflow", "system"),
            "GB",
            [
                Row((name, label), None, mean(one.bytes_moved for one in runs.of(family, HERE, label)) / 1e9)
                for family, name in families.items()
                for label in named[HERE].values()
            ],
        )
    )
    claims = []
    for setting in SETTINGS:
        behind = [
            f"{name} ({percent(ours, theirs):.0f} % of {other}'s time)"
            for family, name in families.items()
            for other in ("MATRIX", "Albatross")
            for ours, theirs in [(runs.mean_s(family, setting, "ADAGE"), runs.mean_s(family, setting, other))]
            if ours > theirs
        ]
        claims.append(
            Claim(
                f"ADAGE is ahead of MATRIX and Albatross in all five workflows: {setting}",
                not behind,
                f"behind with: {', '.join(behind) or 'none'}",
            )
        )
    moved = {
        label: sum(mean(o.bytes_moved for o in runs.of(f, HERE, label)) for f in families)
        for label in named[HERE].values()
    }
    claims.append(
        Claim(
            "ADAGE moves less data than MATRIX and Albatross",
            moved["ADAGE"] < min(moved["MATRIX"], moved["Albatross"]),
            ", ".join(f"{label} {moved[label] / 1e9:,.0f} GB" for label in ("ADAGE", "MATRIX", "Albatross", "random")),
        )
    )
    figure, panels = panels_of("Files on the nodes and on a shared file system", 3, 1, (9.6, 9.0))
    shown = ("ADAGE", "ADAGE without replicas", "MATRIX", "Albatross")
    for axes, setting in zip(panels, SETTINGS, strict=True):
        draw_groups(
            axes,
            list(families.values()),
            {
                label: [[one.over_bound for one in runs.of(family, setting, label)] for family in families]
                for label in shown
            },
            lambda height: f"{height:.2f}",
        )
        axes.set_title(setting, fontsize=10, loc="left")
        axes.axhline(1, color="#777777", linewidth=1, linestyle=":")
        axes.margins(y=0.12)
        finish(axes, "", "times the provable bound")
    legend_below(figure, panels[0], 4)
    return Report(tables, claims, (*WHY, what_changes(runs, families)), figure)


WHY = (
    "The paper's nodes have disks, but its published code put all files on a shared file system without "
    "contention, where no decision about locality can change any time, and ran one task at a time on each node. "
    "The third setting repeats that: four times as many nodes with one core, all files shared, MATRIX and "
    "Albatross with random placement. Even so ADAGE's lead is not the paper's, whose models of MATRIX and "
    "Albatross are not published.",
    "On the shared file system reading is a part of each task's length, at the speed of a link and the same "
    "everywhere; what is written costs nothing. All policies of MATRIX are then the same.",
)


def what_changes(runs: Runs, families: Any) -> str:
    """How much longer each system takes where files lie on the nodes, from the runs of this page."""
    longer = {
        label: mean(percent(runs.mean_s(one, HERE, label), runs.mean_s(one, SHARED, label)) for one in families)
        for label in ("ADAGE", "MATRIX", "Albatross", *BLIND.values())
    }
    shown = ", ".join(f"{label} {value:.0f} %" for label, value in longer.items())
    return (
        "With files on the nodes systems take, in percent of their time on the shared file system and as a mean of the "
        f"workflows: {shown}. MDL never lets go of a task whose data it has, however long it waits; FLDS shares what "
        "would wait for longer than its `tt`, or for a second behind runs of which none ends."
    )


STUDY = Study(
    "adage-locality",
    "Locality on and off",
    f"{PAPER}, section III",
    "What it matters where files lie and who looks at it.",
    "Five workflows of 1,000 tasks, with files on the nodes and on a shared file system, where locality cannot matter. "
    "MATRIX stands there with three policies: FLDS, which weighs data and load, MLB, which is blind to data, and MDL, "
    f"which never moves a task away from its data. Three seeds; ± is the standard deviation. {CLUSTER}",
    run,
    takes_files=True,
)
