"""The costs of steps, messages, transfers and store calls in a simulation. Three profiles; every number can be set by
name.

`measured` has the costs of a node in Python, as measured on small machines, and of a Valkey store. `simmatrix` has the
costs of the papers' own simulator. `local` has those of one live node with its store in the client's process, where
nothing travels (`bench/calibrate.py`). Times are in nanoseconds.
"""

from math import inf
from numbers import Integral

import msgspec
from msgspec import Struct

from daws.model.errors import UsageError


class Costs(Struct, frozen=True):
    """The price list of a simulated cluster."""

    latency_ns: int = 50_000  # one way, between any two nodes of a cluster and to the store
    net_bytes_per_s: float = 5e8  # of each node's link, in each direction (`bench/link.py`, by mutual TLS)
    cluster_latency_ns: int = 5_000_000  # one way, between clusters
    cluster_bytes_per_s: float = 1.25e8  # of a transfer between clusters
    step_ns: int = 20_000  # a node takes in a batch of events
    message_ns: int = 10_000  # ... and sends one message
    task_ns: int = 3_000  # ... for each task in a message that it sends or gets
    dispatch_ns: int = 50_000  # from a node to its executor and back
    store_call_ns: int = 20_000  # a shard takes in a call
    store_row_ns: int = 5_000  # ... for each row of it
    task_bytes: int = 64  # of a task in a message

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name.endswith("_per_s"):
                if not 0 < value < inf:
                    raise UsageError(f"{name}={value:g}: a link carries some bytes per second, and not infinitely many")
            elif not isinstance(value, Integral) or value < 0:
                raise UsageError(f"{name}={value}: a cost is a whole number, and not negative")

    def changed(self, **settings: float) -> "Costs":
        return msgspec.structs.replace(self, **settings)


PROFILES: dict[str, Costs] = {
    "measured": Costs(),
    "simmatrix": Costs(
        latency_ns=50_000,
        net_bytes_per_s=6.8e9 / 8,
        step_ns=0,
        message_ns=500_000,
        task_ns=0,
        dispatch_ns=1_000_000,
        store_call_ns=0,
        store_row_ns=1_000_000,
    ),
    "local": Costs(
        latency_ns=0,
        step_ns=20_000,
        message_ns=0,
        task_ns=0,
        dispatch_ns=150_000,
        store_call_ns=0,
        store_row_ns=0,
    ),
}


def profile(name: str) -> Costs:
    if name not in PROFILES:
        raise UsageError(f"unknown profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
