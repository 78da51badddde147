"""The figures as text, for a terminal and for a page."""

from collections.abc import Sequence

from msgspec import Struct

from bench.peers.runner import CALM_SHARE, Run
from bench.peers.summary import US, Row, Spread, Verdict, summarise
from bench.peers.systems import HOMES, system_named
from bench.peers.workloads import WORKLOADS

Table = list[list[str]]


class Report(Struct):
    """All that one run of the benchmark found; written as JSON and read again."""

    machine: str
    quick: bool
    repeat: int
    versions: dict[str, str]
    missing: dict[str, str]  # systems that could not be measured at all, and why
    runs: list[Run]


def value(workload: str, number: float) -> str:
    """A figure with its unit, to three digits."""
    unit = WORKLOADS[workload].unit
    if unit == "%":
        return f"{number:.1%}"
    if unit == "s":
        return duration(number)
    if unit == "B":
        return f"{number:,.0f} B"
    return f"{number:,.0f}{unit}" if unit == "/s" else f"{number:.2f}{unit}"


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def with_spread(workload: str, spread: Spread | None) -> str:
    if spread is None:
        return "–"
    middle = value(workload, spread.median)
    if spread.low == spread.high or not spread.median:
        return middle
    return f"{middle} ({spread.low / spread.median - 1:+.0%} {spread.high / spread.median - 1:+.0%})"


def ratio(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    digits = [_digits(one) for one in (spread.median, spread.low, spread.high)]
    return f"{digits[0]}×" if spread.low == spread.high else f"{digits[0]}× ({digits[1]} – {digits[2]})"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def aim_text(verdict: Verdict) -> str:
    """An aim in words, such as "≥ 20× processes (72,000/s)"."""
    aim = verdict.aim
    sign = "≥" if WORKLOADS[aim.workload].higher_is_better else "≤"
    if aim.figure == "moved_bytes":
        return f"≤ bytes copied by {verdict.other} ({verdict.wanted / 1e9:.2f} GB)"
    wanted = value(aim.workload, verdict.wanted)
    if aim.against == "nothing":
        return f"{sign} {wanted}"
    if aim.plus:
        return f"{sign} {verdict.other} {aim.plus * 100:+.0f} points ({wanted})"
    return f"{sign} {aim.factor:.3g}× {verdict.other} ({wanted})"


def main_table(rows: Sequence[Row]) -> Table:
    table = [["workload", US, "floor", "best peer", f"{US} / floor", f"{US} / best peer", "aims met"]]
    for row in rows:
        name = row.workload
        best = f"{with_spread(name, row.systems[row.best])} {row.best}" if row.best else "–"
        table.append(
            [
                WORKLOADS[name].title,
                with_spread(name, row.systems.get(US)),
                with_spread(name, row.systems.get("floor")),
                best,
                ratio(row.against_floor),
                ratio(row.against_best),
                _score(row.verdicts),
            ]
        )
    return table


def _score(verdicts: Sequence[Verdict]) -> str:
    met = sum(verdict.is_met for verdict in verdicts)
    return f"{met} of {len(verdicts)}" if verdicts else "–"


def aims_table(rows: Sequence[Row]) -> Table:
    table = [["workload", "aim", US, "met"]]
    for row in rows:
        for verdict in row.verdicts:
            moved = verdict.aim.figure == "moved_bytes"
            ours = f"{verdict.ours / 1e9:.2f} GB" if moved else value(row.workload, verdict.ours)
            table.append(
                [WORKLOADS[row.workload].title, aim_text(verdict), ours, "yes" if verdict.is_met else "**no**"]
            )
    return table


def systems_table(rows: Sequence[Row]) -> Table:
    """Every system's median, one column each."""
    names = [name for name in HOMES if any(name in row.systems for row in rows)]
    table = [["workload", *names]]
    for row in rows:
        medians = [value(row.workload, row.systems[name].median) if name in row.systems else "–" for name in names]
        table.append([WORKLOADS[row.workload].title, *medians])
    return table


def notes(report: Report) -> list[str]:
    """What a reader has to know before believing the figures."""
    shares = sorted(run.others_share for run in report.runs)
    found = [f"{report.machine}; {report.repeat} repetitions, each system in a process of its own, in turns."]
    if report.quick:
        found.append("A quick run, to see that everything works: the figures say nothing.")
    if shares:
        middle, most = shares[len(shares) // 2], shares[-1]
        calm = "calm" if middle <= CALM_SHARE else "NOT calm, so the figures are not to be used"
        found.append(
            f"Other programs took {middle:.0%} of the processors (median; {most:.0%} at most): the machine was {calm}."
        )
    found += [f"{name}: {why}" for name, why in report.missing.items()]
    found += [f"{run.system}, {WORKLOADS[run.workload].title}: failed: {run.error}" for run in report.runs if run.error]
    return found


def settings(report: Report) -> list[str]:
    names = dict.fromkeys(run.system for run in report.runs)
    return [
        " ".join([name, report.versions.get(name, "")]).strip() + f": {system_named(name).settings}" for name in names
    ]


def as_text(report: Report) -> str:
    rows = summarise(report.runs)
    parts = [aligned(table).replace("**", "") for table in (main_table(rows), aims_table(rows), systems_table(rows))]
    return "\n\n".join([*parts, "\n".join(settings(report)), "\n".join(notes(report))])


def as_markdown(report: Report) -> str:
    rows = summarise(report.runs)
    listed = ["\n".join(f"- {line}" for line in lines) for lines in (notes(report), settings(report)) if lines]
    parts = [piped(main_table(rows)), piped(aims_table(rows)), piped(systems_table(rows)), *listed]
    return "\n\n".join(parts) + "\n"


def aligned(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def piped(table: Table) -> str:
    head, *body = table
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])
