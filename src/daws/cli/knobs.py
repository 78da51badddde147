"""What `--set` can set: numbers of the simulated cluster, with their units in their names."""

import textwrap
from collections.abc import Iterable
from typing import Literal, NamedTuple

from daws.cli.messages import shown
from daws.model.errors import UsageError
from daws.model.numbers import read_number
from daws.sim.profiles import PROFILES, Costs

_US, _MS, _GBIT, _GB = 1e3, 1e6, 0.125e9, 1e9
TABLE_WIDTH = 100

# As in daws.sim.simulate, which takes too long to import for a help text.
CORES_PER_SHARD = 1024
_SHARDS = f"cores/{CORES_PER_SHARD}"
_LEASE = "a silent node is taken for dead after; more where there are over 10,000 nodes or a run takes hours"


class Knob(NamedTuple):
    """One number: `scale` times what was typed is the field `field` of the costs, the cluster or the settings."""

    key: str
    target: Literal["costs", "cluster", "settings"]
    field: str
    low: float
    high: float
    help: str
    scale: float = 1
    whole: bool = False
    default: str = ""

    def read(self, text: str) -> int | float:
        number = read_number(text)
        if number is None:
            raise UsageError(f"--set {self.key}={shown(text)} is not a number")
        value = float(number)
        if self.whole and not value.is_integer():
            raise UsageError(f"--set {self.key}={text}: expected a whole number")
        if not self.low <= value <= self.high:
            raise UsageError(f"--set {self.key}={text}: it must lie between {_plain(self.low)} and {_plain(self.high)}")
        scaled = value * self.scale
        return round(scaled) if self.whole or not self.field.endswith(("_s", "slow", "speed")) else scaled

    def default_in(self, costs: Costs) -> str:
        if self.target != "costs":
            return self.default
        return _plain(getattr(costs, self.field) / self.scale)


KNOBS: dict[str, Knob] = {
    knob.key: knob
    for knob in (
        Knob("latency-us", "costs", "latency_ns", 0, 1e9, "one way, between two nodes or to the store", _US),
        Knob("net-gbps", "costs", "net_bytes_per_s", 1e-6, 1e6, "of a node's link, each way, in Gbit/s", _GBIT),
        Knob("cluster-latency-ms", "costs", "cluster_latency_ns", 0, 1e6, "one way, between two clusters", _MS),
        Knob("cluster-gbps", "costs", "cluster_bytes_per_s", 1e-6, 1e6, "of a transfer between clusters", _GBIT),
        Knob("step-us", "costs", "step_ns", 0, 1e9, "a node takes in a batch of events", _US),
        Knob("message-us", "costs", "message_ns", 0, 1e9, "a node sends one message", _US),
        Knob("task-us", "costs", "task_ns", 0, 1e9, "for each task in a message sent or received", _US),
        Knob("dispatch-us", "costs", "dispatch_ns", 0, 1e9, "from a node to its executor and back", _US),
        Knob("store-call-us", "costs", "store_call_ns", 0, 1e9, "a shard of the store takes in a call", _US),
        Knob("store-row-us", "costs", "store_row_ns", 0, 1e9, "for each row of such a call", _US),
        Knob("task-bytes", "costs", "task_bytes", 0, 1e9, "of a task in a message", whole=True),
        Knob("clusters", "cluster", "clusters", 1, 1e6, "clusters of equal size", whole=True, default="1"),
        Knob("slow", "cluster", "slow", 0, 1, "share of slow nodes", default="0"),
        Knob("slow-speed", "cluster", "slow_speed", 0.001, 1000, "speed of those, 1 is normal", default="0.5"),
        Knob("shards", "settings", "shards", 1, 65536, "of the store", whole=True, default=_SHARDS),
        Knob("lease-s", "settings", "lease_s", 0.1, 86400, _LEASE, default="10"),
        Knob("cache-gb", "settings", "memory_bytes", 0, 1e6, "of a node for fetched objects", _GB, default="any"),
    )
}


def read_settings(items: Iterable[str]) -> dict[str, dict[str, int | float]]:
    """`key=value` texts as {"costs": {field: number}, "cluster": …, "settings": …}; UsageError in one line."""
    found: dict[str, dict[str, int | float]] = {"costs": {}, "cluster": {}, "settings": {}}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise UsageError(f"--set {shown(item)}: expected KEY=VALUE; keys: {', '.join(KNOBS)}")
        if key not in KNOBS:
            raise UsageError(f"--set has no key {shown(key)}; keys: {', '.join(KNOBS)}")
        knob = KNOBS[key]
        if knob.field in found[knob.target]:
            raise UsageError(f"--set {key} is given twice")
        found[knob.target][knob.field] = knob.read(value)
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


def _plain(number: float) -> str:
    return f"{number:,.0f}".replace(",", "") if float(number).is_integer() else f"{number:g}"
