"""Workloads: graphs made from a kind and a few numbers, such as `fan-out:degree=10,per-core=200`.

`parse_workload` reads such a text; `Workload.build` makes the graph for a cluster's size and a seed. A workload knows
how many nodes and cores there are, because most grow with them, and nothing else about where it will run.
"""

from daws.workloads.registry import KINDS, describe_kinds, parse_workload
from daws.workloads.workload import Kind, Workload

__all__ = ["KINDS", "Kind", "Workload", "describe_kinds", "parse_workload"]
