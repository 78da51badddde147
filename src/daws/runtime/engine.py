"""The driver of one node: gives it events, and carries out its effects.

All events between two turns of the loop are given to the node as one batch. Its effects are carried out at once.
Answers that the store gives at once go back to the node in the same turn. The ports alone know whether the store, the
other nodes and the client are in this process or behind sockets. Nothing here decides anything.
"""

import logging
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any

from daws.core import view
from daws.core.effects import (
    CallStore,
    DropObject,
    EffectType,
    FetchAgain,
    FetchObjects,
    Left,
    RecallRun,
    Restart,
    ResumeRun,
    Send,
    SetTimer,
    StartRun,
    StartRuns,
    StopRun,
)
from daws.core.events import (
    EventType,
    ObjectsFetched,
    ObjectsLost,
    PlaceUnknown,
    Pressure,
    RunDone,
    RunEnded,
    RunLacks,
    RunRecalled,
    RunsDone,
    RunSpawned,
    Started,
    TimerFired,
)
from daws.core.node import NodeConfig, NodeCore
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.errors import DawsError, InternalError
from daws.model.task import INLINE_BYTES, NO_TASK, NodeId, ObjectTransfer, TaskSpec
from daws.runs.notes import RunNotes
from daws.runtime.crew import config_of, info_of
from daws.runtime.functions import FunctionTable
from daws.runtime.inputs import RunInputs, inline_inputs
from daws.runtime.journals import new_journal, write_journal
from daws.runtime.nesting import Nesting
from daws.runtime.ports import Listener, PeersPort, StorePort
from daws.runtime.spilling import Spiller
from daws.runtime.watch import rename_strategy, watch_of
from daws.strategy.decisions import Strategy
from daws.wire.columns import each, once
from daws.wire.crew import Crew
from daws.wire.ends import Outcome
from daws.wire.messages import LetGo
from daws.wire.notes import Counters
from daws.wire.store import function_row
from daws.wire.worker import (
    STOPPED,
    Asks,
    Died,
    Dropped,
    Ended,
    EndedTogether,
    Execute,
    ExecuteTogether,
    Printed,
    Raised,
    Recalled,
    ReportType,
    RunOptions,
    Spawned,
    Taught,
    WaitReport,
    Written,
    apart,
    ends_apart,
)
from daws.workers.failures import failure_of, outline_of, why_of
from daws.workers.port import pool_of
from daws.workers.server import ForkServer
from daws.workers.system import wait_for_turns

