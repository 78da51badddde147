"""The port behind which metadata lives.

A store is cut into shards. A call goes to one shard, carries any number of rows, is atomic row by row (a backend may
make the whole call atomic), and answers each row in order. Every row is idempotent: repeating it changes nothing and
answers the same, so a caller without an answer just asks again. Membership and leases live in shard 0.
"""

from collections.abc import Sequence
from typing import Protocol

from daws.wire.store import AnswerType, Row


class Store(Protocol):
    shard_count: int

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        """Carry out the rows of one call. `now_ns` is the store's own clock."""
        ...
