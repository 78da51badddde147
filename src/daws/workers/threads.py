"""The same pool with threads of the owner's process instead of workers, for tasks that wait or release the GIL.

There is no process to kill, and no stream that belongs to one run alone. A run that is stopped or takes too long is
reported as dead at once and its slot gets a new thread; the old thread goes on, ignored, until the task returns.
Commands are killed. Output is not captured (but see `sharedstreams`), and cores, devices, environment and memory of the
options are ignored. A run that waits for tasks that it has created leaves its slot to a new thread as well.
"""

import asyncio
import os
import signal
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from time import monotonic_ns

from daws.data.folders import remove_tree
from daws.wire.worker import (
    STOPPED,
    TIMEOUT,
    Asks,
    ChildEnd,
    Died,
    Ended,
    Execute,
    ExecuteTogether,
    Prepare,
    Raised,
    Recalled,
    ReportType,
    Taught,
    WaitReport,
    Written,
    calls_apart,
)
from daws.workers.errors import WorkerStartError
from daws.workers.failures import failure_of, lacked_by
from daws.workers.nest import Hand, RunNest, here
from daws.workers.pool import INLINE_MAX_BYTES, WATCH_S, Reports
from daws.workers.running import Runner
from daws.workers.server import end_group
from daws.workers.sharedstreams import end_lines, end_logs, shared

KILLED = -int(signal.SIGKILL)
SETTLING = (Ended, Raised, Recalled, Died)
SPARE_MAX = 16
UNWANTED = -2  # in the place of the group of a command: it is to be ended as soon as it has begun


def _discard(report: Ended) -> None:
    """Remove the files of a run whose result is not needed any more; else they would stay until the end."""
    for result in report.results:
        if isinstance(result, Written):
            with suppress(FileNotFoundError):
                os.unlink(result.path)


class _Hand(Hand):
    """One thread and its work. `current` is written by the thread: the run that began last, and when.

    When its run waits for tasks, an heir takes over all its other work, and the thread ends with that run.
    """

    def __init__(self, pool: "ThreadPool", slot: int) -> None:
        super().__init__(pool)
        self.slot = slot
        self.wake: SimpleQueue[bool] = SimpleQueue()  # one for each order; False: end
        self.queue: deque[Execute] = deque()
        self.outstanding: dict[int, int] = {}  # run: time limit in ns
        self.current = (-1, 0)
        self.waits_since_ns = 0
        self.has_strayed = False
        self.is_abandoned = False
        self.thread = 0


