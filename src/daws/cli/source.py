"""The graph that a command runs; see `daws.predict.source`."""

from daws.predict.source import graph_for, named, read_source

__all__ = ["graph_for", "named", "read_source"]
