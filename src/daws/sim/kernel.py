"""The simulated cluster: carries out the effects of nodes, and lets time pass.

Events are dealt with in the order of time, and of a sequence number that makes ties deterministic (`agenda`). A node's
scheduler is a queue of its own: what a step decides leaves the node when all that came before has been dealt with
(`busy_ns`). The same holds for each shard of the store. Nothing in here decides where or when a task runs.
"""

from array import array
from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from daws.core import view
from daws.core.effects import (
    ASK_AGAIN,
    CALL,
    COMMIT,
    DEADLINE,
    PATIENCE,
    POLL,
    RECALL,
    STALL,
    TICK,
    VALIDATE,
    CallStore,
    DropObject,
    EffectType,
    FetchObjects,
    Left,
    RecallRun,
    Restart,
    ResumeRun,
    Send,
    SetTimer,
    StartRun,
    StopRun,
)
from daws.core.events import (
    NEVER_NS,
    CallFine,
    EventType,
    Leave,
    ObjectsPut,
    RunEnded,
    RunSpawned,
    RunWaits,
    Started,
    StoreAnswered,
    TimerFired,
)
from daws.core.node import NodeConfig, NodeCore
from daws.core.session_events import SessionEvent, TasksCancelled
from daws.model.cluster import Members, NodeInfo
from daws.model.graph import Graph, Growth
from daws.model.task import (
    CLIENT,
    INLINE_BYTES,
    NODE_INDEX_MASK,
    NodeId,
    node_id,
)
from daws.sim.agenda import Agenda, window_shift
from daws.sim.graph_user import GraphUser
from daws.sim.holding import has_large_objects
from daws.sim.machine import BRING_OBJECTS, FATE, STORE, Machine
from daws.sim.profiles import Costs
from daws.sim.runs import SimulatedRuns
from daws.sim.transfers import Transfers
from daws.store.memory import MemoryStore
from daws.strategy.decisions import Strategy
from daws.wire.messages import Offer, Releases, Submission
from daws.wire.store import AnswerType, Committed, is_quiet

HEAVY = frozenset((Offer, Submission))
"""Messages that bring tasks: a node needs time for each of them."""
OF_GROWTH = frozenset((RunSpawned, RunWaits))
"""Events of runs that create tasks."""
UNUSUAL = HEAVY | BRING_OBJECTS | OF_GROWTH
"""Events that concern a node's machine as well, or runs that may have been given back."""
FIRED = tuple(map(TimerFired, (TICK, POLL, DEADLINE, COMMIT, RECALL, PATIENCE, STALL, CALL, VALIDATE, ASK_AGAIN)))
"""The events of timers, by timer: every node of a large cluster has one under way."""
PROGRESS_EVENTS = 1 << 16
END_OF_TIME_NS = 1 << 62


def shared_ints(values: npt.NDArray[np.int64]) -> list[int]:
    """Equal numbers as one object each: objects of one kind of task are often equally large."""
    known, which = np.unique(values, return_inverse=True)
    return list(map(known.tolist().__getitem__, which.tolist()))


class _Pause(Exception):
    """The time until which a simulation was to run has come."""


def _pause(kernel: "Kernel") -> None:
    raise _Pause


def is_end_of_time(event: Any) -> bool:
    """Whether an event from outside is the end of the simulation."""
    return event is _pause


