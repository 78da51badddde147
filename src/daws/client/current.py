"""The cluster that is meant when none is named: the only place that says so."""

import sys
from typing import TYPE_CHECKING, cast

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.client.cluster import Cluster

_in_use: "list[Cluster]" = []


def cluster() -> "Cluster":
    """Inside a task, the cluster that it runs in. Else that of the innermost `with` block, or the one that was named
    last by `use`; the same in all threads."""
    nest = sys.modules.get("daws.workers.nest")  # if nobody has imported it, nothing runs in this process
    if nest is not None and nest.current_nest() is not None:
        from daws.client.inside import current

        return cast("Cluster", current())  # it has the same words
    if not _in_use:
        raise UsageError("there is no cluster to run it: call it inside `with daws.Cluster():`, or after `daws.use(…)`")
    return _in_use[-1]


def use(cluster: "Cluster") -> "Cluster":
    """Make this cluster the one on which calls of `@daws.task` functions run, until it is closed. Returns it."""
    if not hasattr(cluster, "_start"):
        raise UsageError(f"daws.use({cluster!r:.100}): give a cluster: daws.use(daws.Cluster())")
    _in_use.append(cluster)
    return cluster


def forget(cluster: object) -> None:
    """Forget a cluster that is closed."""
    _in_use[:] = [one for one in _in_use if one is not cluster]
