"""The interface between a node and its workers, of whatever kind."""

from typing import TYPE_CHECKING, Protocol

from daws.wire.worker import ChildEnd, Execute, ExecuteTogether
from daws.workers.pool import WorkerPool

if TYPE_CHECKING:
    from daws.workers.threads import ThreadPool


class Workers(Protocol):
    """See WorkerPool for the words. All methods belong to the thread of the loop."""

    async def start(self) -> None: ...

    def begin(self) -> None: ...

    def learn(self, function: int, pickled: bytes) -> None: ...

    def forget(self, functions: tuple[int, ...]) -> None: ...

    def execute(self, slot: int, order: Execute) -> None: ...

    def execute_all(self, slot: int, orders: list[Execute]) -> None: ...

    def execute_together(self, slot: int, order: ExecuteTogether) -> None: ...

    def recall(self, slot: int, run: int) -> None: ...

    def resume(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None: ...

    def tell(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None: ...

    def set_aside(self, slot: int, run: int) -> None: ...

    def kill(self, slot: int, run: int) -> None: ...

    def flush(self) -> None: ...

    async def close(self, grace_s: float = 2.0) -> None: ...


def pool_of(kind: str) -> "type[WorkerPool] | type[ThreadPool]":
    """The class of the pool for a kind of workers: "processes" or "threads"."""
    if kind == "threads":
        from daws.workers.threads import ThreadPool  # few sessions want it

        return ThreadPool
    return WorkerPool
