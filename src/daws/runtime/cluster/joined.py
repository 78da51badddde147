"""A cluster that was there before and stays: all of it, as a client's session knows it.

What the client says goes to the server of the store on one link, and so in the order in which it was said; objects go
to nodes and come from them on streams of their own. When the link breaks, it is made anew: what was not answered is
said again, and what may have ended meanwhile is asked for.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import uvloop
from msgspec.structs import replace

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.data.codec import Packed
from daws.data.files import ObjectFiles, read_and_drop
from daws.model.cluster import Members
from daws.model.errors import ClosedError, DawsError, InternalError, UnavailableError
from daws.model.states import FAILED
from daws.model.task import FROM_OUTSIDE, INLINE_BYTES, NodeId, TaskSpec
from daws.runtime.cluster.access import open_store
from daws.runtime.cluster.noting import fact_here, news_here
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.words import (
    NOBODY,
    AskEnds,
    Attach,
    Attached,
    CancelTasks,
    Close,
    Closed,
    Count,
    Counted,
    Counts,
    Ends,
    FromStore,
    Learnt,
    NowMembers,
    Printed,
    Ran,
    Refused,
)
from daws.runtime.loopthread import LoopThread
from daws.runtime.objects import ObjectSource
from daws.runtime.ports import Counters, Listener, StoreLink
from daws.wire.ends import Outcome
from daws.wire.messages import MessageType
from daws.wire.store import CLIENT_HOLDER, DONE, STRUCK, UNKNOWN, AnswerType, Release, Row, Submit

TASKS_PER_TURN = 4096
BYTES_PER_TURN = 1 << 24
PACE_S_MAX = 0.05
PACE_PER_NODE_S = 0.0005
"""While nodes have enough to do, new tasks wait so long for others that go with them: with many nodes, a word to each
of them for every task or two costs more than the tasks do."""
ENOUGH = 4
"""Tasks for each executor, and work for so many turns."""
COPIES = 2
"""An object from outside cannot be made again: so many nodes get it."""
ALIVE_S = 0.5
LAST_WORDS_S = 1.0
FAREWELL_S = 10.0
"""So long does a client that goes wait for a store that takes nothing more."""
LOOK_S = 0.005
ALONE_S = 5.0
"""How often a client looks whether there is a node at all."""
DIAL_AGAIN_S = 0.1
DIAL_AGAIN_S_MAX = 2.0
T = TypeVar("T")
log = logging.getLogger("daws.client")


class JoinedCluster(LoopThread):
    """The session of one client on a cluster: what it has submitted, and what the store says of it."""

    def __init__(
        self,
        reach: Reach,
        name: str,
        kept: bool,
        files: ObjectFiles,
        listener: Listener,
        pending: Callable[[], Collection[int]],
        patience_s: float,
        runs: bool = False,
        decisions: bool = False,
    ) -> None:
        """`files` is where results arrive that are asked for, `pending` says what has not ended as far as the session
        knows. With a `name`, a session of that name is gone on with. `patience_s` is for the first answer. The
        listener is told of `runs`, and of `decisions`."""
        super().__init__("daws-client")
        self.members = Members(0, ())
        self.session = NOBODY
        self.name = name
        self.kept = kept
        self.tasks: list[tuple[int, int]] = []
        self.strategy = ""
        self.files = files
        self.listener = listener
        self._reach = reach
        self._pending = pending
        self._patience_s = patience_s
        self._runs = runs
        self._decisions = decisions
        self._nonce = os.urandom(16)
        self._link: StoreLink | None = None
        self._new_functions: deque[Submit] = deque()
        self._calls: dict[int, list[Row]] = {}  # on their way, in the order in which they were made
        self._token = 0
        self._asked: dict[int, Future[Outcome]] = {}  # tasks that somebody asks about
        self._cancelled: set[int] = set()  # tasks that are to end: the store may be away, or forget that it was told
        self._counting: deque[Future[list[Counted]]] = deque()
        self._sources: dict[str, ObjectSource] = {}
        self._sources_lock = threading.Lock()
        self._turns = 0
        self._turned_s = 0.0
        self._ended = 0  # since the last turn
        self._is_cut_short = False  # the last turn: it had bytes enough
        self._slots = 0  # executors of all members
        self._is_closing = False
        self._is_stopped = False
        self._is_alone = False  # and has said so
        self.lost = 0  # tasks of a kept session that were not in the store when we went
        self._why = ""  # the store was not reached when it was last tried

    # -- from any thread -----------------------------------------------------------------------------------------------

    def learn(self, function: int, pickled: bytes) -> None:
        """Functions are kept in the store, where nodes find them when they need them, whatever becomes of us."""
        size_bytes = min(len(pickled), INLINE_BYTES)
        made = ((function, size_bytes, function, (), pickled),)
        self._new_functions.append(Submit(TaskSpec(function, FROM_OUTSIDE, outputs=(function,)), (), NOBODY, made))

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        self._call(self._cancel if running else self._cancel_waiting, tasks)

    def started(self) -> set[int]:
        return {task for one in self._counted() for task in one.started}

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        nodes = list(self.members.nodes)
        if home in nodes:
            nodes.remove(home)
            first = object_ % len(nodes) if nodes else 0
            nodes = [home, *nodes[first:], *nodes[:first]]
        places: list[NodeId] = []
        for node in nodes:
            source = self._source(node)
            if source is not None and source.bring(object_, packed):
                places.append(node)
                if len(places) == COPIES:
                    break
        if not places:
            raise UnavailableError(
                f"no node took an object of {packed.size_bytes:,} bytes: none can be reached, or none has room",
                retry=True,
            )
        return tuple(places)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        """Bring an object here and map it; the calling thread waits for it."""
        return read_and_drop(partial(self.fetch, object_, places), self.files, object_)

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        self.fetch(object_, places)
        return self.files.path(object_)

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        """Have a copy of an object here."""
        for place in places:
            source = self._source(place)
            if source is not None and source.fetch([object_], self.files):
                return
        raise UnavailableError(f"object {object_} is at none of its places any more: {places}", retry=True)

    def _source(self, node: NodeId) -> ObjectSource | None:
        info = self.members.info(node)
        if info is None or len(info.addresses) < 2:
            return None
        address = info.addresses[1]
        with self._sources_lock:
            if self._is_stopped:
                return None
            if address not in self._sources:
                self._sources[address] = ObjectSource(partial(self._reach.open_stream, address, node))
            return self._sources[address]

    def ask_ends(self, tasks: list[int]) -> None:
        """Have the listener told of those that have ended, once more perhaps."""
        self._call(self._say, AskEnds(tasks))

    def outcome_of(self, task: int) -> Outcome:
        """How a task that has ended ended, as the store knows it now: its objects may have other places by now."""
        asked: Future[Outcome] = Future()
        self._call(self._ask, task, asked)
        return self._answer_of(asked)

    def counters(self) -> list[Counters]:
        return sorted([one.counters for one in self._counted()], key=lambda one: one.node)

    def _counted(self) -> list[Counted]:
        asked: Future[list[Counted]] = Future()
        self._call(self._count, asked)
        return self._answer_of(asked)

    def use_strategy(self, text: str) -> None:
        self._call(self._say, NewStrategy(text))
        self.counters()  # who answers has heard of it before

    def _answer_of(self, asked: "Future[T]") -> T:
        """Wait for something that the thread will say, as long as there is one."""
        while True:
            try:
                return asked.result(ALIVE_S)
            except TimeoutError:
                if self._thread is None or not self._thread.is_alive():
                    raise ClosedError("the cluster was closed before it could answer") from None

    def stop(self) -> None:
        super().stop()
        with self._sources_lock:
            self._is_stopped = True  # nobody would close a stream that is opened from now on
        for source in self._sources.values():
            source.close()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        loop = self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._on_exception)
        self._attached: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        connecting = loop.create_task(self._stay_connected())
        connecting.add_done_callback(self._on_connecting_ended)
        try:
            loop.run_until_complete(self._open())
            self._close_idle()
            self._look_around()
            ready.set()
            loop.run_forever()
        except BaseException as error:
            self._broken = self._broken or error
        finally:
            self._is_closing = True
            loop.run_until_complete(self._farewell())
            connecting.cancel()
            loop.run_until_complete(asyncio.gather(connecting, return_exceptions=True))
            loop.close()
            ready.set()

    def _close_idle(self) -> None:
        idle_s = self._reach.config.idle_s
        there = {info.addresses[1] for info in self.members.infos if len(info.addresses) > 1}
        with self._sources_lock:
            for address, source in [*self._sources.items()]:
                if source.close_if_idle(time.monotonic() - idle_s) and address not in there:
                    del self._sources[address]
        self.loop.call_later(idle_s, self._close_idle)

    def _look_around(self) -> None:
        """Without nodes nothing ends: whoever waits should know what for."""
        if self.members:
            if self._is_alone:
                log.warning("there are nodes again")
            self._is_alone = False
        elif self._pending() and not self._is_alone:
            log.warning("there are no nodes; what was submitted waits until 'daws node' starts one")
            self._is_alone = True
        self.loop.call_later(ALONE_S, self._look_around)

    async def _open(self) -> None:
        """Return when tasks can be taken."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._attached
        except TimeoutError:
            raise self._no_answer() from None

    def _no_answer(self) -> UnavailableError:
        cure = "'daws node' starts one, on its machine" if self._reach.is_embedded else "is its server running?"
        whose, where = f"the store of cluster {self._reach.config.name!r}", self._reach.store_where
        why = f" ({self._why.removeprefix(f'{where}: ')})" if self._why else ""
        return UnavailableError(f"{whose} does not answer at {where}{why}; {cure}", True)

    async def _farewell(self) -> None:
        """The session ends with us, or goes on. If the store does not hear it, it finds out by itself."""
        attached = self._attached
        is_known = attached.done() and not attached.cancelled() and attached.exception() is None
        if self.kept and is_known:
            await self._hand_in()
        if self._runs or self._decisions:
            await self._last_words()
        link = self._link
        if link is None:
            return
        if is_known:
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_S):
                    link.send(Close(self.kept))
                    await self._closed
        self._link = None
        await link.close()

    async def _last_words(self) -> None:
        """Wait for the notes that nodes have sent: they come before the answer to this question."""
        if self._link is not None and self._broken is None:
            asked: Future[list[Counted]] = Future()
            self._count(asked)
            with suppress(TimeoutError, UnavailableError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await asyncio.wrap_future(asked)

    async def _hand_in(self) -> None:
        """What is not in the store would be lost with us: wait for it as long as it takes more."""
        before, until_s = -1, 0.0
        while (left := len(self.new_tasks) + len(self._calls)) and self._link is not None:
            if left != before:
                before, until_s = left, self.loop.time() + FAREWELL_S
            elif self.loop.time() > until_s:
                break
            self._take_in()
            await asyncio.sleep(LOOK_S)
        on_their_way = [row for rows in self._calls.values() for row in rows if isinstance(row, Submit)]
        self.lost = len([row for row in (*self.new_tasks, *on_their_way) if row.spec.kind != FROM_OUTSIDE])

    async def _stay_connected(self) -> None:
        wait_s = DIAL_AGAIN_S
        while not self._is_closing:
            lost = self.loop.create_future()

            def on_lost(lost: "asyncio.Future[None]" = lost) -> None:
                if not lost.done():
                    lost.set_result(None)

            try:
                link = await open_store(self._reach, self, on_lost)
            except UnavailableError as error:
                if self._reach.is_final(error, self.session != NOBODY):
                    self._break(error)
                    return
                self._why = str(error)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, DIAL_AGAIN_S_MAX)
                continue
            self._link, since_s = link, time.monotonic()
            link.send(Attach(self._nonce, self.name, self.kept, self.session, self._runs, self._decisions))
            await lost
            self._link = None
            if not self._is_closing:
                log.log(self._reach.loss_level, "the store is gone; trying again until it answers")
            if time.monotonic() - since_s > DIAL_AGAIN_S_MAX:
                wait_s = DIAL_AGAIN_S
            else:  # it hangs up on us as often as we come
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, DIAL_AGAIN_S_MAX)

    def _on_connecting_ended(self, connecting: "asyncio.Task[None]") -> None:
        error = None if connecting.cancelled() else connecting.exception()
        if error is not None:
            self._break(error)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._break(context.get("exception") or InternalError(str(context)))

    def _break(self, error: BaseException) -> None:
        """Nothing will come any more: whoever waits must hear of it."""
        if self._broken is not None or self._is_closing:
            return
        if not isinstance(error, DawsError):
            broken = InternalError(f"the client's link has stopped: {type(error).__name__}: {error}")
            broken.__cause__ = error
            error = broken
        if not self._attached.done():
            self._attached.set_exception(error)
            return
        self._broken = error
        while self._counting:
            self._counting.popleft().set_exception(error)
        while self._asked:
            self._asked.popitem()[1].set_exception(error)
        self.listener.on_broken(error)

    def _say(self, word: Any) -> None:
        if self._link is not None:
            self._link.send(word)

    # -- what the client says ------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        wait_s = self._spare_s()
        if wait_s > 0:
            self.loop.call_later(wait_s, self._take_in)  # until then we are as good as awake
        else:
            self._take_in()

    def _spare_s(self) -> float:
        """How long new tasks may wait for others. Not at all, if what nodes have might be done before."""
        ahead = len(self._pending()) - len(self.new_tasks)  # those that nodes have, or at least so many
        is_much = self._is_cut_short or len(self.new_tasks) >= TASKS_PER_TURN
        if not self.members or is_much or ahead < ENOUGH * self._slots:
            return 0.0
        pace_s = min(PACE_S_MAX, PACE_PER_NODE_S * len(self.members.infos))
        since_s = self.loop.time() - self._turned_s
        if ahead * since_s < ENOUGH * pace_s * self._ended:
            return 0.0
        return pace_s - since_s

    def _take_in(self) -> None:
        """Take in what the client has said since the last turn. What is not ready to be said waits for another."""
        self.awake = False
        if not self.members:
            return  # nobody could own a task: `_on_members` is next
        self._turned_s, self._ended = self.loop.time(), 0
        gone = len(self.let_go)
        rows: list[Row] = []
        size_bytes = 0
        while self._new_functions:  # all that these tasks need are among them
            function = self._new_functions.popleft()
            rows.append(function)
        count = min(len(self.new_tasks), TASKS_PER_TURN)
        while count and size_bytes < BYTES_PER_TURN:
            count -= 1
            row = self.new_tasks.popleft()
            size_bytes += len(row.spec.payload)
            rows.append(row if row.node in self.members else replace(row, node=self._another(row)))
        self._is_cut_short = count > 0
        if self.new_tasks:
            self.wake()
        else:  # those were named by tasks that were submitted before
            released = [self.let_go.popleft() for _ in range(gone)]
            if not self.kept:
                rows += [Release(task, CLIENT_HOLDER) for task in released]
        if rows:
            self._token += 1
            self._calls[self._token] = rows
            self._say(CallStore(self._token, 0, rows))  # type: ignore[arg-type]

    def _another(self, row: Submit) -> NodeId:
        """Who is to have a task whose home is gone: one after the other of those that can run it."""
        self._turns += 1
        nodes = self.members.capable(row.spec.needs) or self.members.nodes
        return nodes[self._turns % len(nodes)]

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks and self.members:
            self._take_in()
        self._cancelled.update(tasks)
        self._say(CancelTasks(tasks))

    def _cancel_waiting(self, tasks: tuple[int, ...]) -> None:
        """Ask all nodes which tasks run there, and cancel the others."""

        def go_on(asked: "Future[list[Counted]]") -> None:
            if asked.exception() is None:
                started = {task for one in asked.result() for task in one.started}
                self._cancel(tuple([task for task in tasks if task not in started]))

        asked: Future[list[Counted]] = Future()
        asked.add_done_callback(go_on)
        self._count(asked)

    def _ask(self, task: int, asked: "Future[Outcome]") -> None:
        if self._broken is not None:
            asked.set_exception(self._broken)
            return
        before = self._asked.pop(task, None)
        if before is not None:
            asked.add_done_callback(lambda asked: copy_end(asked, before))
        self._asked[task] = asked
        self._say(AskEnds([task]))

    def _count(self, asked: "Future[list[Counted]]") -> None:
        if self._broken is not None:
            asked.set_exception(self._broken)
        elif self._link is None:
            asked.set_exception(UnavailableError("the store does not answer just now", retry=True))
        else:
            self._counting.append(asked)
            self._say(Count())

    # -- what the store says -------------------------------------------------------------------------------------------

    def on_store(self, said: list[FromStore]) -> None:
        for word in said:
            if isinstance(word, Ends):
                self._ended += len(word.outcomes)
                self.listener.on_ended(word.outcomes)
                if self._cancelled:
                    self._cancelled.difference_update([one.task for one in word.outcomes])
                for task in [*self._asked]:
                    found = [one for one in word.outcomes if one.task == task]
                    if found:
                        self._asked.pop(task).set_result(found[0])
            elif isinstance(word, CallFine):
                self._calls.pop(word.token, None)
            elif isinstance(word, StoreAnswered):
                rows = self._calls.pop(word.token, None)
                if rows is not None:
                    self._again(rows, word.answers)
            elif isinstance(word, NowMembers):
                self._on_members(word.members)
            elif isinstance(word, Printed):
                self.listener.on_printed(word.stream, word.text, word.task)
            elif isinstance(word, Ran):
                self.listener.on_ran(news_here(word))
            elif isinstance(word, Learnt):
                self.listener.on_fact(fact_here(word))
            elif isinstance(word, Attached):
                self._on_attached(word)
            elif isinstance(word, Counts):
                if self._counting:
                    self._counting.popleft().set_result(word.nodes)
            elif isinstance(word, Refused):
                self._break(UnavailableError(word.reason, retry=False))
            elif isinstance(word, Closed) and not self._closed.done():
                self._closed.set_result(None)

    def waits_for(self) -> list[int]:
        return [*self._pending()]

    def tell_node(self, node: NodeId, message: MessageType) -> None:
        """Clients have links of their own for that."""

    def _on_attached(self, word: Attached) -> None:
        is_first = self.session == NOBODY
        self.session, self.name = word.session, word.name
        self.strategy = word.strategy
        self._on_members(word.members)
        while self._counting:
            self._counting.popleft().set_exception(UnavailableError("the store was away for a moment", retry=True))
        if is_first:
            self.next_task, self.tasks = word.next_task, word.tasks
            self._attached.set_result(None)
            return
        for token, rows in self._calls.items():
            self._say(CallStore(token, 0, rows))  # type: ignore[arg-type]
        waiting = {row.spec.id for row in self.new_tasks}
        pending = [task for task in (*self._pending(), *self._asked) if task not in waiting]
        if pending:
            self._say(AskEnds(pending))
        if self._cancelled:
            self._say(CancelTasks(tuple(sorted(self._cancelled))))

    def _on_members(self, members: Members) -> None:
        self.members = members
        self._slots = sum([group.count for info in members.infos for group in info.executors])
        if self.new_tasks or self._new_functions:
            self.wake()

    def _again(self, rows: list[Row], answers: list[AnswerType]) -> None:
        """Tasks whose node died before it could have them, and those that need them: once more, in the same order. Who
        was done and forgotten when we said it again needs nothing."""
        again: list[Submit] = []
        refused: list[Outcome] = []
        for row, answer in zip(rows, answers, strict=True):
            if not isinstance(row, Submit) or answer is None or answer == DONE:
                continue
            if answer in (STRUCK, UNKNOWN):
                again.append(replace(row, node=NOBODY))
            else:
                task = row.spec.id
                refused.append(Outcome(task, (), FAILED, f"the store has refused task {task}: what it needs is gone"))
        self.new_tasks.extendleft(reversed(again))
        if again:
            self.loop.call_later(ALIVE_S, self.wake)
        if refused:
            self.listener.on_ended(refused)


def copy_end(ended: "Future[T]", other: "Future[T]") -> None:
    """Let a future end as another has."""
    error = ended.exception()
    if error is None:
        other.set_result(ended.result())
    else:
        other.set_exception(error)
