"""Administration of clusters of several machines, as `daws.admin`: make the folder of a cluster, list its nodes and
sessions, have a node leave, end a session.

The commands `daws cluster`, `daws nodes`, `daws drain` and `daws sessions` call these functions, and so do the methods
of a connected cluster. No session is needed: `daws.connect` is for tasks.
"""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from daws.logs import LEVELS, LOOK_S, LogReader
from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import UnavailableError, UsageError
from daws.runtime.cluster import asking

if TYPE_CHECKING:
    from daws.net.config import ClusterConfig

T = TypeVar("T")
WITHIN_S = 60.0
"""A node that is drained is gone after so many seconds at the latest."""
GRACE_S = 15.0
"""A node that is killed while it leaves is listed until its lease has run out."""
Folder = str | os.PathLike[str]
NAME = "daws"
"""The name of a cluster whose folder has a name that no cluster can have."""


class ClusterDescription(Struct, frozen=True):
    """The settings in the folder of a cluster.

    `store` is "embedded" or the addresses of servers, and `store_shards` the number of pieces of such a store. The
    embedded store listens at `port` of the first of the `hosts`. `node_ports` are the first and the last port that
    nodes may use, None for any. `keys` names the roles whose keys are in the folder, good until the day in
    `keys_good_until`.
    """

    name: str
    protocol: int
    store: str
    store_shards: int
    hosts: tuple[str, ...]
    port: int
    node_ports: tuple[int, int] | None
    lease_s: float
    keys: tuple[str, ...]
    keys_good_until: str


def create_cluster(
    folder: Folder,
    *,
    name: str = "",
    hosts: Iterable[str] = (),
    store: str = "embedded",
    store_shards: int = 0,
    port: int | None = None,
) -> ClusterDescription:
    """Make the folder of a new cluster with its keys, as `daws cluster init` does.

    - `name`: the name of the cluster, by default that of the folder.
    - `hosts`: the addresses of its machines. The store is at the first one. By default 127.0.0.1 alone.
    - `store`: "embedded", or the URL of a Valkey or Redis server, which has `store_shards` pieces of the store.
    - `port`: the port of the embedded store, by default 7878.

    Users with a copy of the folder may join, submit and read.
    """
    from daws.net.config import HOSTS, PORT, ClusterConfig
    from daws.net.folder import init_cluster

    config = ClusterConfig(
        name=name or name_for(folder),
        store=store,
        store_shards=store_shards,
        hosts=tuple(hosts) or HOSTS,
        port=PORT if port is None else port,
    )
    init_cluster(Path(folder), config)
    return describe_cluster(folder)


def describe_cluster(folder: Folder) -> ClusterDescription:
    """Read the settings of a cluster's folder and check its keys, as `daws cluster show` does."""
    from daws.net.config import EMBEDDED, shown
    from daws.net.keys import ROLES_OF, Keys, good_until

    path = Path(folder)
    config = config_of(folder)
    roles = tuple([role for role in ROLES_OF if (path / f"{role}.key").exists()])
    for role in roles:
        Keys(path, role).check()
    return ClusterDescription(
        config.name,
        config.protocol,
        ", ".join(map(shown, config.store_urls)) or EMBEDDED,
        config.store_shards,
        config.hosts,
        config.port,
        config.node_ports if config.node_ports[1] else None,
        config.lease_s,
        roles,
        f"{good_until(path):%Y-%m-%d}",
    )


def config_of(folder: Folder) -> "ClusterConfig":
    """Read `cluster.toml` in the folder of a cluster."""
    from daws.net.config import ClusterConfig

    return ClusterConfig.load(os.fspath(folder))


def name_for(folder: Folder) -> str:
    """The name of a folder with all that the name of a cluster cannot have left out."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(folder).resolve().name).strip("-._")[:64] or NAME


class NodeDescription(Struct, frozen=True):
    """A node of a cluster.

    `node` is its number and `address` the address where it listens, empty for a node on a thread. `workers` is the
    number of its workers, and `contexts` says how many of these are for tasks with a context.
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
    nodes = []
    for info in sorted(members.infos, key=lambda info: info.id):
        contexts: dict[str, int] = {}
        for group in info.executors:
            if group.context is not None:
                name = format_context(group.context)
                contexts[name] = contexts.get(name, 0) + group.count
        nodes.append(NodeDescription(info.id, info.addresses[0] if info.addresses else "", info.cores, contexts))
    return nodes


