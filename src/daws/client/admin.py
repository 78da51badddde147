"""The nodes and sessions of a cluster: list them, have a node leave, end a session.

`daws nodes`, `daws drain` and `daws sessions` and the methods of clusters with these names use the same functions.
"""

import asyncio
import os
import time
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from msgspec import Struct

from daws.model.cluster import Members, NodeInfo
from daws.model.context import format_context
from daws.model.errors import UnavailableError, UsageError
from daws.runtime.cluster import words
from daws.runtime.cluster.asking import ask

T = TypeVar("T")
WITHIN_S = 60.0
"""A node that is drained is gone after so many seconds at the latest."""
Folder = str | os.PathLike[str]


class NodeDescription(Struct, frozen=True):
    """A node of a cluster.

    `node` is its number, `address` the address where it listens (empty for a node on a thread), `workers` the number of
    its workers, and `contexts` how many of these are for tasks with a context.
    """

    node: int
    address: str
    workers: int
    contexts: dict[str, int]

    @property
    def host(self) -> str:
        """The address without the port."""
        return "" if self.address.startswith("/") else self.address.rpartition(":")[0].strip("[]")

    @property
    def offer(self) -> str:
        """The workers by context, as text."""
        plain = self.workers - sum(self.contexts.values())
        parts = [f"{count} {context}" for context, count in self.contexts.items()]
        return " + ".join([str(plain), *parts] if plain or not parts else parts)

    def __str__(self) -> str:
        return f"{self.node:>6}  {self.address:<22}  {self.offer} executor{'s' * (self.workers != 1)}"


class SessionDescription(Struct, frozen=True):
    """A session of a cluster.

    `name` is its name and `since` the time of its beginning (as `time.time()`). `attached` says whether a client uses
    it, `kept` whether it continues without a client. `waiting`, `done` and `failed` count its tasks; `failed` is None
    where they are not counted.
    """

    name: str
    kept: bool
    attached: bool
    since: float
    waiting: int
    done: int
    failed: int | None  # None where nobody counts them

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.since))
        who = "in use" if self.attached else "kept" if self.kept else "left"
        counts = f"{self.waiting:,} to end, {self.done:,} done"
        if self.failed is not None:
            counts += f", {self.failed:,} failed"
        return f"{self.name:<20}  {since}  {who:<6}  {counts}"


def described(members: Members) -> list[NodeDescription]:
    """The nodes that are there, by number."""
    return [_described(info) for info in members.infos]


def _described(info: NodeInfo) -> NodeDescription:
    contexts: dict[str, int] = {}
    for group in info.executors:
        if group.context is not None:
            name = format_context(group.context)
            contexts[name] = contexts.get(name, 0) + group.count
    return NodeDescription(info.id, info.addresses[0] if info.addresses else "", info.cores, contexts)


def list_nodes(folder: Folder) -> list[NodeDescription]:
    """The nodes of the cluster of this folder."""
    answer = _ask(folder, words.AskMembers())
    assert isinstance(answer, words.NowMembers)
    return described(answer.members)


def drain_node(folder: Folder, node: int | NodeDescription, within_s: float = WITHIN_S) -> None:
    """Have a node leave: it gives away what waits, finishes what runs, and is gone after `within_s` at the latest.

    Returns as soon as the node has been told.
    """
    number = node.node if isinstance(node, NodeDescription) else node
    if isinstance(number, bool) or not isinstance(number, int):
        raise UsageError(f"drain({node!r}): give the number of a node, as cluster.nodes() lists it")
    if not within_s >= 0:
        raise UsageError(f"within={within_s:g}: give a number of seconds from 0 on")
    try:
        _ask(folder, words.Drain(number, within_s))
    except UnavailableError as error:
        if error.retry or number in [one.node for one in list_nodes(folder)]:
            raise
        raise UsageError(str(error)) from None


def list_sessions(folder: Folder) -> list[SessionDescription]:
    """The sessions of the cluster of this folder."""
    answer = _ask(folder, words.AskSessions())
    assert isinstance(answer, words.Sessions)
    return [
        SessionDescription(one.name, one.kept, one.attached, one.since, one.waiting, one.done, one.failed)
        for one in answer.sessions
    ]


def end_session(folder: Folder, session: str | SessionDescription) -> None:
    """Cancel what has not ended of a session, and forget the rest."""
    name = session.name if isinstance(session, SessionDescription) else session
    if not name or type(name) is not str:
        raise UsageError(f"end({session!r}): give the name of a session, as cluster.sessions() lists it")
    try:
        _ask(folder, words.EndSession(name))
    except UnavailableError as error:
        if error.retry or name in [one.name for one in list_sessions(folder)]:
            raise
        raise UsageError(str(error)) from None


def _ask(folder: Folder, question: object) -> object:
    return _beside_loops(lambda: ask(os.fspath(folder), question))


def _beside_loops(call: Callable[[], T]) -> T:
    """Call something that runs an event loop of its own, also where one runs already, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run, name="daws-ask")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
