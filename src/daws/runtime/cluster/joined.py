"""A cluster as a client sees it that is connected to it.

Calls of the session go to the store, messages to nodes on links of their own, objects on streams. The store is a server
on a link, or a Valkey server that this process calls itself; nothing here depends on which.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, NewStrategy, StoreAnswered, StoreChanged
from daws.core.session import SessionCore
from daws.core.session_events import (
    CloseAsked,
    EndsHeard,
    MembersHeard,
    Reconnected,
    SessionEvent,
    SessionRefused,
    TasksLetGo,
    TasksSubmitted,
)
from daws.data.codec import Packed
from daws.data.files import ObjectFiles, read_and_drop
from daws.model.cluster import Members
from daws.model.errors import DawsError, InternalError, UnavailableError
from daws.model.states import FAILED
from daws.model.task import FROM_OUTSIDE, INLINE_BYTES, NOBODY, Input, NodeId, TaskSpec
from daws.runtime.client import SessionDriver
from daws.runtime.cluster.access import StoreConnection
from daws.runtime.cluster.farobjects import FarObjects
from daws.runtime.cluster.front import LOST
from daws.runtime.cluster.nodelinks import NodeLinks
from daws.runtime.cluster.noting import fact_here, news_here
from daws.runtime.cluster.pace import TASKS_PER_TURN, Pace
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.rival import Rival
from daws.runtime.crew import session_config
from daws.runtime.ports import Listener
from daws.wire.cluster import AskCluster, AskEnds, ClusterIs, Ends, FromStore, NowMembers, Refused
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, SubmissionTaken
from daws.wire.notes import Counters
from daws.wire.session import Counted, Here, Learnt, Ran, Sealed, TaskPrinted, ToClient
from daws.wire.store import (
    CANCELLED,
    MEMBERSHIP_SHARD,
    UNDERWAY,
    ListSessions,
    Submit,
)

BYTES_PER_TURN = 1 << 24
LAST_WORDS_S = 5.0
FAREWELL_S = 10.0
"""The time for which a client that leaves waits for a store that takes nothing more."""
LOOK_S = 0.005
ALONE_S = 5.0
"""How often a client looks whether there is a node at all, and asks again for ends that it needs to know more of."""
ATTACH_AGAIN_S = 0.2
"""The time after which a client asks again for a session that is in use."""
WHO_HAS_IT = 1 << 62
"""The number of the call by which it looks whether the other client is alive."""
WATCH_NS = 250_000_000
LEASE_NS_MAX = 10_000_000_000
"""A node that this client has not heard of for so long is no member any more, also where no lease ever runs out."""
log = logging.getLogger("daws.client")


class JoinedCluster(SessionDriver):
    """The session of one client on a cluster."""

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
        knows. With a `name`, the session of that name is continued. `patience_s` is for the first answer. The
        listener is told of `runs`, and of `decisions`."""
        super().__init__("daws-client", name)
        self.kept = kept
        self.strategy = ""
        self.files = files
        self.listener = listener
        self.lost = 0  # tasks of a kept session that were not in the store when we went
        self._reach = reach
        self._pending = pending
        self._patience_s = patience_s
        self._runs = runs
        self._decisions = decisions
        self._store = StoreConnection(
            reach, self, log, lambda link: link.send(AskCluster(opens_session=True)), self._break
        )
        self._objects = FarObjects(reach, files)
        self._new_functions: deque[Submit] = deque()
        self._early: list[Outcome] | None = []  # ends of the session's tasks, until somebody has their futures
        self._dim: dict[int, Outcome] = {}  # tasks that have failed, until it is known what they raised
        self._asked: dict[int, list[Future[Outcome]]] = {}  # tasks that somebody asks about
        self._pace = Pace()
        self._is_closing = False
        self._is_alone = False  # and has said so
        self._why = ""  # the session cannot be had just now
        self._rival = Rival()

    # -- from any thread -----------------------------------------------------------------------------------------------

    def learn(self, function: int, pickled: bytes) -> None:
        """Have the store keep a function: nodes find it there when they need it, whatever becomes of this client."""
        size_bytes = min(len(pickled), INLINE_BYTES)
        made = (Input(function, size_bytes, function, (), pickled),)
        self._new_functions.append(Submit(TaskSpec(function, FROM_OUTSIDE, outputs=(function,)), (), NOBODY, made))

    def started(self) -> set[int]:
        return {task for one in self._counted() for task in one.started}

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        return self._objects.store(object_, packed, home, self.members)

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        return read_and_drop(partial(self.fetch, object_, places), self.files, object_)

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        self.fetch(object_, places)
        return self.files.path(object_)

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        self._objects.fetch(object_, places, self.members)

    def tell_found(self) -> None:
        """The futures of the session's tasks are known: tell the listener how those have ended that have."""
        self._call(self._tell_early)

    def outcome_of(self, task: int) -> Outcome:
        outcome: Outcome = self._answer(self._ask, task)
        return outcome

    def counters(self) -> list[Counters]:
        return sorted([one.counters for one in self._counted()], key=lambda one: one.node)

    def _counted(self) -> list[Counted]:
        counted: list[Counted] = self._answer(self._nodes.ask)
        return counted

    def stop(self) -> None:
        super().stop()
        self._objects.close()

    # -- the thread ----------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self._attached: asyncio.Future[None] = self.loop.create_future()
        self._closed: asyncio.Future[None] = self.loop.create_future()
        self._nodes = NodeLinks(self.loop, self._reach, self._on_node)
        await self._wait_for_all()
        self._close_idle()
        self._look_around()

    def _close_idle(self) -> None:
        idle_s = self._reach.config.idle_s
        self._objects.close_idle(idle_s, self.members)
        self.loop.call_later(idle_s, self._close_idle)

    def _look_around(self) -> None:
        """Say that there are no nodes while somebody waits for tasks."""
        self._ask_again()  # an end that the store has lost is known to it when the task has run again
        if self.members:
            if self._is_alone:
                log.warning("there are nodes again")
            self._is_alone = False
        elif self._pending() and not self._is_alone:
            log.warning("there are no nodes; what was submitted waits until 'daws node' starts one")
            self._is_alone = True
        self.loop.call_later(ALONE_S, self._look_around)

    async def _wait_for_all(self) -> None:
        """Return when tasks can be taken."""
        self._store.open()
        try:
            async with asyncio.timeout(self._patience_s):
                await self._attached
        except TimeoutError:
            raise self._no_answer() from None

    def _no_answer(self) -> UnavailableError:
        if self._machine is not None and self._why:
            return UnavailableError(self._why, retry=True)
        cure = "'daws node' starts one, on its machine" if self._reach.is_embedded else "is its server running?"
        whose, where = f"the store of cluster {self._reach.config.name!r}", self._reach.store_where
        why = f" ({self._store.why.removeprefix(f'{where}: ')})" if self._store.why else ""
        return UnavailableError(f"{whose} does not answer at {where}{why}; {cure}", True)

    async def _close(self) -> None:
        self._is_closing = True
        if self._runs or self._decisions:
            await self._last_words()
        await self._end()
        self._nodes.abort()
        await self._store.close()

    async def _end(self) -> None:
        """End the session, or leave it for another client. If the store does not hear it, a sweeper finds out."""
        attached = self._attached
        is_attached = attached.done() and not attached.cancelled() and attached.exception() is None
        if is_attached and self._broken is None:
            await self._leave_session()

    async def _leave_session(self) -> None:
        """Wait until the store has all tasks, as long as it takes more of them. All others would be lost."""
        before, until_s, asked = -1, 0.0, False
        while not self._closed.done() and self._store.link is not None:
            left = len(self.new_tasks) + self._unwritten
            if left != before:
                before, until_s = left, self.loop.time() + FAREWELL_S
            elif self.loop.time() > until_s:
                break
            if self.kept and self.new_tasks:
                if self.members:
                    self._take_in()
            elif not asked:
                asked = True
                self._step(CloseAsked(self.kept, hands_over=True))
            await asyncio.sleep(LOOK_S)
        if self.kept:
            self.lost = self._unwritten + len([row for row in self.new_tasks if row.spec.kind != FROM_OUTSIDE])

    async def _last_words(self) -> None:
        """Wait for the notes that nodes have sent: they come before the answer to this question."""
        if self._store.link is not None and self._broken is None:
            asked: Future[list[Counted]] = Future()
            self._nodes.ask(asked)
            with suppress(TimeoutError, UnavailableError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await asyncio.wrap_future(asked)

    def _break(self, error: BaseException) -> None:
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
        self.listener.on_broken(error)

    # -- the machine ---------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        cluster = self._cluster
        is_embedded = self._reach.is_embedded
        config = session_config(min(cluster.lease_ns, LEASE_NS_MAX), cluster.shard_count, not is_embedded)
        watch_ns = 0 if is_embedded else WATCH_NS  # the server of the embedded store tells of members
        self._begin(
            SessionCore(self._nonce, config, self.name, self.kept, watch_ns=watch_ns, proposal=cluster.proposal)
        )

    def _call_store(self, effect: CallStore) -> None:
        self._store.send(effect)

    def _send(self, node: NodeId, message: Any) -> None:
        self._nodes.send(node, self._store.dress(node, message))

    def _on_opened(self) -> None:
        self._why = ""
        if not self.tasks:
            self._tell_early()
        self._nodes.introduce(Here(self.session, self._runs, self._decisions))
        self._attached.set_result(None)

    def _on_refused(self, effect: SessionRefused) -> None:
        if self._attached.done():
            reason = "the session has ended, or is another client's: this client was away for too long"
            self._break(UnavailableError(reason, retry=False))
            if self._is_closing and not self._closed.done():
                self._closed.set_result(None)
                if self.kept:
                    log.warning("session %r could not be kept: it has ended meanwhile", self.name)
            return
        if effect.why == UNDERWAY:
            self._why = (
                f"session {self.name!r} is in use by another client; "
                "it is free when that one closes it, or is gone for a lease"
            )
            self._store.send(CallStore(WHO_HAS_IT, MEMBERSHIP_SHARD, [ListSessions()]))
        elif effect.why == CANCELLED:
            self._why = f"session {self.name!r} is about to end; take another name, or try again"
        else:
            self._break(UnavailableError(f"the store has refused session {self.name!r}", retry=False))
            return
        self.loop.call_later(ATTACH_AGAIN_S, self._attach)

    def _on_closed(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    # -- what the client says ------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        wait_s = self._pace.wait_s(self.loop.time(), len(self._pending()), len(self.new_tasks), self.members)
        if wait_s > 0:
            self.loop.call_later(wait_s, self._take_in)  # until then no call has to wake the thread
        else:
            self._take_in()

    def _take_in(self) -> None:
        """Take in what the client has said since the last turn. Tasks beyond the limits of a turn wait for the next."""
        self.awake = False
        if not self.members:
            return  # nobody could own a task: `_on_members` is next
        self._pace.turn(self.loop.time())
        gone = len(self.let_go)
        rows: list[Submit] = []
        size_bytes = 0
        while self._new_functions:  # all that these tasks need are among them
            rows.append(self._new_functions.popleft())
        count = min(len(self.new_tasks), TASKS_PER_TURN)
        while count and size_bytes < BYTES_PER_TURN:
            count -= 1
            row = self.new_tasks.popleft()
            size_bytes += len(row.spec.payload)
            rows.append(row)
        self._pace.is_cut_short = count > 0
        events: list[SessionEvent] = [TasksSubmitted(rows)] if rows else []
        if self.new_tasks:
            self.wake()
        else:  # those were named by tasks that were submitted before
            released = [self.let_go.popleft() for _ in range(gone)]
            if released and not self.kept:
                events.append(TasksLetGo(released))
        if events:
            self._step(*events)

    def _cancel_waiting(self, tasks: tuple[int, ...]) -> None:
        """Ask all nodes which tasks run there, and cancel the others."""

        def go_on(asked: "Future[list[Counted]]") -> None:
            started = {task for one in asked.result() for task in one.started}
            self._cancel(tuple([task for task in tasks if task not in started]))

        asked: Future[list[Counted]] = Future()
        asked.add_done_callback(go_on)
        self._nodes.ask(asked)

    def _ask(self, task: int, asked: "Future[Outcome]") -> None:
        self._asked.setdefault(task, []).append(asked)
        self._store.send(AskEnds([task]))

    def _use_strategy(self, text: str) -> None:
        self._store.send(NewStrategy(text))
        super()._use_strategy(text)

    # -- what the store says -------------------------------------------------------------------------------------------

    def on_store(self, said: list[FromStore]) -> None:
        events: list[SessionEvent] = []
        for word in said:
            if isinstance(word, StoreAnswered) and word.token == WHO_HAS_IT:
                if not self._attached.done() and self._rival.is_alive(self.name, word.answers[0]):
                    self._break(UnavailableError(self._why, retry=True))
            elif isinstance(word, StoreAnswered | CallFine | CallsSafe | StoreChanged):
                events.append(word)
            elif isinstance(word, Ends):
                self._on_ends_told(word.outcomes, events)
            elif isinstance(word, NowMembers):
                self._on_members(word.members)
                events.append(MembersHeard(word.members))
            elif isinstance(word, ClusterIs):
                self._on_cluster(word)
            elif isinstance(word, Refused):
                self._break(UnavailableError(word.reason, retry=False))
        if events:
            self._step(*events)

    def _on_cluster(self, word: ClusterIs) -> None:
        """The store answers, for the first time or again."""
        self.strategy = word.strategy
        self._on_members(word.members)
        if self._machine is None:
            self._cluster = word
            self._attach()
            return
        self._step(MembersHeard(word.members), Reconnected())
        self._ask_again()

    def _ask_again(self) -> None:
        if asked := [*self._asked, *self._dim]:
            self._store.send(AskEnds(asked))

    def _on_ends_told(self, outcomes: list[Outcome], events: list[SessionEvent]) -> None:
        for one in outcomes if self._asked else ():
            for asked in self._asked.pop(one.task, ()):
                asked.set_result(one)
        if self._dim:
            told = [(one, before) for one in outcomes if (before := self._dim.pop(one.task, None)) is not None]
            self._tell([before if one.error == LOST.format(one.task) else one for one, before in told])
        events.append(EndsHeard(outcomes))

    def _on_ended(self, outcomes: Sequence[Outcome]) -> None:
        """Tasks have ended. Ask the store for exceptions that are missing."""
        self._pace.ended += len(outcomes)
        dim = [one for one in outcomes if one.state == FAILED and not one.failure]
        if dim and self._store.link is not None:
            self._dim.update([(one.task, one) for one in dim])
            self._store.send(AskEnds([one.task for one in dim]))
            outcomes = [one for one in outcomes if one.task not in self._dim]
        self._tell(outcomes)

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        if self._early is not None:
            self._early += outcomes
        elif outcomes:
            self.listener.on_ended([*outcomes])

    def _tell_early(self) -> None:
        early, self._early = self._early, None
        self._tell(early or ())

    def _on_members(self, members: Members) -> None:
        self.members = members
        self._nodes.update(members)
        if self.new_tasks or self._new_functions:
            self.wake()

    # -- what nodes say ------------------------------------------------------------------------------------------------

    def _on_node(self, node: NodeId, said: list[ToClient]) -> None:
        events: list[SessionEvent] = []
        for word in said:
            if isinstance(word, Ends):
                events.append(EndsHeard(word.outcomes))
            elif isinstance(word, Sealed):
                self._store.learn(node, word)
                events.append(EndsHeard(word.outcomes))
            elif isinstance(word, SubmissionTaken | CancelTaken):
                events.append(word)
            elif isinstance(word, TaskPrinted):
                self.listener.on_printed(word.stream, word.text, word.task)
            elif isinstance(word, Ran):
                self.listener.on_ran(news_here(word))
            elif isinstance(word, Learnt):
                self.listener.on_fact(fact_here(word))
        if events:
            self._step(*events)
