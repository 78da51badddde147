"""A cluster that was there before and stays when its clients go: `daws.connect`."""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar

from daws.client import cluster as clusters
from daws.client import patience
from daws.client.cluster import Cluster
from daws.client.future import Future, output_futures
from daws.client.modules import OwnModules
from daws.client.options import OUTPUTS_MAX
from daws.client.rereading import read_again
from daws.client.session import FIRST_EXTRA_OBJECT, Session, task_of
from daws.data.session import Session as Folders
from daws.model.errors import UnavailableError, UsageError
from daws.model.task import NodeId
from daws.runtime.cluster.joined import JoinedCluster
from daws.runtime.cluster.reach import Reach
from daws.runtime.engine import Crew
from daws.strategy import parse_strategy

NAME_LENGTH_MAX = 100
log = logging.getLogger("daws")
T = TypeVar("T")


def connect(
    folder: str | os.PathLike[str],
    *,
    session: str = "",
    keep: bool = False,
    memory_bytes: int | None = None,
    timeout: float = 10.0,
    modules: bool | Iterable[str] = True,
    memo: str | os.PathLike[str] | None = None,
) -> "ConnectedCluster":
    """Use the cluster of this folder (made by `daws cluster init`), whose nodes are started by `daws node`.

    A `session` under a name can be gone on with later, by whoever connects under the same one. With `keep` it goes on
    when this process ends, in whatever way; without, what has not ended is cancelled then. `timeout` is for the store's
    first answer.

    Your own modules that are loaded here go to the nodes with the functions that may need them, and with all that they
    import. `modules` are the names of those to send instead; False for none, when nodes have them.
    `memo` is a folder of this machine for results of tasks with `memo=True`.
    """
    return ConnectedCluster(folder, session, keep, memory_bytes, timeout, modules, memo)


