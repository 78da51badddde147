"""The session as a value: the client's side of a cluster, without a clock or a socket.

`SessionCore.step` takes events (what the client asks for, answers of the store, messages of nodes, time that passed)
and appends effects. The simulator drives it, and live clients are driven by it, on every store. It attaches to a
session, writes tasks into the store, and hands those that are ready to their owners. It cancels tasks, reads how they
end, and sends again what a failover may have lost. At last it detaches or ends the session.

    session_events   what comes in and goes out beside what nodes have, too
    session_calls    calls to the store: repeated until answered, kept until safe
    session_write    tasks on their way into the store
    session_tell     messages to nodes: hand-outs, cancels, objects that may go
    session_ends     how tasks end, from the logs
    session_graph    a whole graph: planned, written, handed out and counted
    session_find     what a session has in the store
    session_direct   a session whose store and node are in the client's process

One rule ends a session, for its client that closes it, for a tool, and for a sweeper that finds it abandoned. It is
marked as ending, and every shard is told to take no more tasks of it. Tasks that have not ended are cancelled, and held
ones are let go of. When nothing is left, the session is forgotten. A process that dies on the way is replaced by a
sweeper.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from daws.core import session_direct as direct
from daws.core.config import NodeConfig
from daws.core.effects import TICK, SetTimer
from daws.core.events import CallFine, CallsSafe, Started, StoreAnswered, StoreChanged, TimerFired
from daws.core.session_calls import SessionCalls
from daws.core.session_ends import READ_NS, SessionEnds
from daws.core.session_events import (
    CloseAsked,
    CommitsHeard,
    EndsHeard,
    GraphSubmitted,
    MembersHeard,
    MembersSeen,
    PlainTasksSubmitted,
    Reconnected,
    SessionClosed,
    SessionEffect,
    SessionEvent,
    SessionOpened,
    SessionRefused,
    StillUnwritten,
    TasksCancelled,
    TasksLetGo,
    TasksSubmitted,
)
from daws.core.session_find import Finding
from daws.core.session_tell import Cancels, HandOuts, LettingGo
from daws.core.session_write import Writing, are_plain, is_plain
from daws.model.cluster import Members
from daws.model.states import FINAL
from daws.model.task import NOBODY, NodeId
from daws.wire.messages import CancelTaken, SubmissionTaken
from daws.wire.store import (
    CLIENT_HOLDER,
    MEMBERSHIP_SHARD,
    NO_SESSION,
    OK,
    REFUSED,
    SESSION_BITS,
    TO_END,
    TO_SWEEP,
    TO_USE,
    AnswerType,
    AttachSession,
    Available,
    CloseSession,
    Create,
    DetachSession,
    FindHeld,
    ForgetSession,
    HeldTask,
    Inspect,
    Leased,
    Locate,
    Open,
    ReadLog,
    Register,
    Release,
    Row,
    Satisfy,
    SessionAttached,
    Submit,
    Watch,
    shard_of,
)

if TYPE_CHECKING:
    from daws.core.session_graph import SessionGraph

# Where a session's client is in its life.
ATTACHING = 0
OPEN = 1
DETACHING = 2  # all that was submitted goes into the store, then the client leaves
CLOSING = 3  # the session ends
CLOSED = 4

NO_TIMER = -1
EARLY_NS = 2_000_000
"""A timer of a driver may fire so much too early."""
GAP = 1 << 16
"""A client that goes on with a session leaves out this many numbers of tasks. The client before it may have used some
of which the store is yet to hear."""


class SessionCore:
    """One client of one session."""

    def __init__(
        self,
        nonce: bytes,
        config: NodeConfig,
        name: str = "",
        kept: bool = False,
        session: int = NO_SESSION,
        why: int = TO_USE,
        first_token: int = 0,
        watch_ns: int = 0,
        proposal: int = NO_SESSION,
        is_direct: bool = False,
    ) -> None:
        """`nonce` tells this client from all others. A sweeper says which `session` it means. The members are asked for
        every `watch_ns`, or on each tick if nobody needs to know sooner. `proposal` is for a new session: a number that
        is never given twice. Such a session can be used before its row is safe. The session `is_direct` if the store
        and the only node are in the client's process (see `session_direct`)."""
        self.shard_count = config.shard_count
        self.phase = ATTACHING
        self.session = session
        self.members = Members(0, ())
        self.attach_count = 0  # how often the store has said that this client has the session
        self.calls = SessionCalls(config.replicated, first_token)
        self.writing = Writing()
        self.hand_outs = HandOuts(nonce)
        self.cancels = Cancels()
        self.letting_go = LettingGo()
        self.ends = SessionEnds(config.shard_count)
        self.finding = Finding()
        self.graph: SessionGraph | None = None
        self.out: list[SessionEffect] = []
        self._nonce = nonce
        self._name = name
        self._kept = kept
        self._why = why
        self._config = config
        self._clients_before = 0
        self._is_attached = False  # the store has said so, but it may not be safe yet
        self._has_begun_to_close = False
        self._hands_over = False  # a sweeper does the rest
        self._unwritten = 0  # as it was told last
        self._proposal = proposal
        self._is_kept = True  # may the session go on without a client, as far as the store knows?
        self._watch_ns = watch_ns or config.tick_ns
        self._watch_at_ns = 0
        self._unclosed: set[int] = set()  # shards that have yet to hear that the session takes no more tasks
        self._released: set[int] = set()
        self._unforgotten: set[int] | None = None  # shards that have yet to forget it, when nothing else is left
        self._tick_at_ns = 0
        self._timer_at_ns = NO_TIMER
        self._turn = 0
        self._is_direct = is_direct
        self._handlers = DIRECT if is_direct else HANDLERS

    # -- what the parts ask --------------------------------------------------------------------------------------------

    @property
    def takes_tasks(self) -> bool:
        """Tasks may still be written."""
        return self.phase in (ATTACHING, OPEN, DETACHING)

    def is_pending(self, task: int) -> bool:
        """Is this one of the tasks whose ends are not known?"""
        return task in self.ends.pending or (self.graph is not None and self.graph.is_pending(task))

    @property
    def awaits_ends(self) -> bool:
        """Are there tasks whose ends are not known?"""
        return bool(self.ends.pending) or (self.graph is not None and self.graph.left > 0)

    def ask(self, task: int, row: Row) -> None:
        """Send a row to the shard of this task."""
        self.calls.ask(shard_of(task, self.shard_count), row)

    def ask_once(self, task: int, row: Row) -> None:
        self.calls.ask_once(shard_of(task, self.shard_count), row)

    def node_for(self, row: Submit | Create | None = None) -> NodeId:
        """The node that is to own a task: one after the other of those that can run it, or NOBODY without nodes."""
        self._turn += 1
        nodes = self.members.nodes
        if row is not None:
            if row.spec.home in self.members:
                return row.spec.home
            nodes = self.members.capable(row.spec.needs) or nodes
        return nodes[self._turn % len(nodes)] if nodes else NOBODY

    # -- the one door --------------------------------------------------------------------------------------------------

    def step(self, now_ns: int, events: Sequence[SessionEvent], out: list[SessionEffect]) -> None:
        self.out = out
        for event in events:
            if self.phase != CLOSED:
                self._handlers[type(event)](self, now_ns, event)
        if self.phase != CLOSED and not (self._is_direct and self.phase == OPEN):
            self._flush(now_ns)

    def _flush(self, now_ns: int) -> None:
        for shard in self.calls.take_resent():
            self.ends.verify(self, shard)
        self._go_on()
        self.writing.flush(self)
        if self.graph is not None and self.takes_tasks:
            self.graph.write(self, now_ns)
        if self.phase != ATTACHING:
            self.hand_outs.flush(now_ns, self.out)
            if not self._is_writing_graph:
                self.cancels.flush(self.hand_outs, self.writing.unwritten)
            self.cancels.send(now_ns, self._config.tick_ns, self.members, self.out)
            self.letting_go.flush(self.out)
        self.ends.flush(self)
        if self.graph is not None:
            self.graph.tell(self)
        self.calls.flush(now_ns, self.out)
        if self.phase == DETACHING and self.writing.count() != self._unwritten:
            self._unwritten = self.writing.count()
            self.out.append(StillUnwritten(self._unwritten))
        if not self._is_direct:
            self._set_timer(now_ns)

    def _set_timer(self, now_ns: int) -> None:
        at_ns = min(self._tick_at_ns, self._watch_at_ns)
        if self.phase != OPEN:
            at_ns = min(at_ns, now_ns + READ_NS)
        elif self.awaits_ends:
            at_ns = min(at_ns, max(self.ends.read_at_ns, now_ns + READ_NS))
        if self._timer_at_ns <= now_ns or at_ns < self._timer_at_ns - READ_NS:
            self._timer_at_ns = at_ns = max(at_ns, now_ns + 1)
            self.out.append(SetTimer(TICK, at_ns))

    def _on_started(self, now_ns: int, event: Started) -> None:
        self.members = event.members
        self._tick_at_ns = now_ns + self._config.tick_ns
        self._watch_at_ns = now_ns + self._watch_ns
        self._attach()

    def _on_timer(self, now_ns: int, event: TimerFired) -> None:
        if now_ns >= self._timer_at_ns - EARLY_NS:
            self._timer_at_ns = NO_TIMER  # else it is one of before, and another is yet to come
        if self.phase == OPEN and self.awaits_ends and now_ns >= self.ends.read_at_ns:
            self.ends.read(self, now_ns)
        if now_ns >= self._watch_at_ns:
            self._watch_at_ns = now_ns + self._watch_ns
            self.calls.ask_once(MEMBERSHIP_SHARD, Watch(self.members.version))
        if now_ns < self._tick_at_ns:
            return
        tick_ns = self._config.tick_ns
        self._tick_at_ns = now_ns + tick_ns
        self.calls.repeat(now_ns, tick_ns, self.out)
        self._repeat_hand_outs(now_ns, tick_ns)
        self._attach()  # the lease of the session
        self._send_early()
        self.ends.look_up(self)
        for task in self.letting_go.tasks:
            self.ask_once(task, Locate(task))
        may_find = self._has_begun_to_close and not self._hands_over
        if may_find and not (self._unclosed or self._is_forgotten or self.finding.is_under_way):
            self.finding.begin(self, _on_left, False, True)

    def _repeat_hand_outs(self, now_ns: int, after_ns: int) -> None:
        silent = self.hand_outs.repeat(now_ns, after_ns, self._config.lease_ns, self.members, self.out)
        self.writing.on_silent(self, silent)

    def _on_reconnected(self, now_ns: int, event: Reconnected) -> None:
        self.calls.repeat(now_ns, 0, self.out)
        self._repeat_hand_outs(now_ns, 0)

    # -- the session ---------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        why = TO_END if self.phase == CLOSING and self._why == TO_USE else self._why
        proposal = self._proposal if self.session == NO_SESSION else NO_SESSION
        row = AttachSession(self._nonce, self._name, self._kept, self.session, why, proposal)
        self.calls.ask_once(MEMBERSHIP_SHARD, row)

    def _on_attached(self, row: AttachSession, answer: AnswerType) -> None:
        if not isinstance(answer, SessionAttached):
            if self.phase != ATTACHING and row.session == NO_SESSION:
                return  # asked before it was opened
            self.phase = CLOSED
            self.out.append(SessionRefused(answer if isinstance(answer, int) else OK))
            return
        self.attach_count += 1
        if self.phase in (OPEN, DETACHING) and answer.ending:
            self.phase = CLOSED  # somebody ends it
            self.out.append(SessionRefused(OK))
        elif self.phase == CLOSING:
            self._is_attached = self._is_attached or answer.ending
        elif self.phase == ATTACHING and not (self._is_attached and answer.session == self.session):
            self._is_attached = True
            self._is_kept = answer.kept
            self.session, self._name = answer.session, answer.name
            self._clients_before = answer.clients - 1
            if answer.ending:
                self.phase = CLOSING

    def _go_on(self) -> None:
        """Do what waited for something to be written, answered or safe."""
        if self.phase == ATTACHING and self._is_attached and self._may_open and not self.finding.is_under_way:
            self.finding.begin(self, _on_held, True)
        elif self.phase == DETACHING and self._is_written and self.calls.is_safe:
            self.calls.ask_once(MEMBERSHIP_SHARD, DetachSession(self._nonce, self.session, True))
        elif self.phase == CLOSING and self._is_attached and not self._has_begun_to_close and self._may_close:
            self._has_begun_to_close = True  # it is safe that the session ends, whatever becomes of us
            if self._hands_over:
                self.calls.ask_once(MEMBERSHIP_SHARD, DetachSession(self._nonce, self.session, True))
            else:
                self._close_shards()
        elif self.phase == CLOSING and self._is_forgotten and self.calls.is_safe:
            self.calls.ask_once(MEMBERSHIP_SHARD, DetachSession(self._nonce, self.session, False))

    @property
    def _may_open(self) -> bool:
        """Numbers of tasks follow from that of the session. If another session might get the same number, it is not
        used before it is safe."""
        return self.calls.is_safe or self.session == self._proposal

    @property
    def _may_close(self) -> bool:
        """If it gets lost that a session ends, a sweeper ends it all the same, unless it is kept."""
        return self.calls.is_safe or (self._hands_over and not self._is_kept)

    @property
    def _is_forgotten(self) -> bool:
        return self._unforgotten is not None and not self._unforgotten

    @property
    def _is_written(self) -> bool:
        return not (self.writing or self._is_writing_graph or self.hand_outs or self.cancels or self.calls.writes)

    @property
    def _is_writing_graph(self) -> bool:
        return self.graph is not None and not self.graph.is_written

    def open(self, tasks: list[HeldTask], next_task: int) -> None:
        """All shards have said what the session has."""
        self._release([one for one in tasks if one.state in FINAL and not one.held])
        if self._why == TO_SWEEP:
            self.phase = DETACHING
            return
        self.phase = OPEN
        listed = [one for one in tasks if one.held and one.listed]
        unused = (self.session << SESSION_BITS) + self._clients_before * GAP
        first = max(next_task + (GAP if tasks else 0), unused)
        names = tuple([(one.task, one.outputs) for one in listed])
        self.out.append(SessionOpened(self.session, self._name, first, names))
        for one in listed:
            self.ends.expect((one.task,))
            if one.state in FINAL:
                self.ends.find(self, one.task, one.state)

    def _on_close_asked(self, now_ns: int, event: CloseAsked) -> None:
        if self.phase != OPEN:
            return
        if event.keep:
            self.phase = DETACHING
            if not self._kept:
                self._kept = True
                self._attach()  # that the session is kept has to be safe before its client goes
            return
        self.phase = CLOSING
        self._hands_over = event.hands_over
        self._is_attached = False
        self.writing.drop_unsent()
        self.ends.drop_all()
        self.graph = None
        self._attach()

    def _close_shards(self) -> None:
        self._unclosed = set(range(self.shard_count))
        for shard in range(self.shard_count):
            self.calls.ask(shard, CloseSession(self.session))

    def _on_shard_closed(self, shard: int) -> None:
        if shard in self._unclosed:
            self._unclosed.discard(shard)
            if not self._unclosed:
                self.finding.begin(self, _on_left, False, True)

    def end(self, tasks: list[HeldTask]) -> None:
        """Cancel what has not ended, let go of what is held. When nothing is left, forget the session. Its functions
        stay until all tasks have ended that its runs have created."""
        unfinished = [one.task for one in tasks if one.state not in FINAL]
        held = [one for one in tasks if one.state in FINAL and (one.held or one.task not in self._released)]
        for task in unfinished:
            self.cancels.want(task)
        if self.finding.spawned:
            self._release([one for one in held if one.listed])
            return
        self._release(held)
        if not unfinished and not held and not self.letting_go and not self.calls.writes:
            self._unforgotten = set(range(self.shard_count))
            for shard in self._unforgotten:
                self.calls.ask_once(shard, ForgetSession(self.session))

    def _release(self, tasks: list[HeldTask]) -> None:
        """Let go of tasks that have ended. Nodes may not have heard that some are not held any more: the client that
        let go of these may have been killed before it told the nodes."""
        for one in tasks:
            self._released.add(one.task)
            self.cancels.ended(one.task)
            self.ask(one.task, Release(one.task, CLIENT_HOLDER))

    def _on_forgotten(self, shard: int, answer: AnswerType) -> None:
        if answer == OK and self._unforgotten is not None:
            self._unforgotten.discard(shard)

    def _on_detached(self, row: DetachSession, answer: AnswerType) -> None:
        self.phase = CLOSED
        keeps = row.keep and not self._hands_over
        self.out.append(SessionRefused(REFUSED) if keeps and answer == REFUSED else SessionClosed(keeps))

    # -- events --------------------------------------------------------------------------------------------------------

    def _on_submitted(self, now_ns: int, event: TasksSubmitted) -> None:
        rows = event.rows
        self.ends.expect([row.spec.id for row in rows if not row.outputs])
        if are_plain(rows) and {row.node for row in rows}.issubset(self.members.nodes):
            self.writing.submit_plain(self, rows)
            return
        for row in rows:
            if is_plain(row) and row.node in self.members:
                self.writing.submit_plain(self, (row,))
            else:
                self.writing.submit(self, row)

    def _on_graph_submitted(self, now_ns: int, event: GraphSubmitted) -> None:
        from daws.core.session_graph import SessionGraph  # only now: it imports numpy, which most clients do not need

        self.graph = SessionGraph(self._config, now_ns, event, self.members)

    def _on_cancelled(self, now_ns: int, event: TasksCancelled) -> None:
        for task in event.tasks:  # the client may have let go of them before
            self.cancels.want(task)

    def _on_let_go(self, now_ns: int, event: TasksLetGo) -> None:
        for task in event.tasks:
            self.ends.forget(task)
            self.writing.let_go(self, task)

    def _on_ends_heard(self, now_ns: int, event: EndsHeard) -> None:
        self.ends.hear(self, event.ends)

    def _on_commits_heard(self, now_ns: int, event: CommitsHeard) -> None:
        self.ends.take_commits(self, event.commits)

    def _on_submission_taken(self, now_ns: int, event: SubmissionTaken) -> None:
        self.writing.on_announced(self, self.hand_outs.taken(event.batch))

    def _on_cancel_taken(self, now_ns: int, event: CancelTaken) -> None:
        for task in self.cancels.taken(event.batch):
            self.writing.on_cancelled(task)
            if not self.is_pending(task):  # nobody will tell of its end
                self.cancels.ended(task)

    def _on_safe(self, now_ns: int, event: CallsSafe) -> None:
        self.calls.safe(event.shard, event.tokens)

    def _on_changed(self, now_ns: int, event: StoreChanged) -> None:
        self.calls.changed(event.shard, now_ns, self.out)
        self.ends.begin_anew(event.shard)
        self.cancels.want_again()
        self._unforgotten = None
        self._released.clear()
        self.finding.begin_anew(self, event.shard)
        if event.shard == MEMBERSHIP_SHARD:
            self.members = Members(0, self.members.infos, self.members.strategy)

    def _on_answered(self, now_ns: int, event: StoreAnswered) -> None:
        self._hear(event.token, event.answers, now_ns)

    def _on_fine(self, now_ns: int, event: CallFine) -> None:
        self._hear(event.token, None, now_ns)

    def _hear(self, token: int, answers: Sequence[AnswerType] | None, now_ns: int) -> None:
        shard, rows, again = self.calls.answered(token, answers, now_ns, self.out)
        if answers is None and not again and are_plain(rows):
            self.writing.on_plain(self, rows)
            return
        if answers is None or not rows:
            answers = [None] * len(rows)
        for row, answer in zip(rows, answers, strict=True):
            if answer is None and not again and is_plain(row):
                self.writing.on_plain(self, (row,))
            elif self.phase != CLOSED:
                ANSWERED[type(row)](self, shard, row, answer, again)

    def _on_members_heard(self, now_ns: int, event: MembersHeard) -> None:
        self._see_members(event.members)

    def _on_watched(self, answer: AnswerType) -> None:
        if isinstance(answer, Leased) and answer.members is not None:
            self._see_members(answer.members)
            self.out.append(MembersSeen(answer.members))

    def _see_members(self, members: Members) -> None:
        if members.version != self.members.version:
            self.members = members
            self._send_early()

    def _send_early(self) -> None:
        """Send what may have waited for nodes."""
        self.writing.send_early(self)
        if self.graph is not None and self.takes_tasks:
            self.graph.move_struck(self)

    def _on_create(self, row: Create, answer: AnswerType) -> None:
        if row.guarded:
            self.writing.on_create(self, row, answer)
        elif self.graph is not None:
            self.graph.on_created(self, row, answer)

    def _on_located(self, row: Locate, answer: AnswerType) -> None:
        self.ends.on_located(self, row, answer)
        if self.letting_go.waits_for(row.task):
            places = [place for one in answer.inputs for place in one.places] if isinstance(answer, Available) else ()
            self.letting_go.add(row.task, tuple(dict.fromkeys(places)), self.members)

    def _on_story(self, row: Inspect, answer: AnswerType) -> None:
        self.ends.on_story(self, row, answer)
        self.writing.on_story(self, row, answer)


