"""The driver of one node: gives it what happened, and does what it wants.

Everything that happens between two turns of the loop is given to the node as one batch of events; what it wants done is
carried out at once, and what the store answers at once goes back to it in the same turn. Whether the store, the other
nodes and the client are in this process or behind sockets is known to the ports alone. Nothing here decides anything.
"""

import signal
import time
from asyncio import AbstractEventLoop
from typing import Any

import msgspec

from daws.core.effects import (
    CallStore,
    DropObject,
    EffectType,
    FetchObjects,
    RecallRun,
    Restart,
    Send,
    SetTimer,
    StartRun,
    StopRun,
)
from daws.core.events import EventType, RunEnded, RunRecalled, Started, TimerFired
from daws.core.journal import Journal
from daws.core.node import NodeConfig, NodeCore
from daws.data.files import ObjectFiles
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.errors import DawsError, InternalError, TaskKilledError
from daws.model.task import INLINE_BYTES, Input, NodeId, TaskSpec
from daws.runs.notes import RunNotes
from daws.runtime.ports import Listener, PeersPort, StorePort
from daws.strategy.decisions import Strategy
from daws.wire.worker import (
    MEMORY,
    STOPPED,
    TIMEOUT,
    Died,
    Ended,
    Execute,
    ObjectFile,
    Printed,
    Raised,
    Recalled,
    ReportType,
    RunOptions,
    Written,
)
from daws.workers.failures import failure_of
from daws.workers.port import POOLS

OUTPUT_SHOWN = 2000
LEASE_NS = 1 << 60
TICK_NS = 2_000_000_000
CONFIG = NodeConfig(lease_ns=LEASE_NS, tick_ns_max=TICK_NS, commit_delay_ns=0, freed_batch=256)
"""On one machine nobody watches leases: when a process is gone, its parent knows."""


class Crew(msgspec.Struct, frozen=True, array_like=True):
    """The workers of one node: how many, of which kind (that `daws.workers.port` knows), and pickled functions that
    each of them calls first and last. With `tells_runs` the listener hears of all that they ran."""

    count: int
    kind: str = "processes"
    setup: bytes = b""
    teardown: bytes = b""
    tells_runs: bool = False


def info_of(node: NodeId, crew: Crew) -> NodeInfo:
    return NodeInfo(node, (ExecutorClass(crew.count),))


