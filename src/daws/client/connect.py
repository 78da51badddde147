"""A cluster that was there before and stays when its clients go: `daws.connect`."""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Never, TypeVar

from daws.client import admin
from daws.client.admin import NodeDescription, SessionDescription
from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.given import flag, size
from daws.client.hints import refuse_connect_option
from daws.client.modules import OwnModules, ShippedFunctions
from daws.client.results import objects_of, output_futures
from daws.client.session import Session
from daws.client.starting import Recording, memo_folder
from daws.data.janitor import Janitor
from daws.data.memo import MemoFolder
from daws.data.session import SessionFolders as Folders
from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import DawsError, UnavailableError, UsageError
from daws.model.task import Needs
from daws.runs.facts import Facts
from daws.runs.timeline import Timeline
from daws.runtime.cluster.joined import JoinedCluster
from daws.runtime.cluster.reach import Reach
from daws.strategy import parse_strategy

CLUSTER = "DAWS_CLUSTER"
NAME_LENGTH_MAX = 100
FETCHED_BYTES = 1 << 26
FETCHED_MAX = 1000
"""Limits of the results that futures still hold and that are fetched from the nodes when a cluster is left."""
_ADDRESS = re.compile(r"[\w.-]*:\d+", re.ASCII)
log = logging.getLogger("daws.client")
T = TypeVar("T")


def connect(
    folder: str | os.PathLike[str] | None = None,
    *,
    session: str = "",
    keep: bool = False,
    memory_bytes: int | str | None = None,
    timeout: float = 10.0,
    modules: bool | Iterable[str] = True,
    memo: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    export: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    timeline: Timeline | None = None,
    explain: bool = False,
    **others: Never,
) -> "ConnectedCluster":
    """Use the cluster of this folder, which `daws cluster init` has made and whose nodes `daws node` starts.

    - `folder`: the folder of the cluster; by default the variable `DAWS_CLUSTER` names it, as for the commands.
    - `session`: a name under which a later client can connect to the same tasks and results.
    - `keep`: with True the session continues when this process ends or dies. Otherwise closing waits until all tasks
      have ended, and tasks that are left when this process dies are cancelled.
    - `memory_bytes`: how much memory objects may take in this process before they are spilled to disk.
    - `timeout`: the seconds to wait for the store's first answer.
    - `modules`: the names of your own modules to send to the nodes. By default these are all modules that are loaded
      here and that a function may need, with the modules that they import. False sends none.
    - `memo`: a folder of this machine for the results of tasks with `memo=True`.
    - `trace`, `export`, `plot`, `timeline`, `explain`: as in `daws.Cluster`, for the tasks of this session while this
      client is connected. Files are written on this machine.
    """
    if others:
        refuse_connect_option(next(iter(others)), OPTIONS)
    folder = _checked_folder(folder)
    if len(session) > NAME_LENGTH_MAX or not session.isprintable():
        raise UsageError(f"session={session!r}: give a name of up to {NAME_LENGTH_MAX} letters")
    if keep and not session:
        raise UsageError("keep=True: give the session a name, so that it can be found again (session='…')")
    facts = Facts() if flag("explain", explain) else None
    limit_bytes = None if memory_bytes is None else size("memory_bytes", memory_bytes, 1)
    shipped = OwnModules(modules)
    results = memo_folder(memo)
    recording = Recording(trace, export, plot, timeline)
    reach = Reach(folder, "client")

    def join(made: Session) -> JoinedCluster:
        notes = (recording.timeline is not None, facts is not None)
        return JoinedCluster(reach, session, keep, made.files, made, made.futures.keys, timeout, *notes)

    make = partial(
        JoinedSession, limit_bytes=limit_bytes, join=join, modules=shipped, timeline=recording.timeline, facts=facts
    )
    try:
        return ConnectedCluster(os.path.abspath(folder), make, results, recording)
    except UnavailableError as error:
        reach.config.check_hosts(folder, error)
        raise


OPTIONS = tuple(connect.__kwdefaults__ or ())
"""The names of the options of `connect`."""