class ConnectedCluster(Cluster):
    """As `Cluster`, with nodes that come and go by themselves."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        session: str = "",
        keep: bool = False,
        memory_bytes: int | None = None,
        timeout: float = 10.0,
        modules: bool | Iterable[str] = True,
        memo: str | os.PathLike[str] | None = None,
    ) -> None:
        if len(session) > NAME_LENGTH_MAX or not session.isprintable():
            raise UsageError(f"session={session!r}: give a name of up to {NAME_LENGTH_MAX} letters")
        if keep and not session:
            raise UsageError("keep=True: give the session a name, so that it can be found again (session='…')")
        memory_bytes = clusters.check_memory(memory_bytes)
        shipped = OwnModules(modules)
        with_memo, prepare = clusters._memory(memo)
        self.timeline = None
        self._trace = None
        self._lock = Lock()
        self._session: Session | None = None
        reach = Reach(os.fspath(folder), "client")
        self._folders = Folders()
        self._janitor = clusters._janitor(*self._folders.all())
        try:
            kind = JoinedSession if with_memo is None else _memo_session()
            joined = kind(reach, session, keep, self._folders, memory_bytes, timeout, shipped)
            prepare(joined)
            joined.start()
        except BaseException:
            self._remove_folders()
            raise
        self._joined = joined
        self._session = joined
        self.strategy = joined.strategy
        self._look()
        patience.begin()
        clusters._open.add(self)

    def __enter__(self) -> "ConnectedCluster":
        super().__enter__()
        return self

    @property
    def session(self) -> str:
        """The name under which the session can be gone on with."""
        return self._joined.joined.name

    def futures(self) -> list[Future[Any]]:
        """Those of all tasks that the session had when this client connected, in the order of their submission."""
        self._open()
        return list(self._joined.found)

    def detach(self) -> None:
        """Go, and let the session go on; `daws.connect(…, session=…)` finds it again."""
        self._joined.joined.kept = True
        self.close()

    def _look(self) -> None:
        members = self._joined.joined.members
        self.nodes = len(members)
        self.workers = max(1, sum(info.cores for info in members.infos))

    def _open(self) -> Session:
        session = super()._open()
        self._look()
        return session

    def close(self) -> None:
        """Go. UnavailableError if the session is kept and the cluster has not taken all of its tasks."""
        lost = self._close()
        joined = self._joined.joined
        if not lost or not joined.kept:
            return
        if joined.members:
            cure = "see that it answers and that its disk has room; 'daws sessions' counts those that it has"
            why = f"may be lost: the store took no more of them; {cure}"
        else:
            why = "are lost: there are no nodes to take them; 'daws node' starts one"
        said = f"{lost:,} tasks of session {joined.name!r} {why}"
        if sys.exc_info()[0] is None:
            raise UnavailableError(said, retry=True)
        log.warning(said)  # what is being raised, or was just caught, goes first

    def _close(self) -> int:
        left = super()._close()
        if self._joined.joined.kept:
            left, self._joined.joined.lost = self._joined.joined.lost, 0  # it is said once
        return left


class JoinedSession(Session):
    """A session whose objects may get lost and be made again, and that may have had a client before."""

    def __init__(
        self,
        reach: Reach,
        name: str,
        kept: bool,
        folders: Folders,
        limit_bytes: int | None,
        timeout_s: float,
        modules: OwnModules,
    ) -> None:
        def join(session: Session) -> JoinedCluster:
            return JoinedCluster(reach, name, kept, session.files, session, session.futures.keys, timeout_s)

        super().__init__(Crew(1), parse_strategy("daws"), folders, limit_bytes, join=join)
        assert isinstance(self.engine, JoinedCluster)
        self.joined = self.engine
        self.found: list[Future[Any]] = []
        self._modules = modules
        self._tag = b""
        self._tags: dict[bytes, bytes] = {b"": b""}  # by digest of the shipment
        self._again: dict[int, Future[Any]] = {}  # by object that was lost and is about to be read: what reads it

    def start(self) -> None:
        super().start()
        self.strategy = parse_strategy(self.joined.strategy)
        self._assign = self.strategy.assign
        self._next_task = self._next_function = count(self.joined.next_task).__next__
        for task, outputs in self.joined.tasks:
            first = FIRST_EXTRA_OBJECT + task * OUTPUTS_MAX
            future, *others = output_futures(self, task, [task, *range(first + 1, first + outputs)])
            self.futures[task] = future
            if others:
                self.outputs[task] = others
            self.found.append(future)
        if self.found:
            self.joined.ask_ends([future.task for future in self.found])

    def number_of(self, function: Callable[..., Any]) -> int:
        """As for any session, with the modules of ours that the function may need."""
        modules = self._modules
        if function.__class__ is FunctionType and modules.count == len(sys.modules):
            known = self._settled.get(function)
            if known is not None:
                return known
        if modules.have_changed(function):
            tag = self._ship()
            if tag != self._tag:
                self._settled.clear()
                self._functions.clear()
                self._tag = tag
        return super().number_of(function)

    def _ship(self) -> bytes:
        """Send modules that were not sent before; answers the tag of functions that need them."""
        shipment = self._modules.shipment()
        if shipment is None:
            return b""
        tag = self._tags.get(shipment.digest)
        if tag is None:
            number = self._next_function()
            tag = self._tags[shipment.digest] = shipment.tag(number)
            self.engine.learn(number, shipment.packed)
        return tag

    def _learn(self, number: int, pickled: bytes) -> None:
        self.engine.learn(number, self._tag + pickled)

    def expect_reading(self, futures: list[Future[Any]]) -> None:
        """What went with nodes that are no more is made again at once, and not each when its turn has come."""
        nodes, lost = self.joined.members.nodes, []
        if self.engine.is_here:
            return
        for object_ in [one.object for one in futures]:
            if not is_at(nodes, self._places(object_)):
                self._ask_places(object_)
                if not is_at(nodes, self._places(object_)):
                    lost.append(object_)
        self._again = {object_: read_again(self, task_of(object_), object_) for object_ in lost}

    def load(self, object_: int) -> Any:
        reader = self._again.pop(object_, None)
        return super().load(object_) if reader is None else reader.result()

    def _loaded(self, object_: int) -> Any:
        try:
            return super()._loaded(object_)
        except UnavailableError as error:
            if not error.retry or self._closed is not None or self.engine.is_here:
                raise
        self._ask_places(object_)
        return super()._loaded(object_)

    def _ask_places(self, object_: int) -> None:
        """Where it is by now."""
        task = task_of(object_)
        self.stored[task] = self.joined.outcome_of(task).outputs


def is_at(nodes: tuple[NodeId, ...], places: tuple[NodeId, ...]) -> bool:
    """Is one of these places a node that is there?"""
    return any(place in nodes for place in places)


def _memo_session() -> type[JoinedSession]:
    from daws.client.memo import MemoSession

    class JoinedMemoSession(MemoSession, JoinedSession):
        """Both."""

    return JoinedMemoSession
