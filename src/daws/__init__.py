"""daws: data-aware work stealing.

What users need is imported when it is first asked for, so that `import daws` costs next to nothing and no layer is
loaded that nobody uses. (`__init__.pyi` has the types.)
"""

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "daws.client.cluster",
    "Command": "daws.client.commands",
    "CommandError": "daws.model.errors",
    "Completed": "daws.workers.commands",
    "File": "daws.data.outside",
    "Future": "daws.client.future",
    "Out": "daws.data.outside",
    "as_completed": "daws.client.waiting",
    "connect": "daws.client.connect",
    "current": "daws.client.inside",
    "futures": "daws.futures",
    "command": "daws.client.commands",
    "gather": "daws.client.waiting",
    "progress": "daws.client.progress",
    "task": "daws.client.tasks",
    "use": "daws.client.current",
    "wait": "daws.client.waiting",
    "ClosedError": "daws.model.errors",
    "ContextError": "daws.model.errors",
    "DawsError": "daws.model.errors",
    "NoSpaceError": "daws.model.errors",
    "RemoteError": "daws.workers.errors",
    "StrategyError": "daws.model.errors",
    "TaskCancelledError": "daws.model.errors",
    "TaskFailedError": "daws.model.errors",
    "TaskKilledError": "daws.model.errors",
    "UnavailableError": "daws.model.errors",
    "UnpicklableError": "daws.model.errors",
    "UnreadableError": "daws.workers.errors",
    "UsageError": "daws.model.errors",
    "WorkerStartError": "daws.workers.errors",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'daws' has no attribute {name!r}")
    from importlib import import_module

    found: object = import_module(home) if home == f"daws.{name}" else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
