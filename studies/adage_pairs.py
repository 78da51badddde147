"""Every planner with every balancer: which part of ADAGE has which effect."""

from statistics import mean

from daws.sim.plot import INK

from .shared.adage import (
    CLUSTER,
    GIVE,
    PAPER,
    POLL,
    Runs,
    cases_of,
    families_of,
    nodes_of,
    panels_of,
    workload_of,
)
from .shared.study import Asked, Claim, Report, Row, Study, Table

PLANNERS = ("critical-path", "heft", "data", "round-robin", "dealt", "hashed", "one")
_STOLEN = "replicate=never,relax=above,tt=0"
"""The setting with which tasks that wait at their home may be stolen from there."""
BALANCERS = {
    "give, copies race": f"balance=give,{GIVE}",
    "give": f"balance=give,{GIVE},replicate=never",
    "steal": f"balance=steal,{POLL},{_STOLEN}",
    "random-steal": f"balance=random-steal,delay-ms=1000,{_STOLEN}",
    "lifelines": f"balance=lifelines,{_STOLEN}",
    "none": "balance=none,replicate=never",
}
OWN = ("critical-path", "give, copies race")
ERROR = 0.5
Pair = tuple[str, str]


def strategy_of(planner: str, balancer: str) -> str:
    return f"adage:assign={planner},{BALANCERS[balancer]}"


def run(asked: Asked) -> Report:
    families, nodes = families_of(asked), nodes_of(asked)
    pairs = [(planner, balancer) for planner in PLANNERS for balancer in BALANCERS]
    # Only these two planners look at lengths.
    guessed = [(planner, balancer) for planner in PLANNERS[:2] for balancer in ("give, copies race", "steal", "none")]
    runs = Runs(
        {
            (family, pair, error): cases_of(asked, workload_of(asked, family), strategy_of(*pair), nodes, error=error)
            for family in families
            for error, some in ((0.0, pairs), (ERROR, guessed))
            for pair in some
        },
        asked,
    )
    exact = {pair: runs.over_bound((family, pair, 0.0) for family in families) for pair in pairs}
    off = {pair: runs.over_bound((family, pair, ERROR) for family in families) for pair in guessed}
    best = {family: min(pairs, key=lambda pair: runs.mean_s(family, pair, 0.0)) for family in families}
    unit, keys = "times", ("planner", "balancer")
    tables = [
        Table(
            f"Time in multiples of the provable bound on {nodes} nodes, geometric mean of five workflows",
            keys,
            unit,
            [Row(pair, None, exact[pair]) for pair in pairs],
        ),
        Table(
            f"The same if estimates are off by up to {100 * ERROR:.0f} %",
            keys,
            unit,
            [Row(pair, None, off[pair]) for pair in guessed],
        ),
        Table(
            f"The best pairing of each workflow on {nodes} nodes",
            ("workflow", *keys),
            unit,
            [Row((name, *best[family]), None, over(runs, family, best[family])) for family, name in families.items()],
        ),
        Table(
            f"ADAGE's own pairing on {nodes} nodes",
            ("workflow", *keys),
            unit,
            [Row((name, *OWN), None, over(runs, family, OWN)) for family, name in families.items()],
        ),
    ]
    return Report(tables, claims_of(exact, off), why(exact), draw(exact, nodes))


def over(runs: Runs, family: str, pair: Pair) -> float:
    return runs.over_bound([(family, pair, 0.0)])


