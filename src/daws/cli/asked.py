"""The options about graph, cluster and costs that `daws sim`, `daws bound` and `daws compare` share."""

import argparse

from daws.cli.knobs import read_settings
from daws.formats import Workflow
from daws.model.graph import Graph
from daws.predict import asked
from daws.predict.asked import Asked
from daws.predict.source import Source
from daws.sim.cluster import SimulatedCluster
from daws.sim.knobs import Fields
from daws.sim.simulate import Settings


def typed(name: str) -> str:
    """The text of an option as a user types it."""
    return f"--{name.replace('_', '-')}"


def asked_of(arguments: argparse.Namespace, given: dict[str, Fields] | None = None) -> Asked:
    """The typed options as values. Some commands have only a part of the options."""
    known = [name for name in Asked.__struct_fields__ if name not in ("set", "spelled", "spelled_setting")]
    options = {name: getattr(arguments, name) for name in known if hasattr(arguments, name)}
    numbers = read_settings(arguments.settings) if given is None else given
    return Asked(**options, set=numbers, spelled=typed, spelled_setting=lambda key: f"--set {key}")


def check_seed(seed: int) -> None:
    asked.check_seed(seed, "--seed")


def read_world(arguments: argparse.Namespace, seed: int, check: bool = False) -> tuple[SimulatedCluster, Settings]:
    """The cluster to simulate, and the settings of its simulation."""
    wanted = asked_of(arguments)
    return wanted.cluster(), wanted.settings(seed, check)


def read_settings_alone(arguments: argparse.Namespace, seed: int, check: bool) -> Settings:
    """The settings of a simulation whose nodes are described elsewhere."""
    return asked_of(arguments).settings_alone(seed, check)


def read_graph(arguments: argparse.Namespace, source: Source, cluster: SimulatedCluster, seed: int) -> Graph:
    """The graph of a source at its scale, with the contexts, memory and estimates from the options."""
    return asked_of(arguments).graph(source, cluster, seed)


def title_of(arguments: argparse.Namespace, source: Source) -> str:
    return arguments.workload if isinstance(source, Workflow) else str(source)
