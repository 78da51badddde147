"""daws: data-aware work stealing.

What users need is imported when it is first asked for, so that `import daws` costs next to nothing and no layer is
loaded that nobody uses. (`__init__.pyi` has the types.)
"""

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "daws.client.cluster",
    "Future": "daws.client.future",
    "as_completed": "daws.client.waiting",
    "current": "daws.client.inside",
    "gather": "daws.client.waiting",
    "wait": "daws.client.waiting",
}
__all__ = ["Cluster", "Future", "__version__", "as_completed", "current", "gather", "wait"]


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