def _on_held(core: SessionCore, tasks: list[HeldTask], next_task: int) -> None:
    core.open(tasks, next_task)


def _on_left(core: SessionCore, tasks: list[HeldTask], next_task: int) -> None:
    core.end(tasks)


HANDLERS: dict[type, Callable[[SessionCore, int, Any], None]] = {
    Started: SessionCore._on_started,
    TimerFired: SessionCore._on_timer,
    TasksSubmitted: SessionCore._on_submitted,
    GraphSubmitted: SessionCore._on_graph_submitted,
    TasksCancelled: SessionCore._on_cancelled,
    TasksLetGo: SessionCore._on_let_go,
    EndsHeard: SessionCore._on_ends_heard,
    CommitsHeard: SessionCore._on_commits_heard,
    MembersHeard: SessionCore._on_members_heard,
    Reconnected: SessionCore._on_reconnected,
    CloseAsked: SessionCore._on_close_asked,
    SubmissionTaken: SessionCore._on_submission_taken,
    CancelTaken: SessionCore._on_cancel_taken,
    CallsSafe: SessionCore._on_safe,
    StoreChanged: SessionCore._on_changed,
    StoreAnswered: SessionCore._on_answered,
    CallFine: SessionCore._on_fine,
}
DIRECT: dict[type, Callable[[SessionCore, int, Any], None]] = HANDLERS | {
    TasksSubmitted: direct.on_submitted,
    PlainTasksSubmitted: direct.on_plain_submitted,
    TasksCancelled: direct.on_cancelled,
    TasksLetGo: direct.on_let_go,
}

