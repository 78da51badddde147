"""Questions of tools to a cluster: which nodes and sessions it has; and orders to a node or a session.

A tool calls the store by the same rows as clients, and tells a node on a link of its own.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from msgspec import Struct

from daws.core.effects import CallStore
from daws.core.events import CallFine, StoreAnswered
from daws.model.cluster import Members
from daws.model.errors import UnavailableError
from daws.model.session import SessionEntry
from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import NodeId
from daws.runtime.cluster.access import open_store
from daws.runtime.cluster.reach import Reach
from daws.runtime.ports import StoreLink
from daws.wire.cluster import AskCluster, ClusterIs, FromStore, Refused
from daws.wire.session import TO_CLIENT, Count, Depart
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    TO_END,
    AnswerType,
    AttachSession,
    DetachSession,
    FindHeld,
    HeldTasks,
    ListSessions,
    Row,
    SessionAttached,
    SessionList,
)

ANSWER_S = 10.0
NODE_S = 5.0
NONCE_BYTES = 16
T = TypeVar("T")


class SessionInfo(Struct, frozen=True):
    """A session and its tasks, counted. `since_s` is a time as `time.time()` has them."""

    name: str
    kept: bool
    attached: bool
    since_s: float
    waiting: int
    done: int
    failed: int


class Tool:
    """A connection to the store that asks one question after the other."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.cluster: ClusterIs
        self._link: StoreLink | None = None
        self._tokens = count(1)
        self._waiting: asyncio.Future[Any] | None = None

    async def open(self) -> None:
        try:
            self._link = await open_store(self.reach, self, self._on_lost)
        except UnavailableError as error:
            if not self.reach.is_embedded or not error.retry:
                raise
            cure = "; 'daws node' starts it" if isinstance(error.__cause__, ConnectionRefusedError) else ""
            raise UnavailableError(f"the store does not answer: {error}{cure}", True) from error
        self.cluster = await self._ask(AskCluster())

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()

    async def call(self, shard: int, row: Row) -> AnswerType:
        """Make a call with one row."""
        answers = await self._ask(CallStore(next(self._tokens), shard, [row]))  # type: ignore[list-item]
        return answers[0] if answers else None

    async def _ask(self, word: Any) -> Any:
        assert self._link is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._link.send(word)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._waiting
        except TimeoutError:
            raise UnavailableError("the store did not answer in time; try again", retry=True) from None

    def on_store(self, said: list[FromStore]) -> None:
        for word in said:
            if self._waiting is None or self._waiting.done():
                return
            if isinstance(word, ClusterIs):
                self._waiting.set_result(word)
            elif isinstance(word, StoreAnswered):
                self._waiting.set_result(word.answers)
            elif isinstance(word, CallFine):
                self._waiting.set_result(())
            elif isinstance(word, Refused):
                self._waiting.set_exception(UnavailableError(word.reason, retry=False))

    def _on_lost(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(UnavailableError("the store closed the connection; try again", retry=True))


def ask(folder: str | Path, question: Callable[[Tool], Awaitable[T]]) -> T:
    """Connect, ask, and return the answer. Raise UnavailableError if there is none, or if it was refused."""
    return uvloop.run(_ask(Reach(folder, "client"), question))


async def _ask(reach: Reach, question: Callable[[Tool], Awaitable[T]]) -> T:
    tool = Tool(reach)
    try:
        await tool.open()
        return await question(tool)
    finally:
        await tool.close()


async def members(tool: Tool) -> Members:
    return tool.cluster.members


async def sessions(tool: Tool) -> list[SessionInfo]:
    """All sessions that are not about to end."""
    answer = await _listed(tool)
    return [await _info(tool, one, one.number in answer.attached) for one in answer.sessions if not one.ending]


async def _listed(tool: Tool) -> SessionList:
    answer = await tool.call(MEMBERSHIP_SHARD, ListSessions())
    assert isinstance(answer, SessionList)
    return answer


async def _info(tool: Tool, entry: SessionEntry, attached: bool) -> SessionInfo:
    counts = {DONE: 0, FAILED: 0}
    waiting = 0
    for shard in range(tool.cluster.shard_count):
        start, more = 0, True
        while more:
            found = await tool.call(shard, FindHeld(entry.number, start))
            assert isinstance(found, HeldTasks)
            for one in found.tasks:
                if one.held and one.listed:
                    state = FAILED if one.state == CANCELLED else one.state
                    if state in counts:
                        counts[state] += 1
                    else:
                        waiting += 1
            more = found.more
            start = found.tasks[-1].task + 1 if found.tasks else 0
    since_s = entry.since_ns / 1e9
    return SessionInfo(entry.name, entry.kept, attached, since_s, waiting, counts[DONE], counts[FAILED])


async def drain(tool: Tool, node: NodeId, within_s: float) -> None:
    """Have a node leave. Return when it has been told."""
    info = tool.cluster.members.info(node)
    if info is None:
        raise UnavailableError(f"there is no node {node}; 'daws nodes' lists those that are there", retry=False)
    heard = asyncio.Event()
    try:
        link = await tool.reach.dial(info.addresses[0], TO_CLIENT, lambda said: heard.set(), heard.set)
    except UnavailableError as error:
        raise UnavailableError(f"node {node} does not answer: {error}", retry=True) from error
    link.send(Depart(within_s))
    link.send(Count())  # it is answered, so both were heard
    try:
        async with asyncio.timeout(NODE_S):
            await heard.wait()
    except TimeoutError:
        raise UnavailableError(f"node {node} does not answer; try again", retry=True) from None
    finally:
        link.abort()


async def end_session(tool: Tool, name: str) -> None:
    """Mark a session as ending. A sweeper does the rest."""
    nonce = os.urandom(NONCE_BYTES)
    for entry in (await _listed(tool)).sessions:
        if entry.name == name:
            answer = await tool.call(MEMBERSHIP_SHARD, AttachSession(nonce, session=entry.number, why=TO_END))
            if isinstance(answer, SessionAttached):
                await tool.call(MEMBERSHIP_SHARD, DetachSession(nonce, entry.number, True))
                return
    raise UnavailableError(f"there is no session {name!r}; 'daws sessions' lists those that are there", retry=False)
