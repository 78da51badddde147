"""The desk of tools: one question, one answer, from the store itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from daws.model.cluster import Members
from daws.model.errors import UnavailableError
from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import FROM_OUTSIDE
from daws.runtime.cluster import words
from daws.runtime.cluster.direct.book import ENDING, OPEN, Entry, decode
from daws.runtime.cluster.direct.desk import Desk
from daws.runtime.cluster.direct.words import TO_CLIENT
from daws.runtime.cluster.words import SESSION_BITS, Count, SessionInfo
from daws.store.valkey.caller import StoreChangedError
from daws.wire.store import MEMBERSHIP_SHARD, Leased, Watch

ANSWER_S = 5.0


class ToolDesk(Desk):
    def send(self, word: Any) -> None:
        self.begin(self._answer(word))

    async def _answer(self, word: Any) -> None:
        self.tell(await _HEARD[type(word)](self, word))

    async def _members(self) -> Members:
        while True:
            try:
                (answer,) = await self.store.call(MEMBERSHIP_SHARD, [Watch(0)])
            except StoreChangedError:
                continue
            return answer.members if isinstance(answer, Leased) and answer.members is not None else Members(0, ())

    async def _on_members(self, word: words.AskMembers) -> words.NowMembers:
        return words.NowMembers(await self._members())

    async def _on_sessions(self, word: words.AskSessions) -> words.Sessions:
        entries = [decode(one) for one in (await self.notes.look())[0].values()]
        return words.Sessions([await self._info(one) for one in entries if one.state == OPEN])

    async def _info(self, entry: Entry) -> SessionInfo:
        waiting = done = failed = 0
        low = entry.number << SESSION_BITS
        async for _, record in self.looking.between(low, low + (1 << SESSION_BITS)):
            if record.spec.kind == FROM_OUTSIDE or not record.held:
                continue
            if record.state in (FAILED, CANCELLED):
                failed += 1
            elif record.state == DONE:
                done += 1
            else:
                waiting += 1
        return SessionInfo(entry.number, entry.name, entry.kept, bool(entry.nonce), entry.since, waiting, done, failed)

    async def _on_drain(self, word: words.Drain) -> words.Done | words.Refused:
        info = (await self._members()).info(word.node)
        if info is None:
            return words.Refused(f"there is no node {word.node}; 'daws nodes' lists those that are there")
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def hear(said: object = None) -> None:
            if not heard.done():
                heard.set_result(None)

        try:
            link = await self.reach.dial(info.addresses[0], TO_CLIENT, hear, hear)
        except UnavailableError as error:
            return words.Refused(f"node {word.node} does not answer: {error}")
        link.send(words.Depart(word.within_s))
        link.send(Count())  # it is answered, so both were heard
        try:
            async with asyncio.timeout(ANSWER_S):
                await heard
        except TimeoutError:
            return words.Refused(f"node {word.node} does not answer; try again")
        finally:
            link.abort()
        return words.Done()

    async def _on_end_session(self, word: words.EndSession) -> words.Done | words.Refused:
        while (entry := await self.book.named(word.name)) is not None:
            if entry.state == ENDING or await self.book.change(entry, state=ENDING) is not None:
                return words.Done()
        return words.Refused(f"there is no session {word.name!r}; 'daws sessions' lists those that are there")


_HEARD: dict[type, Callable[[ToolDesk, Any], Awaitable[Any]]] = {
    words.AskMembers: ToolDesk._on_members,
    words.AskSessions: ToolDesk._on_sessions,
    words.Drain: ToolDesk._on_drain,
    words.EndSession: ToolDesk._on_end_session,
}
