"""Which cluster is meant when nobody names one: the only place that says so."""

from typing import TYPE_CHECKING

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.client.cluster import Cluster

_in_use: "list[Cluster]" = []


def cluster() -> "Cluster":
    """The cluster of the innermost `with` block, or the one that was named last by `use`; the same in all threads."""
    if not _in_use:
        raise UsageError("there is no cluster to run it: call it inside `with daws.Cluster():`, or after `daws.use(…)`")
    return _in_use[-1]


def use(cluster: "Cluster") -> "Cluster":
    """From now on, tasks that name no cluster run on this one, until it is closed. Answers the cluster."""
    _in_use.append(cluster)
    return cluster


def forget(cluster: "Cluster") -> None:
    """It is closed."""
    _in_use[:] = [one for one in _in_use if one is not cluster]
