"""The same pool with threads of the owner's process instead of workers, for tasks that wait or release the GIL.

There is no process to kill, and no stream that belongs to one run alone: a run that is stopped or takes too long is
reported as dead at once and its slot gets a new thread, while the old one goes on unheard until the task returns.
Output is not captured, and cores, devices, environment and memory of the options are not looked at.
"""

import asyncio
import os
import pickle
import signal
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import monotonic_ns

from daws.wire.worker import STOPPED, TIMEOUT, Died, Ended, Execute, Prepare, Raised, Recalled, ReportType
from daws.workers.errors import WorkerStartError
from daws.workers.failures import failure_of
from daws.workers.folders import remove_tree
from daws.workers.pool import INLINE_MAX_BYTES, WATCH_S, Reports
from daws.workers.running import Runner

KILLED = -int(signal.SIGKILL)


class _Hand:
    """One thread and what it has to do. `current` is written by the thread: the run that began last, and when."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.wake: SimpleQueue[bool] = SimpleQueue()  # one for each order; False: end
        self.queue: deque[Execute] = deque()
        self.outstanding: dict[int, int] = {}  # run: time limit in ns
        self.current = (-1, 0)
        self.is_abandoned = False


class ThreadPool:
    """As WorkerPool, see there."""

    def __init__(
        self,
        slots: int,
        folder: str,
        loop: AbstractEventLoop,
        report: Callable[[Reports], None],
        *,
        failed: Callable[[WorkerStartError], None] | None = None,
        inline_max_bytes: int = INLINE_MAX_BYTES,
        memory: str = "",
        scratch: str = "",
        setup: bytes = b"",
        teardown: bytes = b"",
    ) -> None:
        self._loop = loop
        self._report = report
        self._failed = failed
        self._folder = os.path.abspath(folder)
        self._setup = setup
        self._teardown = teardown
        self._runner = Runner(Prepare("threads", self._folder, inline_max_bytes, memory, scratch))
        self._hands = [_Hand(slot) for slot in range(slots)]
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
        self._runner.learn(function, pickled)

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

    def recall(self, slot: int, run: int) -> None:
        hand = self._hands[slot]
        for order in tuple(hand.queue):
            if order.run == run:
                try:
                    hand.queue.remove(order)
                except ValueError:
                    return  # the thread has just taken it
                self._say(hand, Recalled(run))

    def kill(self, slot: int, run: int) -> None:
        hand = self._hands[slot]
        if run in hand.outstanding:
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
        for hand in self._hands:
            for order in tuple(hand.queue):
                self.recall(hand.slot, order.run)
            if hand.current[0] in hand.outstanding:
                self._abandon(hand, hand.current[0], STOPPED)
            hand.wake.put(False)
        self._deliver()
        if self._alive_count:
            await asyncio.wait([self._emptied], timeout=grace_s)
        remove_tree(self._folder)

    # In the threads.

    def _work(self, hand: _Hand) -> None:
        try:
            if self._setup:
                pickle.loads(self._setup)()
        except BaseException as error:
            self._call(self._on_unfit, error)
            return
        self._call(self._on_fit)
        while not hand.is_abandoned and hand.wake.get():
            try:
                order = hand.queue.popleft()
            except IndexError:
                continue  # recalled
            began_ns = monotonic_ns()
            hand.current = order.run, began_ns
            report: ReportType
            try:
                results = self._runner.execute(order)
                report = Ended(order.run, monotonic_ns() - began_ns, results, began_ns)
            except BaseException as error:
                report = Raised(order.run, monotonic_ns() - began_ns, failure_of(error), began_ns)
            self._say(hand, report)
        if hand.is_abandoned:
            return
        try:
            if self._teardown:
                pickle.loads(self._teardown)()
        finally:
            self._call(self._on_left)

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

    def _deliver(self) -> None:
        self._is_told = False
        batch: Reports = []
        while self._said:
            hand, report = self._said.popleft()
            if hand.outstanding.pop(report.run, None) is not None:  # type: ignore[union-attr]
                batch.append((hand.slot, report))
        if batch:
            self._report(batch)

    def _abandon(self, hand: _Hand, run: int, why: str) -> None:
        """Go on without the thread that is on this run."""
        hand.is_abandoned = True
        self._alive_count -= 1
        heir = self._hands[hand.slot] = _Hand(hand.slot)
        # The runs that have ended but were not delivered yet are said by the old hand, the others by its heir.
        while hand.queue:
            order = hand.queue.popleft()
            heir.outstanding[order.run] = hand.outstanding.pop(order.run)
            heir.queue.append(order)
            heir.wake.put(True)
        self._say(hand, Died(run, KILLED, b"", why))
        hand.wake.put(True)
        if self._emptied is None:
            self._hire(heir)

    def _watch_soon(self) -> None:
        if self._watcher is None and self._emptied is None:
            self._watcher = self._loop.call_later(WATCH_S, self._watch)

    def _watch(self) -> None:
        self._watcher = None
        now_ns = monotonic_ns()
        for hand in tuple(self._hands):
            run, began_ns = hand.current
            if 0 < hand.outstanding.get(run, 0) < now_ns - began_ns:
                self._abandon(hand, run, TIMEOUT)
        if any(any(hand.outstanding.values()) for hand in self._hands):
            self._watch_soon()
