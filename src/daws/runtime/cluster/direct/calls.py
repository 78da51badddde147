"""The calls of one process to a store that it reaches directly, answered as the server of an embedded store answers.

Beside the answers a caller hears which calls are safe, and which shards have another server (rule 11). Then it sends
again what may be lost.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered, StoreChanged
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.store import Answers, ValkeyStore
from daws.wire.store import AnswerType, Row

CallEvent = CallFine | StoreAnswered | CallsSafe | StoreChanged


class DirectCalls:
    """The calls of one life of a node, or of one client."""

    def __init__(
        self,
        store: ValkeyStore,
        tell: Callable[[CallEvent], None],
        failed: Callable[[BaseException], None],
        answered: Callable[[CallStore, list[AnswerType]], None] = lambda call, answers: None,
    ) -> None:
        """`tell` is given what becomes of calls, `failed` an error that no repetition helps against. `answered` is
        told of calls with their answers."""
        shards = range(store.shard_count)
        self._store = store
        self._tell = tell
        self._failed = failed
        self._note = answered
        self._identities = [store.identity(shard) for shard in shards]
        self._lives = [0 for _ in shards]  # answers to calls of the life before are not for this one
        self._under_way: list[set[int]] = [set() for _ in shards]
        self._unsafe: list[deque[tuple[int, int]]] = [deque() for _ in shards]  # up to which update, and the call
        self.is_closed = False
        store.on_changed = lambda shard: self.see_change()
        store.on_safe = self._on_safe

    def begin_life(self) -> None:
        """Forget all calls: a new incarnation makes its own."""
        for shard in range(self._store.shard_count):
            self._forget(shard)

    def _forget(self, shard: int) -> None:
        self._lives[shard] += 1
        self._under_way[shard].clear()
        self._unsafe[shard].clear()

    def rows(self, shard: int, rows: Sequence[Row]) -> Answers:
        """Carry out rows. Fails with `StoreChangedError` if another server answers for the shard than the last one that
        is known here."""
        return self._store.call(shard, rows, identity=self._identities[shard])

    def carry_out(self, call: CallStore) -> None:
        under_way = self._under_way[call.shard]
        if call.token not in under_way:  # else the store says it again by itself
            under_way.add(call.token)
            answers = self.rows(call.shard, call.rows)
            answers.add_done_callback(partial(self._on_answered, self._lives[call.shard], call))

    def _on_answered(self, life: int, call: CallStore, answered: "asyncio.Future[list[AnswerType]]") -> None:
        error = None if answered.cancelled() else answered.exception()
        if answered.cancelled() or life != self._lives[call.shard]:
            return
        self._under_way[call.shard].discard(call.token)
        if error is None:
            answers = answered.result()
            self._unsafe[call.shard].append((self._store.position(call.shard), call.token))
            fine = answers.count(None) == len(answers)
            self._tell(CallFine(call.token) if fine else StoreAnswered(call.token, answers))
            self._on_safe(call.shard)  # what has changed nothing rests on what may be safe by now
            self._note(call, answers)
        elif isinstance(error, StoreChangedError):
            self.see_change()
        else:
            self._failed(error)

    def see_change(self) -> None:
        """Tell of each shard that has another server now, or one that has lost something, before anything that the new
        server answers."""
        if self.is_closed:
            return
        for shard, known in enumerate(self._identities):
            identity = self._store.identity(shard)
            if identity != known:
                self._identities[shard] = identity
                self._forget(shard)
                self._tell(StoreChanged(shard))

    def _on_safe(self, shard: int) -> None:
        safe, unsafe = self._store.safe_position(shard), self._unsafe[shard]
        tokens: list[int] = []
        while unsafe and unsafe[0][0] <= safe:
            tokens.append(unsafe.popleft()[1])
        if tokens:
            self._tell(CallsSafe(shard, tuple(tokens)))
