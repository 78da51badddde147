"""Sessions that are to end: their unfinished tasks are cancelled, and the tasks that they hold are released.

The first node of a cluster does it. Two nodes that both think that they are the first do no harm.
"""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from daws.data.tags import root_of
from daws.logs import about
from daws.model.states import DONE, FINAL
from daws.model.task import CLIENT, FIRST_SPAWNED_ID
from daws.runtime.cluster.direct.book import ENDING, OPEN, Entry
from daws.runtime.cluster.direct.writing import write
from daws.runtime.cluster.sessions import CANCELLED_AT_ONCE, LINGER_S
from daws.runtime.cluster.words import SESSION_BITS, session_of
from daws.store.memory.record import has_ended
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.notes import FAILURES, FUNCTIONS
from daws.wire.messages import CancelOrder, LetGo
from daws.wire.store import CLIENT_HOLDER, Release, Unheld

if TYPE_CHECKING:
    from daws.runtime.cluster.direct.members import NodeDesk

CANCEL_AGAIN_S = 10.0
ROWS_PER_CALL = 1000
log = logging.getLogger("daws.store")


class Sweeper:
    def __init__(self, desk: "NodeDesk") -> None:
        self._desk = desk
        self._cancelling: dict[int, float] = {}  # batch -> since when
        self._lingering: dict[int, float] = {}  # session -> when it is looked at again whether it can end

    def on_cancel_taken(self, batch: int) -> None:
        self._cancelling.pop(batch, None)

    async def sweep(self, entries: list[Entry], is_alive: Callable[[int], bool]) -> None:
        book = self._desk.book
        for entry in entries:
            if entry.state == OPEN and not is_alive(entry.number):
                if not entry.kept:
                    log.warning("the client of %s is gone: it ends", entry.name, extra=about(session=entry.name))
                    await book.change(entry, state=ENDING)
                elif entry.nonce:
                    await book.change(entry, nonce=b"")
            elif entry.state == ENDING:
                await self._end(entry)

    async def _end(self, entry: Entry) -> None:
        """Take the next step to end a session. This is called again until nothing is left of it."""
        now_s = time.monotonic()
        self._cancelling = {one: since for one, since in self._cancelling.items() if now_s - since < CANCEL_AGAIN_S}
        if self._cancelling or now_s < self._lingering.get(entry.number, 0.0):
            return
        desk = self._desk
        low = entry.number << SESSION_BITS
        unfinished: list[int] = []
        held: list[int] = []
        left: list[int] = []  # not yet forgotten, perhaps because its children are not known to be
        async for task, record in desk.looking.between(low, low + (1 << SESSION_BITS)):
            if not has_ended(record):
                unfinished.append(task)
            elif record.held:
                held.append(task)
            elif record.state == DONE:
                left.append(task)
        if unfinished:
            for start in range(0, len(unfinished), CANCELLED_AT_ONCE):
                batch = desk.batches()
                self._cancelling[batch] = now_s
                desk.tell(CancelOrder(CLIENT, batch, tuple(unfinished[start : start + CANCELLED_AT_ONCE])))
            return
        if held and await self._is_needed(entry.number):
            self._lingering[entry.number] = now_s + LINGER_S
            return
        try:
            tasks = held or left
            for start in range(0, len(tasks), ROWS_PER_CALL):
                await self._release(tasks[start : start + ROWS_PER_CALL])
        except StoreChangedError:
            desk.see_change()
            return
        if not held:  # else it is looked at once more: what was just released may have been lost
            self._lingering.pop(entry.number, None)
            noted = await desk.notes.fields(FAILURES)  # some are of tasks that were let go of before
            await desk.notes.drop(FAILURES, [task for task in noted if session_of(task) == entry.number])
            await desk.book.end(entry)

    async def _is_needed(self, session: int) -> bool:
        """Has a task that runs have created and not waited for yet to end, that needs a function of this session?"""
        desk = self._desk
        kinds: set[int] = set()
        async for _, record in desk.looking.between(FIRST_SPAWNED_ID, 2 * FIRST_SPAWNED_ID):
            if record.state not in FINAL:
                kinds.add(record.spec.kind)
        brought = sorted([kind for kind in kinds if kind >= FIRST_SPAWNED_ID])
        functions = dict(zip(brought, await desk.notes.get(FUNCTIONS, brought), strict=True))
        return any(session_of(root_of(kind, functions.get(kind, b""))) == session for kind in kinds)

    async def _release(self, tasks: list[int]) -> None:
        desk = self._desk
        rows = [Release(task, CLIENT_HOLDER) for task in tasks]
        answers = (await write(desk.call, desk.store.shard_count, rows)).answers
        for task, answer in zip(tasks, answers, strict=True):
            if isinstance(answer, Unheld):
                for place in answer.places:
                    if place == desk.node:
                        desk.tell(LetGo(CLIENT, (task,)))
                    else:
                        desk.send_to_node(place, LetGo(CLIENT, (task,)))
        await desk.notes.drop(FAILURES, tasks)
