"""The server of a cluster's store: it answers calls, tells of ends and members, and sweeps sessions.

Nothing here has to arrive. A node that connects again is told what it owns, and takes what it does not have yet. A
client that connects again repeats its calls, and reads what has ended. The server's clock is the store's.
"""

import logging
import os
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, StoreAnswered
from daws.model.cluster import Members
from daws.model.errors import InternalError, StoreFullError
from daws.model.session import NO_SESSION
from daws.model.task import NOBODY, NodeId
from daws.net.link import Link
from daws.runtime.blame import outcome_of, outcomes_of
from daws.runtime.cluster.clock import StandingClock
from daws.runtime.cluster.front import StoreFront
from daws.runtime.cluster.sweeping import Sweeper
from daws.runtime.crew import COPIES_MAX, session_config
from daws.store.log import StoreSettings
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record, has_ended
from daws.store.memory.snapshot import commit_count, commits_since
from daws.store.memory.store import LOSSES_MAX
from daws.wire.cluster import TO_STORE, Enrol, NodeDied, NowMembers, Refused, ToStore
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, MessageType, SubmissionTaken
from daws.wire.store import (
    LOG_END,
    AnswerType,
    AttachSession,
    EnrolNode,
    NodeEnrolled,
    ReadLog,
    Row,
    RowType,
    SessionAttached,
    Submit,
    TrimLog,
    Watch,
    is_quiet,
)

RETIRED_MAX = 1 << 20
LOOK_S = 0.5
"""The time between two looks for leases that ran out, and for sessions whose client is gone."""
QUIET_S_MAX = 0.5
QUIET_SHARE = 16
"""A message for which nobody waits goes with the next one to the same node, but no later than both limits: a time, and
a share of a lease. A node asks again after a quarter of a lease."""
NONCE_BYTES = 16
TRIM_MIN = 10_000
"""The least number of commits that are dropped from the log at a time, when nobody will read them."""
UNREAD_MAX = 1_000_000
"""The number of commits that stay for a client that does not read the log. One that waits for nothing never does."""
log = logging.getLogger("daws.store")


def settings_of(lease_ns: int, first_session: int = 1, losses_max: int = LOSSES_MAX) -> StoreSettings:
    """The settings of a live store."""
    return StoreSettings(
        lease_ns=lease_ns,
        replicas_max=COPIES_MAX,
        direct=True,
        retired_max=RETIRED_MAX,
        first_session=first_session,
        losses_max=losses_max,
    )


class Caller:
    """A node, a client or a tool at the other end of a link."""

    def __init__(self, link: Link[ToStore], unsent: "list[tuple[Caller, Any]]") -> None:
        self.link = link
        self.node: NodeId = NOBODY
        self.session: int = NO_SESSION
        self.read_to = 0  # the number up to which a client has read the log
        self.quiet: list[Any] = []  # messages that need not be sent on their own
        self.is_timed = False  # they will be sent in a while
        self._unsent = unsent

    @property
    def is_client(self) -> bool:
        """Is it a client, or a tool?"""
        return self.link.peer.role == "client"

    def send(self, word: Any) -> None:
        """Send a message as soon as all that it tells is safe."""
        if self.quiet:
            self.send_quiet()
        self._unsent.append((self, word))

    def send_quiet(self) -> None:
        self._unsent += [(self, word) for word in self.quiet]
        self.quiet.clear()


