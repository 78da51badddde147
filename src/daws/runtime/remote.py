"""Nodes and a store in processes of their own on this machine, seen by the client.

New tasks go into the store first, all on one link and so in the order in which they were made; when the store has
answered, those that are ready are handed to their homes. So no task can end before it is known, none is made after
somebody has let go of what it reads, and a cancel finds what it is about. The store tells how tasks end.
"""

import asyncio
import pickle
import threading
from asyncio import FIRST_COMPLETED
from collections import deque
from concurrent.futures import Future
from functools import partial
from socket import AF_UNIX, SOCK_STREAM, socketpair
from typing import Any, TypeVar

import uvloop

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.data.codec import Packed
from daws.data.files import ObjectFiles, read_and_drop
from daws.data.segments import Segments
from daws.data.session import SessionFolders as Folders
from daws.model.cluster import Members
from daws.model.errors import ClosedError, DawsError, InternalError, UnavailableError
from daws.model.task import CLIENT, NodeId, Ready
from daws.runtime.connection import Connection, connect
from daws.runtime.crew import Crew, info_of
from daws.runtime.journals import journal_path
from daws.runtime.loopthread import LoopThread
from daws.runtime.ports import Counters, Listener
from daws.runtime.talk import (
    FROM_NODE,
    FROM_STORE,
    Adopt,
    Adopted,
    BeNode,
    BeStore,
    Broken,
    Count,
    Counted,
    Ends,
    FromNode,
    FromStore,
    Go,
    Learnt,
    Ran,
    Said,
    Stop,
    ToNode,
    Up,
    objects_path,
)
from daws.runtime.transfer import ObjectSource
from daws.strategy.decisions import Strategy
from daws.wire.messages import CancelOrder, LetGo, NewTasks, Submission
from daws.wire.store import CLIENT_HOLDER, AnswerType, Release, Row, Submit, Unheld
from daws.wire.worker import Learn
from daws.workers.failures import exception_of
from daws.workers.server import BORN, GONE, ForkServer

TASKS_PER_TURN = 4096
BYTES_PER_TURN = 1 << 26
STORE = -2
"""The store among the processes; nodes have their own numbers."""
END_S = 10.0
ALIVE_S = 0.5
LINK_LOST_S = 1.0
T = TypeVar("T")


