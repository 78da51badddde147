"""The server of a cluster's store: it answers calls, hands ready tasks to those who own them, and tells of ends.

Clients write their tasks into the store by way of this server, which hands those that are ready to their owners: so a
task that is in the store is on its way, whatever becomes of its client. Nothing here has to arrive. A node that
connects again is told what it owns, and takes what it does not have yet; a client that connects again asks what has
ended. The server's clock is the store's.
"""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.data.tags import root_of
from daws.model.errors import StoreFullError, StrategyError
from daws.model.states import FINAL
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NodeId, Ready
from daws.net.link import Link
from daws.runtime.cluster import words
from daws.runtime.cluster.book import Book
from daws.runtime.cluster.callers import Caller, Questions, QuietWords
from daws.runtime.cluster.clock import StandingClock
from daws.runtime.cluster.ends import Ends, with_each_failure_once
from daws.runtime.cluster.noting import NO_NOTES, asked_by
from daws.runtime.cluster.sessions import (
    LINGER_S,
    Session,
    held_of,
    info_of,
    is_function,
    kinds_needed,
    tasks_of,
    to_hand_out,
    unfinished_of,
)
from daws.runtime.cluster.words import NOBODY, TO_STORE, Count, Counted, KeepFailure, ToStore, in_use, session_of
from daws.runtime.cluster.words import Ends as EndsWord
from daws.store.log import StoreSettings
from daws.store.memory import MemoryStore
from daws.strategy import format_strategy, parse_strategy
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission
from daws.wire.store import CLIENT_HOLDER, AnswerType, Owned, Release, RowType, Submit, Unheld, Watch, is_quiet
from daws.wire.worker import Learn

COPIES_MAX = 100
RETIRED_MAX = 1 << 20
LOOK_S = 0.5
"""So often it looks for leases that ran out, and for clients that are gone."""
QUIET_S_MAX = 0.5
QUIET_SHARE = 16
"""A word for which nobody waits goes with the next one to the same node, but no later than this, and than one part in
so many of a lease: a node asks again for what it has not heard for a quarter of one."""
SMALL_BYTES = 1 << 20
"""That objects may go is such a word if they are no larger; memory may be short."""
ALL = 1 << 40
log = logging.getLogger("daws.store")


def settings_of(lease_ns: int) -> StoreSettings:
    """How many copies of a task may race is up to the strategy, which can be changed."""
    return StoreSettings(lease_ns=lease_ns, replicas_max=COPIES_MAX, direct=True, retired_max=RETIRED_MAX)