class ConnectedCluster(Cluster):
    """The cluster that `daws.connect` returns: as `daws.Cluster`, with nodes that join and leave."""

    def __init__(
        self, folder: str, make: "Callable[[Folders], JoinedSession]", results: MemoFolder | None, recording: Recording
    ) -> None:
        """`make` makes the session; `results` of tasks with `memo=` are kept in that folder."""
        self._recording = recording
        self._timeline = recording.timeline
        self._folder = folder
        self._folders = Folders()
        self._janitor = Janitor(*self._folders.all())
        joined: JoinedSession | None = None
        try:
            joined = self._joined = make(self._folders)
            joined.start()
            self.strategy = joined.strategy
            self._opened(joined, results)
        except BaseException as error:
            if joined is not None:
                joined.engine.stop()
            self._remove_folders()
            if isinstance(error, DawsError):
                raise error from None
            raise
        self._look()

    @property
    def session(self) -> str:
        """The name of the session, for `daws.connect(…, session=…)`."""
        return self._joined.engine.name

    def futures(self) -> list[Future[Any]]:
        """The futures of all tasks that the session had when this client connected, in the order of submission."""
        self._open()
        return list(self._joined.found)

    def nodes(self) -> list[NodeDescription]:
        """The nodes of the cluster now: their numbers, addresses and workers."""
        self._open()
        return admin.list_nodes(self._folder)

    def drain(self, node: int | NodeDescription, within: float = admin.WITHIN_S) -> None:
        """Drain a node: it hands over its waiting tasks, finishes its running ones, and leaves.

        The node is gone after `within` seconds at the latest. The call returns as soon as the node has been told.
        """
        self._open()
        admin.drain_node(self._folder, node, within)

    def sessions(self) -> list[SessionDescription]:
        """The sessions of all clients, and the sessions that are kept without a client."""
        self._open()
        return admin.list_sessions(self._folder)

    def end(self, session: str | SessionDescription) -> None:
        """End a session: cancel its tasks and delete its results."""
        self._open()
        admin.end_session(self._folder, session)

    def detach(self) -> None:
        """Disconnect, and let the session continue; `daws.connect(…, session=…)` finds it again."""
        self._joined.engine.kept = True
        self.close()

    def _look(self) -> None:
        members = self._joined.engine.members
        self._nodes = len(members)
        self.workers = max(1, sum(info.cores for info in members.infos))

    def _open(self) -> Session:
        session = super()._open()
        self._look()
        return session

    def close(self, *, cancel: bool = False, **others: Any) -> None:
        """Close the cluster as `Cluster.close`, but do not wait for the tasks of a session that is kept.

        For such a session the call waits only until the store has accepted every task, and raises UnavailableError if
        it has not.
        """
        if cancel:
            self._joined.engine.kept = False
        super().close(cancel=cancel, **others)

    def _waits_for_end(self) -> bool:
        return not self._joined.engine.kept

    def _fetch_results(self) -> None:
        if self._leaving is not None:  # else it was closed before
            self._joined.fetch_results()

    def _leave(self, cancel: bool, error: BaseException | None) -> None:
        if not self._joined.engine.kept:
            super()._leave(cancel, error)
            return
        lost = self._close()
        joined = self._joined.engine
        if not lost:
            return
        if joined.members:
            cure = "see that it answers and that its disk has room; 'daws sessions' counts those that it has"
            why = f"may be lost: the store took no more of them; {cure}"
        else:
            why = f"{'is' if lost == 1 else 'are'} lost: there are no nodes to take them; 'daws node' starts one"
        said = f"{lost:,} task{'s' * (lost != 1)} of session {joined.name!r} {why}"
        if sys.exc_info()[0] is None:
            raise UnavailableError(said, retry=True)
        log.warning(said)  # what is being raised, or was just caught, goes first

    def _close(self, why: str = "") -> int:
        left = super()._close(why)
        if self._joined.engine.kept:
            left, self._joined.engine.lost = self._joined.engine.lost, 0  # it is said once
        return left


class JoinedSession(Session):
    """A session whose objects may get lost and be made again, and that may have had a client before."""

    engine: JoinedCluster

    def __init__(
        self,
        folders: Folders,
        limit_bytes: int | None,
        join: Callable[[Session], JoinedCluster],
        modules: OwnModules,
        timeline: Timeline | None,
        facts: Facts | None,
    ) -> None:
        self._modules = modules
        super().__init__(parse_strategy("daws"), folders, limit_bytes, join, timeline, facts)
        self.found: list[Future[Any]] = []

    def _make_functions(self) -> ShippedFunctions:
        return ShippedFunctions(self.engine.learn, self._modules, self.timeline)

    def start(self) -> None:
        super().start()
        self._decide_by(parse_strategy(self.engine.strategy))
        if self.timeline is not None or self.facts is not None:
            with suppress(UnavailableError):
                self.engine.counters()  # a node that answers has been told to take notes
        for task, outputs in self.engine.tasks:
            future, *others = output_futures(self, task, objects_of(task, outputs))
            self.futures[task] = future
            if others:
                self.outputs[task] = others
            self.found.append(future)
        if self.found:
            self.engine.tell_found()

    def _keep_results(self) -> None:
        """Nothing is fetched when an exception ends the session; `fetch_results` is called when it was left."""

    def fetch_results(self) -> None:
        """Fetch the results whose futures somebody has, unless they are large."""
        self.results.keep(min(self.files.limit_bytes, FETCHED_BYTES), FETCHED_MAX, are_away=True)

    def _cure_of(self, needs: Needs, members: Members) -> str:
        most = max(info.executors[0].count for info in members.infos)
        if needs.context is not None:
            return f"'daws node --context {format_context(needs.context)}=1' starts a node that has one"
        return f"ask for at most {most}, or start a larger node ('daws node --executors {needs.cores}')"


def _checked_folder(folder: Any) -> str:
    """The folder to connect to. Addresses are refused, which is what other libraries connect to."""
    cure = "give the folder that 'daws cluster init' made"
    if folder is None:
        folder = os.environ.get(CLUSTER)
        if not folder:
            raise UsageError(f"connect(): {cure}, or set {CLUSTER}")
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"connect({folder!r:.100}): {cure}")
    path = os.fspath(folder)
    if "://" in path or (_ADDRESS.fullmatch(path) and not os.path.exists(path)):
        raise UsageError(f"connect({path!r}): {cure}, not an address")
    return path