def claims_of(exact: dict[Pair, float], off: dict[Pair, float]) -> list[Claim]:
    planner, racing = OWN
    first = min(exact, key=exact.__getitem__)
    planned = {balancer: (exact[planner, balancer], exact["hashed", balancer]) for balancer in BALANCERS}
    stealing = {balancer: exact[planner, balancer] for balancer in ("steal", "random-steal", "lifelines")}
    return [
        Claim(
            "The critical-path planner is better than random placement with every balancer",
            all(ours < hashed for ours, hashed in planned.values()),
            ", ".join(f"{ours:.3f} and {hashed:.3f} with {name}" for name, (ours, hashed) in planned.items()),
        ),
        Claim(
            "With ADAGE's planner giving is better than every sort of stealing",
            exact[OWN] < min(stealing.values()),
            f"{exact[OWN]:.3f}; " + ", ".join(f"{value:.3f} with {name}" for name, value in stealing.items()),
        ),
        Claim(
            "With random placement giving is better than stealing",
            exact["hashed", racing] < exact["hashed", "steal"],
            f"{exact['hashed', racing]:.3f} and {exact['hashed', 'steal']:.3f}",
        ),
        Claim(
            "Copies that race shorten runs in which nothing fails",
            exact[OWN] < exact[planner, "give"],
            f"{exact[OWN]:.3f} with copies, {exact[planner, 'give']:.3f} without",
        ),
        Claim(
            "ADAGE's own pairing is the best of all",
            first == OWN,
            f"{exact[OWN]:.3f}; the best is {first[0]} with {first[1]}, {exact[first]:.3f}",
        ),
        Claim(
            f"ADAGE's planner is better than random placement also if estimates are off by up to {100 * ERROR:.0f} %",
            off[OWN] < exact["hashed", racing],
            f"{off[OWN]:.3f}; {exact['hashed', racing]:.3f} with random placement",
        ),
    ]


def draw(exact: dict[Pair, float], nodes: int) -> object:
    """Draw a map: a darker field is slower, and each field shows its number."""
    title = f"Planners and balancers on {nodes} nodes: time in multiples of the provable bound"
    figure, (axes,) = panels_of(title, 1, 1, (9, 4.8))
    table = [[exact[planner, balancer] for balancer in BALANCERS] for planner in PLANNERS]
    # The worst would make all others look alike.
    most = 2.5 * min(exact.values())
    axes.imshow(table, cmap="Blues", vmin=min(exact.values()) * 0.9, vmax=most, aspect="auto")
    for row, values in enumerate(table):
        for column, value in enumerate(values):
            is_own = (PLANNERS[row], list(BALANCERS)[column]) == OWN
            axes.text(
                column,
                row,
                f"{value:.2f}" + (" (ADAGE)" if is_own else ""),
                ha="center",
                va="center",
                fontsize=10,
                fontweight="bold" if is_own else "normal",
                color="white" if value > mean((min(exact.values()), most)) else INK,
            )
    axes.set_xticks(range(len(BALANCERS)), BALANCERS)
    axes.set_yticks(range(len(PLANNERS)), PLANNERS)
    axes.set_xlabel("balancer", fontsize=10, color=INK)
    axes.set_ylabel("planner (assign)", fontsize=10, color=INK)
    axes.tick_params(labelsize=9, colors=INK, length=0)
    return figure


WHY = (
    "The paper compares whole systems: ADAGE's planner with giving against random placement with stealing. It has "
    "no numbers of its parts to put beside these.",
)


def why(exact: dict[Pair, float]) -> tuple[str, ...]:
    """The explanations of the page: planners compared under ADAGE's own balancer, with numbers from its runs."""
    racing = OWN[1]
    shown = ", ".join(f"{planner} {exact[planner, racing]:.3f}" for planner in PLANNERS)
    return (
        *WHY,
        f"With ADAGE's balancer the planners come to: {shown}. `round-robin` and `dealt` know no length at all, and "
        "`hashed` is random placement. HEFT, which plans more carefully than ADAGE, believes as it does that transfers "
        "never share a link, and relies on it more.",
    )


STUDY = Study(
    "adage-pairs",
    "Every planner with every balancer",
    f"{PAPER}, sections III and IV",
    "What ADAGE's planner, its work giving and its replicas each contribute.",
    "Five workflows of 1,000 tasks, all combinations of `assign` and `balance` of the strategy `adage`: tasks go to "
    "their homes and wait there by their rank, and the balancer moves them. Where idle nodes steal, everything that "
    "waits may be stolen. Planners know the true lengths, except in the second table. Three seeds. Balancers that need "
    f"a node in the middle, or that bind tasks to probes, do not go with homes. {CLUSTER}",
    run,
    takes_files=True,
)
