"""The keys that `--set` can set, as text."""

import textwrap
from collections.abc import Iterable

from daws.cli.messages import shown
from daws.model.errors import UsageError
from daws.model.numbers import read_number
from daws.sim.knobs import CORES_PER_SHARD, KNOBS, Fields
from daws.sim.profiles import PROFILES

__all__ = ["CORES_PER_SHARD", "KNOBS", "knobs_table", "read_settings"]

TABLE_WIDTH = 100


def read_settings(items: Iterable[str]) -> dict[str, Fields]:
    """`key=value` texts as {"costs": {field: number}, "cluster": …, "settings": …}; UsageError in one line."""
    found: dict[str, Fields] = {"costs": {}, "cluster": {}, "settings": {}}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise UsageError(f"--set {shown(item)}: expected KEY=VALUE; keys: {', '.join(KNOBS)}")
        if key not in KNOBS:
            raise UsageError(f"--set has no key {shown(key)}; keys: {', '.join(KNOBS)}")
        knob = KNOBS[key]
        if knob.field in found[knob.target]:
            raise UsageError(f"--set {key} is given twice")
        number = read_number(value)
        if number is None:
            raise UsageError(f"--set {key}={shown(value)} is not a number")
        found[knob.target][knob.field] = knob.scaled(float(number), f"--set {key}={value}")
    return found


def knobs_table() -> str:
    """All keys with their defaults in each profile and their meaning."""
    rows = [("key", *PROFILES, "meaning")]
    rows += [(knob.key, *(knob.default_in(costs) for costs in PROFILES.values()), knob.help) for knob in KNOBS.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)),
        ]
        start = "  " + "  ".join((*cells, ""))
        lines += textwrap.wrap(
            row[-1], TABLE_WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
        )
    return "\n".join(lines)