class NodeProcesses(LoopThread):
    """As NodeThread, for several nodes."""

    def __init__(
        self,
        nodes: int,
        crew: Crew,
        strategy: Strategy,
        folders: Folders,
        limit_bytes: int | None,
        files: ObjectFiles,
        listener: Listener,
        journal: str = "",
        server: ForkServer | None = None,
    ) -> None:
        """`files` are those of the client, where results arrive that it asks for; `journal` is a folder."""
        super().__init__("daws-client")
        self.members = Members(1, tuple([info_of(node, crew) for node in range(nodes)]))
        self.files = files
        self.listener = listener
        self._crew = crew
        self._strategy = pickle.dumps(strategy)
        self._folders = folders
        self._run_folder = str(folders.run)
        self._limit_bytes = limit_bytes
        self._journal = journal
        self._sources = {
            node: ObjectSource(partial(connect, objects_path(self._run_folder, node))) for node in self.members.nodes
        }
        self._new_functions: deque[Learn] = deque()
        self._calls: dict[int, list[Row]] = {}  # on their way, in the order in which they will be answered
        self._token = 0
        self._batches = 0
        self._cancels: deque[tuple[int, tuple[int, ...]]] = deque()  # behind which call, and what to cancel
        self._early_cancels: list[tuple[int, ...]] = []  # of tasks that the store does not know yet
        self._counting: deque[tuple[Future[list[Counted]], list[Counted]]] = deque()
        self._new_files: deque[tuple[NodeId, Adopt]] = deque()
        self._adopting: dict[int, Future[None]] = {}  # objects that were put in, and that no node has taken in yet
        self.pids: dict[NodeId, int] = {}
        self._links: dict[NodeId, Connection[Any]] = {}
        self._starts: dict[NodeId, asyncio.Future[None]] = {}  # done when the process is up
        self._lives: dict[NodeId, asyncio.Future[None]] = {}  # done when it is gone
        self._server = server
        self._is_closing = False

    # -- from any thread -----------------------------------------------------------------------------------------------

    def learn(self, function: int, pickled: bytes) -> None:
        """Has to be said before the first task of that kind is submitted."""
        self._new_functions.append(Learn(function, pickled))

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        self._call(self._cancel if running else self._cancel_waiting, tasks)

    def started(self) -> set[int]:
        asked: Future[list[Counted]] = Future()
        self._call(self._count, asked)
        return {task for one in self._answer_of(asked) for task in one.started}

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        """The node takes the file in as if one of its workers had written it."""
        path = Segments(*self._folders.node_folders(home)).write(packed, object_)
        self._adopting[object_] = Future()
        self._new_files.append((home, Adopt(object_, path, packed.size_bytes)))
        return (home,)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        """Bring an object here and map it; the calling thread waits for it."""
        adopting = self._adopting.get(object_)
        if adopting is not None:  # it was put there just now
            self._answer_of(adopting)
        return read_and_drop(partial(self.fetch, object_, places), self.files, object_)

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        self.fetch(object_, places)
        return self.files.path(object_)

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        """Have a copy of an object here."""
        for place in places:
            if place in self._sources and self._sources[place].fetch([object_], self.files):
                return
        raise UnavailableError(f"object {object_} is at none of its places any more: {places}", retry=True)

    def counters(self) -> list[Counters]:
        """Waits for an answer of every node."""
        asked: Future[list[Counted]] = Future()
        self._call(self._count, asked)
        return sorted([one.counters for one in self._answer_of(asked)], key=lambda one: one.node)

    def use_strategy(self, text: str) -> None:
        self._call(self._say_to_nodes, NewStrategy(text))
        self.counters()  # who answers has heard of it before

    def _say_to_nodes(self, word: ToNode) -> None:
        for node in self.members.nodes:
            self._links[node].say(word)

    def _answer_of(self, asked: "Future[T]") -> T:
        """Wait for something that the thread will say, as long as there is one."""
        while True:
            try:
                return asked.result(ALIVE_S)
            except TimeoutError:
                if self._thread is None or not self._thread.is_alive():
                    raise ClosedError("the cluster was closed before it could answer") from None

    def stop(self) -> None:
        """End all processes, then the thread. What has not ended never will."""
        super().stop()
        for source in self._sources.values():
            source.close()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        loop = self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._on_exception)
        self._server_gone: asyncio.Future[None] = loop.create_future()
        try:
            loop.run_until_complete(self._open())
            ready.set()
            loop.run_forever()
        except BaseException as error:
            self._broken = self._broken or error
        finally:
            self._is_closing = True
            loop.run_until_complete(self._close())
            loop.close()
            ready.set()

    async def _open(self) -> None:
        if self._server is None:
            self._server = ForkServer(*self._folders.all(), become="daws.runtime.fork")
        self.loop.add_reader(self._server.link.fileno(), self._on_server)
        await self._fork(STORE, BeStore(self._run_folder, self.members))  # nodes connect to it when they begin
        await asyncio.gather(*[self._fork(node, self._begin(node)) for node in self.members.nodes])
        for node in self.members.nodes:
            self._links[node].say(Go(self.members))

    def _begin(self, node: NodeId) -> BeNode:
        memory, scratch = self._folders.node_folders(node)
        limit_bytes = self.files.limit_bytes if self._limit_bytes is None else self._limit_bytes
        return BeNode(
            node,
            self._run_folder,
            self._crew,
            self._strategy,
            str(memory or ""),
            str(scratch),
            limit_bytes // len(self.members),
            journal_path(self._journal, node),
        )

    def _fork(self, who: NodeId, begin: BeStore | BeNode) -> "asyncio.Future[None]":
        """Start a process; the future is done when it is up."""
        assert self._server is not None
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)

        def lost() -> None:
            """Who closes its link is about to end, which the fork server will say, and how; else we say it."""
            error = UnavailableError(f"the link to {name_of(who)} is broken", retry=False)
            self.loop.call_later(LINK_LOST_S, self._break, error)

        if who == STORE:
            link: Connection[Any] = Connection(self.loop, ours, FROM_STORE, self._on_store, lost, name_of(who))
        else:
            link = Connection(
                self.loop, ours, FROM_NODE, lambda messages: self._on_node(who, messages), lost, name_of(who)
            )
        self._links[who] = link
        self._lives[who] = self.loop.create_future()
        self._starts[who] = started = self.loop.create_future()
        link.say(begin)
        if not self._server.fork(who, theirs):
            self.loop.add_writer(self._server.link.fileno(), self._on_server_writable)
        return started

    async def _close(self) -> None:
        """First the nodes, which have workers to end; then the store, which has nothing; the fork server ends the rest
        and removes the files."""
        server = self._server
        if server is None:
            return
        nodes = [self._lives[who] for who in self._lives if who != STORE]
        for who, link in self._links.items():
            if who != STORE:
                link.say(Stop())
                link.flush()
        if nodes:
            all_gone: asyncio.Future[Any] = asyncio.gather(*nodes)
            await asyncio.wait([self._server_gone, all_gone], timeout=END_S, return_when=FIRST_COMPLETED)
        server.let_go()
        await asyncio.wait([self._server_gone], timeout=END_S)
        for link in self._links.values():
            link.close()
        self.loop.remove_reader(server.link.fileno())
        self.loop.remove_writer(server.link.fileno())
        server.bury(kill=not self._server_gone.done())

    def _on_server(self) -> None:
        assert self._server is not None
        said = self._server.receive()
        if said is None:
            self.loop.remove_reader(self._server.link.fileno())
            self._server_gone.set_result(None)
            self._break(UnavailableError("the cluster's fork server has ended, and all nodes with it", retry=False))
            return
        for what, who, code in said:
            if what == BORN:
                self.pids[who] = code
            elif what == GONE and who in self._lives:
                self._lives[who].set_result(None)
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                self._break(UnavailableError(f"{name_of(who)} has ended unexpectedly, {how}", retry=False))

    def _on_server_writable(self) -> None:
        assert self._server is not None
        if self._server.send():
            self.loop.remove_writer(self._server.link.fileno())

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._break(context.get("exception") or InternalError(str(context)))

    def _break(self, error: BaseException) -> None:
        """A process is gone, or a bug: whoever waits must hear of it."""
        if self._broken is not None or self._is_closing:
            return
        if not isinstance(error, DawsError):
            broken = InternalError(f"the client's link has stopped: {type(error).__name__}: {error}")
            broken.__cause__ = error
            error = broken
        self._broken = error
        for started in self._starts.values():
            if not started.done():
                started.set_exception(error)
        while self._counting:
            self._counting.popleft()[0].set_exception(error)
        while self._adopting:
            self._adopting.popitem()[1].set_exception(error)
        self.listener.on_broken(error)

    # -- what the client says ------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Take in what the client has said since the last turn."""
        self.awake = False
        # Who is let go of was named by tasks that were submitted before: those first.
        gone = len(self.let_go)
        count = min(len(self.new_tasks), TASKS_PER_TURN)
        while self._new_files:
            home, file = self._new_files.popleft()
            self._links[home].say(file)
        while self._new_functions:  # all that these tasks need are among them
            function = self._new_functions.popleft()
            self._say_to_nodes(function)
        rows: list[Row] = []
        size_bytes = 0
        while len(rows) < count and size_bytes < BYTES_PER_TURN and not self._waits_for_adoption():
            row = self.new_tasks.popleft()
            size_bytes += len(row.spec.payload)
            rows.append(row)
        if self.new_tasks:
            if not self._waits_for_adoption():
                self.wake()
        elif gone:
            rows += [Release(self.let_go.popleft(), CLIENT_HOLDER) for _ in range(gone)]
        if rows:
            self._token += 1
            self._calls[self._token] = rows
            self._links[STORE].say(CallStore(self._token, 0, rows))  # type: ignore[arg-type]

    def _waits_for_adoption(self) -> bool:
        """Is an object next that was put in, and that its node does not have yet? Another node that heard of it now
        might ask for it too early, and would take it for lost."""
        row = self.new_tasks[0]
        return bool(row.outputs) and row.spec.id in self._adopting

    def _on_adopted(self, object_: int) -> None:
        self._adopting.pop(object_).set_result(None)
        if self.new_tasks:
            self._turn()
        if self._early_cancels:
            early, self._early_cancels = self._early_cancels, []
            for tasks in early:
                self._cancel(tasks)

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks:
            if self._waits_for_adoption():
                self._early_cancels.append(tasks)
                return
            self._turn()
        self._cancels.append((self._token, tasks))
        self._send_cancels()

    def _cancel_waiting(self, tasks: tuple[int, ...]) -> None:
        """Ask all nodes what runs there, and leave that alone."""

        def go_on(asked: "Future[list[Counted]]") -> None:
            if asked.exception() is None:
                started = {task for one in asked.result() for task in one.started}
                self._cancel(tuple([task for task in tasks if task not in started]))

        asked: Future[list[Counted]] = Future()
        asked.add_done_callback(go_on)
        self._count(asked)

    def _send_cancels(self) -> None:
        """Order what the store knows of by now. Any node can see to it."""
        oldest = next(iter(self._calls), self._token + 1)
        while self._cancels and self._cancels[0][0] < oldest:
            _, tasks = self._cancels.popleft()
            self._batches += 1
            node = self.members.nodes[self._batches % len(self.members)]
            self._links[node].say(CancelOrder(CLIENT, self._batches, tasks))

    def _count(self, asked: "Future[list[Counted]]") -> None:
        if self._broken is not None:
            asked.set_exception(self._broken)
            return
        self._counting.append((asked, []))
        for node in self.members.nodes:
            self._links[node].say(Count())

    def _on_counted(self, counted: Counted) -> None:
        """Each node answers in the order in which it was asked."""
        for asked, answers in self._counting:
            if counted.counters.node not in [one.counters.node for one in answers]:
                answers.append(counted)
                if len(answers) == len(self.members):
                    self._counting.popleft()
                    asked.set_result(answers)
                return

    # -- what the others say -------------------------------------------------------------------------------------------

    def _on_store(self, messages: list[FromStore]) -> None:
        for message in messages:
            if isinstance(message, Ends):
                self.listener.on_ended(message.outcomes)
            elif isinstance(message, StoreAnswered):
                rows = self._calls.pop(message.token)
                self._hand_out(rows, message.answers)
            elif isinstance(message, CallFine):
                rows = self._calls.pop(message.token)
                self._hand_out(rows, [None] * len(rows))
            elif isinstance(message, Up):
                self._starts[STORE].set_result(None)
        if self._cancels:
            self._send_cancels()

    def _hand_out(self, rows: list[Row], answers: list[AnswerType]) -> None:
        """Give tasks that are ready to the nodes that own them now, and tell who has what nobody holds any more."""
        ready: dict[NodeId, list[Ready]] = {}
        unheld: dict[NodeId, list[int]] = {}
        put: dict[NodeId, list[Submit]] = {}
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(row, Submit):
                if row.outputs:
                    put.setdefault(row.node, []).append(row)
                elif isinstance(answer, Ready):
                    ready.setdefault(row.node, []).append(answer)
                elif answer is not None:
                    raise InternalError(f"the store answered {answer} to {row}")
                elif not row.parents:
                    ready.setdefault(row.node, []).append(Ready(row.spec, 0, 0))
            elif isinstance(row, Release) and isinstance(answer, Unheld):
                for place in answer.places:
                    unheld.setdefault(place, []).append(row.task)
        for node, objects in put.items():  # who has them has to know; to the store it is nothing new
            self._batches += 1
            self._links[node].say(NewTasks(CLIENT, self._batches, tuple(objects)))
        for node, tasks in ready.items():
            self._batches += 1
            self._links[node].say(Submission(CLIENT, self._batches, tuple(tasks)))
        for node, names in unheld.items():
            self._links[node].say(LetGo(CLIENT, tuple(names)))

    def _on_node(self, node: NodeId, messages: list[FromNode]) -> None:
        for message in messages:
            if isinstance(message, Said):
                self.listener.on_printed(message.stream, message.text, message.task)
            elif isinstance(message, Counted):
                self._on_counted(message)
            elif isinstance(message, Adopted):
                self._on_adopted(message.object)
            elif isinstance(message, Ran):
                self.listener.on_ran(message.news)
            elif isinstance(message, Learnt):
                self.listener.on_fact(message.fact)
            elif isinstance(message, Broken):
                self._break(exception_of(message.failure))
            elif isinstance(message, Learn):  # a run there has brought in a function
                for other in self.members.nodes:
                    if other != node:
                        self._links[other].say(message)
            elif isinstance(message, Up):
                self._starts[node].set_result(None)


def name_of(who: NodeId) -> str:
    return "the store" if who == STORE else f"node {who}"
