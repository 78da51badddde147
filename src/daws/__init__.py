"""A Python engine for many-task computing: data-aware work stealing.

The names that users need are imported when they are first used: `import daws` costs next to nothing, and a layer that
is not used is not loaded. (`__init__.pyi` has the types.)
"""

import sys

__version__ = "0.2.0"
__path__.append(f"{__path__[0]}/_others")  # modules that others have, which say what to write instead

_HOMES = {
    "Cluster": "daws.client.cluster",
    "Command": "daws.client.commands",
    "CommandError": "daws.model.errors",
    "CommandTimeoutError": "daws.model.errors",
    "Completed": "daws.workers.commands",
    "File": "daws.data.outside",
    "Future": "daws.client.future",
    "Graph": "daws.graphs:TaskGraph",
    "Out": "daws.data.outside",
    "admin": "daws.client.admin:",
    "as_completed": "daws.client.waiting",
    "bound": "daws.predict.limits",
    "connect": "daws.client.connect",
    "current": "daws.client.inside",
    "futures": "daws.futures:",
    "command": "daws.client.commands",
    "gather": "daws.client.gathering",
    "progress": "daws.client.waiting",
    "simulate": "daws.predict.simulation",
    "task": "daws.client.tasks",
    "use": "daws.client.current",
    "wait": "daws.client.waiting",
    "ClosedError": "daws.model.errors",
    "ClusterError": "daws.model.errors",
    "ContextError": "daws.model.errors",
    "DamagedObjectError": "daws.model.errors",
    "DawsError": "daws.model.errors",
    "GraphError": "daws.model.errors",
    "InternalError": "daws.model.errors",
    "JournalError": "daws.core.journal",
    "LogError": "daws.model.errors",
    "NoSpaceError": "daws.model.errors",
    "PeerError": "daws.model.errors",
    "RemoteError": "daws.workers.errors",
    "ResultCountError": "daws.workers.errors",
    "SerializeError": "daws.workers.errors",
    "StoreFullError": "daws.model.errors",
    "StrategyError": "daws.model.errors",
    "TaskCancelledError": "daws.client.cancelled",
    "TaskFailedError": "daws.model.errors",
    "TaskKilledError": "daws.model.errors",
    "TaskTimeoutError": "daws.model.errors",
    "UnavailableError": "daws.model.errors",
    "UnpicklableError": "daws.model.errors",
    "UnreadableError": "daws.workers.errors",
    "UsageError": "daws.model.errors",
    "WorkerStartError": "daws.workers.errors",
    "WorkflowError": "daws.model.errors",
    "WorkloadError": "daws.model.errors",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        if name.startswith("_"):
            raise AttributeError(f"module 'daws' has no attribute {name!r}")
        hints = import_module("daws.client.hints")
        said = hints.answer_of_module("daws", name, __all__)
        if sys._getframe(1).f_code.co_name == "_handle_fromlist" and _is_no_module(name, hints.MODULES):
            raise ImportError(said)  # `from daws import Client` would say nothing of an AttributeError
        raise AttributeError(said, name=name, obj=None)  # or else Python would name another one
    module, colon, attribute = home.partition(":")
    found: object = import_module(module)
    if attribute or not colon:
        found = getattr(found, attribute or name)
    globals()[name] = found
    return found


def _is_no_module(name: str, others: dict[str, str]) -> bool:
    from importlib.util import find_spec

    return name in others or find_spec(f"daws.{name}") is None


def __dir__() -> list[str]:
    return sorted(__all__)
