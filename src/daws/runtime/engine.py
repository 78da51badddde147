"""One node with its store, its workers and its objects, on a thread of its own inside the client's process.

Everything that happens between two turns of the loop is given to the node as one batch of events; what it wants done is
carried out at once, and the store's answers go back to it in the same turn. So a task costs one hop to a worker and
one back. Nothing here decides anything.
"""

import asyncio
import signal
import threading
import time
from collections import deque
from typing import Any, Protocol

import msgspec
import uvloop

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
from daws.core.events import (
    CallFine,
    EventType,
    ObjectsFetched,
    RunEnded,
    RunRecalled,
    Started,
    StoreAnswered,
    TimerFired,
)
from daws.core.node import NodeConfig, NodeCore
from daws.data.files import ObjectFiles
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.errors import DawsError, InternalError, TaskKilledError
from daws.model.task import CLIENT, INLINE_BYTES, Input, TaskSpec
from daws.runs.notes import Row, RunNotes
from daws.store.memory import MemoryStore
from daws.strategy.decisions import Strategy
from daws.wire.messages import CancelOrder, LetGo, NewTasks
from daws.wire.store import LogRow, Submit
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

NODE = 0
"""The only node of such a cluster."""
TASKS_PER_TURN = 4096
OUTPUT_SHOWN = 2000
LEASE_NS = 1 << 60
TICK_NS = 2_000_000_000


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How a task ended: its outputs, or the state it is in now, why, and the exception as it travels."""

    task: int
    outputs: tuple[Input, ...] = ()
    state: int = 0
    error: str = ""
    failure: bytes = b""


class Listener(Protocol):
    """Who wants to know how tasks end. Called on the engine's thread."""

    def on_ended(self, outcomes: list[Outcome]) -> None: ...

    def on_printed(self, stream: int, text: bytes) -> None: ...

    def on_ran(self, node: int, rows: list[Row], busy_count: int) -> None: ...

    def on_broken(self, error: BaseException) -> None: ...


