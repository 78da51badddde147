"""Figures 6 to 8 of MATRIX: all-pairs with several policies, with caching and without, and how busy cores are."""

from daws.compare.picture import COLOURS
from daws.sim.plot import INK, Panel
from daws.strategy import PRESETS

from .shared.matrix import PAPER
from .shared.picture import figure_of, finish
from .shared.runs import Job, Outcome, run_all
from .shared.study import Asked, Claim, Report, Row, Study, Table

FLDS = "flds:t=0.5,tt=20"
"""As in the paper's section 4.1.2, except that its tt holds from the beginning and not from 80 % on."""
POLICIES = {FLDS: "FLDS", "rlds:t=0.5": "RLDS", "mdl": "MDL", "mlb": "MLB", "daws": "daws"}
UNCACHED = {f"{FLDS},cache=none": "FLDS without caching"}
DIFFUSION = "data-diffusion"
NETWORKS = {1.25e8: "1 Gbit/s", 5e8: "4 Gbit/s"}
"""Bytes per second of a node's link. The paper gives none; with these two, both sides of its results can be seen."""
SLOW, FAST = NETWORKS
CACHED_PERCENT, DIFFUSION_PERCENT, UNCACHED_PERCENT = 85.9, 75.0, 50.0
PUBLISHED = {FLDS: CACHED_PERCENT, f"{FLDS},cache=none": UNCACHED_PERCENT, DIFFUSION: DIFFUSION_PERCENT}


def run(asked: Asked) -> Report:
    files, nodes = (12, 4) if asked.quick else (500, 100)
    names = POLICIES | UNCACHED | ({DIFFUSION: "data diffusion"} if DIFFUSION in PRESETS else {})
    workload = f"all-pairs:files={files}"
    jobs = {
        (strategy, link): Job(workload, strategy, nodes, costs=(("net_bytes_per_s", link),), has_panel=True)
        for strategy in names
        for link in NETWORKS
    }
    outcomes = run_all(list(jobs.values()), asked)
    percent = {key: 100 * outcomes[job].result.efficiency for key, job in jobs.items()}

    def of(strategy: str, link: float) -> Outcome:
        return outcomes[jobs[strategy, link]]

    keys = ("policy", "network")
    tables = [
        Table(
            f"Efficiency at {2 * nodes} cores",
            keys,
            "%",
            [
                Row((name, network), PUBLISHED.get(strategy), percent[strategy, link])
                for link, network in NETWORKS.items()
                for strategy, name in names.items()
            ],
        ),
        Table(
            "Inputs that were there already, because another task of the node had fetched them",
            keys,
            "%",
            [
                Row((name, network), 80.0 if strategy == FLDS else None, hits_percent(of(strategy, link)))
                for link, network in NETWORKS.items()
                for strategy, name in POLICIES.items()
            ],
        ),
    ]
    claims = []
    for link, network in NETWORKS.items():
        best = max(percent[FLDS, link], percent["daws", link])
        flds, mdl, mlb = (percent[one, link] for one in (FLDS, "mdl", "mlb"))
        seen = f"FLDS {percent[FLDS, link]:.1f} %, daws {percent['daws', link]:.1f} %"
        bare = percent[next(iter(UNCACHED)), link]
        claims += [
            Claim(f"At {network}: at least 85.9 % with caching", best >= CACHED_PERCENT, seen),
            Claim(
                f"At {network}: less than 50 % without caching",
                bare < UNCACHED_PERCENT,
                f"FLDS {bare:.1f} %",
            ),
            Claim(
                f"At {network}: FLDS > MDL > MLB",
                flds > mdl > mlb,
                f"FLDS {flds:.1f} %, MDL {mdl:.1f} %, MLB {mlb:.1f} %",
            ),
        ]
    return Report(tables, claims, WHY, draw(names, percent, of(FLDS, SLOW).panel, of("mdl", SLOW).panel))


def hits_percent(outcome: Outcome) -> float:
    """Each task reads two files."""
    return 100 * outcome.result.cache_hits / (2 * outcome.result.tasks)


def draw(names: dict[str, str], percent: dict[tuple[str, float], float], *panels: Panel | None) -> object:
    figure, (left, right) = figure_of("All-pairs at 200 cores (MATRIX figures 6 to 8)", 2, (11, 5))
    for offset, (link, colour) in zip((-0.2, 0.2), zip(NETWORKS, COLOURS, strict=False), strict=True):
        at = [place + offset for place in range(len(names))]
        heights = [percent[strategy, link] for strategy in names]
        bars = left.barh(at, heights, height=0.4, color=colour, label=f"simulated, {NETWORKS[link]}")
        left.bar_label(bars, fmt="{:.1f}", fontsize=8, color=INK, padding=2)
    for place, strategy in enumerate(names):
        if strategy in PUBLISHED:
            left.plot([PUBLISHED[strategy]] * 2, [place - 0.45, place + 0.45], color="#000000", linewidth=1.6)
    left.plot([], [], color="#000000", linewidth=1.6, label="paper (without caching: less than)")
    left.set_yticks(range(len(names)), names.values())
    left.invert_yaxis()
    left.set_xlim(0, 109)
    finish(left, "efficiency in %", "")
    for number, (panel, name) in enumerate(zip(panels, ("FLDS", "MDL"), strict=True)):
        if panel is not None:
            style = {"color": COLOURS[number + 2], "linestyle": ("-", "--")[number], "linewidth": 1.4}
            right.plot(panel.edges_s[1:], panel.busy, label=f"busy with {name}, 1 Gbit/s", **style)
    finish(right, "simulated time in s", "busy executors")
    right.set_ylim(bottom=0)
    handles, labels = (
        a + b for a, b in zip(left.get_legend_handles_labels(), right.get_legend_handles_labels(), strict=True)
    )
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9, labelcolor=INK)
    return figure


WHY = (
    "The network decides these figures, and the paper does not give its speed. A node with two cores that keeps "
    "nothing has to fetch about 24 MB in the time of a task, which takes 192 ms at 1 Gbit/s and 48 ms at 4 Gbit/s: so "
    "caching can matter as much as in figure 7 only on a network that is slower than the tasks.",
    "With t = 0.5, moving both files at 4 Gbit/s counts as cheap (48 ms for a task of 100 ms), and then FLDS and RLDS "
    "are MLB: they share every task. At 1 Gbit/s the files stay where they are and tasks come to them.",
    "MDL is far behind because all files are of the same size, and of two equal ones the first is taken: a task "
    "always goes to its file of the first set. Those 500 files lie on 100 nodes by chance, on some up to nine "
    "instead of five, and these nodes finish last. The paper describes such a tail.",
    "The paper's tt = 20 s is not what holds FLDS back at 1 Gbit/s: with 200 files on 80 cores it gets 77.7 % with "
    "20 s and 77.5 % with 2 s.",
)

STUDY = Study(
    "figure6",
    "All-pairs: policies and caching",
    f"{PAPER}, figures 6 to 8",
    "How much of 200 cores' time is work when every task reads two of 1,000 files.",
    "500 × 500 tasks of 100 ms, each reading two files of 12 MB, which lie spread over 100 nodes of two cores. FLDS "
    "has the paper's t = 0.5 and tt = 20 s. The paper does not say how fast its network was, so there are two.",
    run,
)
