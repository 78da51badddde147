"""Short ways to make what tests are full of. Object `n` is what task `n` makes, unless said otherwise."""

from collections.abc import Iterable, Mapping
from typing import Any

from daws.core.events import ObjectsFetched
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.task import Input, Needs, NodeId, ObjectTransfer, Ready, TaskSpec
from daws.wire.store import Create

BIG = 1_000_000
"""Bytes of an object that does not travel inside records."""


def members_of(count: int, cores: int = 2, contexts: dict[int, str] | None = None) -> Members:
    """Nodes 0 .. count - 1; `contexts` names what the executors of some of them offer."""
    offered = contexts or {}
    return Members(
        1, tuple(NodeInfo(i, (ExecutorClass(cores, parse_context(offered.get(i, ""))),)) for i in range(count))
    )


def task(id: int, reads: Iterable[int] = (), makes: Iterable[int] = (), **more: Any) -> TaskSpec:
    """A specification; `cores`, `context` and `memory_bytes` become its needs."""
    cores, context, memory_bytes = more.pop("cores", 1), more.pop("context", ""), more.pop("memory_bytes", 0)
    if cores > 1 or context or memory_bytes:
        more["needs"] = Needs(cores, parse_context(context), memory_bytes)
    return TaskSpec(id, inputs=tuple(reads), outputs=tuple(makes), **more)


def ready(
    id: int, *inputs: Input, attempt: int = 0, move: int = 0, mode: int = 0, makes: Iterable[int] = (), **more: Any
) -> Ready:
    """A ready task, as its owner has it."""
    return Ready(task(id, [one.object for one in inputs], makes, **more), attempt, move, inputs, mode)


def object_at(producer: int, *places: NodeId, size_bytes: int = BIG) -> Input:
    """An object that task `producer` made, with its places."""
    return Input(producer, size_bytes, producer, places, b"")


def fetched(object_: int, source: NodeId, size_bytes: int = BIG) -> ObjectsFetched:
    """The report that an object has arrived."""
    return ObjectsFetched((ObjectTransfer(object_, size_bytes, source),))


def not_fetched(object_: int, source: NodeId, size_bytes: int = BIG) -> ObjectsFetched:
    """The report that the source did not have an object."""
    return ObjectsFetched((), (ObjectTransfer(object_, size_bytes, source),))


def created(graph: Mapping[int, Iterable[int]], owner: NodeId, **more: Any) -> list[Create]:
    """Rows that put a graph into a store, given as task -> parents; each task makes one object for its children."""
    parents = {one: tuple(above) for one, above in graph.items()}
    rows = []
    for one, above in parents.items():
        children = tuple(other for other, others in parents.items() if one in others)
        spec = task(one, above, [one], leaf=not children, **more)
        rows.append(Create(spec, above, children, (), -1 if above else owner))
    return rows
