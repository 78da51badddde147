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
    "command": "daws.client.commands",
    "gather": "daws.client.waiting",
    "wait": "daws.client.waiting",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'daws' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