UNPACK_AGAIN_S = 0.25
log = logging.getLogger("daws.node")


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
        journal: str = "",
        server: ForkServer | None = None,
        addresses: tuple[str, ...] = (),
        config: NodeConfig | None = None,
    ) -> None:
        """Prepare a node. `journal` is the folder for its journal, if it writes one. A fork `server` for the folder of
        `files` may have been started already."""
        self.crew = crew
        self.files = files
        self.folder = files.segments.home
        self.store = store
        self.peers = peers
        self.listener = listener
        self.server = server
        self.watch = watch_of(listener) if crew.explains else None
        self.notes = RunNotes(node, self.watch) if crew.tells_runs or crew.explains else None
        self.functions = FunctionTable(node, str(files.segments.scratch))
        info = info_of(node, crew, addresses)
        config = config or config_of(files.limit_bytes)
        watched = strategy if self.watch is None else self.watch.over(strategy)
        self.core = NodeCore(info, watched, config, seed=0)
        if self.watch is not None:
            self.core.read_strategy = self.watch.read
        self.journal = new_journal(info, strategy, config) if journal else None
        self._journals = journal
        self.runs: dict[int, tuple[int, TaskSpec]] = {}  # by number of the run: its executor, and the task
        self.inputs = RunInputs(files, crew.kind == "threads")
        self.nesting = Nesting(
            self.core,
            files,
            self._bring,
            lambda *what: self.pool.resume(*what),
            lambda *what: self.loop.call_soon(self._give_up, *what),  # a message of this run may be half handled now
            lambda: self.loop.call_soon(lambda: self._step([PlaceUnknown()])),
        )
        self.want: Callable[[int], None] = lambda function: None  # ask other nodes for a function
        self.struck: Callable[[str], None] = self._on_struck  # told why this incarnation has to end
        self.departed: Callable[[str], None] = self._on_struck  # told what it has left behind when it leaves
        self._may_yield = crew.owns_process and crew.kind != "threads"
        self._spiller = Spiller(files)
        self._is_pressed = False
        self._yields = False
        self._broken: BaseException | None = None
        self._is_open = False
        self._is_closing = False

    # -- its life ------------------------------------------------------------------------------------------------------

    async def open(self, loop: AbstractEventLoop) -> None:
        """Start the workers. Return when they can take tasks."""
        self.loop = loop
        crew = self.crew
        self.pool = pool_of(crew.kind)(
            crew.slots,
            self.folder,
            loop,
            self._on_reports,
            failed=self._break,
            gone=self.files.discard_of,
            inline_max_bytes=INLINE_BYTES,
            held_max_bytes=self.files.held_bytes_max,
            memory=self.folder if self.files.segments.has_memory else "",
            scratch=str(self.files.segments.scratch),
            setup=crew.setup,
            teardown=crew.teardown,
            server=self.server,
        )
        self._is_open = True
        self.files.on_pressure = self._on_pressure
        self.files.on_damage = self._on_damage
        await self.pool.start()

    def begin(self, members: Members) -> None:
        """Tell the node that it is one of these members."""
        self._step([Started(members)])

    async def close(self) -> None:
        """End all workers. Tasks that have not ended never will."""
        self._is_closing = True
        if self._yields:  # what comes next on this thread is not to be so
            self._yields = False
            wait_for_turns(False)
        if self._is_open:
            self._spiller.close()  # before its folders are gone
            await self.pool.close()
        if self.journal is not None:
            write_journal(self._journals, self.core.node, self.journal)

    def on_exception(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception that a callback of the loop has raised."""
        self._break(context.get("exception") or InternalError(str(context)))

    def _break(self, error: BaseException) -> None:
        """Report a bug, or workers that cannot be started, to everything that waits for results."""
        if self._broken is not None:
            return
        if not isinstance(error, DawsError):
            broken = InternalError(f"the node has stopped: {type(error).__name__}: {error}")
            broken.__cause__ = error
            error = broken
        self._broken = error
        self.listener.on_broken(error)

    def take_notes(self, runs: bool, decisions: bool) -> None:
        """Tell the listener of runs and of decisions from now on, or no longer. Runs that began before are left out."""
        before = self.watch
        self.watch = (before or watch_of(self.listener)) if decisions else None
        if not runs and not decisions:
            self.notes = None
        else:
            self.notes = self.notes or RunNotes(self.core.node)
            self.notes.watch = self.watch
        if self.watch is not before:
            self._step([rename_strategy(self.core, before, self.watch)])

    # -- what happens, and what is to be done --------------------------------------------------------------------------

    def happened(self, events: list[EventType]) -> None:
        """Something happened outside: messages, answers, objects."""
        if self.nesting.nests:
            for event in events:
                if isinstance(event, ObjectsFetched):
                    self.nesting.on_fetched(event)
        if self.notes is not None:
            self.notes.happened(events)
        self._step(events)

    def on_ended(self, outcomes: list[Outcome]) -> None:
        """Tasks that runs of this node may have created have ended."""
        if self.nesting.nests:
            self.nesting.on_ended(outcomes)
            self.pool.flush()

    def counters(self) -> Counters:
        return Counters(self.core.node, *view.progress(self.core))

    def started(self) -> set[int]:
        """The tasks that were sent to workers and have not ended."""
        return {spec.id for _, spec in self.runs.values()}

    def learn(self, function: int, pickled: bytes) -> None:
        """Learn a function, and start the runs that have waited for it."""
        self.functions.known[function] = pickled
        self._release(function)

    def forget(self, is_over: Callable[[int], bool]) -> None:
        """Let go of functions of sessions that are over."""
        if self._is_closing:
            return
        gone = self.functions.forget(is_over, self.runs, {spec.kind for _, spec in self.runs.values()})
        if gone:
            self.pool.forget(gone)
            self.pool.flush()

    def _release(self, function: int) -> None:
        """Start the runs that have waited for a function, or for modules."""
        if self._is_closing:
            return
        for effect in self.functions.release(function):
            if effect.run in self.runs:
                self._start_run(effect)
        self.pool.flush()

    def _step(self, events: list[EventType]) -> None:
        """Give the node what happened, and do what it wants, until it wants nothing more."""
        if self._is_closing:
            return  # workers that are ended on purpose are no news
        now_ns = time.monotonic_ns()
        core, store, journal = self.core, self.store, self.journal
        runs, taught, is_quiet = self.runs, self.functions.taught, self.notes is None
        orders: dict[int, list[Execute]] = {}  # by executor: usual runs, which are handed over together
        if store.deferred:
            events = [*events, *store.deferred]
            store.deferred = []
        while events:
            out: list[EffectType] = []
            core.step(now_ns, events, out)
            if journal is not None:
                journal.note(now_ns, events, out)
            events = []
            for effect in out:
                if effect.__class__ is StartRun:
                    ready = effect.ready
                    spec = ready.spec
                    inputs = inline_inputs(ready) if ready.inputs else ()
                    if (  # a short way for the usual run, as `_start_run` would
                        is_quiet
                        and inputs is not None
                        and spec.needs is None
                        and not spec.timeout_ns
                        and spec.kind in taught
                        and len(spec.outputs) == 1
                    ):
                        run, slot = effect.run, effect.slot
                        runs[run] = (slot, spec)
                        order = Execute(run, spec.kind, spec.payload, inputs, spec.outputs)
                        if slot in orders:
                            orders[slot].append(order)
                        else:
                            orders[slot] = [order]
                    else:
                        self._start_run(effect)
                elif type(effect) is CallStore:
                    store.call(effect, now_ns, events)
                else:
                    if orders:  # it may be about one of these runs
                        self._hand_over(orders)
                    if effect.__class__ is StartRuns:
                        self._start_runs(effect)
                    else:
                        self._perform(effect, now_ns, events)
        if orders:
            self._hand_over(orders)
        self.pool.flush()
        ended = store.settle()
        if ended:
            self.on_ended(ended)
        # While every worker has more at hand, none waits for this thread. If all processors are busy, it would stop
        # the worker that has just reported, between two runs. (10 ms tasks that spin: 97.2 % efficiency, 98.4 % so.)
        if self._may_yield and (core.ahead >= core.cores) is not self._yields:
            self._yields = not self._yields
            wait_for_turns(self._yields)

    def _start_runs(self, effect: StartRuns) -> None:
        """Start several runs, with the same effect as `_start_run` for each."""
        numbers, slot, tasks = effect.runs, effect.slot, effect.tasks
        specs = [ready.spec for ready in tasks]
        kind = specs[0].kind
        if self.notes is not None or kind not in self.functions.taught:
            for run, ready in zip(numbers, tasks, strict=True):
                self._start_run(StartRun(run, slot, ready))
            return
        self.runs.update(zip(numbers, zip(repeat(slot), specs)))  # noqa: B905 (one of them has no end)
        payloads = once([spec.payload for spec in specs])
        objects = [spec.outputs[0] for spec in specs]
        self.pool.execute_together(slot, ExecuteTogether(kind, numbers, payloads, objects))

    def _hand_over(self, orders: dict[int, list[Execute]]) -> None:
        for slot, some in orders.items():
            self.pool.execute_all(slot, some)
        orders.clear()

    def _perform(self, effect: EffectType, now_ns: int, events: list[EventType]) -> None:
        if isinstance(effect, Send):
            self.peers.send(effect.to, effect.message, events)
        elif isinstance(effect, DropObject):
            self.files.drop(effect.object)
        elif isinstance(effect, SetTimer):
            delay_s = max(0, effect.at_ns - now_ns) / 1e9
            self.loop.call_later(delay_s, lambda: self._step([TimerFired(effect.timer)]))
        elif isinstance(effect, StopRun):
            self._stop(effect.run)
        elif isinstance(effect, RecallRun):
            if effect.run in self.runs:
                self._recall(effect, events)
        elif isinstance(effect, ResumeRun):
            self.nesting.on_resume(effect)
        elif isinstance(effect, FetchObjects):
            self.peers.fetch(effect.wanted, events)
        elif isinstance(effect, FetchAgain):
            self.nesting.on_members()
        elif isinstance(effect, Restart):
            self.struck(effect.reason)
        elif isinstance(effect, Left):
            self.departed(effect.behind)
        else:
            self._break(InternalError(f"there is no way to carry out {effect}"))

    def _on_struck(self, reason: str) -> None:
        self._break(InternalError(f"the node was declared dead: {reason}"))

    def _on_pressure(self) -> None:
        """Handle too little room for objects, or enough again. Any thread may call it."""
        self._spiller.look()
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._tell_pressure)

    def _tell_pressure(self) -> None:
        is_high = self.files.is_high
        if is_high is not self._is_pressed:
            self._is_pressed = is_high
            self._step([Pressure(is_high)])

    def _on_damage(self, object_: int, why: str) -> None:
        """Handle an object that was found damaged while it was sent. Any thread may call it."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._tell_damage, object_, why)

    def _tell_damage(self, object_: int, why: str) -> None:
        events: list[EventType] = []
        self._lose(object_, why, events)
        self._step(events)

    def _lose(self, object_: int, why: str, events: list[EventType]) -> None:
        """Drop an object whose file is not what was written. The first caller logs it. Each caller tells the node,
        which may still count on the object."""
        path = self.files.give_up(object_)
        if path:
            log.warning("node %s: object %s is damaged and dropped: %s (%s)", self.core.node, object_, why, path)
        events.append(ObjectsLost((object_,)))

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _start_run(self, effect: StartRun) -> None:
        ready = effect.ready
        spec = ready.spec
        self.runs[effect.run] = (effect.slot, spec)
        if spec.kind not in self.functions.taught and not self._teach(effect):
            return
        options, needs = None, spec.needs
        if needs is not None:
            devices = self.crew.devices_of((effect.slot, *effect.more_slots)) if self.crew.devices else None
            options = RunOptions(needs.cores, devices, needs.memory_bytes, spec.timeout_ns)
        elif spec.timeout_ns:
            options = RunOptions(timeout_ns=spec.timeout_ns)
        if self.notes is not None:
            self.notes.sent(effect.run, effect.slot, ready, self.core.now_ns)
        self.pool.execute(
            effect.slot,
            Execute(effect.run, spec.kind, spec.payload, self.inputs.of(effect.run, ready), spec.outputs, options),
        )

    def _teach(self, effect: StartRun) -> bool:
        """Give the workers a function when it is first needed; if it is not here yet, its run waits."""
        functions, function = self.functions, effect.ready.spec.kind
        missing = functions.missing_for(function)
        if missing is not None:
            if functions.hold_back(missing, effect):
                if missing in functions.known:
                    self.loop.call_later(UNPACK_AGAIN_S, self._release, missing)
                else:
                    self.want(missing)
            return False
        functions.taught.add(function)
        self.pool.learn(function, functions.known[function])
        return True

    def _recall(self, effect: RecallRun, events: list[EventType]) -> None:
        slot, spec = self.runs[effect.run]
        if spec.kind in self.functions.taught:
            self.pool.recall(slot, effect.run)
        else:  # it never left
            del self.runs[effect.run]
            events.append(RunRecalled(effect.task, effect.run))

    def _on_reports(self, reports: list[ReportType]) -> None:
        events: list[EventType] = []
        runs, nests, pinned = self.runs, self.nesting.nests, self.inputs.pinned
        if nests or pinned or self.notes is not None:
            reports = apart(reports)
        if self.notes is not None:
            self.listener.on_ran(self.notes.reported(reports))
        add, take = events.append, runs.pop
        fallen: dict[int, tuple[int, TaskSpec] | None] = {}  # with the same worker
        for report in reports:
            if nests and isinstance(report, Ended | Raised | Died):
                self.nesting.forget(report.run)
            if pinned and isinstance(report, Ended | Raised | Died | Recalled):
                self.inputs.unpin(report.run)
            if report.__class__ is Ended:
                run, results = report.run, report.results
                known = take(run, None)
                if known is None:  # it was stopped too late
                    for result in results:
                        if isinstance(result, Written):
                            self.files.discard(result.path)
                    continue
                value = results[0] if len(results) == 1 else None
                if value.__class__ is bytes and len(value) <= INLINE_BYTES:
                    add(RunDone(known[1].id, run, report.duration_ns, value))  # as usual
                else:
                    add(self._ended(known[1], report))
            elif report.__class__ is EndedTogether:
                events += self._done_together(report)
            elif isinstance(report, Raised):
                known = runs.pop(report.run, None)
                if report.lacks is not None:
                    self._lose(report.lacks, why_of(report.error), events)
                    if known is not None:
                        events.append(RunLacks(known[1].id, report.run, report.lacks))
                elif known is not None:
                    events.append(self._failed(known[1], report.run, report.duration_ns, report.error, False))
            elif isinstance(report, Died):
                known = fallen[report.run] = runs.pop(report.run, None)
                if known is not None and report.why != STOPPED:
                    events.append(self._died(known[1], report, fallen.get(report.under) or runs.get(report.under)))
            elif isinstance(report, Recalled):
                known = runs.pop(report.run, None)
                if known is not None:
                    events.append(RunRecalled(known[1].id, report.run))
            elif isinstance(report, Printed):
                known = runs.get(report.run)
                task = NO_TASK if known is None else self.functions.session_number(known[1].id, known[1].kind)
                self.listener.on_printed(report.stream, report.text, task)
            elif isinstance(report, Taught):
                self.learn(report.function, report.pickled)
                if report.run in runs:
                    rows = (function_row(report.function, report.pickled),)
                    events.append(RunSpawned(runs[report.run][1].id, report.run, (), True, rows))
            elif report.run in runs:  # type: ignore[union-attr]
                self._on_nested(report, events)
        if events:
            self._step(events)

    def _done_together(self, report: EndedTogether) -> Sequence[EventType]:
        numbers = report.runs
        values = each(report.results, len(numbers))
        known = [*map(self.runs.pop, numbers, repeat(None))]
        if all(known) and max(map(len, report.results)) <= INLINE_BYTES:
            tasks = [spec.id for _, spec in known]  # type: ignore[misc]
            return [RunsDone(tasks, numbers, report.durations_ns, values)]
        ended = zip(known, ends_apart(report), strict=True)  # some were stopped too late
        return [self._ended(one[1], report) for one, report in ended if one is not None]

    def _on_nested(self, report: ReportType, events: list[EventType]) -> None:
        """A run creates tasks, or waits for them."""
        if isinstance(report, Spawned):
            slot, spec = self.runs[report.run]
            events.append(self.nesting.spawned(report, slot, spec, view.runs(self.core)[spec.id].ready.attempt))
        elif isinstance(report, WaitReport):
            slot, spec = self.runs[report.run]
            if self._attempt(spec.id) > 1:  # what it waits for may have ended its worker before
                self.pool.set_aside(slot, report.run)
            events.append(self.nesting.waits(report, spec.id))
        elif isinstance(report, Dropped):
            events.append(LetGo(self.core.node, self.nesting.dropped(report)))
        elif isinstance(report, Asks):
            self.pool.tell(self.runs[report.run][0], report.run, self.nesting.news(report.run))
            self.pool.flush()

    def _bring(self, wanted: Sequence[ObjectTransfer]) -> None:
        """Have objects fetched that a run waits for; the node, which knows nothing of it, ignores what comes of it."""
        events: list[EventType] = []
        self.peers.fetch(wanted, events)
        for event in [one for one in events if isinstance(one, ObjectsFetched)]:
            self.nesting.on_fetched(event)

    def _give_up(self, run: int, object_: int) -> None:
        """End a run that cannot go on without a lost object."""
        spec = None if self._is_closing else self._stop(run)
        if spec is not None:
            self._step([RunLacks(spec.id, run, object_)])

    def _stop(self, run: int) -> TaskSpec | None:
        slot, spec = self.runs.pop(run, (-1, None))
        if spec is not None:
            self.inputs.unpin(run)
            self.nesting.forget(run)
            self.pool.kill(slot, run)
        return spec

    def _attempt(self, task: int) -> int:
        """The number of a task's current attempt, counted from 1."""
        run = view.runs(self.core).get(task)
        return 1 if run is None else run.ready.attempt + 1

    def _ended(self, spec: TaskSpec, report: Ended) -> RunEnded:
        sizes: list[int] = []
        values: list[bytes] = []
        for object_, result in zip(spec.outputs, report.results, strict=True):
            if isinstance(result, bytes):
                sizes.append(len(result))
                if len(result) > INLINE_BYTES:
                    self.files.hold(object_, result)
                    result = b""
                values.append(result)
            else:
                assert isinstance(result, Written)  # the workers know the node's folders
                self.files.adopt(object_, result.path, result.size_bytes, result.is_raw)
                sizes.append(max(result.size_bytes, INLINE_BYTES + 1))  # smaller ones would travel inline
                values.append(b"")
        return RunEnded(spec.id, report.run, report.duration_ns, tuple(sizes), "", False, tuple(values))

    def _failed(
        self, spec: TaskSpec, run: int, duration_ns: int, failure: bytes, retry: bool, waited: bool = False
    ) -> RunEnded:
        error = outline_of(failure, self.functions.title(spec), f" on node {self.core.node}")
        return RunEnded(spec.id, run, duration_ns, (), error, retry, (), waited, failure)

    def _died(self, spec: TaskSpec, report: Died, under: tuple[int, TaskSpec] | None) -> RunEnded:
        """A run whose worker has ended; the worker was on another one if `under` is given."""
        from daws.runtime.deaths import death_of

        blamed = "" if under is None else self.functions.title(under[1])
        error = death_of(self.functions.title(spec), spec, report, self.core.node, self._attempt(spec.id), blamed)
        return self._failed(spec, report.run, 0, failure_of(error), not report.why, report.waited)
