"""What was found, as tables: for people, and for the page in docs."""

from pathlib import Path

from bench.scale.killing import Loss
from bench.scale.runs import Figures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

_HEAD = (
    "workload",
    "tasks",
    "live, s",
    "simulated, s",
    "live beside simulated",
    "efficiency",
    "aim",
    "share of the bound",
    "MATRIX",
)
_COSTS = ("workload", "nodes", "store", "client", "processors busy", "messages", "store records", "simulated", "stolen")


def tables(found: list[Figures], loss: Loss | None, settings: list[str]) -> str:
    """`settings` are those of the runs, and of those in which a node is killed."""
    parts: list[str] = []
    if found:
        costs = _table(_COSTS, [_costs(one) for one in found])
        parts += [f"{settings[0]}\n", _table(_HEAD, [_row(one) for one in found]), costs]
    if loss is not None:
        parts += [f"{settings[-1]}\n", told_of(loss)]
    return "\n".join(parts)


def _row(one: Figures) -> tuple[str, ...]:
    return (
        one.name + (f" ({one.expiries} false expiries)" if one.expiries else ""),
        f"{one.tasks:,}",
        f"{one.makespan_s:.1f}",
        f"{one.simulated_s:.1f}",
        f"{one.off:+.1%}",
        f"{one.efficiency:.1%}",
        f"{one.aim:.0%}" if one.aim else "",
        f"{one.bound_share:.1%}",
        one.published,
    )


def _costs(one: Figures) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.node_us:.0f} µs",
        f"{one.store_us:.0f} µs",
        f"{one.client_us:.0f} µs",
        f"{one.busy:.2f}",
        f"{one.messages:.2f}",
        f"{one.rows:.2f}",
        f"{one.simulated_rows:.2f}",
        f"{one.stolen:,}",
    )


def told_of(loss: Loss) -> str:
    return (
        f"A node killed in the middle of {loss.tasks:,} tasks in pipes of ten, {len(loss.rounds)} times in turns with "
        f"the same graph undisturbed; medians, with the least and the most: {_spread(loss, 'killed_s')} instead of "
        f"{_spread(loss, 'undisturbed_s')}, so **it cost {_spread(loss, 'cost_s')}**. At most it should be "
        f"{loss.limit_s:.1f} s: the node was missed after {_spread(loss, 'detected_s')}, and of the "
        f"{loss.median('rerun'):,.0f} tasks that ran again ({loss.rerun_work_s:.1f} s of work on all executors "
        f"together) those in one pipe, one after the other, take {loss.path_s:.1f} s at most.\n"
    )


def _spread(loss: Loss, name: str) -> str:
    found = [getattr(one, name) for one in loss.rounds]
    return f"{loss.median(name):.1f} s ({min(found):.1f} to {max(found):.1f})"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def write(text: str, page: Path = PAGE) -> None:
    """Into its place on the page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    assert rest and after, f"{page} has no place for it"
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}", "utf-8")
