"""The settings of a simulated cluster: numbers with a name each, which ends in their unit.

Imports little: help texts list them.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from daws.model.errors import UsageError
from daws.sim.profiles import Costs

_US, _MS, _GBIT, _GB = 1e3, 1e6, 0.125e9, 1e9

# As in daws.sim.simulate, which takes too long to import for a help text.
CORES_PER_SHARD = 1024
_SHARDS = f"cores/{CORES_PER_SHARD}"
_LEASE = "a silent node is taken for dead after; more where there are over 10,000 nodes or a run takes hours"


Fields = dict[str, int | float]
"""Numbers by the name of the field that they are for."""


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

    def scaled(self, value: float, said: str) -> int | float:
        """The field's value; UsageError that begins with what was `said` if the number is out of bounds."""
        if self.whole and not float(value).is_integer():
            raise UsageError(f"{said}: expected a whole number")
        if not self.low <= value <= self.high:
            raise UsageError(f"{said}: it must lie between {plain(self.low)} and {plain(self.high)}")
        scaled = value * self.scale
        return round(scaled) if self.whole or not self.field.endswith(("_s", "slow", "speed")) else scaled

    def default_in(self, costs: Costs) -> str:
        if self.target != "costs":
            return self.default
        return plain(getattr(costs, self.field) / self.scale)


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


def fields_of(given: Mapping[str, object], arguments: Iterable[str] = ()) -> dict[str, Fields]:
    """Numbers by key, where `-` may be `_`, as {"costs": {field: number}, "cluster": …, "settings": …}.

    `arguments` are those of the call that are no settings: one of them may be meant."""
    found: dict[str, Fields] = {"costs": {}, "cluster": {}, "settings": {}}
    for name, value in given.items():
        knob = KNOBS.get(name.replace("_", "-"))
        if knob is None:
            from difflib import get_close_matches

            names = [key.replace("-", "_") for key in KNOBS]
            near = get_close_matches(name, {*arguments, *names} - {name, "settings", "return"}, 1)
            cure = f"did you mean {near[0]}=?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"{name}= is no setting of a simulation; {cure}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{name}={value!r} is not a number")
        found[knob.target][knob.field] = knob.scaled(value, f"{name}={value:g}")
    return found


def plain(number: float) -> str:
    return f"{number:,.0f}".replace(",", "") if float(number).is_integer() else f"{number:g}"
