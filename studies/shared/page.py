"""The files that a study writes: tables for the terminal, a CSV, a picture, and a page for the docs."""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from daws.cli.table import grid, significant
from daws.sim.plot import write_figure

from .study import NOTABLE_PERCENT, Report, Row, Study, Table

VERDICT = "**Verdict:** "


def shown(value: float | None) -> str:
    return "–" if value is None else significant(value)


def cells_of(table: Table) -> list[list[str]]:
    """The heading, then the rows: keys, paper, daws, difference. If no paper has such numbers, there are only those of
    daws.
    """
    unit = f" ({table.unit})"
    if not table.has_paper:
        return [[*table.keys, table.daws + unit], *([*row.keys, shown(row.daws)] for row in table.rows)]
    heading = [*table.keys, table.paper + unit, table.daws + unit, "difference"]
    return [heading, *([*row.keys, shown(row.paper), shown(row.daws), difference(row)] for row in table.rows)]


def difference(row: Row) -> str:
    return "" if row.percent is None else f"{row.percent:+.1f} %"


def text_of(study: Study, report: Report) -> str:
    """The text that is printed."""
    parts = [f"{study.title} — {study.paper}"]
    for table in report.tables:
        cells = cells_of(table)
        right = range(len(table.keys), len(cells[0]))
        parts.append(f"{table.title}\n\n{grid(cells, right=right, indent='  ')}")
    parts.append(
        "\n".join(
            f"{'holds' if claim.holds else 'DOES NOT HOLD'}: {claim.text} ({claim.seen})" for claim in report.claims
        )
    )
    return "\n\n".join(parts)


def csv_of(report: Report) -> str:
    """The tables as CSV with one number in each row, so that all of them fit into one file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["table", "what", "unit", "paper", "daws", "difference_percent"])
    for table in report.tables:
        for row in table.rows:
            percent = "" if row.percent is None else f"{row.percent:.2f}"
            paper = "" if row.paper is None else f"{row.paper:.6g}"
            writer.writerow([table.title, "; ".join(row.keys), table.unit, paper, f"{row.daws:.6g}", percent])
    return buffer.getvalue()


def verdict_of(report: Report) -> str:
    held = sum(claim.holds for claim in report.claims)
    if held == len(report.claims):
        return f"holds ({held} of {held} claims)"
    return f"holds in part ({held} of {len(report.claims)} claims)" if held else "does not hold"


def page_of(study: Study, report: Report, quick: bool = False) -> str:
    """The page of a study in Markdown. The picture and the CSV of the same name are in the same folder."""
    command = f"daws study {study.name}" + (" --quick" if quick else "")
    parts = [
        f"# {study.title}",
        f"{study.paper}. {study.shows}",
        VERDICT + verdict_of(report),
        study.setup,
        f"```sh\n{command}\n```",
        f"![{study.title}]({study.name}.png)",
    ]
    if quick:
        parts.insert(1, "*A quick run, only to show that it works: its numbers mean little.*")
    parts.append(
        "## Claims\n\n"
        + "\n".join(
            f"- {'**Holds.**' if claim.holds else '**Does not hold.**'} {claim.text}: {claim.seen}."
            for claim in report.claims
        )
    )
    parts.append("## Paper and daws")
    parts += [f"{table.title}:\n\n{markdown_of(table)}" for table in report.tables]
    parts.append("## What differs, and why\n\n" + "\n\n".join([*notable_of(report), *report.why]))
    parts.append(f"All numbers: [{study.name}.csv]({study.name}.csv)")
    return "\n\n".join(parts) + "\n"


def markdown_of(table: Table) -> str:
    heading, *rows = cells_of(table)
    rule = ["---"] * len(table.keys) + ["---:"] * (len(heading) - len(table.keys))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heading, rule, *rows))


def notable_of(report: Report) -> list[str]:
    """A sentence with the number of large differences from the paper; empty if there are no numbers of a paper."""
    compared = [table for table in report.tables if table.has_paper]
    if not compared:
        return []
    whose = "the paper's" if all(table.is_papers for table in compared) else "what stands beside it"
    parts = []
    for table in compared:
        rows = [f"{', '.join(row.keys)} ({difference(row)})" for row in table.rows if row.is_notable]
        if rows:
            parts.append(f"- {table.title}: {'; '.join(rows)}")
    if not parts:
        return [f"No number is more than {NOTABLE_PERCENT:g} % away from {whose}."]
    return ["\n".join([f"More than {NOTABLE_PERCENT:g} % away from {whose}:\n", *parts])]


def write(study: Study, report: Report, folder: Path, quick: bool = False) -> list[Path]:
    """Write all files of a study."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{study.name}.{suffix}" for suffix in ("md", "csv", "png")]
    paths[0].write_text(page_of(study, report, quick))
    paths[1].write_text(csv_of(report))
    write_figure(report.picture, paths[2])
    for name, text in report.more.items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    return paths


def write_index(studies: Iterable[Study], folder: Path) -> Path:
    """Write the list of all studies, with the verdict of those that have a page."""
    lines = ["| study | paper | what it shows | verdict |", "|---|---|---|---|"]
    for study in studies:
        page = folder / f"{study.name}.md"
        found = re.search(re.escape(VERDICT) + "(.*)", page.read_text()) if page.exists() else None
        name = f"[`{study.name}`]({page.name})" if page.exists() else f"`{study.name}`"
        lines.append(f"| {name} | {study.paper} | {study.shows} | {found[1] if found else 'not run'} |")
    path = folder / "index.md"
    path.write_text(
        "# Published results beside ours\n\nEach study runs what was published in the simulator and puts the numbers "
        "side by side. `daws study NAME` runs one of them, `daws study --all` all; both write these pages anew.\n\n"
        + "\n".join(lines)
        + "\n"
    )
    return path