class ThreadPool:
    """A pool of threads, with the interface of WorkerPool."""

    def __init__(
        self,
        slots: int,
        folder: str,
        loop: AbstractEventLoop,
        report: Callable[[Reports], None],
        *,
        failed: Callable[[WorkerStartError], None] | None = None,
        gone: object = None,
        inline_max_bytes: int = INLINE_MAX_BYTES,
        held_max_bytes: int = 0,
        memory: str = "",
        scratch: str = "",
        setup: bytes = b"",
        teardown: bytes = b"",
        server: object = None,
    ) -> None:
        """Values up to `held_max_bytes` come back as bytes too, because both ends are in the same process."""
        self._loop = loop
        self._report = report
        self._failed = failed
        self._folder = os.path.abspath(folder)
        self._setup = setup
        self._teardown = teardown
        self.workers = slots
        self.taught: set[int] = set()
        self._hands = [_Hand(self, slot) for slot in range(slots)]
        self._strayed: dict[int, _Hand] = {}  # by run that has waited: its thread, which has no slot any more
        self._spare: list[SimpleQueue[_Hand | None]] = []  # threads without anything to do
        self._commands: dict[int, int] = {}  # by thread: the process group of the command that it runs
        self._ending = Lock()
        prepare = Prepare(f"threads-{id(self)}", self._folder, inline_max_bytes, memory, scratch)
        self.runner = Runner(prepare, self._announce, is_process=False)
        if shared.logs is not None:
            self.runner.use_levels = shared.logs.use
        self.runner.held_max_bytes = max(inline_max_bytes, held_max_bytes)
        self._said: deque[tuple[_Hand, ReportType]] = deque()
        self._is_told = False
        self._watcher: asyncio.TimerHandle | None = None
        self._fit_count = 0
        self._alive_count = 0
        self._error: WorkerStartError | None = None
        self._started: asyncio.Future[None] | None = None
        self._emptied: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"ThreadPool({len(self._hands)} slots, {sum(len(hand.outstanding) for hand in self._hands)} runs)"

    async def start(self) -> None:
        self._started = self._loop.create_future()
        self.begin()
        await self._started

    def begin(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for hand in self._hands:
            self._hire(hand)

    def learn(self, function: int, pickled: bytes) -> None:
        self.runner.learn(function, pickled)

    def forget(self, functions: tuple[int, ...]) -> None:
        self.runner.forget(functions)
        self.taught.difference_update(functions)

    def execute(self, slot: int, order: Execute) -> None:
        if self._error is not None:
            raise self._error
        hand = self._hands[slot]
        limit_ns = order.options.timeout_ns if order.options is not None else 0
        hand.outstanding[order.run] = limit_ns
        hand.queue.append(order)
        hand.wake.put(True)
        if limit_ns:
            self._watch_soon()

    def execute_all(self, slot: int, orders: list[Execute]) -> None:
        for order in orders:
            self.execute(slot, order)

    def execute_together(self, slot: int, order: ExecuteTogether) -> None:
        self.execute_all(slot, calls_apart(order))

    def recall(self, slot: int, run: int) -> None:
        hand = self._hands[slot]
        for order in tuple(hand.queue):
            if order.run == run:
                try:
                    hand.queue.remove(order)
                except ValueError:
                    return  # the thread has just taken it
                self._say(hand, Recalled(run))

    def resume(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None:
        hand = self._strayed.get(run)
        nest = None if hand is None else hand.nest
        if hand is not None and nest is not None and hand.waits_since_ns:
            began_ns = hand.current[1] + monotonic_ns() - hand.waits_since_ns  # waiting does not count
            hand.current, hand.waits_since_ns = (run, began_ns), 0
            nest.hear(ended)

    def tell(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None:
        hand = self._strayed.get(run, self._hands[slot])
        nest = hand.nest
        if run in hand.outstanding and nest is not None:
            nest.hear(ended)

    def set_aside(self, slot: int, run: int) -> None:
        """Nothing that happens to one thread ends another."""

    def kill(self, slot: int, run: int) -> None:
        hand = self._strayed.get(run, self._hands[slot])
        if run not in hand.outstanding:
            return
        nest = hand.nest
        if hand.waits_since_ns and nest is not None:
            nest.discard()
            return
        self.recall(slot, run)
        if hand.current[0] == run:
            self._abandon(hand, run, STOPPED)

    def flush(self) -> None:
        """Orders are where they belong already."""

    async def close(self, grace_s: float = 2.0) -> None:
        if self._emptied is not None:
            return
        self._emptied = self._loop.create_future()
        if self._watcher is not None:
            self._watcher.cancel()
        for hand in (*self._hands, *self._strayed.values()):
            for order in tuple(hand.queue):
                self.recall(hand.slot, order.run)
            if hand.current[0] in hand.outstanding:
                self._abandon(hand, hand.current[0], STOPPED)
            hand.wake.put(False)
        while self._spare:
            self._spare.pop().put(None)
        self._deliver()
        if self._alive_count:
            await asyncio.wait([self._emptied], timeout=grace_s)
        remove_tree(self._folder)

    # In the threads.

    def _work(self, hand: _Hand) -> None:
        try:
            if self._setup:
                self.runner.set_up(self._setup)
        except BaseException as error:
            self._call(self._on_unfit, error)
            return
        self._call(self._on_fit)
        served: _Hand | None = hand
        while served is not None:
            here.hand = served
            self._serve(served)
            if served.is_abandoned:
                return
            inbox: SimpleQueue[_Hand | None] = SimpleQueue()
            if served.has_strayed:
                self._call(self._on_spare, inbox)
            else:
                inbox.put(None)
            served = inbox.get()
        try:
            if self._teardown:
                self.runner.tear_down(self._teardown)
        finally:
            self._call(self._on_left)

    def _serve(self, hand: _Hand) -> None:
        signs = shared.signs
        while not (hand.is_abandoned or hand.has_strayed) and hand.wake.get():
            try:
                order = hand.queue.popleft()
            except IndexError:
                continue  # recalled
            hand.order = order
            hand.thread = get_ident()
            began_ns = monotonic_ns()
            hand.current = order.run, began_ns
            report: ReportType
            try:
                results = self.runner.execute(order)
                report = Ended(order.run, self._worked_ns(hand, began_ns), results, began_ns)
            except BaseException as error:
                report = Raised(
                    order.run, self._worked_ns(hand, began_ns), failure_of(error), began_ns, lacked_by(error)
                )
            if hand.lines is not None:
                end_lines(hand)
            if signs.any:
                end_logs()
            self._say(hand, report)
        hand.order = None

    def _worked_ns(self, hand: _Hand, began_ns: int) -> int:
        """A run has ended, and took that long without the time for which it waited."""
        worked_ns = monotonic_ns() - began_ns
        if hand.nest is not None:
            worked_ns -= hand.nest.waited_ns
            hand.nest.close()
            hand.nest = None
        return max(0, worked_ns)

    # What runs that create tasks ask for (see `daws.workers.nest.Host`), in their threads.

    def open_nest(self, hand: Hand) -> RunNest:
        assert isinstance(hand, _Hand)
        hand.nest = RunNest(hand, *hand.current)
        if hand.is_abandoned:
            hand.nest.discard()
        return hand.nest

    def say(self, hand: Hand, report: ReportType) -> None:
        assert isinstance(hand, _Hand)
        self._say(hand, report)

    def pause(self, hand: Hand, waits: WaitReport) -> None:
        self.ask(hand, waits)

    def ask(self, hand: Hand, asks: Asks | WaitReport) -> None:
        assert isinstance(hand, _Hand) and hand.nest is not None
        self._say(hand, asks)
        hand.nest.gate.acquire()
        if hand.order is not None:
            self.runner.surround(hand.order.function)

    def _announce(self, group: int) -> None:
        thread = get_ident()
        with self._ending:
            if not group:
                del self._commands[thread]
            elif self._commands.setdefault(thread, group) == UNWANTED:
                end_group(group)
            else:
                self._commands[thread] = group

    def _say(self, hand: _Hand, report: ReportType) -> None:
        self._said.append((hand, report))
        if not self._is_told:
            self._is_told = True
            self._call(self._deliver)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # when the loop was closed while a task ran on
            self._loop.call_soon_threadsafe(function, *args)

    # In the loop.

    def _hire(self, hand: _Hand) -> None:
        if self._spare:
            self._spare.pop().put(hand)
            return
        self._alive_count += 1
        Thread(target=self._work, args=(hand,), name=f"daws-slot-{hand.slot}", daemon=True).start()

    def _on_fit(self) -> None:
        self._fit_count += 1
        if self._started is not None and not self._started.done() and self._fit_count >= len(self._hands):
            self._started.set_result(None)

    def _on_unfit(self, error: BaseException) -> None:
        self._on_left()
        if self._error is None:
            text = f"the set-up of workers fails: {type(error).__name__}: {error}"
            self._error = WorkerStartError(text, retry=False)
            if self._started is not None and not self._started.done():
                self._started.set_exception(self._error)
            elif self._failed is not None:
                self._failed(self._error)

    def _on_left(self) -> None:
        self._alive_count -= 1
        if self._emptied is not None and not self._alive_count and not self._emptied.done():
            self._emptied.set_result(None)

    def _on_spare(self, inbox: "SimpleQueue[_Hand | None]") -> None:
        if self._emptied is None and len(self._spare) < SPARE_MAX:
            self._spare.append(inbox)
        else:
            inbox.put(None)

    def _deliver(self) -> None:
        self._is_told = False
        batch: Reports = []
        while self._said:
            hand, report = self._said.popleft()
            if isinstance(report, SETTLING):
                if hand.outstanding.pop(report.run, None) is not None:
                    batch.append(report)
                    if hand.has_strayed:
                        self._strayed.pop(report.run, None)
                elif isinstance(report, Ended):
                    _discard(report)
            elif isinstance(report, Taught) or report.run in hand.outstanding:  # type: ignore[union-attr]
                batch.append(report)
                if isinstance(report, WaitReport):
                    self._step_aside(hand, report.run)
        if batch:
            self._report(batch)

    def _step_aside(self, hand: _Hand, run: int) -> None:
        """The run of this thread waits: its slot, and what stands in line there, is for another thread."""
        hand.waits_since_ns = monotonic_ns()
        if not hand.has_strayed:
            hand.has_strayed = True
            self._strayed[run] = hand
            self._replace(hand)

    def _abandon(self, hand: _Hand, run: int, why: str) -> None:
        """Go on without the thread that is on this run."""
        hand.is_abandoned = True
        with self._ending:
            group = self._commands.get(hand.thread, 0)
            if group:
                self._commands[hand.thread] = UNWANTED
            if group > 0:
                end_group(group)
        self._alive_count -= 1
        nest = hand.nest
        if nest is not None:
            nest.discard()
        if not hand.has_strayed:
            self._replace(hand)
        self._say(hand, Died(run, KILLED, b"", why))
        hand.wake.put(True)

    def _replace(self, hand: _Hand) -> None:
        heir = self._hands[hand.slot] = _Hand(self, hand.slot)
        # The runs that have ended but were not delivered yet are said by the old hand, the others by its heir.
        while hand.queue:
            order = hand.queue.popleft()
            heir.outstanding[order.run] = hand.outstanding.pop(order.run)
            heir.queue.append(order)
            heir.wake.put(True)
        if self._emptied is None:
            self._hire(heir)

    def _watch_soon(self) -> None:
        if self._watcher is None and self._emptied is None:
            self._watcher = self._loop.call_later(WATCH_S, self._watch)

    def _watch(self) -> None:
        self._watcher = None
        now_ns = monotonic_ns()
        for hand in (*self._hands, *self._strayed.values()):
            run, began_ns = hand.current
            if not hand.waits_since_ns and 0 < hand.outstanding.get(run, 0) < now_ns - began_ns:
                self._abandon(hand, run, TIMEOUT)
        if any(any(hand.outstanding.values()) for hand in (*self._hands, *self._strayed.values())):
            self._watch_soon()
