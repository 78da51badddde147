"""The server of a cluster's store: it answers calls, tells of ends and members, and sweeps sessions.

Nothing here has to arrive. A node that connects again is told what it owns, and takes what it does not have yet. A
client that connects again repeats its calls, and reads what has ended. The server's clock is the store's.
"""

import logging
import os
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Sequence
from typing import Any

from daws.core.config import NodeConfig
from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.errors import StoreFullError, StrategyError
from daws.model.session import session_of
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NOBODY, NodeId
from daws.net.link import Link
from daws.runtime.cluster.callers import Caller, QuietWords
from daws.runtime.cluster.clock import StandingClock
from daws.runtime.cluster.ends import StoreEnds, with_each_failure_once
from daws.runtime.cluster.sweeping import Sweeper
from daws.runtime.crew import TICK_NS
from daws.store.log import StoreSettings
from daws.store.memory import MemoryStore
from daws.store.memory.sessions import function_in
from daws.strategy import format_strategy, parse_strategy
from daws.wire.cluster import (
    TO_STORE,
    AskCluster,
    AskEnds,
    AskFunction,
    ClusterIs,
    Ends,
    Enrol,
    Enrolled,
    Forgotten,
    NodeDied,
    NowMembers,
    OpenSessions,
    Refused,
    ToStore,
)
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, MessageType, Submission, SubmissionTaken
from daws.wire.store import (
    LOG_END,
    AnswerType,
    AttachSession,
    EnrolNode,
    NodeEnrolled,
    Owned,
    ReadLog,
    RowType,
    SessionAttached,
    Submit,
    TrimLog,
    UseStrategy,
    Watch,
    is_quiet,
)
from daws.wire.worker import Learn

COPIES_MAX = 100
RETIRED_MAX = 1 << 20
LOOK_S = 0.5
"""The time between two looks for leases that ran out, and for sessions whose client is gone."""
QUIET_S_MAX = 0.5
QUIET_SHARE = 16
"""A message for which nobody waits goes with the next one to the same node, but no later than both limits: a time, and
a share of a lease. A node asks again after a quarter of a lease."""
ALL = 1 << 40
NONCE_BYTES = 16
TRIM_MIN = 10_000
"""The least number of commits that are dropped from the log at a time, when nobody will read them."""
UNREAD_MAX = 1_000_000
"""The number of commits that stay for a client that does not read the log. One that waits for nothing never does."""
log = logging.getLogger("daws.store")


def settings_of(lease_ns: int, first_session: int = 1) -> StoreSettings:
    """The settings of a live store. The strategy says how many copies of a task may race, and it can be changed."""
    return StoreSettings(
        lease_ns=lease_ns, replicas_max=COPIES_MAX, direct=True, retired_max=RETIRED_MAX, first_session=first_session
    )