class Engine:
    """All methods belong to the thread of the loop."""

    def __init__(
        self,
        node: NodeId,
        crew: Crew,
        strategy: Strategy,
        files: ObjectFiles,
        store: StorePort,
        peers: PeersPort,
        listener: Listener,
        journal: Journal | None = None,
    ) -> None:
        self.crew = crew
        self.files = files
        self.folder = files.segments.home
        self.store = store
        self.peers = peers
        self.listener = listener
        self.notes = RunNotes(node) if crew.tells_runs else None
        self.functions: dict[int, bytes] = {}  # by kind of task
        self.taught: set[int] = set()  # those that the workers can be given
        self.held_back: dict[int, list[StartRun]] = {}  # runs that wait for their function
        self.core = NodeCore(info_of(node, crew), strategy, CONFIG, seed=0)
        self.journal = journal
        self.runs: dict[int, tuple[int, TaskSpec]] = {}  # by number of the run: its executor, and the task
        self._broken: BaseException | None = None
        self._is_open = False
        self._is_closing = False

    # -- its life ------------------------------------------------------------------------------------------------------

    async def open(self, loop: AbstractEventLoop) -> None:
        """Returns when the workers can take tasks."""
        self.loop = loop
        crew = self.crew
        self.pool = POOLS[crew.kind](
            crew.count,
            self.folder,
            loop,
            self._on_reports,
            failed=self._break,
            inline_max_bytes=INLINE_BYTES,
            memory=self.folder if self.files.segments.has_memory else "",
            scratch=str(self.files.segments.scratch),
            setup=crew.setup,
            teardown=crew.teardown,
        )
        self._is_open = True
        await self.pool.start()

    def begin(self, members: Members) -> None:
        """From now on the node is one of these."""
        self._step([Started(members)])

    async def close(self) -> None:
        """End all workers. What has not ended never will."""
        self._is_closing = True
        if self._is_open:
            await self.pool.close()

    def on_exception(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something was raised in a callback of the loop."""
        self._break(context.get("exception") or InternalError(str(context)))

    def _break(self, error: BaseException) -> None:
        """A bug, or workers that cannot be started: whoever waits must hear of it."""
        if self._broken is not None:
            return
        if not isinstance(error, DawsError):
            broken = InternalError(f"the node has stopped: {type(error).__name__}: {error}")
            broken.__cause__ = error
            error = broken
        self._broken = error
        self.listener.on_broken(error)

    # -- what happens, and what is to be done --------------------------------------------------------------------------

    def happened(self, events: list[EventType]) -> None:
        """Something happened outside: messages, answers, objects."""
        if self.notes is not None:
            self.notes.happened(events)
        self._step(events)

    def learn(self, function: int, pickled: bytes) -> None:
        """From now on, tasks of this kind can run here."""
        self.functions[function] = pickled
        for effect in self.held_back.pop(function, ()):
            if effect.run in self.runs:
                self._start_run(effect)
        self.pool.flush()

    def _step(self, events: list[EventType]) -> None:
        """Give the node what happened, and do what it wants, until it wants nothing more."""
        if self._is_closing:
            return  # workers that are ended on purpose are no news
        now_ns = time.monotonic_ns()
        core, store, journal = self.core, self.store, self.journal
        while events:
            out: list[EffectType] = []
            core.step(now_ns, events, out)
            if journal is not None:
                journal.note(now_ns, events, out)
            events = []
            for effect in out:
                if type(effect) is StartRun:
                    self._start_run(effect)
                elif type(effect) is CallStore:
                    store.call(effect, now_ns, events)
                else:
                    self._perform(effect, now_ns, events)
        self.pool.flush()
        store.settle()

    def _perform(self, effect: EffectType, now_ns: int, events: list[EventType]) -> None:
        if isinstance(effect, DropObject):
            self.files.drop(effect.object)
        elif isinstance(effect, SetTimer):
            delay_s = max(0, effect.at_ns - now_ns) / 1e9
            self.loop.call_later(delay_s, self._on_timer, effect.timer)
        elif isinstance(effect, StopRun):
            slot, _ = self.runs.pop(effect.run, (-1, None))
            if slot >= 0:
                self.pool.kill(slot, effect.run)
        elif isinstance(effect, RecallRun):
            if effect.run in self.runs:
                self._recall(effect, events)
        elif isinstance(effect, FetchObjects):
            self.peers.fetch(effect.wanted, events)
        elif isinstance(effect, Restart):
            self._break(InternalError(f"the node was declared dead: {effect.reason}"))
        elif isinstance(effect, Send):
            self.peers.send(effect.to, effect.message, events)
        else:
            self._break(InternalError(f"nobody can carry out {effect}"))

    def _on_timer(self, timer: int) -> None:
        self._step([TimerFired(timer)])

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _start_run(self, effect: StartRun) -> None:
        ready = effect.ready
        spec = ready.spec
        self.runs[effect.run] = (effect.slot, spec)
        if spec.kind not in self.taught and not self._teach(effect):
            return
        inputs: tuple[bytes | ObjectFile, ...] = ()
        if ready.inputs:
            known = {one[0]: one for one in ready.inputs}
            inputs = tuple([self._input(known[object_]) for object_ in spec.inputs])
        outputs = tuple(map(str, spec.outputs))
        options = None if spec.needs is None else RunOptions(spec.needs.cores, memory_bytes=spec.needs.memory_bytes)
        if self.notes is not None:
            self.notes.sent(effect.run, effect.slot, ready)
        self.pool.execute(effect.slot, Execute(effect.run, spec.kind, spec.payload, inputs, outputs, options))

    def _teach(self, effect: StartRun) -> bool:
        """Give the workers a function when it is first needed. A task that moved here may come before its function:
        then its run waits."""
        function = effect.ready.spec.kind
        pickled = self.functions.get(function)
        if pickled is None:
            self.held_back.setdefault(function, []).append(effect)
            return False
        self.taught.add(function)
        self.pool.learn(function, pickled)
        return True

    def _input(self, one: Input) -> bytes | ObjectFile:
        return one[4] or ObjectFile(self.files.path(one[0]))

    def _recall(self, effect: RecallRun, events: list[EventType]) -> None:
        slot, spec = self.runs[effect.run]
        if spec.kind in self.taught:
            self.pool.recall(slot, effect.run)
        else:  # it never left
            del self.runs[effect.run]
            events.append(RunRecalled(effect.task, effect.run))

    def _on_reports(self, reports: list[tuple[int, ReportType]]) -> None:
        if self.notes is not None:
            self.listener.on_ran(self.notes.reported(reports))
        events: list[EventType] = []
        runs = self.runs
        for _, report in reports:
            if type(report) is Ended:
                known = runs.pop(report.run, None)
                if known is not None:
                    events.append(self._ended(known[1], report))
            elif isinstance(report, Raised):
                known = runs.pop(report.run, None)
                if known is not None:
                    events.append(self._failed(known[1], report.run, report.duration_ns, report.error, False))
            elif isinstance(report, Died):
                known = runs.pop(report.run, None)
                if known is not None and report.why != STOPPED:
                    error = failure_of(died(known[1], report))
                    events.append(self._failed(known[1], report.run, 0, error, not report.why))
            elif isinstance(report, Recalled):
                known = runs.pop(report.run, None)
                if known is not None:
                    events.append(RunRecalled(known[1].id, report.run))
            elif isinstance(report, Printed):
                self.listener.on_printed(report.stream, report.text)
        if events:
            self._step(events)

    def _ended(self, spec: TaskSpec, report: Ended) -> RunEnded:
        results = report.results
        if len(results) == 1 and type(results[0]) is bytes and len(results[0]) <= INLINE_BYTES:
            return RunEnded(spec.id, report.run, report.duration_ns, (len(results[0]),), "", False, (results[0],))
        sizes: list[int] = []
        values: list[bytes] = []
        for object_, result in zip(spec.outputs, results, strict=True):
            if isinstance(result, bytes):
                sizes.append(len(result))
                values.append(result)
            else:
                assert isinstance(result, Written)  # the workers know the node's folders
                self.files.adopt(object_, result.path, result.size_bytes)
                sizes.append(result.size_bytes)
                values.append(b"")
        return RunEnded(spec.id, report.run, report.duration_ns, tuple(sizes), "", False, tuple(values))

    def _failed(self, spec: TaskSpec, run: int, duration_ns: int, failure: bytes, retry: bool) -> RunEnded:
        self.store.keep_failure(spec.id, failure)
        return RunEnded(spec.id, run, duration_ns, (), f"task {spec.id} failed", retry)


def died(spec: TaskSpec, report: Died) -> TaskKilledError:
    """What to say of a task whose worker ended under it."""
    if report.why == TIMEOUT:
        how = "it took longer than its time limit and was stopped"
    elif report.why == MEMORY:
        how = "it used more memory than it may and was stopped"
    elif report.code < 0:
        how = f"its worker was killed by {signal_name(-report.code)}"
    else:
        how = f"its worker exited with code {report.code}"
    last = report.output.decode(errors="replace").strip()
    return TaskKilledError(f"task {spec.id}: {how}" + (f"; the last it wrote: {last[-OUTPUT_SHOWN:]}" if last else ""))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