Answered = Callable[[SessionCore, int, Any, AnswerType, bool], None]
ANSWERED: dict[type, Answered] = {
    AttachSession: lambda core, shard, row, answer, again: core._on_attached(row, answer),
    DetachSession: lambda core, shard, row, answer, again: core._on_detached(row, answer),
    ForgetSession: lambda core, shard, row, answer, again: core._on_forgotten(shard, answer),
    CloseSession: lambda core, shard, row, answer, again: core._on_shard_closed(shard),
    FindHeld: lambda core, shard, row, answer, again: core.finding.on_found(core, shard, row, answer),
    Watch: lambda core, shard, row, answer, again: core._on_watched(answer),
    Submit: lambda core, shard, row, answer, again: core.writing.on_submit(core, row, answer, again),
    Create: lambda core, shard, row, answer, again: core._on_create(row, answer),
    Register: lambda core, shard, row, answer, again: core.writing.on_register(core, row, answer),
    Satisfy: lambda core, shard, row, answer, again: core.writing.on_satisfy(core, row, answer, again),
    Open: lambda core, shard, row, answer, again: core.writing.on_satisfy(core, row, answer, again),
    Release: lambda core, shard, row, answer, again: core.writing.on_release(core, row, answer),
    ReadLog: lambda core, shard, row, answer, again: core.ends.on_log(core, shard, row, answer),
    Locate: lambda core, shard, row, answer, again: core._on_located(row, answer),
    Inspect: lambda core, shard, row, answer, again: core._on_story(row, answer),
}
