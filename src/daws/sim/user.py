"""A user who works with a cluster as live clients do: by sessions, task by task.

Stands in the place of the kernel's client. The user submits tasks over time with parents among earlier ones, cancels
some, and lets go of some. Clients are killed, or detach, and other clients go on under the same name. Everything
follows from one number. Sweepers look after sessions whose clients are gone.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from daws.core import view
from daws.core.effects import CallStore, Send
from daws.core.events import CallsSafe, Started, StoreAnswered
from daws.core.node import NodeConfig
from daws.core.session import SessionCore
from daws.core.session_events import (
    CloseAsked,
    EndsHeard,
    MembersHeard,
    MembersSeen,
    Reconnected,
    SessionClosed,
    SessionOpened,
    SessionRefused,
    StillUnwritten,
    TasksCancelled,
    TasksEnded,
    TasksLetGo,
    TasksSubmitted,
)
from daws.model.cluster import Members
from daws.model.graph import Graph, Growth
from daws.model.states import DONE, FINAL
from daws.model.task import CLIENT, FROM_OUTSIDE, INLINE_BYTES, Input, TaskSpec
from daws.sim.checkers.sessions import SessionTruth
from daws.sim.machine import FATE, STORE
from daws.sim.servers import TOKENS_BITS
from daws.store.memory.snapshot import commit_count
from daws.strategy.rng import SplitMix64
from daws.wire.ends import Outcome
from daws.wire.messages import NewTasks, SubmissionTaken
from daws.wire.store import TO_END, TO_SWEEP, ListSessions, SessionList, Submit, TrimLog

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

MS = 1_000_000
KIND = 5
"""The kind of the tasks that users submit."""
RETRY_NS = 300 * MS
SWEEP_NS = 400 * MS
PUSH_NS = 30 * MS
NAME = "mine"
TRIMS = 20
"""The number of times (or twice it, or none) that commits are dropped, most of them before the client reads them."""

# How a user leaves a session.
CLOSE = 0
DETACH = 1
KILLED = 2
HOWS = ("closed", "detached", "killed")


class Visit(Struct, frozen=True, array_like=True):
    """One client: how long after the one before it comes, how long it works, and how it goes."""

    after_ns: int
    works_ns: int
    leaves: int


class UserPlan(Struct, frozen=True):
    """The actions of a user. The last visit stays until all of its tasks have ended, unless it is killed."""

    seed: int
    visits: tuple[Visit, ...]
    tasks: int  # submitted in each visit
    kept: bool = False
    cancels: int = 0  # in each visit
    let_go: bool = False  # of most tasks that have ended
    cuts: int = 0  # so often the client cannot reach the store, or nodes
    fan: int = 3  # parents of a task, at most
    hops: int = 4  # every so many tasks the numbers go on in another shard
    sweeper_deaths: int = 0
    rivals: int = 0  # so often another client wants the session while it is used
    last_words: bool = False  # what a killed client has sent last comes very late
    hands_over: bool = False  # who closes a session leaves the rest to a sweeper
    functions: int = 0  # put in with each round of tasks, at most
    puts: int = 0  # objects that are put on nodes with each round of tasks, at most
    hints: bool = False  # ends and members are pushed: some are lost, some come twice, some are old


def empty_graph() -> Graph:
    """No task is known before; the growth is there because the tasks of users have large numbers, as spawned ones."""
    none = np.zeros(0, np.int64)
    return Graph(
        kinds=("never", "never created"),
        kind=none,
        length_ns=none,
        input_start=np.zeros(1, np.int64),
        inputs=none,
        output_start=np.zeros(1, np.int64),
        object_bytes=none,
        growth=(Growth(0, 1, 1, 1),),
    )


class ObjectSizes:
    """Sizes of objects by their number, as the kernel looks them up: one in three is large."""

    def __getitem__(self, object_: int) -> int:
        return 50_000 if object_ % 3 == 0 else 100


class FirstObjects:
    """The first object of each task, as the kernel looks it up: it has the number of its task."""

    def __getitem__(self, task: int) -> int:
        return task


class Client:
    """One client of the user, or a sweeper."""

    def __init__(self, number: int, core: SessionCore) -> None:
        self.number = number
        self.core = core
        self.is_alive = True


class SessionUser:
    """The user, with all clients so far."""

    def __init__(self, kernel: "Kernel", plan: UserPlan, config: NodeConfig) -> None:
        self.kernel = kernel
        self.plan = plan
        self.config = config
        self.graph = kernel.graph
        self.truth = SessionTruth(kernel, plan.kept)
        self.places = np.zeros(0, np.int64)
        self.ended: dict[int, tuple[int, str]] = {}
        self.cancels: dict[int, Any] = {}
        self.spawned: set[int] = set()
        self.waiting_for = 1
        self._rng = SplitMix64(plan.seed * 0xD6E8FEB86659FD93 + 99)
        self._clients: list[Client] = []
        self._visit = 0
        self._visitor: Client | None = None
        self._is_leaving = False
        self._next_task = 0
        self._submitted = 0
        self._sweeper_deaths = plan.sweeper_deaths
        self._rivals: set[int] = set()
        self._more = SplitMix64(plan.seed * 0xA24BAED4963EE407 + 11)  # for what not all users do
        self._pushed: set[tuple[int, int]] = set()  # clients, and tasks whose end was pushed to them, or lost

    # -- as the kernel sees it -----------------------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """The last call of each client."""
        return [client.core.calls.token for client in self._clients]

    def hand_in(self, members: Members, serve: Any) -> None:
        """Nothing is in the store before the first client comes."""

    def step(self, now_ns: int, events: Sequence[Any], out: list[Any]) -> None:
        for event in events:
            if isinstance(event, Started):
                self._begin(now_ns)
                continue
            for client in [one for one in self._clients if one.is_alive]:
                mine = _share(client, event)
                if mine is not None:
                    self._feed(client, mine, out)

    def _feed(self, client: Client, event: Any, out: list[Any]) -> None:
        effects: list[Any] = []
        if isinstance(event, StoreAnswered):
            self.truth.on_answered(client.number, event)
        elif isinstance(event, CallsSafe):
            self.truth.on_safe(event.tokens)
        elif isinstance(event, SubmissionTaken):
            self.truth.on_taken(event)
        client.core.step(self.kernel.now_ns, (event,), effects)
        for effect in effects:
            if isinstance(effect, SessionOpened):
                self._on_opened(client, effect)
            elif isinstance(effect, TasksEnded):
                self.truth.on_ended(client.number, effect.ends)
                self._on_ended(client, effect)
            elif isinstance(effect, SessionRefused):
                self._on_refused(client, effect)
            elif isinstance(effect, SessionClosed):
                self._on_closed(client, effect)
            elif isinstance(effect, MembersSeen | StillUnwritten):
                continue  # users do not look at these
            else:
                if isinstance(effect, CallStore):
                    self.truth.on_call(effect)
                elif isinstance(effect, Send) and isinstance(effect.message, NewTasks):
                    self.truth.on_announced(effect.message)
                out.append(effect)

    def _tell(self, client: Client, event: Any) -> None:
        """Give a client an event that comes from the user itself."""
        if client.is_alive:
            out: list[Any] = []
            self._feed(client, event, out)
            self.kernel._perform_client(self.kernel.now_ns, out)

    def _at(self, delay_ns: int, then: Any) -> None:
        self.kernel.push(self.kernel.now_ns + delay_ns, FATE, lambda kernel: then())

    def describe(self) -> str:
        """The state of all clients and sessions, for the report of a simulation that does not end."""
        cores = [client.core for client in self._clients if client.is_alive]
        phases = ", ".join(f"phase {core.phase} with {len(core.ends.pending)} tasks" for core in cores)
        return f"visit {self._visit}; clients: {phases or 'none'}; sessions: {[*self.kernel.store.sessions.values()]}"

    # -- visits --------------------------------------------------------------------------------------------------------

    def _begin(self, now_ns: int) -> None:
        self._at(self.plan.visits[0].after_ns, self._come)
        self._at(SWEEP_NS, self._sweep)
        for _ in range(self.plan.cuts):
            self._at(self._rng.below(3_000 * MS), self._cut)
        chance = SplitMix64(self.plan.seed * 0x9E3779B97F4A7C15 + 5)
        for _ in range(TRIMS * chance.below(3)):
            self._at(chance.below(3_000 * MS), partial(self._trim, chance.below(3)))
        for _ in range(self.plan.rivals):
            self._at(self._rng.below(3_000 * MS), self._rival)

    def _client(self, **more: Any) -> Client:
        number = len(self._clients) + 1
        nonce = (self._rng.next_u64() | 1).to_bytes(8, "big")
        core = SessionCore(nonce, self.config, first_token=number << TOKENS_BITS, **more)
        client = Client(number, core)
        self._clients.append(client)
        self._tell(client, Started(self.kernel.store.members_now()))
        return client

    def _come(self) -> None:
        self._is_leaving = False
        self._submitted = 0
        self._visitor = None
        self._visitor = self._client(name=NAME, kept=self.plan.kept)

    def _on_opened(self, client: Client, effect: SessionOpened) -> None:
        if client.number in self._rivals:
            if self._visitor is not None and self._visitor.is_alive and not self._is_leaving:
                self.truth.check_rival(effect.session, self._visitor.number)
            self._gone(client)  # it has seen enough, and leaves the session to a sweeper, or to whoever is next
            return
        self.truth.on_opened(client.number, effect, self._visit)
        if self.plan.hints:
            self._at(PUSH_NS, lambda: self._push(client))
        self._next_task = effect.next_task
        visit = self.plan.visits[self._visit]
        rounds = 1 + self._rng.below(8)
        for number in range(rounds):
            self._at(visit.works_ns * number // rounds, lambda: self._work(client, self.plan.tasks // rounds + 1))
        for _ in range(self.plan.cancels):
            self._at(self._rng.below(visit.works_ns + 1), lambda: self._cancel_one(client))
        if not self._is_last or visit.leaves == KILLED:
            self._at(visit.works_ns + self._rng.below(60 * MS), lambda: self._leave(client, visit.leaves))
        else:
            self._at(visit.works_ns + 50 * MS, lambda: self._leave_if_done(client))

    @property
    def _is_last(self) -> bool:
        return self._visit == len(self.plan.visits) - 1

    def _leave_if_done(self, client: Client) -> None:
        if not client.is_alive:
            return
        if self.truth.unended(client.number):
            self._at(50 * MS, lambda: self._leave_if_done(client))
        else:
            self._leave(client, CLOSE)

    def _leave(self, client: Client, how: int) -> None:
        if not client.is_alive or self._is_leaving:
            return
        self._is_leaving = True
        self.kernel.faults.note(f"client {HOWS[how]}")
        if how == KILLED:
            if self.plan.last_words:
                self._say_last_words(client)
            self._gone(client)
            self.truth.on_killed()
            self._go_on()
        else:
            self.truth.is_closing = how == CLOSE
            self._tell(client, CloseAsked(how == DETACH, how == CLOSE and self.plan.hands_over))

    def _say_last_words(self, client: Client) -> None:
        """Submit tasks just before the client is killed. The store receives them when other clients have taken over or
        have ended the session."""
        effects: list[Any] = []
        client.core.step(self.kernel.now_ns, (TasksSubmitted(self._new_rows(client, 2)),), effects)
        for call in effects:
            if isinstance(call, CallStore):
                at_ns = self.kernel.now_ns + (900 + self._rng.below(4_000)) * MS
                self.kernel.push(at_ns, STORE, (CLIENT, call))

    def _rival(self) -> None:
        """Let another client ask for the session. It may have the session only if the present client is gone for a
        lease."""
        visitor = self._visitor
        if visitor is None or not visitor.is_alive or not self.truth.session or self.waiting_for == 0:
            return
        self.kernel.faults.note("rival")
        self._rivals.add(self._client(name=NAME).number)

    def _gone(self, client: Client) -> None:
        client.is_alive = False

    def _go_on(self) -> None:
        """After a visit: let the next one come, or leave the rest to the sweepers."""
        if self._is_last:
            self._at(50 * MS, self._wait_for_sweepers)
            return
        self._visit += 1
        self._at(self.plan.visits[self._visit].after_ns, self._come)

    def _wait_for_sweepers(self) -> None:
        """Wait until no session is left. A kept session stays until a client ends it by name."""
        sessions = self.kernel.store.sessions.values()
        if sessions or any(client.is_alive for client in self._clients):
            self._at(300 * MS, self._wait_for_sweepers)
            is_left = any(not entry.nonce and not entry.ending for entry in sessions)
            if is_left and not any(client.is_alive for client in self._clients):
                self.kernel.faults.note("session ended by name")
                self._client(name=NAME, why=TO_END)
        else:
            self.waiting_for = 0

    def _on_refused(self, client: Client, effect: SessionRefused) -> None:
        self._gone(client)
        if client.number in self._rivals:
            return
        if client is self._visitor or self._visitor is None:
            self.truth.on_killed()  # what it had is left to whoever is next
            self.kernel.faults.note("client refused")
            self._at(RETRY_NS, self._come)  # the session is in use, or about to end

    def _on_closed(self, client: Client, effect: SessionClosed) -> None:
        self._gone(client)
        if client is self._visitor:
            self.truth.on_closed(effect.kept)
            self._go_on()

    # -- work ----------------------------------------------------------------------------------------------------------

    def _work(self, client: Client, count: int) -> None:
        if not client.is_alive or self._is_leaving:
            return
        rows = (*self._rows_from_outside(client), *self._new_rows(client, count))
        if rows:
            self._tell(client, TasksSubmitted(rows))

    def _rows_from_outside(self, client: Client) -> list[Submit]:
        """Functions, which lie in the store, and objects, which lie on nodes before the store hears of them."""
        plan, more, rows = self.plan, self._more, list[Submit]()
        nodes = sorted(self.kernel.seats)
        for number in range(more.below(plan.functions + plan.puts + 1) if nodes else 0):
            self._next_task += 64 if more.below(plan.hops) == 0 else 1
            task = self._next_task
            spec = TaskSpec(task, FROM_OUTSIDE, outputs=(task,))
            home = nodes[more.below(len(nodes))]
            if more.below(plan.functions + plan.puts) < plan.functions:
                rows.append(Submit(spec, (), -1, (Input(task, 8, task, (), b"function"),)))
                self.truth.functions.add(task)
                continue
            size = self.kernel.sizes[task]
            places = tuple(dict.fromkeys((home, nodes[number % len(nodes)]))) if size > INLINE_BYTES else (home,)
            for place in places if size > INLINE_BYTES else ():
                self.kernel.seats[place].keep((task,))
            made = b"" if size > INLINE_BYTES else bytes(size)
            rows.append(Submit(spec, (), home, (Input(task, size, task, places, made),)))
            self.truth.on_put(client.number, task, places)
        return rows

    def _new_rows(self, client: Client, count: int) -> tuple[Submit, ...]:
        rng, truth = self._rng, self.truth
        rows: list[Submit] = []
        for _ in range(min(count, self.plan.tasks - self._submitted)):
            self._submitted += 1
            self._next_task += 64 * (1 + rng.below(3)) if rng.below(self.plan.hops) == 0 else 1
            task = self._next_task
            usable = truth.usable()
            parents = tuple(
                dict.fromkeys([usable[rng.below(len(usable))] for _ in range(rng.below(self.plan.fan + 1)) if usable])
            )
            spec = TaskSpec(task, KIND, (1 + rng.below(60)) * MS, inputs=parents, outputs=(task,))
            rows.append(Submit(spec, parents, -1))
            truth.on_submitted(client.number, task, parents)
        return tuple(rows)

    def _cancel_one(self, client: Client) -> None:
        tasks = self.truth.unended(client.number)
        if client.is_alive and tasks and not self._is_leaving:
            task = tasks[self._rng.below(len(tasks))]
            self.truth.on_cancelled(task)
            self.kernel.faults.note("cancelled")
            self._tell(client, TasksCancelled((task,)))

    def _on_ended(self, client: Client, effect: TasksEnded) -> None:
        for end in effect.ends:
            if not self._is_leaving and self.plan.let_go and self._rng.below(4):
                task = end.task
                self._at(self._rng.below(200 * MS), lambda task=task: self._let_go(client, task))

    def _let_go(self, client: Client, task: int) -> None:
        if client.is_alive and not self._is_leaving and task in self.truth.usable():
            self.truth.on_let_go(task)
            self._tell(client, TasksLetGo((task,)))

    def _push(self, client: Client) -> None:
        """Tell a client how tasks have ended, and who the members are, as servers and nodes do before it asks."""
        if not client.is_alive or self._is_leaving:
            return
        self._at(PUSH_NS, lambda: self._push(client))
        ends: list[Outcome] = []
        for task in self.truth.unended(client.number):
            record = self.kernel.store.record(task)
            if (client.number, task) in self._pushed or not self.truth.is_durable(task):
                continue
            if record is not None and record.state in FINAL:
                self._pushed.add((client.number, task))
                error = record.rare.error if record.rare is not None else ""
                state = 0 if record.state == DONE else record.state
                ends += [Outcome(task, record.outputs if not state else (), state, error)] * self._more.below(3)
        if ends:
            self._tell(client, EndsHeard(ends))
        if self._more.below(4) == 0:
            members = self.kernel.store.members_now()
            self._at(self._more.below(300 * MS), lambda: self._tell(client, MembersHeard(members)))

    def remove_files(self) -> None:
        """Remove the files of objects whose client was killed before their nodes had heard of them: the folder of a
        node is emptied when it ends."""
        for machine in self.kernel.seats.values():
            if machine.objects:
                machine.objects.difference_update(self.truth.puts.keys() - set(view.objects(machine.core)))

    def _trim(self, left: int) -> None:
        """Drop all commits but a few from each log, as a cluster that runs for long does with old ones."""
        store = self.kernel.store
        self.kernel.faults.note("logs trimmed")
        for shard in range(store.shard_count):
            store.apply(shard, [TrimLog(commit_count(store, shard) - left)], self.kernel.now_ns)

    # -- trouble -------------------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        faults = self.kernel.faults
        kinds = self._rng.below(3)
        faults.client_cut_from_store = kinds != 1
        faults.client_cut_from_nodes = kinds != 0
        faults.note("client cut off")
        self._at(min(self._rng.below(2_000 * MS), max(0, faults.plan.horizon_ns - self.kernel.now_ns)), self._mend)

    def _mend(self) -> None:
        faults = self.kernel.faults
        faults.client_cut_from_store = faults.client_cut_from_nodes = False
        if self._visitor is not None:
            self._tell(self._visitor, Reconnected())

    def _sweep(self) -> None:
        """Look for sessions whose client is gone. A late message may make one when the user has left."""
        self._at(SWEEP_NS, self._sweep)
        (answer,) = self.kernel.store.apply(0, [ListSessions()], self.kernel.now_ns)
        assert isinstance(answer, SessionList)
        for entry in answer.sessions:
            if entry.number not in answer.attached and (entry.nonce or entry.ending):
                sweeper = self._client(session=entry.number, why=TO_SWEEP)
                self.kernel.faults.note("swept")
                if self._sweeper_deaths:
                    self._sweeper_deaths -= 1
                    self._at(self._rng.below(300 * MS), lambda sweeper=sweeper: self._gone(sweeper))


def _share(client: Client, event: Any) -> Any:
    """The part of an event at the address of all clients that is for this client, or None."""
    first = client.number << TOKENS_BITS
    last = first + (1 << TOKENS_BITS)
    if isinstance(event, StoreAnswered):
        return event if first <= event.token < last else None
    if isinstance(event, CallsSafe):
        tokens = tuple([token for token in event.tokens if first <= token < last])
        return CallsSafe(event.shard, tokens) if tokens else None
    return event


def install_user(kernel: "Kernel", plan: UserPlan) -> SessionUser:
    """Let a user and its clients take the place of the client of a graph."""
    kernel.tracks_runs = True  # tasks run for as long as they are said to
    kernel.sizes = ObjectSizes()  # type: ignore[assignment]
    kernel.runs.output_start = FirstObjects()  # type: ignore[assignment]
    kernel.notes_ends = True
    user = SessionUser(kernel, plan, kernel.config)
    kernel.client = user
    return user