class Kernel:
    """One simulated cluster with one session. Subclassed by nobody; faults and checkers are handed in."""

    def __init__(
        self,
        graph: Graph,
        infos: tuple[NodeInfo, ...],
        strategy: Strategy,
        store: MemoryStore,
        client: GraphUser,
        config: NodeConfig,
        costs: Costs,
        seed: int,
    ) -> None:
        self.graph = graph
        self.strategy = strategy
        self.store = store
        self.client: Any = client  # or a user who works with sessions (`daws.sim.user`)
        self.config = config
        self.costs = costs
        self.seed = seed
        self.now_ns = 0
        self.sequence = count()
        self.next_sequence = self.sequence.__next__
        self.seats: dict[NodeId, Machine] = {}  # the machines of nodes that live
        self.departed: list[NodeCore] = []  # those that have left in good order
        self.machines: list[Machine] = []  # by index of the node, whoever lives there
        for info in infos:
            machine = Machine(info)
            self.machines.append(machine)
            self.seats[info.id] = machine
        self.client_machine = Machine(NodeInfo(CLIENT, ()))
        self.shard_free_ns = [0] * store.shard_count
        self.lengths: list[int] = graph.length_ns.tolist()
        cores = sum(info.cores for info in infos)
        self.agenda = Agenda(window_shift(cores, float(graph.length_ns.mean()) if self.lengths else 0.0))
        self.sizes = shared_ints(graph.object_bytes)
        self.growth: dict[int, Growth] = {growth.kind: growth for growth in graph.growth}
        self.holds_spawned = any(growth.held for growth in graph.growth)
        self.one_row_call_ns = costs.store_call_ns + costs.store_row_ns
        self.one_cluster = len({info.cluster for info in infos}) == 1
        # what was seen
        self.starts = array("q")
        self.ends = array("q")
        self.notes_ends = has_large_objects(graph)
        self.ended = array("q"), array("q"), array("q")  # task, time and node of each run, if somebody is to know
        self.message_count = 0
        self.runs = SimulatedRuns(graph)
        self.transfers = Transfers()
        self.tracks_runs = bool(graph.growth) or strategy.balance.mode == "give" or strategy.replicate.copies_max > 0
        self.has_rivals = strategy.replicate.copies_max > 0  # who commits a task tells others to stop, and at once
        # what can be handed in
        self.length_on: Callable[[int, NodeInfo], int] | None = None  # how long a task runs on a node, if not by speed
        self.faults: Any = None
        self.servers: Any = None  # in the store's place, where there are faults and it may fail
        self.checker: Any = None
        self.journals: dict[NodeId, Any] | None = None
        self.digest: Any = None
        self.progress: Callable[[int], None] | None = None
        self.on_left: Callable[[Kernel, NodeId], None] | None = None

    # -- time passes ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Put the session into the store, then wake everybody up at time 0."""
        self.client.hand_in(self.store.members, self._serve_before_time)
        started = Started(self.store.members)
        for node, machine in self.seats.items():  # only now: to plan takes memory of its own for each node
            machine.core = NodeCore(machine.info, self.strategy, self.config, self.seed)
            self.push(0, node, started)
        first = self.graph.external_start
        put: dict[int, list[tuple[int, int]]] = {}
        for number, place in enumerate(self.client.places.tolist()):
            if place != CLIENT:
                put.setdefault(place, []).append((first + number, self.sizes[first + number]))
        for place, objects in put.items():
            self.push(0, place, ObjectsPut(tuple(objects)))
        self.push(0, CLIENT, started)

    def _serve_before_time(self, call: CallStore) -> list[AnswerType]:
        answers = self.store.apply(call.shard, call.rows, 0)
        if self.checker is not None:
            self.checker.on_store(CLIENT, call.rows, answers, 0)
        return answers

    def run(self, until_ns: int = END_OF_TIME_NS) -> None:
        """Run until the client has seen everything end, or until a given time, or until nothing is left to happen."""
        self.push(until_ns, FATE, _pause)
        try:
            while self.client.waiting_for:
                self._run_some()
                if self.progress is not None:
                    self.progress(self.client.graph.task_count - self.client.waiting_for)
        except _Pause:
            return

    def run_on(self, until_ns: int) -> None:
        """Past the end of the session: to see what nodes do when there is nothing left to do."""
        self.push(until_ns, FATE, _pause)
        try:
            while True:
                self._run_some()
        except _Pause:
            return

    def _run_some(self) -> None:
        """The loop in which a simulation spends its time: a node's event, its step, and what follows from it.

        Carrying out the usual effects is written out here rather than called, which saves about 7 % of the bytecodes of
        a run. Everything unusual (faults, other clusters, graphs that grow) has a function of its own.
        """
        agenda, seats, runs, transfers = self.agenda, self.seats, self.runs, self.transfers
        stopped = runs.stopped
        heap, windows, shift, horizon_ns = agenda.heap, agenda.windows, agenda.shift, agenda.horizon_ns
        starts, ends, lengths, sizes = self.starts, self.ends, self.lengths, self.sizes
        next_sequence = self.next_sequence
        costs, faults, checker = self.costs, self.faults, self.checker
        step_ns, dispatch_ns, message_ns = costs.step_ns, costs.dispatch_ns, costs.message_ns
        plain_runs = not (self.growth or self.tracks_runs or self.length_on is not None)
        plain_mail = self.one_cluster and faults is None
        message_latency_ns = message_ns + costs.latency_ns
        notes_ends = self.notes_ends
        ended_task, ended_at, ended_on = self.ended
        watched = self.journals is not None or self.digest is not None or checker is not None
        out: list[EffectType] = []
        for _ in range(PROGRESS_EVENTS):
            if not heap:
                agenda.refill()
                horizon_ns = agenda.horizon_ns
            now_ns, _, to, event = heappop(heap)
            machine = seats.get(to)
            if machine is None:
                self.now_ns = now_ns
                if self._happens_elsewhere(now_ns, to, event):
                    return  # whoever called decides whether to go on
                continue
            core = machine.core
            came = type(event)
            if came is RunEnded:
                if stopped and runs.was_stopped(to, event.run):
                    if (to, event.run) in runs.recalled:
                        continue  # it has never begun
                else:
                    ends.append(now_ns)
                    if notes_ends:
                        ended_task.append(event.task)
                        ended_at.append(now_ns)
                        ended_on.append(to)
                        kept = event.sizes
                        if kept and not event.error and (len(kept) > 1 or kept[0] > INLINE_BYTES):
                            runs.keep_outputs(machine, event)
                if not plain_runs:
                    runs.forget(to, event.run)
            elif came in UNUSUAL:
                if came in HEAVY:
                    machine.busy_ns = max(now_ns, machine.busy_ns) + costs.task_ns * len(event.tasks)
                elif came in OF_GROWTH:
                    if (to, event.run) in runs.recalled:
                        continue  # it has never begun
                else:
                    machine.change_objects(event)
            batch = machine.mail
            if batch is None:
                batch = [event]
            else:
                machine.mail = None
                batch.append(event)
            core.step(now_ns, batch, out)
            self.now_ns = now_ns
            if watched:
                self._watch(core, now_ns, batch, out)
            if not out:
                continue
            leaves_ns = machine.busy_ns
            leaves_ns = (now_ns if now_ns > leaves_ns else leaves_ns) + step_ns
            for effect in out:
                kind = type(effect)
                if kind is StartRun:
                    if not plain_runs:
                        runs.start(self, to, machine, leaves_ns, effect)  # type: ignore[arg-type]
                        continue
                    spec = effect.ready.spec  # type: ignore[union-attr]
                    task = spec.id
                    slot = effect.slot  # type: ignore[union-attr]
                    outputs = spec.outputs
                    length_ns = lengths[task]
                    if machine.speed != 1.0:
                        length_ns = int(length_ns / machine.speed)
                    begin_ns = leaves_ns + dispatch_ns
                    slots = machine.slot_free_ns or machine.open_slots()
                    if slots[slot] > begin_ns:
                        begin_ns = slots[slot]
                    slots[slot] = end_ns = begin_ns + length_ns
                    starts.append(begin_ns)
                    if checker is not None:
                        checker.on_start(to, effect, begin_ns)
                    if not outputs:
                        made: tuple[int, ...] = ()
                    elif len(outputs) == 1:
                        made = (sizes[outputs[0]],)
                    else:
                        made = tuple([sizes[one] for one in outputs])
                    ended = RunEnded(task, effect.run, length_ns, made)  # type: ignore[union-attr]
                    if end_ns < horizon_ns:
                        heappush(heap, (end_ns, next_sequence(), to, ended))
                    else:
                        windows[end_ns >> shift].append((end_ns, next_sequence(), to, ended))
                elif kind is CallStore:
                    leaves_ns += message_ns
                    if faults is None:
                        self._serve_at_once(to, machine, leaves_ns, effect)  # type: ignore[arg-type]
                    else:
                        faults.send(self, to, STORE, leaves_ns + costs.latency_ns, (to, effect))
                elif kind is DropObject:
                    if machine.objects:
                        machine.objects.discard(effect.object)  # type: ignore[union-attr]
                elif kind is Send:
                    message = effect.message  # type: ignore[union-attr]
                    if plain_mail and type(message) is not Offer:
                        self.message_count += 1
                        if type(message) is Releases:
                            self._leave_mail(effect.to, message)  # type: ignore[union-attr]
                        else:
                            at_ns = leaves_ns + message_latency_ns
                            entry = (at_ns, next_sequence(), effect.to, message)  # type: ignore[union-attr]
                            if at_ns < horizon_ns:
                                heappush(heap, entry)
                            else:
                                windows[at_ns >> shift].append(entry)
                        leaves_ns += message_ns
                    else:
                        leaves_ns = self._send(machine, to, leaves_ns, effect)  # type: ignore[arg-type]
                elif kind is FetchObjects:
                    transfers.fetch(self, machine, to, leaves_ns, effect)  # type: ignore[arg-type]
                elif kind is SetTimer:
                    self.push(effect.at_ns, to, FIRED[effect.timer])  # type: ignore[union-attr]
                else:
                    self._perform_rare(core, machine, leaves_ns, effect)
            machine.busy_ns = leaves_ns
            out.clear()

    def _happens_elsewhere(self, now_ns: int, to: int, event: Any) -> bool:
        """Something that concerns no living node. True when the client has seen everything end."""
        if to == STORE:
            self._serve(now_ns, event[0], event[1])
        elif to == CLIENT:
            out: list[EffectType] = []
            self.client.step(now_ns, (event,), out)
            self._perform_client(now_ns, out)
            return not self.client.waiting_for
        elif to == FATE:
            event(self)
        return False

    @property
    def event_count(self) -> int:
        """How many events were dealt with so far."""
        return int(repr(self.sequence)[len("count(") : -1]) - len(self.agenda)  # its only way to be read

    def push(self, at_ns: int, to: int, event: Any) -> None:
        self.agenda.push((at_ns, self.next_sequence(), to, event))

    def _watch(self, core: NodeCore, now_ns: int, batch: list[EventType], out: list[EffectType]) -> None:
        if self.journals is not None:
            self.journals[core.node].note(now_ns, batch, out)
        if self.digest is not None:
            self.digest.update(msgspec.msgpack.encode((core.node, now_ns, out)))
        if self.checker is not None:
            self.checker.on_step(core, now_ns, batch, out)

    # -- carrying out effects ------------------------------------------------------------------------------------------

    def _perform_rare(self, core: NodeCore, machine: Machine, leaves_ns: int, effect: EffectType) -> None:
        node = core.node
        if isinstance(effect, StopRun):
            self.runs.stop(self, node, machine, effect.run)
        elif isinstance(effect, ResumeRun):
            self.runs.resume(self, node, machine, leaves_ns, effect)
        elif isinstance(effect, RecallRun):
            self.runs.recall(self, node, machine, leaves_ns, effect)
        elif isinstance(effect, Restart):
            self.kill(node)
            self.push(
                leaves_ns + self.config.lease_ns // 10, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK)
            )
        elif isinstance(effect, Left):
            self.kill(node)
            self.departed.append(core)
            if self.on_left is not None:
                self.on_left(self, node)
            if self.faults is not None:
                self.faults.left(self, node)

    def _send(self, machine: Machine, node: NodeId, leaves_ns: int, effect: Send) -> int:
        costs = self.costs
        self.message_count += 1
        leaves_ns += costs.message_ns
        at_ns = leaves_ns + (costs.latency_ns if self.one_cluster else self.latency_ns(machine, effect.to))
        message = effect.message
        if type(message) is Offer:
            tasks = len(message.tasks)
            leaves_ns += costs.task_ns * tasks
            at_ns += costs.task_ns * tasks + int(tasks * costs.task_bytes * 1_000_000_000 / costs.net_bytes_per_s)
        if self.faults is not None:
            self.faults.send(self, node, effect.to, at_ns, message)
        else:
            self.push(at_ns, effect.to, message)
        return leaves_ns

    def _leave_mail(self, to: NodeId, message: EventType) -> None:
        """Leave a message from which nothing follows in the machine of its receiver. Used only without faults.

        It needs no event of its own: the node reads it when it wakes up for something else.
        """
        machine = self.seats.get(to)
        if machine is not None:
            mail = machine.mail
            if mail is None:
                machine.mail = [message]
            else:
                mail.append(message)

    def latency_ns(self, machine: Machine, to: NodeId) -> int:
        if to < 0 or self.machines[to & NODE_INDEX_MASK].info.cluster == machine.info.cluster:
            return self.costs.latency_ns
        return self.costs.cluster_latency_ns

    def _perform_client(self, now_ns: int, out: list[EffectType]) -> None:
        machine = self.client_machine
        leaves_ns = max(now_ns, machine.busy_ns)
        for effect in out:
            if isinstance(effect, SetTimer):
                self.push(effect.at_ns, CLIENT, TimerFired(effect.timer))
            elif isinstance(effect, CallStore):
                if self.faults is not None:
                    self.faults.send(self, CLIENT, STORE, leaves_ns + self.costs.latency_ns, (CLIENT, effect))
                else:
                    self.push(leaves_ns + self.costs.latency_ns, STORE, (CLIENT, effect))
            elif isinstance(effect, Send):
                self.message_count += 1
                at_ns = leaves_ns + self.costs.latency_ns
                if isinstance(effect.message, Submission):
                    leaves_ns += int(
                        len(effect.message.tasks) * self.costs.task_bytes * 1_000_000_000 / self.costs.net_bytes_per_s
                    )
                    at_ns = leaves_ns + self.costs.latency_ns
                if self.faults is not None:
                    self.faults.send(self, CLIENT, effect.to, at_ns, effect.message)
                else:
                    self.push(at_ns, effect.to, effect.message)
        machine.busy_ns = leaves_ns

    def _serve(self, now_ns: int, caller: NodeId, call: CallStore) -> None:
        """A call has arrived at its shard, which deals with one call after the other."""
        if self.servers is not None:
            self.servers.serve(self, caller, call)
            return
        costs = self.costs
        rows = call.rows
        answers = self.store.apply(call.shard, rows, now_ns)
        if self.checker is not None:
            self.checker.on_store(caller, rows, answers, now_ns)
        if self.faults is not None:
            self.faults.served(self, caller)
        free_ns = self.shard_free_ns[call.shard]
        free_ns = (now_ns if now_ns > free_ns else free_ns) + costs.store_call_ns + costs.store_row_ns * len(rows)
        self.shard_free_ns[call.shard] = free_ns
        event = StoreAnswered(call.token, answers)
        if self.faults is not None:
            self.faults.send(self, STORE, caller, free_ns + costs.latency_ns, event)
        else:
            self.push(free_ns + costs.latency_ns, caller, event)

    def _serve_at_once(self, node: NodeId, machine: Machine, leaves_ns: int, call: CallStore) -> None:
        """Apply a call to the store when it is sent, without an event of its own. Used only without faults.

        Calls take effect in the order in which nodes decided on them. The answer comes after the way there, the queue
        at the shard, and the way back. Calls of different nodes that are under way at the same time may take effect in
        another order than they arrive; none of their callers can tell.

        An answer from which nothing follows waits until its node wakes up for something else.
        """
        rows, shard, latency_ns = call.rows, call.shard, self.costs.latency_ns
        lazy = call.lazy and not self.has_rivals
        arrives_ns = leaves_ns + latency_ns
        free_ns = self.shard_free_ns[shard]
        if arrives_ns > free_ns:
            free_ns = arrives_ns
        if len(rows) == 1:
            free_ns += self.one_row_call_ns
            answer = self.store.apply_one(shard, rows[0], arrives_ns)
            if self.checker is not None:
                self.checker.on_row(rows[0], answer)
            event: EventType
            if type(answer) is Committed:  # as `is_quiet` would say
                quiet = not (answer.ready or answer.key >= 0 or answer.rivals or answer.stop or call.hopes) or lazy
                event = StoreAnswered(call.token, [answer])
            else:
                quiet = lazy or (not call.hopes and is_quiet(rows[0], answer))
                event = CallFine(call.token) if answer is None else StoreAnswered(call.token, [answer])
        else:
            free_ns += self.costs.store_call_ns + self.costs.store_row_ns * len(rows)
            answers = self.store.apply(shard, rows, arrives_ns)
            if self.checker is not None:
                self.checker.on_store(node, rows, answers, arrives_ns)
            quiet = lazy or (not call.hopes and all(map(is_quiet, rows, answers)))
            fine = answers.count(None) == len(answers)
            event = CallFine(call.token) if fine else StoreAnswered(call.token, answers)
        self.shard_free_ns[shard] = free_ns
        if not quiet:
            at_ns = free_ns + latency_ns
            if at_ns < self.agenda.horizon_ns:
                heappush(self.agenda.heap, (at_ns, self.next_sequence(), node, event))
            else:
                self.push(at_ns, node, event)
        elif machine.mail is None:
            machine.mail = [event]
        else:
            machine.mail.append(event)

    # -- what happens from outside -------------------------------------------------------------------------------------

    def is_cut(self, node: NodeId, other: NodeId) -> bool:
        """Whether a partition stands between two nodes just now."""
        return self.faults is not None and bool(self.faults.is_cut(node, other))

    def kill(self, node: NodeId) -> bool:
        """A node is gone at once, with its runs and its objects."""
        machine = self.seats.pop(node, None)
        if machine is None:
            return False
        for run in view.runs(machine.core).values():
            if not run.suspended:
                self.ends.append(self.now_ns)
        self.runs.forget_node(node)
        if self.checker is not None:
            self.checker.on_death(node)
        return True

    def revive(self, index: int) -> NodeId:
        """The node starts again: a new incarnation that knows nothing and joins through the store."""
        machine = self.machines[index]
        info = msgspec.structs.replace(machine.info, id=node_id(index, (machine.info.id >> 32) + 1))
        fresh = Machine(info)
        fresh.speed = machine.speed
        self.machines[index] = fresh
        return self.arrive(index)

    def expect(self, info: NodeInfo) -> None:
        """A node that will come later; its number is the next one."""
        self.machines.append(Machine(info))

    def arrive(self, index: int) -> NodeId:
        """A node that was expected is there: it knows nothing and joins through the store."""
        machine = self.machines[index]
        info = machine.info
        machine.core = NodeCore(info, self.strategy, self.config, self.seed)
        self.seats[info.id] = machine
        if self.journals is not None:
            self.journals[info.id] = type(next(iter(self.journals.values())))(
                info, self.strategy, self.config, self.seed
            )
        members = self.store.members
        # A node must not trust a version that a store may lose when it begins anew, and give to other members.
        self.push(self.now_ns, info.id, Started(Members(0, members.infos)))
        return info.id

    def leave(self, index: int, deadline_ns: int = NEVER_NS) -> bool:
        """Tell the node to leave in good order, if it lives."""
        node = self.machines[index].info.id
        if node not in self.seats:
            return False
        self.push(self.now_ns, node, Leave(deadline_ns))
        return True

    def cancel(self, tasks: tuple[int, ...]) -> None:
        """The client changes its mind about some tasks and all that follows from them."""
        self.tell_client(TasksCancelled(tasks))

    def tell_client(self, event: SessionEvent) -> None:
        out: list[Any] = []
        self.client.step(self.now_ns, (event,), out)
        self._perform_client(self.now_ns, out)

    def start_digest(self) -> None:
        """Hash all effects of all nodes: two runs that agree on this did the same things at the same times."""
        self.digest = blake2b(digest_size=16)
