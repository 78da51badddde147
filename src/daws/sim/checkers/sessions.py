"""The promises of sessions: no task in the store is lost, each end is reported once, and nothing is left behind.

The checker knows what the user has asked for and what the user was told, and looks at the store from outside. It
believes nothing that a session's client thinks of itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from daws.core import view
from daws.core.effects import CallStore
from daws.core.events import StoreAnswered
from daws.core.session_events import SessionOpened
from daws.model.states import CANCELLED, DONE, FAILED, FINAL, STATE_NAMES
from daws.model.task import NodeId, Ready
from daws.sim.checkers.known import Violation
from daws.store.memory.snapshot import intents_in, tasks_in
from daws.wire.ends import Outcome
from daws.wire.messages import NewTasks, SubmissionTaken
from daws.wire.store import OK, AttachSession, Open, RowType, SessionAttached, Submit, session_of

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel


class UserTask:
    """A task as the user knows it. `client` is the number of the one that looks after it now."""

    __slots__ = ("client", "end", "is_cancelled", "is_let_go", "is_lost", "is_orphan", "parents", "session")

    def __init__(self, client: int, parents: tuple[int, ...], session: int) -> None:
        self.client = client
        self.parents = parents
        self.session = session
        self.end: Outcome | None = None
        self.is_cancelled = False
        self.is_let_go = False
        self.is_orphan = False  # its client was killed or replaced before the store had acknowledged it for good
        self.is_lost = False  # its client was killed before the store knew of it, or its session has ended


class SessionTruth:
    """All tasks of the user."""

    def __init__(self, kernel: "Kernel", is_kept: bool) -> None:
        self.kernel = kernel
        self.is_kept = self.opens_kept = is_kept  # the session goes on without a client
        self.renewed_ns: dict[int, int] = {}  # client -> when it asked for the last lease that it was given
        self.wishes: dict[int, UserTask] = {}
        self.session = 0
        self.called: dict[int, tuple[int, list[RowType]]] = {}  # by token: when it was first sent, and what
        self.unsafe: dict[int, set[int]] = {}  # by token: tasks that were acknowledged
        self.acknowledged: set[int] = set()
        self.is_closing = False  # the user has said that the session is to end
        self.told: set[tuple[int, int]] = set()  # client, task
        self.expected: set[int] = set()  # what the next client has to find
        self.ended_sessions: set[int] = set()
        self.seen_sessions: set[int] = set()
        self.functions: set[int] = set()
        self.puts: dict[int, tuple[NodeId, ...]] = {}  # objects from outside: where they were put
        self.announced: dict[int, tuple[int, ...]] = {}  # by batch: objects of which a node is told that it has them
        self.taken: set[tuple[NodeId, int]] = set()  # nodes, and objects of which these have heard

    def fail(self, what: str) -> NoReturn:
        raise Violation(f"at {self.kernel.now_ns / 1e9:.6f} s of seed {self.kernel.seed}: {what}")

    @property
    def _forgets(self) -> bool:
        return bool(self.kernel.config.replicated)

    # -- what was acknowledged -----------------------------------------------------------------------------------------

    def on_call(self, call: CallStore) -> None:
        self.called.setdefault(call.token, (self.kernel.now_ns, call.rows))

    def on_answered(self, client: int, event: StoreAnswered) -> None:
        """Note the tasks of a call as acknowledged from its first answer on. Where the store forgets, they are not yet
        safe."""
        sent_ns, rows = self.called.pop(event.token, (0, []))
        for row, answer in zip(rows, event.answers if rows else (), strict=True):
            if isinstance(row, Submit) and (answer is None or isinstance(answer, Ready)):
                self.unsafe.setdefault(event.token, set()).add(row.spec.id)
            elif isinstance(row, Open) and (answer == OK or isinstance(answer, Ready)):
                self.unsafe.setdefault(event.token, set()).add(row.task)
            elif isinstance(row, AttachSession) and isinstance(answer, SessionAttached):
                if client not in self.renewed_ns:
                    self._note_orphans(answer.session)
                self.renewed_ns[client] = max(sent_ns, self.renewed_ns.get(client, 0))
        if not self._forgets:
            self.on_safe((event.token,))

    def _note_orphans(self, session: int) -> None:
        """Another client has this session: the one before was killed, or was away for longer than a lease."""
        for task, wish in self.wishes.items():
            if wish.session == session and task not in self.acknowledged:
                wish.is_orphan = True

    def on_safe(self, tokens: tuple[int, ...]) -> None:
        for token in tokens:
            self.acknowledged |= self.unsafe.pop(token, set())

    # -- what the user does --------------------------------------------------------------------------------------------

    def usable(self) -> list[int]:
        """Tasks of the session that the user has futures of."""
        return [
            task
            for task, wish in self.wishes.items()
            if wish.session == self.session and not wish.is_let_go and not wish.is_lost
        ]

    def unended(self, client: int) -> list[int]:
        wishes = self.wishes
        mine = [task for task in self.usable() if wishes[task].client == client and task not in self.puts]
        return [task for task in mine if (client, task) not in self.told]

    def on_submitted(self, client: int, task: int, parents: tuple[int, ...]) -> None:
        if task in self.wishes:
            self.fail(f"number {task} was given to two tasks")
        self.wishes[task] = UserTask(client, parents, self.session)

    def on_put(self, client: int, task: int, places: tuple[NodeId, ...]) -> None:
        self.on_submitted(client, task, ())
        self.puts[task] = places

    def on_announced(self, message: NewTasks) -> None:
        self.announced[message.batch] = tuple([row.spec.id for row in message.tasks])

    def on_taken(self, event: SubmissionTaken) -> None:
        self.taken.update([(event.sender, task) for task in self.announced.get(event.batch, ())])

    def on_cancelled(self, task: int) -> None:
        self.wishes[task].is_cancelled = True

    def on_let_go(self, task: int) -> None:
        self.wishes[task].is_let_go = True

    # -- what the user is told -----------------------------------------------------------------------------------------

    def on_opened(self, client: int, opened: SessionOpened, visit: int) -> None:
        names = {task for task, _ in opened.tasks}
        if opened.session in self.ended_sessions:
            self.fail(f"session {opened.session} was opened again after it had ended")
        self.seen_sessions.add(opened.session)
        if opened.session != self.session:
            self._begin_anew(opened.session)
        self.is_closing = False
        self.check_functions(opened.session)
        lost = sorted(self.expected - names)
        if lost:
            self.fail(f"task {lost[0]} of session {self.session} was in the store, and the next client lacks it")
        self.expected = set()
        for task, wish in self.wishes.items():
            if wish.session != self.session or wish.is_let_go:
                continue
            if task in names:
                wish.client = client
            else:
                wish.is_lost = True
        for task in names:
            if session_of(task) != opened.session:
                self.fail(f"session {opened.session} has task {task} of another session")
            if task >= opened.next_task:
                self.fail(f"number {opened.next_task} is said to be free, but there is a task {task}")
            if task not in self.wishes:
                self.fail(f"session {opened.session} has task {task}, which nobody has submitted")

    def check_rival(self, session: int, client: int) -> None:
        """A session was opened while this client has it: was that one away for longer than a lease?"""
        until_ns = self.renewed_ns.get(client, 0) + self.kernel.config.lease_ns
        if session == self.session and self.kernel.now_ns < until_ns:
            self.fail(f"session {session} has two clients")

    def check_functions(self, session: int) -> None:
        """Look for functions that were acknowledged: they stay until nothing can need them any more."""
        for task in sorted(self.functions & self.acknowledged):
            if session_of(task) == session and self.kernel.store.record(task) is None:
                self.fail(f"function {task} was in the store, and is gone while its session is there")

    def is_durable(self, task: int) -> bool:
        """Whether the end of a task survives a restart of the store. A store that forgets tells ends before that."""
        return self._forgets or bool(self.kernel.checker.known.has_ended(task))

    def _begin_anew(self, session: int) -> None:
        """Take all tasks of the session before for lost: it was swept."""
        if self.session and self.is_kept and not self.is_closing and self.session not in self.ended_sessions:
            self.fail(f"session {self.session} was to be kept, and is gone")
        for wish in self.wishes.values():
            if wish.session == self.session:
                wish.is_lost = True
        self.expected = set()
        self.session = session
        self.is_kept = self.opens_kept

    def on_ended(self, client: int, ends: Sequence[Outcome]) -> None:
        for end in ends:
            wish = self.wishes.get(end.task)
            if wish is None or wish.session != self.session:
                self.fail(f"client {client} was told of task {end.task}, which is not one of its tasks")
            if (client, end.task) in self.told:
                self.fail(f"client {client} was told twice how task {end.task} ended")
            self.told.add((client, end.task))
            self._check_end(end, wish)
            if wish.end is None:
                wish.end = end

    def _check_end(self, end: Outcome, wish: UserTask) -> None:
        task, state = end.task, end.state or DONE
        if state not in FINAL:
            self.fail(f"task {task} is said to have ended as {STATE_NAMES[state]}")
        may_differ = self._forgets or (state == FAILED and self.may_be_lost(task))
        if wish.end is not None and (wish.end.state or DONE) != state and not may_differ:
            before = STATE_NAMES[wish.end.state or DONE]
            self.fail(f"task {task} was {before}, and the next client hears that it is {STATE_NAMES[state]}")
        if state == DONE:
            if [one.object for one in end.outputs] != [task]:
                self.fail(f"task {task} is done, and its client does not hear what it has made")
            is_run = task not in self.puts
            if is_run and not self._forgets and self.kernel.checker.known.committed[task] is None:
                self.fail(f"task {task} is said to be done, but no run of it was committed")
        elif state == CANCELLED:
            if not self._follows(task) and not self.is_closing and not self._is_swept():
                self.fail(f"task {task} was cancelled, and nobody has asked for that")
        elif state == FAILED and not self._may_fail(task, end.error):
            self.fail(f"task {task} failed although nothing in it can fail: {end.error}")

    def _is_swept(self) -> bool:
        """Whether a sweeper ends the session: its client was away for a lease, and may read so in the logs first."""
        entry = self.kernel.store.sessions.get(self.session)
        return entry is None or entry.ending

    def _follows(self, task: int) -> bool:
        """Was it cancelled, or something that it needs?"""
        todo, seen = [task], {task}
        while todo:
            wish = self.wishes.get(todo.pop())
            if wish is None:
                continue
            if wish.is_cancelled:
                return True
            todo += [parent for parent in wish.parents if parent not in seen]
            seen.update(wish.parents)
        return False

    def _may_fail(self, task: int, error: str) -> bool:
        if "nodes when they died" in error:
            return True
        if "ObjectLost" in error:
            return self.may_be_lost(task)
        if "was killed before" in error:
            return any(self._is_unsafe(one) for one in (task, *self._ancestors(task)))
        return "which it needs" in error and self._follows(task)

    def may_be_lost(self, task: int) -> bool:
        """Whether a task needs an object that was put in and is gone, so that no run of it, also no later one, can
        succeed."""
        return task in self.wishes and any(
            self._is_out_of_reach(one) for one in self._ancestors(task) & self.puts.keys()
        )

    def _is_unsafe(self, task: int) -> bool:
        """Whether the client of a task was killed or replaced, and was the only one to know of the task, or to know
        that it may be lost."""
        wish = self.wishes[task]
        return wish.is_lost or wish.is_orphan

    def _is_out_of_reach(self, put: int) -> bool:
        """Whether the places of an object that was put in have died, or have never heard of it because its client was
        killed, or nodes could not reach each other."""
        kernel = self.kernel
        known = [place for place in self.puts[put] if (place, put) in self.taken and place in kernel.seats]
        return not known or "partitioned" in kernel.faults.injected

    def _ancestors(self, task: int) -> set[int]:
        found: set[int] = set()
        todo = [task]
        while todo:
            for parent in self.wishes[todo.pop()].parents:
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return found

    # -- how clients go ------------------------------------------------------------------------------------------------

    def on_killed(self) -> None:
        """Expect that no task which was acknowledged and is safe is lost with the client."""
        for task in self.usable():
            self.wishes[task].is_orphan |= task not in self.acknowledged
        self.expected = {task for task in self.usable() if task in self.acknowledged}

    def _is_held(self, task: int) -> bool:
        record = self.kernel.store.record(task)
        return record is not None and record.held

    def on_closed(self, kept: bool) -> None:
        if kept:
            self.is_kept = True
            self.expected = set(self.usable())
            for task in self.expected if not self._forgets else ():
                if not self._is_held(task):
                    self.fail(f"the client has detached, but its task {task} is not in the store")
        else:
            self.ended_sessions.add(self.session)
            for wish in self.wishes.values():
                wish.is_lost = wish.is_lost or wish.session == self.session

    # -- at the end ----------------------------------------------------------------------------------------------------

    def check_left(self) -> None:
        """Check, long after all sessions have ended, that nothing of them is in the store or on nodes."""
        kernel = self.kernel
        if kernel.store.sessions:
            self.fail(f"there is still a session: {kernel.store.sessions}")
        for task, record in tasks_in(kernel.store):
            if session_of(task) in self.seen_sessions:
                state = STATE_NAMES[record.state]
                self.fail(f"task {task} is left in the store, {state}, held {record.held}, freed {record.freed}")
        for key, _, _ in intents_in(kernel.store):
            self.fail(f"intent {key & 3} of task {key >> 2} is left in the store")
        for node, machine in kernel.seats.items():
            core = machine.core
            for producer, readers, _ in view.made(core):
                self.fail(f"node {node} keeps objects of {producer} for {readers}")
            if any(True for _ in view.tasks(core)):
                self.fail(f"node {node} still has tasks: {core!r}")
