"""The front of a store: it answers what nodes, clients and tools ask beside calls, in one way for all stores.

The embedded store has a server, which is the front of many processes. A process that calls a Valkey server itself has a
desk, which is its own front. The two differ in how rows are carried out, how records are read, and on which way a
message reaches its receiver.
"""

import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from daws.model.cluster import Members
from daws.model.errors import StrategyError
from daws.model.session import NO_SESSION, owner_of, session_of
from daws.model.states import CANCELLED, FAILED
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, FROM_OUTSIDE, NOBODY, NodeId
from daws.runtime.blame import STEPS_MAX, blamed_by, outcome_of
from daws.store.memory.record import Record, has_ended
from daws.store.memory.sessions import is_function
from daws.strategy import format_strategy, parse_strategy
from daws.wire.cluster import (
    AskCluster,
    AskEnds,
    AskFunction,
    ClusterIs,
    Ends,
    Enrol,
    Enrolled,
    Forgotten,
    OpenSessions,
    Refused,
)
from daws.wire.ends import Outcome
from daws.wire.messages import NewStrategy, Submission
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    REFUSED,
    AnswerType,
    Estate,
    Leased,
    ListSessions,
    Locate,
    Owned,
    Row,
    SessionList,
    UseStrategy,
    Watch,
    shard_of,
)
from daws.wire.worker import Learn
from daws.workers.roots import once_each

ALL = 1 << 40
STRATEGY = "daws"
"""The strategy of a cluster for which none was chosen."""
LOST = "the store does not know task {} any more: it was restarted without what it knew, or its session has ended"
log = logging.getLogger("daws.store")


class Receiver(Protocol):
    """The way to a process that hears of something."""

    def send(self, message: Any) -> None: ...


class Asker(Receiver, Protocol):
    """A node, a client or a tool that asks."""

    node: NodeId

    @property
    def is_client(self) -> bool:
        """Is it a client, or a tool?"""
        ...