class StoreServer:
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
        self.store = store
        self._default_strategy = strategy
        self.ends = StoreEnds(store)
        self.callers: set[Caller] = set()
        self.nodes: dict[NodeId, Caller] = {}
        self._clients: dict[int, Caller] = {}  # by session
        self._clock = StandingClock()
        self._loop = loop
        self._when_safe = when_safe
        self._unsent: list[tuple[Caller, Any]] = []
        self._is_private = quiet_after_s > 0
        lease_s = quiet_after_s or store.lease_ns / 1e9
        self._quietly = QuietWords(loop, min(QUIET_S_MAX, lease_s / QUIET_SHARE), self.callers, self._flush)
        self._wanted: dict[int, set[Caller]] = {}  # functions that nobody has told yet, and who asked for them
        self._batches = time.time_ns()  # higher than all that a server before this one has used
        self._members_told = store.members_now().version
        config = NodeConfig(lease_ns=store.lease_ns, tick_ns_max=TICK_NS)
        self._sweeper = Sweeper(config, self._sweep, self._tell_node)
        self._sessions_told: tuple[int, ...] | None = None
        self._trimmed_to = 0
        self._timer: TimerHandle = loop.call_later(LOOK_S, self._look)

    @property
    def strategy(self) -> str:
        """The strategy that nodes are to use, as text."""
        return self.store.members_now().strategy or self._default_strategy

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
            else:
                _HEARD[type(word)](self, caller, word)
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
            self._quietly.send(caller, answer)

    def _note_functions(self, rows: Sequence[RowType]) -> None:
        """Look for functions that nodes wait for."""
        for row in rows:
            if type(row) is Submit and row.outputs:
                self._on_function(row.spec.id)

    def _note_client(self, caller: Caller, rows: Sequence[RowType], answers: Sequence[AnswerType]) -> None:
        """Look at what a client has asked for: which session it has, and how far it has read the log."""
        kinds = set(map(type, rows))
        if AttachSession in kinds:
            for answer in answers:
                if isinstance(answer, SessionAttached) and not answer.ending:
                    if caller.session != answer.session:
                        caller.session, caller.read_to = answer.session, self.ends.read_to
                    caller.link.name = f"the client of {answer.name}"
                    self._clients[answer.session] = caller
        if ReadLog in kinds:
            for row in rows:
                if type(row) is ReadLog and row.start != LOG_END:
                    caller.read_to = row.start

    def _tell_news(self) -> None:
        outcomes = self.ends.news()
        if outcomes:
            self._tell_ends(outcomes)
        members = self.store.members_now()
        if members.version != self._members_told:
            self._members_told = members.version
            for caller in self.callers:
                if caller.is_client:
                    caller.send(NowMembers(members))

    def _tell_ends(self, outcomes: list[Outcome]) -> None:
        """Tell clients of their own tasks, and nodes of tasks that their runs have created."""
        told: dict[Caller, list[Outcome]] = {}
        of_session: dict[int, list[Outcome]] = {}
        for one in outcomes:
            task = one.task
            if task < FIRST_SPAWNED_ID:
                number = session_of(task)
                if number in of_session:
                    of_session[number].append(one)
                else:
                    of_session[number] = [one]
            elif (creator := self.nodes.get(self.ends.creator_of(task))) is not None:
                told.setdefault(creator, []).append(one)
        for number, some in of_session.items():
            client = self._clients.get(number)
            if client is not None:
                told[client] = some
        for caller, some in told.items():
            caller.send(Ends(with_each_failure_once(some)))

    def _tell_node(self, node: NodeId, message: MessageType) -> None:
        """Tell a node that is connected. A node that is not connected asks when it is."""
        caller = self.nodes.get(node)
        if caller is not None:
            caller.send(message)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _on_enrol(self, caller: Caller, word: Enrol) -> None:
        if caller.is_client:
            caller.send(Refused("only a process with a node's key can be a node"))
            return
        if self.nodes.get(caller.node) is caller:
            del self.nodes[caller.node]
        node = self._new_node() if word.node == NOBODY else word.node
        caller.node = node
        caller.link.name = f"node {node}"
        self.nodes[node] = caller
        caller.send(Enrolled(node, self.store.lease_ns, self.strategy))
        if word.node != NOBODY:
            answer = self.store.apply(0, [Owned(node, 0, ALL)], self._clock.now_ns())[0]
            ready = getattr(answer, "ready", ())
            if ready:
                self._batches += 1
                caller.send(Submission(CLIENT, self._batches, ready))
            caller.send(OpenSessions([*self.store.sessions]))

    def _new_node(self) -> NodeId:
        answer = self.store.apply(0, [EnrolNode(os.urandom(NONCE_BYTES))], self._clock.now_ns())[0]
        assert isinstance(answer, NodeEnrolled)
        return answer.node

    def _on_ask_ends(self, caller: Caller, word: AskEnds) -> None:
        ended = self.ends.of(word.tasks, unknown_are_lost=caller.is_client)
        caller.send(Ends(with_each_failure_once(ended)))
        if word.have_ended and (forgotten := self.ends.forgotten(word.tasks)):
            caller.send(Forgotten(forgotten))

    def _on_ask_function(self, caller: Caller, word: AskFunction) -> None:
        pickled = function_in(self.store, word.function)
        if pickled is None:
            self._wanted.setdefault(word.function, set()).add(caller)
        else:
            caller.send(Learn(word.function, pickled))

    def _on_function(self, function: int) -> None:
        """A function is known now: send it to the nodes that wait for it."""
        waiting = self._wanted.pop(function, ())
        pickled = function_in(self.store, function) if waiting else None
        if pickled is not None:
            for caller in waiting:
                caller.send(Learn(function, pickled))

    def _on_node_died(self, caller: Caller, word: NodeDied) -> None:
        if not self._is_private:
            caller.send(Refused("only the client of a private cluster can know that a node has died"))
            return
        self.store.expire(word.node)
        self.store.apply(0, [Watch(0)], self._clock.now_ns())

    # -- clients and tools ---------------------------------------------------------------------------------------------

    def _on_ask_cluster(self, caller: Caller, word: AskCluster) -> None:
        members = self.store.members_now()
        caller.send(ClusterIs(self.store.lease_ns, self.strategy, self.store.shard_count, members))

    def _on_new_strategy(self, caller: Caller, word: NewStrategy) -> None:
        try:
            text = format_strategy(parse_strategy(word.text))
        except StrategyError as error:
            log.warning("a client asked for a strategy that is none: %s", error)
            return
        self.store.apply(0, [UseStrategy(text, self.store.members_now().version)], self._clock.now_ns())

    # -- sessions without a client -------------------------------------------------------------------------------------

    def _on_taken(self, caller: Caller, word: SubmissionTaken | CancelTaken) -> None:
        self._sweeper.hear(word)

    def _sweep(self, call: CallStore) -> None:
        answers = self.store.apply(call.shard, call.rows, self._clock.now_ns())
        self._sweeper.hear(StoreAnswered(call.token, answers))

    def _tell_sessions(self, open_: tuple[int, ...]) -> None:
        """Some session has ended: have nodes let go of its functions. Nodes without a connection hear of it later."""
        for function in [*self._wanted]:
            if function < FIRST_SPAWNED_ID and session_of(function) not in open_:
                del self._wanted[function]
        for caller in self.nodes.values():
            self._quietly.send(caller, OpenSessions([*open_]))

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
        self._sweeper.look(self.store.members_now())
        open_ = tuple(self.store.sessions)
        if self._sessions_told is not None and set(self._sessions_told).difference(open_):
            self._tell_sessions(open_)
        self._sessions_told = open_
        self._tell_news()
        self._trim_log()

    def _trim_log(self) -> None:
        """Drop commits that all clients have read. A client that is not connected looks its tasks up when it is."""
        read = [caller.read_to for caller in self._clients.values()]
        before = max(min(read, default=self.ends.read_to), self.ends.read_to - UNREAD_MAX)
        if before > self._trimmed_to + TRIM_MIN:
            self._trimmed_to = before
            self.store.apply(0, [TrimLog(before)], self._clock.now_ns())


_HEARD: dict[type, Callable[[StoreServer, Caller, Any], None]] = {
    Enrol: StoreServer._on_enrol,
    AskEnds: StoreServer._on_ask_ends,
    AskFunction: StoreServer._on_ask_function,
    NodeDied: StoreServer._on_node_died,
    CancelTaken: StoreServer._on_taken,
    SubmissionTaken: StoreServer._on_taken,
    AskCluster: StoreServer._on_ask_cluster,
    NewStrategy: StoreServer._on_new_strategy,
}