class StoreServer(StoreFront):
    """All methods belong to the thread of the loop. Messages are given to `when_safe`, which sends them as soon as
    nothing of what they tell can be lost any more."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        store: MemoryStore,
        strategy: str,
        when_safe: Callable[[Callable[[], None]], None] = lambda then: then(),
        quiet_after_s: float = 0.0,
    ) -> None:
        """`strategy` is for a cluster for which none was chosen. With `quiet_after_s` the cluster is private: its
        client tells which nodes have died, no lease runs out, and messages for which nobody waits are sent as if a
        lease were so long."""
        super().__init__(store.lease_ns, store.shard_count, strategy)
        self.store = store
        self.callers: set[Caller] = set()
        self._told_to = commit_count(store, 0)  # callers know of the ends before, or ask
        self._clients: dict[int, Caller] = {}  # by session
        self._clock = StandingClock()
        self._loop = loop
        self._when_safe = when_safe
        self._unsent: list[tuple[Caller, Any]] = []
        self._is_private = quiet_after_s > 0
        lease_s = quiet_after_s or store.lease_ns / 1e9
        self._quiet_s = min(QUIET_S_MAX, lease_s / QUIET_SHARE)
        self._members_told = store.members_now().version
        self._nodes_logged = frozenset(store.members_now().nodes)
        config = session_config(store.lease_ns, store.shard_count, False)
        self._sweeper = Sweeper(config, self._sweep, self._tell_node)
        self._trimmed_to = 0
        self._timer: TimerHandle = loop.call_later(LOOK_S, self._look)

    def welcome(self, link: Link[ToStore]) -> None:
        caller = Caller(link, self._unsent)
        self.callers.add(caller)
        link.begin(TO_STORE, lambda said: self._hear(caller, said), lambda: self.lose(caller))

    def close(self) -> None:
        self._timer.cancel()
        for caller in self.callers:
            caller.link.close()

    # -- what is said --------------------------------------------------------------------------------------------------

    def _hear(self, caller: Caller, said: list[ToStore]) -> None:
        """Cut off a caller that says what cannot be. It may come back."""
        try:
            self.hear(caller, said)
        except StoreFullError as error:  # a node would end if it were refused; it comes back until there is room
            self._cut_off(caller, str(error))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            self._cut_off(caller, f"it said what cannot be ({error!r})")

    def _cut_off(self, caller: Caller, why: str) -> None:
        log.error("the link to %s is closed: %s", caller.link.name, why)
        caller.link.close()
        self.lose(caller)

    def hear(self, caller: Caller, said: list[ToStore]) -> None:
        now_ns = self._clock.now_ns()
        for word in said:
            if isinstance(word, CallStore):
                self._call(caller, word, now_ns)
            elif isinstance(word, SubmissionTaken | CancelTaken):
                self._sweeper.hear(word)
            elif isinstance(word, NodeDied):
                self._on_node_died(caller, word)
            else:
                self.begin(self._answers[type(word)](caller, word))
        self._tell_news()
        self._flush()

    def _flush(self) -> None:
        if not self._unsent:
            return
        said = self._unsent[:]
        self._unsent.clear()

        def let_go() -> None:
            for caller, word in said:
                caller.link.send(word)

        self._when_safe(let_go)

    def lose(self, caller: Caller) -> None:
        """A link is gone. A node may come back, and a client too."""
        self.callers.discard(caller)
        if self.nodes.get(caller.node) is caller:
            del self.nodes[caller.node]
        if self._clients.get(caller.session) is caller:
            del self._clients[caller.session]
        for function in [*self._wanted]:
            self._wanted[function].discard(caller)
            if not self._wanted[function]:
                del self._wanted[function]
        self._flush()

    def _call(self, caller: Caller, call: CallStore, now_ns: int) -> None:
        """Answer a call. While the store has no room there is no answer, and the caller asks again by itself."""
        rows = call.rows
        try:
            answers = self.store.apply(call.shard, rows, now_ns)
        except StoreFullError:
            return
        if self._wanted:
            self._note_functions(rows)
        if caller.is_client:
            self._note_client(caller, rows, answers)
        fine = answers.count(None) == len(answers)
        answer = CallFine(call.token) if fine else StoreAnswered(call.token, answers)
        if caller.is_client or call.hopes or not all(map(is_quiet, rows, answers)):
            caller.send(answer)
        else:
            self.send_quietly(caller, answer)

    def _note_functions(self, rows: Sequence[RowType]) -> None:
        """Look for functions that nodes wait for."""
        here = [row.spec.id for row in rows if type(row) is Submit and row.spec.id in self._wanted]
        if here:
            self.begin(self.find_functions(here))

    def _note_client(self, caller: Caller, rows: Sequence[RowType], answers: Sequence[AnswerType]) -> None:
        """Look at what a client has asked for: which session it has, and how far it has read the log."""
        kinds = set(map(type, rows))
        if AttachSession in kinds:
            for answer in answers:
                if isinstance(answer, SessionAttached) and not answer.ending:
                    if caller.session != answer.session:
                        caller.session, caller.read_to = answer.session, self._told_to
                    caller.link.name = f"the client of {answer.name}"
                    self._clients[answer.session] = caller
        if ReadLog in kinds:
            for row in rows:
                if type(row) is ReadLog and row.start != LOG_END:
                    caller.read_to = row.start

    def _tell_news(self) -> None:
        commits = commits_since(self.store, 0, self._told_to)
        if commits:
            self._told_to += len(commits)
            self.tell_ends(outcomes_of(commits, self.store.record))
        members = self.store.members_now()
        if members.version != self._members_told:
            self._members_told = members.version
            self._log_members(members)
            for caller in self.callers:
                if caller.is_client:
                    caller.send(NowMembers(members))

    def _log_members(self, members: Members) -> None:
        """Log which nodes have come and gone. The client of a private cluster says so itself."""
        before, self._nodes_logged = self._nodes_logged, frozenset(members.nodes)
        if self._is_private:
            return
        for node in sorted(self._nodes_logged - before):
            log.info("node %s has joined", node)
        for node in sorted(before - self._nodes_logged):
            if node in self.store.departed:
                log.info("node %s has left", node)
            else:
                lease_s = self.store.lease_ns / 1e9
                log.warning(
                    "node %s is taken for dead: it was silent for %g s; others take over its tasks", node, lease_s
                )

    # -- as a front ----------------------------------------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something to its end: the store is in this process, so it never has to wait."""
        with suppress(StopIteration):
            work.send(None)
            raise InternalError("the embedded store did not answer at once")

    async def rows(self, shard: int, rows: Sequence[Row]) -> list[AnswerType]:
        return self.store.apply(shard, rows, self._clock.now_ns())

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        return {task: self.store.record(task) for task in tasks}

    async def outcomes(self, found: dict[int, Record | None]) -> list[Outcome]:
        find = self.store.record
        return [outcome_of(task, one, find) for task, one in found.items() if one is not None and has_ended(one)]

    async def members(self) -> Members:
        return self.store.members_now()

    async def new_number(self, what: str) -> int:
        if what == "session":
            return NO_SESSION
        (answer,) = await self.rows(0, [EnrolNode(os.urandom(NONCE_BYTES))])
        assert isinstance(answer, NodeEnrolled)
        return answer.node

    def client_of(self, session: int) -> Caller | None:
        return self._clients.get(session)

    def creator_of(self, task: int) -> Any:
        record = self.store.record(task)
        return None if record is None else self.nodes.get(record.spec.home)

    def send_quietly(self, to: Caller, message: Any) -> None:
        to.quiet.append(message)
        if not to.is_timed:
            to.is_timed = True
            self._loop.call_later(self._quiet_s, self._on_quiet_over, to)

    def _on_quiet_over(self, caller: Caller) -> None:
        caller.is_timed = False
        if caller.quiet and caller in self.callers:
            caller.send_quiet()
            self._flush()

    async def _on_enrol(self, caller: Any, word: Enrol) -> None:
        await super()._on_enrol(caller, word)
        if not caller.is_client:
            caller.link.name = f"node {caller.node}"

    # -- what only the server is told ----------------------------------------------------------------------------------

    def _tell_node(self, node: NodeId, message: MessageType) -> None:
        """Tell a node that is connected. A node that is not connected asks when it is."""
        caller = self.nodes.get(node)
        if caller is not None:
            caller.send(message)

    def _on_node_died(self, caller: Caller, word: NodeDied) -> None:
        if not self._is_private:
            caller.send(Refused("only the client of a private cluster can know that a node has died"))
            return
        self.store.expire(word.node)
        self.store.apply(0, [Watch(0)], self._clock.now_ns())

    def _sweep(self, call: CallStore) -> None:
        answers = self.store.apply(call.shard, call.rows, self._clock.now_ns())
        self._sweeper.hear(StoreAnswered(call.token, answers))

    # -- now and then --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)
        try:
            self._look_after()
        except StoreFullError as error:
            log.warning("%s", error)
        self._flush()

    def _look_after(self) -> None:
        self.store.apply(0, [Watch(0)], self._clock.now_ns())  # leases may have run out
        self.begin(self._sweep_sessions())
        self._tell_news()
        self._trim_log()

    async def _sweep_sessions(self) -> None:
        self._sweeper.look(self.store.members_now(), await self._look_at_sessions())

    def _trim_log(self) -> None:
        """Drop commits that all clients have read. A client that is not connected looks its tasks up when it is."""
        read = [caller.read_to for caller in self._clients.values()]
        before = max(min(read, default=self._told_to), self._told_to - UNREAD_MAX)
        if before > self._trimmed_to + TRIM_MIN:
            self._trimmed_to = before
            self.store.apply(0, [TrimLog(before)], self._clock.now_ns())
