"""Calls of a store: rows for one shard, and what becomes of them. Cores make them, and are told of them as events."""

from msgspec import Struct

from daws.wire.store import AnswerType, RowType


class CallMessage(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class CallStore(CallMessage, frozen=True):
    """A batch of rows for one shard, answered by StoreAnswered with the same token.

    The only consequence of the answer to a `lazy` call is that other runs of the same tasks are told to stop. If tasks
    have no copies, the driver may keep that answer until the node wakes up for something else. An idle node `hopes` for
    work from the answer, and must be woken by it even when it brings none.
    """

    token: int
    shard: int
    rows: list[RowType]
    lazy: bool = False
    hopes: bool = False


class StoreAnswered(CallMessage, frozen=True):
    token: int
    answers: list[AnswerType]


class CallFine(CallMessage, frozen=True):
    """Each row of a call was answered with None: as intended, and nothing follows from it."""

    token: int


class CallsSafe(CallMessage, frozen=True):
    """Acknowledged calls of a store that is replicated asynchronously have reached its replicas by now."""

    shard: int
    tokens: tuple[int, ...]


class StoreChanged(CallMessage, frozen=True):
    """Another server answers for this shard from now on, which may not know what was acknowledged lately.

    The driver says so before it passes on that server's first answer, and passes on none of the one before it any more.
    """

    shard: int
