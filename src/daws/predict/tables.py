"""Numbers and tables for people, as text and as HTML."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daws.bounds import Bound, Recursion
    from daws.sim.simulate import Result

_BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def count(value: int) -> str:
    return f"{value:,}"


def size(size_bytes: float) -> str:
    for unit, name in _BYTES:
        if size_bytes >= unit:
            return f"{significant(size_bytes / unit)} {name}"
    return f"{size_bytes:.0f} B"


def seconds(value: float) -> str:
    if value >= 1 or value == 0:
        return f"{significant(value)} s"
    return f"{significant(value * 1e3)} ms" if value >= 1e-3 else f"{significant(value * 1e6)} µs"


def share(value: float) -> str:
    return f"{value * 100:.1f} %"


def significant(value: float) -> str:
    """Three digits that mean something, thousands separated."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def grid(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "") -> str:
    """Rows of cells in aligned columns; `right` names the columns aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


Row = tuple[str, str, str, str]
"""The title of a group (or nothing), a name, a value, and its meaning."""


def html_grid(heading: str, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """The same as a table for notebooks."""
    lines = []
    for row in rows:
        cells = [
            f'<td style="text-align:{"right" if column in right else "left"}">{escape(cell)}</td>'
            for column, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<div><p>{escape(heading).replace(chr(10), '<br>')}</p><table>{''.join(lines)}</table></div>"


def result_table(result: "Result", best: "Bound", published: "Recursion") -> str:
    """How a simulation went, in groups of related numbers."""
    return grid(result_rows(result, best, published), right=(2,), indent="  ")


def result_rows(result: "Result", provable: "Bound", published: "Recursion", only: Sequence[str] = ()) -> list[Row]:
    """The rows of such a table, of all groups or `only` of some."""
    published_s = published.seconds
    tasks = max(1, result.tasks)
    reads = result.local_hits + result.cache_hits

    def per_task(value: int) -> str:
        return f"{significant(value / tasks)} per task"

    groups: list[tuple[str, list[tuple[str, str, str]]]] = [
        (
            "run",
            [
                ("makespan", seconds(result.makespan_s), ""),
                ("throughput", f"{significant(result.throughput)} /s", "tasks per second"),
                (
                    "efficiency",
                    share(result.efficiency),
                    "the time it would take if nothing ever waited / makespan",
                ),
                ("utilization", share(result.utilization), "of the cores' time was spent running tasks"),
            ],
        ),
        (
            "bound",
            [
                ("no schedule below", seconds(provable.seconds), f"by {provable.binding.name}"),
                ("share", share(provable.share_of(result.makespan_s)), "of the makespan no schedule could have saved"),
                ("recursion", seconds(published_s), "as MATRIX published it; not a bound, see docs/bound.md"),
            ],
        ),
        (
            "data",
            [
                ("moved", size(result.bytes_moved), f"{size(result.bytes_moved / tasks)} per task"),
                ("held at once", size(result.peak_bytes), f"up to {size(result.peak_node_bytes)} on one node"),
                ("local hits", count(result.local_hits), "inputs read where they were made" if reads else ""),
                ("cache hits", count(result.cache_hits), "inputs fetched before by another task" if reads else ""),
            ],
        ),
        (
            "balance",
            [
                ("pushes", count(result.pushes), "tasks sent to their data, or to where they belong"),
                ("steals", count(result.steals), "tasks taken over by idle nodes"),
                ("failed steals", count(result.failed_steals), "attempts that found nothing"),
                ("gives", count(result.gives), "tasks handed over by loaded nodes"),
                ("replicas", count(result.replicas), "second copies that raced with the first"),
            ],
        ),
        (
            "traffic",
            [
                ("messages", count(result.messages), per_task(result.messages)),
                ("store calls", count(result.store_calls), per_task(result.store_calls)),
                ("store records", count(result.store_records), per_task(result.store_records)),
            ],
        ),
        (
            "simulator",
            [
                ("events", count(result.events), per_task(result.events)),
                (
                    "wall time",
                    seconds(result.wall_s),
                    f"{significant(result.tasks / max(1e-9, result.wall_s))} tasks/s",
                ),
                ("peak memory", size(result.peak_rss_mb * 2**20), ""),
            ],
        ),
    ]
    if result.failed or result.cancelled:
        groups[0][1].append(("failed", count(result.failed), "tasks"))
        groups[0][1].append(("cancelled", count(result.cancelled), "tasks"))
    return [
        (title if not index else "", name, value, note)
        for title, lines in groups
        if not only or title in only
        for index, (name, value, note) in enumerate(lines)
    ]


def bound_rows(tasks: int, found: "Bound", published: "Recursion") -> list[Row]:
    """All parts of a bound, the one that binds, and the recursion beside them."""
    rows = [
        ("provable" if not number else "", part.name, seconds(part.seconds), part.meaning)
        for number, part in enumerate(found.parts)
    ]
    best = found.seconds
    return [
        *rows,
        ("", "no schedule below", seconds(best), f"by {found.binding.name}"),
        ("", "throughput", f"{significant(tasks / best) if best else 0} /s", "tasks per second at most"),
        ("recursion", "finish", seconds(published.seconds), "as MATRIX published it; not a bound, see docs/bound.md"),
        ("", "throughput", f"{significant(published.throughput(tasks))} /s", "tasks per second"),
        (
            "",
            "queue wait",
            seconds(published.wait_s),
            f"of every task: {significant(published.per_core)} tasks per core of {seconds(published.length_s)} each",
        ),
        ("", "against the bound", f"{published.seconds / best * 100 if best else 0:.1f} %", ""),
    ]