class StoreServer:
    """All methods belong to the thread of the loop. What is said is given to `when_safe`, which lets it go as soon as
    nothing of it can be lost any more."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        store: MemoryStore,
        book: Book,
        strategy: str,
        when_safe: Callable[[Callable[[], None]], None] = lambda then: then(),
        patience_s: float = 0.0,
    ) -> None:
        """With `patience_s` the cluster is private: its client tells which nodes have died, and no lease runs out. Then
        a cancel that is not acknowledged is repeated after half of that time, otherwise after half of a lease."""
        self.store = store
        self.book = book
        self._clock = StandingClock()
        self.strategy = strategy
        self.ends = Ends(store)
        self.callers: set[Caller] = set()
        self.nodes: dict[NodeId, Caller] = {}
        self.sessions = {number: Session(entry) for number, entry in book.sessions.items()}
        self._loop = loop
        self._when_safe = when_safe
        self._unsent: list[tuple[Caller, Any]] = []
        self._later: list[tuple[Caller, CallStore]] = []  # of clients, that the store had no room for
        self._is_private = patience_s > 0
        self._patience_s = patience_s or store.lease_ns / 1e9
        quiet_s = min(QUIET_S_MAX, self._patience_s / QUIET_SHARE)
        self._quietly = QuietWords(loop, quiet_s, self.callers, self._flush)
        self._functions: dict[int, bytes] = {}  # that runs have brought in
        self._wanted: dict[int, set[Caller]] = {}  # functions that nobody has told yet, and who asked for them
        self._batches = time.time_ns()  # higher than all that a server before this one has used
        self._cancels: dict[int, tuple[tuple[int, ...], float]] = {}  # that no node has taken yet, and since when
        self._questions = Questions(loop, self._flush)
        self._members_told = -1
        self._notes_asked = NO_NOTES
        self._timer: TimerHandle = loop.call_later(LOOK_S, self._look)
        for session in self.sessions.values():
            session.gone_at_s = self._clock.now_s()

    def welcome(self, link: Link[ToStore]) -> None:
        caller = Caller(link, self._unsent, self._has_ended)
        self.callers.add(caller)
        link.begin(TO_STORE, lambda said: self._hear(caller, said), lambda: self.lose(caller))

    def close(self) -> None:
        self._timer.cancel()
        for caller in self.callers:
            caller.link.close()

    # -- what is said --------------------------------------------------------------------------------------------------

    def _hear(self, caller: Caller, said: list[ToStore]) -> None:
        """Whoever says what cannot be is cut off; it may come back."""
        try:
            self.hear(caller, said)
        except StoreFullError as error:
            if caller.link.peer.role == "node":  # it would end; so it comes back, until there is room
                self._cut_off(caller, str(error))
                return
            caller.send(words.Refused(str(error)))
            self._flush()
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
        session = caller.session
        if session is not None and session.client is caller:
            session.client = None
            session.gone_at_s = self._clock.now_s()
        for function in [*self._wanted]:
            self._wanted[function].discard(caller)
            if not self._wanted[function]:
                del self._wanted[function]
        self._later = [one for one in self._later if one[0] is not caller]
        self._questions.without(caller)
        self._flush()

    def _call(self, caller: Caller, call: CallStore, now_ns: int) -> None:
        """While the store has no room, nobody is answered. Nodes ask again by themselves."""
        rows = call.rows
        try:
            if caller.session is None:
                answers = self.store.apply(call.shard, rows, now_ns)
            elif any(one[0] is caller for one in self._later):
                self._later.append((caller, call))  # in the order in which they were made
                return
            else:
                answers = self._of_client(rows, now_ns)
        except StoreFullError:
            if caller.session is not None:
                self._later.append((caller, call))
            return
        fine = answers.count(None) == len(answers)
        answer = CallFine(call.token) if fine else StoreAnswered(call.token, answers)
        if call.hopes or caller.session is not None or not all(map(self._is_quiet, rows, answers)):
            caller.send(answer)
        else:
            self._quietly.send(caller, answer)

    def _is_quiet(self, row: RowType, answer: AnswerType) -> bool:
        if isinstance(row, Release) and (answer is None or isinstance(answer, Unheld)):
            return self._is_small(row.task)
        return is_quiet(row, answer)

    def _is_small(self, task: int) -> bool:
        record = self.store.shards[0].records.get(task)
        return record is None or sum([one[1] for one in record.outputs]) <= SMALL_BYTES

    def _has_ended(self, task: int) -> bool:
        record = self.store.record(task)
        return record is None or record.state in FINAL

    def _tell_news(self) -> None:
        outcomes = self.ends.news()
        if outcomes:
            self._tell_ends(outcomes)
        members = self.store.members_now()
        if members.version != self._members_told:
            self._members_told = members.version
            for session in self.sessions.values():
                if session.client is not None:
                    session.client.send(words.NowMembers(members))

    def _tell_ends(self, outcomes: list[Outcome]) -> None:
        """Clients hear of their own tasks, and nodes of those that were created there."""
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
            session = self.sessions.get(number)
            if session is not None and session.client is not None:
                told[session.client] = some
        for caller, some in told.items():
            caller.send(EndsWord(with_each_failure_once(some)))

    # -- what a client writes ------------------------------------------------------------------------------------------

    def _of_client(self, rows: list[RowType], now_ns: int) -> list[AnswerType]:
        """Carry out rows of a client, and tell those whom they concern. It is answered what was not taken."""
        records = self.store.shards[0].records
        known = [row.__class__ is Submit and row.spec.id in records for row in rows]
        answers = self.store.apply(0, rows, now_ns)
        ready: dict[NodeId, list[Ready]] = {}
        put: dict[NodeId, list[Submit]] = {}
        unheld: dict[int, Unheld] = {}
        for index, (row, answer) in enumerate(zip(rows, answers, strict=True)):
            if row.__class__ is Submit:
                if answer is None and not row.parents and not row.outputs and not known[index]:
                    ready.setdefault(row.node, []).append(Ready(row.spec, 0, 0))  # the usual task, as below
                    continue
                if isinstance(answer, int):
                    continue  # the client is told
                answers[index] = None
                task = to_hand_out(self.store, row, answer, known[index])
                if task is not None:
                    ready.setdefault(row.node, []).append(task)
                if row.outputs:
                    for place in row.outputs[0][3]:
                        put.setdefault(place, []).append(row)
                    if not row.outputs[0][3]:
                        self._on_function(row.spec.id)
            elif row.__class__ is Release:
                answers[index] = None
                if self.ends.failures:
                    self.ends.forget(row.task)
                if answer.__class__ is Unheld:
                    unheld[row.task] = answer
        for node, objects in put.items():
            self._tell_node(node, NewTasks(CLIENT, self._batch(), tuple(objects)))
        for node, tasks in ready.items():
            self._tell_node(node, Submission(CLIENT, self._batch(), tuple(tasks)))
        for released, places in unheld.items():  # after all that may be put in by the same rows
            self._let_go(released, places)
        return answers

    def _let_go(self, task: int, answer: Unheld) -> None:
        is_small = self._is_small(task)
        for place in answer.places:
            caller = self.nodes.get(place)
            if caller is not None and is_small:
                caller.unheld[task] = answer.readers
                self._quietly.send_later(caller)
            elif caller is not None:
                caller.send(LetGo(CLIENT, (task,), (answer.readers,)))

    def _tell_node(self, node: NodeId, word: Any) -> None:
        """Who is not connected hears when it is, or others hear who take over from it."""
        caller = self.nodes.get(node)
        if caller is not None:
            caller.send(word)

    def _batch(self) -> int:
        self._batches += 1
        return self._batches

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _on_enrol(self, caller: Caller, word: words.Enrol) -> None:
        if caller.link.peer.role != "node":
            caller.send(words.Refused("only who has a node's key can be a node"))
            return
        if self.nodes.get(caller.node) is caller:
            del self.nodes[caller.node]
        node = self.book.new_node() if word.node == NOBODY else word.node
        caller.node = node
        caller.link.name = f"node {node}"
        self.nodes[node] = caller
        caller.send(words.Enrolled(node, self.store.lease_ns, self.strategy))
        if self._notes_asked != NO_NOTES:  # else it may know more: clients come back to a new server one by one
            caller.send(self._notes_asked)
        if word.node != NOBODY:
            answer = self.store.apply(0, [Owned(node, 0, ALL)], self._clock.now_ns())[0]
            ready = getattr(answer, "ready", ())
            if ready:
                caller.send(Submission(CLIENT, self._batch(), ready))
            caller.send(words.OpenSessions([*self.sessions]))

    def _on_keep_failure(self, caller: Caller, word: KeepFailure) -> None:
        self.ends.keep_failure(word.task, word.failure)

    def _on_ask_ends(self, caller: Caller, word: words.AskEnds) -> None:
        ended = self.ends.of(word.tasks, unknown_are_lost=caller.session is not None)
        caller.send(EndsWord(with_each_failure_once(ended)))
        if word.have_ended and (forgotten := self.ends.forgotten(word.tasks)):
            caller.send(words.Forgotten(forgotten))

    def _on_learn(self, caller: Caller, word: Learn) -> None:
        """A run has brought in a function."""
        self._functions[word.function] = word.pickled
        self._on_function(word.function)

    def _on_ask_function(self, caller: Caller, word: words.AskFunction) -> None:
        pickled = self._function(word.function)
        if pickled is None:
            self._wanted.setdefault(word.function, set()).add(caller)
        else:
            caller.send(Learn(word.function, pickled))

    def _on_function(self, function: int) -> None:
        """It is known now."""
        waiting = self._wanted.pop(function, ())
        pickled = self._function(function) if waiting else None
        if pickled is not None:
            for caller in waiting:
                caller.send(Learn(function, pickled))

    def _function(self, function: int) -> bytes | None:
        record = self.store.shards[0].records.get(function)
        if record is not None and is_function(record):
            return record.outputs[0][4]
        return self._functions.get(function)

    def _on_printed(self, caller: Caller, word: words.Printed) -> None:
        session = self.sessions.get(session_of(word.task))
        if session is None and word.task < 0 and len(self.sessions) == 1:
            (session,) = self.sessions.values()  # a thread printed it that runs no task
        if session is not None and session.client is not None:
            session.client.send(word)

    def _on_notes(self, caller: Caller, word: words.Ran | words.Learnt) -> None:
        """Pass on the notes that a node took for one session."""
        session = self.sessions.get(word.session)
        if session is not None and session.client is not None:
            session.client.send(word)

    def _ask_notes(self, session: Session, runs: bool = False, decisions: bool = False) -> None:
        """Tell nodes if the notes change that the client of a session wants."""
        session.notes = (runs, decisions)
        asked = asked_by([(number, *one.notes) for number, one in self.sessions.items()])
        if asked != self._notes_asked:
            self._notes_asked = asked
            for node in self.nodes.values():
                node.send(asked)

    def _on_node_died(self, caller: Caller, word: words.NodeDied) -> None:
        if not self._is_private:
            caller.send(words.Refused("only the client of a private cluster can know that a node has died"))
            return
        self.store.expire(word.node)
        self.store.apply(0, [Watch(0)], self._clock.now_ns())
        self._cancels = {batch: (tasks, -1e9) for batch, (tasks, _) in self._cancels.items()}
        self._send_cancels()  # the node may have been asked to see to some

    # -- clients -------------------------------------------------------------------------------------------------------

    def _on_attach(self, caller: Caller, word: words.Attach) -> None:
        session = self._session_for(word)
        if isinstance(session, str):
            caller.send(words.Refused(session))
            return
        if session.client is not None and session.client is not caller:
            before = session.client  # its link is dead without our knowing
            before.link.close()
            self.lose(before)
            before.session = None
        session.client = caller
        session.nonce = word.nonce
        caller.session = session
        caller.link.name = f"the client of {session.entry.name}"
        self._ask_notes(session, word.runs, word.decisions)
        entry, members = session.entry, self.store.members_now()
        tasks, next_task = tasks_of(self.store, entry.number)
        caller.send(words.Attached(entry.number, entry.name, next_task, members, self.strategy, tasks))

    def _session_for(self, word: words.Attach) -> "Session | str":
        """The session that is meant, or why there is none."""
        if word.session != NOBODY:
            known = self.sessions.get(word.session)
            if known is not None and known.nonce in (word.nonce, b"") and not known.is_ending:
                return known
            return "the session has ended meanwhile: its client was away for too long"
        entry = self.book.named(word.name) if word.name else None
        if entry is not None:
            known = self.sessions[entry.number]
            if known.is_ending:
                return f"session {word.name!r} is about to end; take another name, or try again"
            if known.client is not None and known.nonce != word.nonce:
                return in_use(word.name)
            if word.kept:
                self.book.keep(entry, True)
            return known
        for known in self.sessions.values():
            if known.nonce == word.nonce:
                return known  # it has asked before, and has not heard the answer
        entry = self.book.open(word.name, word.kept, time.time())
        session = self.sessions[entry.number] = Session(entry, word.nonce)
        return session

    def _on_cancel(self, caller: Caller, word: words.CancelTasks) -> None:
        self._cancel(word.tasks)

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        batch = self._batch()
        self._cancels[batch] = (tasks, -1e9)
        self._send_cancels()

    def _send_cancels(self) -> None:
        """Any node can see to it; one after the other is asked until one has."""
        nodes = [node for node in self.store.members_now().nodes if node in self.nodes]
        now_s = self._clock.now_s()
        for batch, (tasks, since_s) in self._cancels.items():
            if nodes and now_s - since_s > self._patience_s / 2:
                self._cancels[batch] = (tasks, now_s)
                self._tell_node(nodes[int(now_s * 1000 + batch) % len(nodes)], CancelOrder(CLIENT, batch, tasks))

    def _on_cancel_taken(self, caller: Caller, word: CancelTaken) -> None:
        self._cancels.pop(word.batch, None)

    def _on_count(self, caller: Caller, word: Count) -> None:
        asked = [self.nodes[node] for node in self.store.members_now().nodes if node in self.nodes]
        self._questions.ask(asked, word, lambda counts: caller.send(words.Counts(counts)))

    def _on_counted(self, caller: Caller, word: Counted) -> None:
        self._questions.answered(caller, word)

    def _on_new_strategy(self, caller: Caller, word: NewStrategy) -> None:
        try:
            self.strategy = format_strategy(parse_strategy(word.text))
        except StrategyError as error:
            log.warning("a client asked for a strategy that is none: %s", error)
            return
        for node in self.nodes.values():
            node.send(word)

    def _on_close(self, caller: Caller, word: words.Close) -> None:
        session = caller.session
        if session is not None:
            self.book.keep(session.entry, word.keep)
            caller.session = session.client = None
            session.gone_at_s = self._clock.now_s()
            session.nonce = b""
            self._ask_notes(session)
        caller.send(words.Closed())
        if session is not None and not word.keep:
            self._end(session)

    def _end(self, session: Session) -> None:
        """Cancel what has not ended, then let go of everything; looked at again until nothing is left."""
        session.is_ending = True
        self._ask_notes(session)
        number = session.entry.number
        unfinished = unfinished_of(self.store, number)
        if unfinished:
            self._cancel(tuple(unfinished))
            return
        needed = {session_of(root_of(kind, self._functions.get(kind, b""))) for kind in kinds_needed(self.store)}
        if number in needed:
            session.look_at_s = self._clock.now_s() + LINGER_S
            return
        rows: list[RowType] = [Release(task, CLIENT_HOLDER) for task in held_of(self.store, number)]
        self._of_client(rows, self._clock.now_ns())
        self.ends.news()
        del self.sessions[number]
        self.book.end(number)
        self._forget_functions()

    def _forget_functions(self) -> None:
        """Those of sessions that have ended. Who is not connected hears of it when it is."""
        known = self._functions.items()
        self._functions = {one: pickled for one, pickled in known if session_of(root_of(one, pickled)) in self.sessions}
        for function in [*self._wanted]:
            if function < FIRST_SPAWNED_ID and session_of(function) not in self.sessions:
                del self._wanted[function]
        for caller in self.nodes.values():
            self._quietly.send(caller, words.OpenSessions([*self.sessions]))

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _on_ask_members(self, caller: Caller, word: words.AskMembers) -> None:
        caller.send(words.NowMembers(self.store.members_now()))

    def _on_ask_sessions(self, caller: Caller, word: words.AskSessions) -> None:
        open_ = [one for one in self.sessions.values() if not one.is_ending]
        caller.send(words.Sessions([info_of(self.store, one) for one in open_]))

    def _on_drain(self, caller: Caller, word: words.Drain) -> None:
        if word.node not in self.store.members_now():
            caller.send(words.Refused(f"there is no node {word.node}; 'daws nodes' lists those that are there"))
            return
        if word.node not in self.nodes:
            caller.send(words.Refused(f"node {word.node} does not answer just now; try again, or wait for its lease"))
            return
        self._tell_node(word.node, words.Depart(word.within_s))
        caller.send(words.Done())

    def _on_end_session(self, caller: Caller, word: words.EndSession) -> None:
        entry = self.book.named(word.name)
        session = self.sessions.get(entry.number) if entry is not None else None
        if session is None:
            caller.send(words.Refused(f"there is no session {word.name!r}; 'daws sessions' lists those that are there"))
            return
        if not session.is_ending:
            self.book.keep(session.entry, False)  # a server that begins anew ends it too
            self._end(session)
        caller.send(words.Done())

    # -- now and then --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)
        try:
            self._look_after()
        except StoreFullError as error:
            log.warning("%s", error)
        self._flush()

    def _look_after(self) -> None:
        self.book.write_again()
        now_ns = self._clock.now_ns()
        self.store.apply(0, [Watch(0)], now_ns)  # leases may have run out
        later, self._later = self._later, []
        for caller, call in later:
            self._call(caller, call, now_ns)
        now_s = self._clock.now_s()
        for session in list(self.sessions.values()):
            if any(session.notes) and session.is_away(now_s, self._patience_s):
                self._ask_notes(session)
            if session.is_ending:
                if not self._cancels and now_s >= session.look_at_s:
                    self._end(session)
            elif session.is_abandoned(now_s, self._patience_s):
                log.warning("the client of %s is gone: it ends", session.entry.name)
                self._end(session)
        self._send_cancels()
        self._tell_news()


_HEARD: dict[type, Callable[[StoreServer, Caller, Any], None]] = {
    words.Enrol: StoreServer._on_enrol,
    KeepFailure: StoreServer._on_keep_failure,
    words.AskEnds: StoreServer._on_ask_ends,
    words.AskFunction: StoreServer._on_ask_function,
    Learn: StoreServer._on_learn,
    words.Printed: StoreServer._on_printed,
    words.Ran: StoreServer._on_notes,
    words.Learnt: StoreServer._on_notes,
    words.NodeDied: StoreServer._on_node_died,
    Counted: StoreServer._on_counted,
    CancelTaken: StoreServer._on_cancel_taken,
    words.Attach: StoreServer._on_attach,
    words.CancelTasks: StoreServer._on_cancel,
    Count: StoreServer._on_count,
    NewStrategy: StoreServer._on_new_strategy,
    words.Close: StoreServer._on_close,
    words.AskMembers: StoreServer._on_ask_members,
    words.AskSessions: StoreServer._on_ask_sessions,
    words.Drain: StoreServer._on_drain,
    words.EndSession: StoreServer._on_end_session,
}