class Engine:
    """Started by `start`; then any thread may append to `new_tasks` and `let_go` and call `wake`."""

    def __init__(
        self,
        workers: int,
        strategy: Strategy,
        files: ObjectFiles,
        listener: Listener,
        kind: str = "processes",
        setup: bytes = b"",
        teardown: bytes = b"",
        tells_runs: bool = False,
    ) -> None:
        """Workers are of a `kind` that `daws.workers.port` knows. `setup` and `teardown` are pickled functions that
        each worker calls first and last. With `tells_runs` the listener hears of every run."""
        self.workers = workers
        self.files = files
        self.folder = files.segments.home
        self.listener = listener
        self.kind = kind
        self.setup = setup
        self.teardown = teardown
        self.notes = RunNotes(NODE) if tells_runs else None
        self.new_tasks: deque[Submit] = deque()
        self.let_go: deque[int] = deque()
        self.functions: dict[int, bytes] = {}  # by kind of task
        self.taught: set[int] = set()  # those that the workers can be given
        self.awake = False
        self.info = info = NodeInfo(NODE, (ExecutorClass(workers),))
        config = NodeConfig(lease_ns=LEASE_NS, tick_ns_max=TICK_NS, commit_delay_ns=0, freed_batch=256)
        self.store = MemoryStore(lease_ns=LEASE_NS, direct=True)
        self.members = self.store.join([info])
        self.core = NodeCore(info, strategy, config, seed=0)
        self.log: list[LogRow] = self.store.shards[0].log
        self.heard = 0  # so many rows of the log were passed on
        self.runs: dict[int, tuple[int, TaskSpec]] = {}  # by number of the run: its executor, and the task
        self.failures: dict[int, bytes] = {}  # of tasks whose last run failed
        self.batches = 0
        self._thread: threading.Thread | None = None
        self._broken: BaseException | None = None
        self._is_closing = False

    # -- from any thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when the workers can take tasks."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="daws-node", daemon=True)
        self._thread.start()
        ready.wait()
        if self._broken is not None:
            self._thread.join()
            raise self._broken

    def wake(self) -> None:
        self.awake = True
        self.loop.call_soon_threadsafe(self._turn)

    def learn(self, function: int, pickled: bytes) -> None:
        """Has to be said before the first task of that kind is submitted."""
        self.functions[function] = pickled

    def cancel(self, tasks: tuple[int, ...]) -> None:
        self.loop.call_soon_threadsafe(self._cancel, tasks)

    def stop(self) -> None:
        """End all workers, then the thread. What has not ended never will."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        thread.join()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        loop = self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._on_exception)
        try:
            self.pool = POOLS[self.kind](
                self.workers,
                self.folder,
                loop,
                self._on_reports,
                failed=self._break,
                inline_max_bytes=INLINE_BYTES,
                memory=self.folder if self.files.segments.has_memory else "",
                scratch=str(self.files.segments.scratch),
                setup=self.setup,
                teardown=self.teardown,
            )
            loop.run_until_complete(self.pool.start())
            self._step([Started(self.members)])
        except BaseException as error:
            self._broken = error
            ready.set()
            loop.close()
            return
        ready.set()
        try:
            loop.run_forever()
        finally:
            self._is_closing = True
            loop.run_until_complete(self.pool.close())
            loop.close()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
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

    def _turn(self) -> None:
        """Take in what the client has said since the last turn."""
        self.awake = False
        # Who is let go of was named by tasks that were submitted before: those first.
        gone = len(self.let_go)
        new_tasks = self.new_tasks
        count = min(len(new_tasks), TASKS_PER_TURN)
        events: list[EventType] = []
        if count:
            self.batches += 1
            events.append(NewTasks(CLIENT, self.batches, tuple([new_tasks.popleft() for _ in range(count)])))
        if new_tasks:
            self.wake()
        elif gone:
            events.append(LetGo(CLIENT, tuple([self.let_go.popleft() for _ in range(gone)])))
        if events:
            self._step(events)

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks:
            self._turn()  # the store must know of them first
        self.batches += 1
        self._step([CancelOrder(CLIENT, self.batches, tasks)])

    def _step(self, events: list[EventType]) -> None:
        """Give the node what happened, and do what it wants, until it wants nothing more."""
        if self._is_closing:
            return  # workers that are ended on purpose are no news
        now_ns = time.monotonic_ns()
        core = self.core
        while events:
            out: list[EffectType] = []
            core.step(now_ns, events, out)
            events = []
            for effect in out:
                if type(effect) is StartRun:
                    self._start_run(effect)
                elif type(effect) is CallStore:
                    answers = self.store.apply(effect.shard, effect.rows, now_ns)
                    fine = answers.count(None) == len(answers)
                    events.append(CallFine(effect.token) if fine else StoreAnswered(effect.token, answers))
                else:
                    self._perform(effect, now_ns, events)
        self.pool.flush()
        if len(self.log) > self.heard:
            self._pass_on()

    def _perform(self, effect: EffectType, now_ns: int, events: list[EventType]) -> None:
        if isinstance(effect, DropObject):
            self.files.drop(effect.object)
        elif isinstance(effect, SetTimer):
            delay_s = max(0, effect.at_ns - now_ns) / 1e9
            self.loop.call_later(delay_s, self._step, [TimerFired(effect.timer)])
        elif isinstance(effect, StopRun):
            slot, _ = self.runs.pop(effect.run, (-1, None))
            if slot >= 0:
                self.pool.kill(slot, effect.run)
        elif isinstance(effect, RecallRun):
            if effect.run in self.runs:
                self.pool.recall(self.runs[effect.run][0], effect.run)
        elif isinstance(effect, FetchObjects):
            events.append(ObjectsFetched((), effect.wanted))  # there is nobody else to have it
        elif isinstance(effect, Restart):
            self._break(InternalError(f"the only node was declared dead: {effect.reason}"))
        elif isinstance(effect, Send):
            if effect.to == NODE:
                events.append(effect.message)  # the client is here and needs no receipts
        else:
            self._break(InternalError(f"nobody can carry out {effect}"))

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _start_run(self, effect: StartRun) -> None:
        ready = effect.ready
        spec = ready.spec
        self.runs[effect.run] = (effect.slot, spec)
        if self.notes is not None:
            self.notes.sent(effect.run, effect.slot, ready)
        if spec.kind not in self.taught:
            self.taught.add(spec.kind)
            self.pool.learn(spec.kind, self.functions[spec.kind])
        inputs: tuple[bytes | ObjectFile, ...] = ()
        if ready.inputs:
            known = {one[0]: one for one in ready.inputs}
            inputs = tuple([self._input(known[object_]) for object_ in spec.inputs])
        outputs = tuple(map(str, spec.outputs))
        options = None if spec.needs is None else RunOptions(spec.needs.cores, memory_bytes=spec.needs.memory_bytes)
        self.pool.execute(effect.slot, Execute(effect.run, spec.kind, spec.payload, inputs, outputs, options))

    def _input(self, one: Input) -> bytes | ObjectFile:
        return one[4] or ObjectFile(self.files.path(one[0]))

    def _on_reports(self, reports: list[tuple[int, ReportType]]) -> None:
        if self.notes is not None:
            self.listener.on_ran(NODE, self.notes.reported(reports), self.notes.busy_count)
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
        self.failures[spec.id] = failure
        return RunEnded(spec.id, run, duration_ns, (), f"task {spec.id} failed", retry)

    def _pass_on(self) -> None:
        """Tell the client what was committed."""
        rows = self.log[self.heard :]
        self.heard = len(self.log)
        records = self.store.shards[0].records
        outcomes: list[Outcome] = []
        for row in rows:
            if isinstance(row, int):
                record = records[row]
                assert record is not None
                outcomes.append(Outcome(row, record.outputs))
                if self.failures:
                    self.failures.pop(row, None)  # of an earlier run
            else:
                task, state, error, _ = row
                outcomes.append(Outcome(task, (), state, error, self.failures.pop(task, b"")))
        self.listener.on_ended(outcomes)


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