class StoreFront:
    """All methods belong to the thread of the loop."""

    def __init__(self, lease_ns: int, shard_count: int, strategy: str) -> None:
        """`strategy` is for a cluster for which none was chosen."""
        self.nodes: dict[NodeId, Asker] = {}
        self._lease_ns = lease_ns
        self._shard_count = shard_count
        self._default_strategy = strategy
        self._wanted: dict[int, set[Asker]] = {}  # functions that are not in the store yet, and who asked for them
        self._open: set[int] | None = None  # the sessions that there were at the last look
        self._batches = time.time_ns()  # higher than all that another process has used before for these nodes
        self._answers: dict[type, Callable[[Any, Any], Coroutine[Any, Any, None]]] = {
            Enrol: self._on_enrol,
            AskEnds: self._on_ask_ends,
            AskFunction: self._on_ask_function,
            AskCluster: self._on_ask_cluster,
            NewStrategy: self._on_new_strategy,
        }

    # -- what differs --------------------------------------------------------------------------------------------------

    async def rows(self, shard: int, rows: Sequence[Row]) -> list[AnswerType]:
        """Carry out rows that can be repeated without harm, and return their answers."""
        raise NotImplementedError

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        """The records of tasks as they are now; None for those that do not exist or have retired."""
        raise NotImplementedError

    async def new_number(self, what: str) -> int:
        """The number of a new node; or of a new session, if the store does not choose it itself."""
        raise NotImplementedError

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something that may have to wait for the store."""
        raise NotImplementedError

    def client_of(self, session: int) -> Receiver | None:
        raise NotImplementedError

    def creator_of(self, task: int) -> Receiver | None:
        """The node whose run has created a task."""
        raise NotImplementedError

    def send_ends(self, to: Any, outcomes: list[Outcome]) -> None:
        to.send(Ends(with_each_failure_once(outcomes)))

    def send_quietly(self, to: Any, message: Any) -> None:
        """Send a message for which nobody waits."""
        to.send(message)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def _on_enrol(self, asker: Asker, word: Enrol) -> None:
        if asker.is_client:
            asker.send(Refused("only a process with a node's key can be a node"))
            return
        if self.nodes.get(asker.node) is asker:
            del self.nodes[asker.node]
        asker.node = node = await self.new_number("node") if word.node == NOBODY else word.node
        self.nodes[node] = asker
        asker.send(Enrolled(node, self._lease_ns, self._strategy_of(await self.members()), self._shard_count))
        if word.node != NOBODY:
            await self.tell_owned(asker)
            asker.send(OpenSessions([one.number for one in (await self._sessions()).sessions]))

    async def tell_owned(self, asker: Asker) -> None:
        """Tell a node which ready tasks it owns: it may not have heard of all."""
        node = asker.node
        for shard in range(self._shard_count):
            (answer,) = await self.rows(shard, [Owned(node, 0, ALL)])
            if isinstance(answer, Estate) and answer.ready and node == asker.node:
                self._batches += 1
                asker.send(Submission(CLIENT, self._batches, answer.ready))

    # -- ends of tasks -------------------------------------------------------------------------------------------------

    def tell_ends(self, outcomes: Sequence[Outcome]) -> None:
        """Tell clients of their own tasks, and nodes of tasks that their runs have created."""
        of_session: dict[int, list[Outcome]] = {}
        of_creator: dict[Receiver, list[Outcome]] = {}
        for one in outcomes:
            task = one.task
            if task < FIRST_SPAWNED_ID:
                number = session_of(task)
                if number in of_session:
                    of_session[number].append(one)
                else:
                    of_session[number] = [one]
            elif (creator := self.creator_of(task)) is not None:
                of_creator.setdefault(creator, []).append(one)
        for number, some in of_session.items():
            client = self.client_of(number)
            if client is not None:
                self.send_ends(client, some)
        for creator, some in of_creator.items():
            self.send_ends(creator, some)

    async def _on_ask_ends(self, asker: Asker, word: AskEnds) -> None:
        found = await self.records(word.tasks)
        outcomes = await self.outcomes(found)
        unknown = [task for task, record in found.items() if record is None]
        if asker.is_client:  # else the task may be about to be created
            outcomes += [Outcome(task, (), FAILED, LOST.format(task)) for task in unknown]
        if outcomes:
            asker.send(Ends(with_each_failure_once(outcomes)))
        if word.have_ended and unknown:
            asker.send(Forgotten(unknown))

    async def outcomes(self, found: dict[int, Record | None]) -> list[Outcome]:
        """The outcomes of those tasks that have ended."""
        known = {task: one for task, one in found.items() if one is not None and has_ended(one)}
        ended = [*known]
        is_failed = any(one.state in (FAILED, CANCELLED) for one in known.values())
        for _ in range(STEPS_MAX if is_failed else 0):
            blamed = {blamed_by(record) for record in known.values()}.difference(known, (-1,))
            if not blamed:
                break
            more = await self.records([*blamed])
            known.update({task: one for task, one in more.items() if one is not None})
        return [outcome_of(task, known[task], known.get) for task in ended]

    # -- functions -----------------------------------------------------------------------------------------------------

    async def _on_ask_function(self, asker: Asker, word: AskFunction) -> None:
        self._wanted.setdefault(word.function, set()).add(asker)
        await self.find_functions([word.function])

    async def find_functions(self, functions: Sequence[int]) -> None:
        """Send functions that are in the store to all that have asked for them, and tell these which functions have
        gone with their session. The others are on their way."""
        for function, record in (await self.records(functions)).items():
            if record is not None and is_function(record):
                for asker in self._wanted.pop(function, ()):
                    asker.send(Learn(function, record.outputs[0].value))
            elif record is None:
                (answer,) = await self.rows(shard_of(function, self._shard_count), [Locate(function)])
                for asker in self._wanted.pop(function, ()) if answer == REFUSED else ():
                    asker.send(Forgotten([function]))

    # -- the cluster ---------------------------------------------------------------------------------------------------

    async def members(self) -> Members:
        (answer,) = await self.rows(MEMBERSHIP_SHARD, [Watch(0)])
        return answer.members if isinstance(answer, Leased) and answer.members is not None else Members(0, ())

    def _strategy_of(self, members: Members) -> str:
        return members.strategy or self._default_strategy

    async def _on_ask_cluster(self, asker: Asker, word: AskCluster) -> None:
        number = await self.new_number("session") if word.opens_session else NO_SESSION
        members = await self.members()
        asker.send(ClusterIs(self._lease_ns, self._strategy_of(members), self._shard_count, members, number))

    async def _on_new_strategy(self, asker: Asker, word: NewStrategy) -> None:
        try:
            text = format_strategy(parse_strategy(word.text))
        except StrategyError as error:
            log.warning("a client asked for a strategy that is none: %s", error)
            return
        answer: AnswerType = REFUSED
        while answer == REFUSED:  # another client has changed it meanwhile
            version = (await self.members()).version
            (answer,) = await self.rows(MEMBERSHIP_SHARD, [UseStrategy(text, version)])

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def _sessions(self) -> SessionList:
        (answer,) = await self.rows(MEMBERSHIP_SHARD, [ListSessions()])
        assert isinstance(answer, SessionList)
        return answer

    async def _look_at_sessions(self) -> SessionList:
        """Let go of what belongs to sessions that have ended, and have the nodes do so. A failover may hide a session
        for a while: nodes are told as well when it is there again."""
        answer = await self._sessions()
        before, self._open = self._open, {one.number for one in answer.sessions}
        over = [function for function in self._wanted if owner_of(function, FROM_OUTSIDE) not in self._open]
        await self.find_functions(over)
        for function in over:
            self._wanted.pop(function, None)
        if before is not None and before != self._open:
            for asker in self.nodes.values():
                self.send_quietly(asker, OpenSessions([*self._open]))
        return answer


def with_each_failure_once(outcomes: list[Outcome]) -> list[Outcome]:
    """Keep each failure in one outcome only, for a message to one listener. A hundred thousand tasks may have failed
    because of one."""
    bad = [at for at, one in enumerate(outcomes) if one.failure]
    if len(bad) > 1:
        for at, failure in zip(bad, once_each([(outcomes[at].error, outcomes[at].failure) for at in bad]), strict=True):
            if not failure:
                outcomes[at] = replace(outcomes[at], failure=b"")
    return outcomes