def list_nodes(folder: Folder) -> list[NodeDescription]:
    """List the nodes of the cluster of this folder."""
    return described(_ask(folder, asking.members))


def drain_node(folder: Folder, node: int | NodeDescription, within_s: float = WITHIN_S) -> None:
    """Have a node leave: it hands over its waiting tasks, finishes its running ones, and goes.

    The node is gone after `within_s` seconds at the latest. The call returns as soon as the node has been told.
    """
    number = node.node if isinstance(node, NodeDescription) else node
    if isinstance(number, bool) or not isinstance(number, int):
        raise UsageError(f"drain({node!r}): give the number of a node, as cluster.nodes() lists it")
    if not within_s >= 0:
        raise UsageError(f"within={within_s:g}: give a number of seconds from 0 on")
    is_there = lambda: number in [one.node for one in list_nodes(folder)]  # noqa: E731
    _order(folder, lambda tool: asking.drain(tool, number, within_s), is_there)


def wait_until_gone(folder: Folder, node: int, within_s: float = WITHIN_S) -> None:
    """Wait until a node that was told to leave is gone. Raise UnavailableError if it is listed 15 seconds too late.

    A store that does not answer is asked again until then.
    """
    until_s = time.monotonic() + within_s + GRACE_S
    while True:
        try:
            if node not in [one.node for one in list_nodes(folder)]:
                return
            error = UnavailableError(f"node {node} is still there after {within_s + GRACE_S:g} s", retry=True)
        except UnavailableError as found:
            error = found
        if not error.retry or time.monotonic() >= until_s:
            raise error
        time.sleep(LOOK_S)


def list_sessions(folder: Folder) -> list[SessionDescription]:
    """List the sessions of the cluster of this folder."""
    return [
        SessionDescription(one.name, one.kept, one.attached, one.since_s, one.waiting, one.done, one.failed)
        for one in _ask(folder, asking.sessions)
    ]


def end_session(folder: Folder, session: str | SessionDescription) -> None:
    """Cancel the tasks of a session that have not ended, and delete its results."""
    name = session.name if isinstance(session, SessionDescription) else session
    if not name or type(name) is not str:
        raise UsageError(f"end({session!r}): give the name of a session, as cluster.sessions() lists it")
    is_there = lambda: name in [one.name for one in list_sessions(folder)]  # noqa: E731
    _order(folder, lambda tool: asking.end_session(tool, name), is_there)


def read_log(
    folder: Folder, *, node: int | None = None, level: str = "debug", follow: bool = False
) -> Iterator[dict[str, Any]]:
    """Read the log files in the folder of a cluster, by time, as `daws logs` does.

    Each line is a dict with `time`, `level`, `logger`, `message` and, where they are known, `node`, `session`, `task`
    and `exception`. Only lines of a `node`, or of a `level` and above, are given if that is asked for. With `follow`
    the iterator waits for new lines and has no end.
    """
    if level not in LEVELS:
        raise UsageError(f"level={level!r}: give one of {', '.join(LEVELS)}")
    config_of(folder)
    return _log_lines(LogReader(Path(folder)), node, LEVELS[level], follow)


def _log_lines(reader: LogReader, node: int | None, level: int, follow: bool) -> Iterator[dict[str, Any]]:
    while True:
        for line in reader.news():
            if (node is None or line.get("node") == node) and LEVELS.get(line.get("level", ""), level) >= level:
                yield line
        if not follow:
            return
        time.sleep(LOOK_S)


def _order(folder: Folder, order: Callable[[asking.Tool], Awaitable[None]], is_there: Callable[[], bool]) -> None:
    """Send an order about a node or a session. One that does not exist is an error of the caller."""
    try:
        _ask(folder, order)
    except UnavailableError as error:
        if error.retry or is_there():
            raise
        raise UsageError(str(error)) from None


def _ask(folder: Folder, question: Callable[[asking.Tool], Awaitable[T]]) -> T:
    """Ask, with an event loop of its own: on another thread where one runs already, as in notebooks."""
    try:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asking.ask(os.fspath(folder), question)
        with ThreadPoolExecutor(1, "daws-ask") as thread:
            return thread.submit(asking.ask, os.fspath(folder), question).result()
    except UnavailableError as error:
        config_of(folder).check_hosts(folder, error)
        raise
