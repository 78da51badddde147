"""The systems, by name. Their libraries are imported when they start."""

from importlib import import_module

from bench.peers.systems.base import System

HOMES = {
    "daws": "daws:Daws",
    "daws-threads": "daws:DawsThreads",
    "daws-nodes": "daws:DawsNodes",
    "floor": "floor:Floor",
    "processes": "processes:Processes",
    "joblib": "joblib:Joblib",
    "dask": "dask:Dask",
    "ray": "ray:Ray",
    "parsl": "parsl:Parsl",
    "parsl-threads": "parsl:ParslThreads",
    "hyperqueue": "hyperqueue:HyperQueue",
    "executorlib": "executorlib:Executorlib",
}


def system_named(name: str) -> type[System]:
    module, _, attribute = HOMES[name].partition(":")
    found: type[System] = getattr(import_module(f"bench.peers.systems.{module}"), attribute)
    return found
