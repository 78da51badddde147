"""The process behind one executor: takes orders from its link, runs them one after the other, reports in batches.

A report leaves when there is nothing left to do, or three milliseconds after the last: inside a batch a run costs no
system call. While a run goes on, a second thread serves the link: it sends reports of earlier runs, hands back runs
that are recalled, and notices when the owner is gone. It does so every now and then while runs are short, and when the
bell rings while they are long. It sleeps while the worker is idle.

A run that waits for tasks that it has created keeps its thread, and another thread continues in its place. There is one
*baton*, and the thread that has it takes orders. A run that goes on later does so beside the one with the baton. That
one mostly has nothing to do then, because the node gave the executor back to the run.
"""

import gc
import os
import select
import signal
import sys
from _socket import MSG_DONTWAIT, socket
from _thread import allocate_lock, start_new_thread
from collections import deque
from contextlib import suppress
from os import eventfd_read, eventfd_write
from time import monotonic_ns, sleep
from types import ModuleType
from typing import NoReturn

import msgspec

from daws.model.errors import UnavailableError, UsageError
from daws.wire.frames import FrameReader
from daws.wire.worker import (
    AT_ONCE,
    ORDERS,
    Asks,
    Discard,
    Ended,
    Execute,
    ExecuteTogether,
    Exit,
    Fit,
    Learn,
    OrderType,
    Prepare,
    Printed,
    Raised,
    Recall,
    Recalled,
    ReportType,
    ResumeOrder,
    Told,
    Unfit,
    WaitReport,
    calls_apart,
    ends_together,
    frame_of,
)
from daws.workers.cursor import NO_RUN, Cursor
from daws.workers.failures import failure_of, lacked_by
from daws.workers.logs import Logs
from daws.workers.mappings import IDLE_S
from daws.workers.nest import Hand, RunNest, here
from daws.workers.output import HELD, Output, Streams
from daws.workers.process import BELL_FD, LINK_FD, end_copy, end_group, end_process, first_order, take_bell
from daws.workers.running import Runner
from daws.workers.signs import Signs
from daws.workers.surroundings import Surroundings
from daws.workers.system import sleep_precisely

REPORT_NS = 3_000_000
"""The time for which a busy worker may keep reports back. Each report wakes the node, which interrupts a worker if all
processors are busy. (Tasks of 1 ms: 87 % efficiency when each is reported by itself, 91 % with this limit.)"""
SPIN_NS = 500_000
"""The time for which a worker polls for the next order before it sleeps, because waking a sleeping processor takes
longer than a short task. It polls if its tasks are shorter than this and the last wait was no longer. (The median round
trip of a task that does nothing: 200 to 290 µs with polling, 300 to 400 without.)"""
QUIET_NS = 50_000  # shorter runs are not asked whether other programs printed on their behalf
TICK_S = 0.005
LONG_NS = 3_000_000
DOZE_MS = 50
"""While a run has lasted for longer than LONG_NS, the second thread waits for the bell instead of asking for orders,
and looks up after DOZE_MS at the latest. Whenever it wakes up it wants the interpreter, which the run has, and both of
them stop and go on several times: 40 µs of a processor. (Tasks of 10 ms, each of which comes while another runs: 97.2 %
efficiency when the second thread took them, 98.4 % so.)"""
BUFFER_MAX_BYTES = 1 << 20
IDLE_TICKS_MAX = 40
FIRST_ORDER_S = 0.02
UNFIT_CODE = 97
SPARE_HANDS_MAX = 16


class WorkerHand(Hand):
    """A thread of this process. Without the baton it is on a run that has waited, or has nothing to do."""

    __slots__ = ("baton", "has_baton", "is_main")

    def __init__(self, worker: "Worker", is_main: bool) -> None:
        super().__init__(worker)
        self.is_main = is_main
        self.has_baton = False
        self.baton = allocate_lock()
        self.baton.acquire()


class Worker:
    """The state of this process."""

    def __init__(self, link: socket, prepare: Prepare) -> None:
        self.workers = prepare.workers
        self.taught: set[int] = set()
        self._link = link
        self._prepare = prepare
        self._reader = FrameReader()
        self._queue: deque[OrderType] = deque()
        self._reports: list[ReportType] = []
        self._buffer = bytearray()
        self._reading = allocate_lock()
        self._sending = allocate_lock()
        self._wake = allocate_lock()
        self._wake.acquire()
        self._rests_briefly = False
        self._is_busy = False
        self._is_watched = False
        self._dozes = False  # the second thread does: a thread that leaves something in `_reports` for it has to ring
        self._is_copy = False
        self._fields = Cursor(os.path.join(prepare.folder, f"{prepare.name}.cursor")).fields
        self._signs = Signs()
        self._output: Output | None = None
        if prepare.capture:
            folder, name = prepare.folder, prepare.name
            self._output = Output(folder, name, self._signs, self._fields, self._printed, here)
        self._streams = Streams()
        self._surroundings = Surroundings(self._signs)
        self.runner = Runner(prepare, self._announce, is_process=True)
        self.runner.hold_output = self._hold_output
        self._logs = Logs(prepare.name, self._logged, self._signs)
        self.runner.use_levels = self._logs.use
        self._taker: WorkerHand | None = None  # the hand that has the baton
        self._beside: set[WorkerHand] = set()  # the hands whose runs go on without it
        self._nests: dict[int, RunNest] = {}  # of runs that wait for an answer
        self._spare: list[WorkerHand] = []

    def set_up(self) -> bool:
        """Make ready for orders; False if that went wrong."""
        self._surroundings.follow_moves()
        if self._output is not None:
            self._logs.begin()
        os.register_at_fork(after_in_child=self._on_copied)
        try:
            if self._prepare.setup:
                self.runner.set_up(self._prepare.setup)
                self._streams = Streams()  # those of the set-up are for all runs
        except BaseException as error:
            self._reports.append(Unfit(failure_of(error)))
            self._send()
            return False
        self._reports.append(Fit(os.getpid()))
        self._send()
        start_new_thread(self._watch, ())
        return True

    def work(self) -> None:
        """Work in the first thread, until the order to exit."""
        if not select.select([self._link], [], [], FIRST_ORDER_S)[0]:
            _warm_up()
        hand = WorkerHand(self, is_main=True)
        hand.baton.release()
        self._serve(hand)

    def _serve(self, hand: WorkerHand) -> None:
        """The life of a thread: take orders while it has the baton. Ends with the process, or when there are enough."""
        here.hand = hand
        while True:
            hand.baton.acquire()
            hand.has_baton = True
            self._taker = hand
            self._take_orders(hand)
            hand.order = None
            self._beside.discard(hand)
            if hand.has_baton:
                self._exit()
            is_needed = hand.is_main or len(self._spare) < SPARE_HANDS_MAX
            if is_needed:
                # The main thread is the first to be taken: some things can be done nowhere else.
                self._spare.insert(len(self._spare) if hand.is_main else 0, hand)
            self._send()
            if not is_needed:
                return

    def _serve_or_end(self, hand: WorkerHand) -> None:
        try:
            self._serve(hand)
        except BaseException:  # no other thread would ever take orders again
            sys.excepthook(*sys.exc_info())
            end_process(1)

    def _take_orders(self, hand: WorkerHand) -> None:
        """Take orders until the order to exit, or until another hand has the baton."""
        # The one loop that every run goes through: names are local because that is a tenth of its time.
        surroundings, fields, signs, reports = self._surroundings, self._fields, self._signs, self._reports
        take, execute, now = self._queue.popleft, self.runner.execute, monotonic_ns
        out, err = self._streams.out, self._streams.err
        sent_ns = began_ns = ended_ns = 0
        report: ReportType
        while True:
            try:
                order = take()
            except IndexError:
                self._rest(ended_ns - began_ns < SPIN_NS)
                sent_ns = now()
                continue
            if type(order) is not Execute:
                if type(order) is Exit:
                    return
                if type(order) is Learn:
                    self.runner.learn(order.function, order.pickled)
                else:
                    self._forget(order.functions)  # type: ignore[union-attr]
                continue
            hand.order = order
            if order.options is not None or surroundings.is_changed:
                surroundings.change(order.options)
            fields[1] = began_ns = now()
            fields[0] = run = order.run
            try:
                results = execute(order)
                ended_ns = now()
                report = Ended(run, ended_ns - began_ns, results, began_ns)
            except BaseException as error:
                ended_ns = now()
                report = self._raised(run, began_ns, ended_ns, error)
            if signs.any or ended_ns - began_ns > QUIET_NS or sys.stdout is not out or sys.stderr is not err:
                self._look_around(hand)
            if hand.nest is not None:
                report = self._leave_nest(hand, report)
                if not hand.has_baton:
                    reports.append(report)
                    return
            reports.append(report)
            if ended_ns - sent_ns > REPORT_NS:
                self._send()
                sent_ns = ended_ns
            elif self._dozes:  # short runs have come: it is to look after their reports again
                eventfd_write(BELL_FD, 1)

    def _forget(self, functions: tuple[int, ...]) -> None:
        self.runner.forget(functions)
        self.taught.difference_update(functions)

    def _exit(self) -> NoReturn:
        """Exit, in the thread that received the order."""
        code = 1
        try:
            self.tear_down()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            end_process(code)

    def tear_down(self) -> None:
        try:
            if self._prepare.teardown:
                self.runner.tear_down(self._prepare.teardown)
        finally:
            if self._output is not None:
                self._output.end(None)
            self._logs.tell_lost()
            self._send()

    # What runs that create tasks ask for (see `daws.workers.nest.Host`).

    def open_nest(self, hand: Hand) -> RunNest:
        if self._is_copy:
            raise UsageError("a process that a task has forked cannot submit tasks")
        assert hand.order is not None
        hand.nest = RunNest(hand, hand.order.run, self._fields[1])
        return hand.nest

    def say(self, hand: Hand, report: ReportType) -> None:
        self._reports.append(report)
        if not hand.has_baton or self._dozes:  # type: ignore[attr-defined]
            self._send()  # the thread with the baton may be idle, and would not send reports then

    def pause(self, hand: Hand, waits: WaitReport) -> None:
        assert isinstance(hand, WorkerHand) and hand.nest is not None and hand.order is not None
        heir = self._heir() if hand.has_baton else None
        streams = sys.stdout, sys.stderr
        self._beside.discard(hand)
        self._look_around(hand, is_over=False)
        self._nests[waits.run] = hand.nest
        self._reports.append(waits)
        self._send()
        if heir is not None:
            hand.has_baton = False
            heir.baton.release()
        hand.nest.gate.acquire()
        del self._nests[waits.run]
        if not hand.has_baton:
            self._beside.add(hand)
            self._be_watched()
        sys.stdout, sys.stderr = streams  # those that the run may have put there
        if hand.order.options is not None or self._surroundings.is_changed:
            self._surroundings.change(hand.order.options)
        self.runner.surround(hand.order.function)

    def ask(self, hand: Hand, asks: Asks) -> None:
        assert isinstance(hand, WorkerHand) and hand.nest is not None
        gate = hand.nest.gate
        self._nests[asks.run] = hand.nest
        self._reports.append(asks)
        self._send()
        while hand.has_baton and not gate.acquire(False):
            with self._reading:
                if gate.locked():
                    self._receive(0)
        if not hand.has_baton:
            gate.acquire()
        del self._nests[asks.run]

    def _heir(self) -> WorkerHand:
        """A thread for the baton."""
        if self._spare:
            return self._spare.pop()
        heir = WorkerHand(self, is_main=False)
        try:
            start_new_thread(self._serve_or_end, (heir,))
        except RuntimeError as error:
            text = f"too many tasks of this worker wait for others ({len(self._nests)}): {error}"
            raise UnavailableError(text, retry=True) from error
        return heir

    def _leave_nest(self, hand: WorkerHand, report: ReportType) -> ReportType:
        """A run that has created tasks is over: the time for which it waited does not count."""
        nest, hand.nest = hand.nest, None
        assert nest is not None and isinstance(report, Ended | Raised)
        nest.close()
        return msgspec.structs.replace(report, duration_ns=max(0, report.duration_ns - nest.waited_ns))

    def _announce(self, group: int) -> None:
        self._fields[2] = group

    def _raised(self, run: int, began_ns: int, ended_ns: int, error: BaseException) -> Raised:
        if self._is_copy:
            end_copy(error)
        return Raised(run, ended_ns - began_ns, failure_of(error), began_ns, lacked_by(error))

    def _look_around(self, hand: WorkerHand, is_over: bool = True) -> None:
        """Look around after a run that took a while or changed something, and before a run waits."""
        if self._is_copy:
            os._exit(0)
        self._logs.end_run()
        self._signs.any = False
        self._streams.give_back()
        if self._surroundings.is_away:
            self._surroundings.go_home()
        if self._output is not None:
            if is_over:
                self._output.end(hand)
            else:
                self._output.pause(hand)

    def _printed(self, hand: Hand | None, stream: int, text: bytes) -> None:
        order = None if hand is None else hand.order
        if order is None or order.options is None or order.options.capture:
            self._reports.append(Printed(NO_RUN if order is None else order.run, stream, text))

    def _logged(self, what: int, text: bytes) -> None:
        """Send a log record, in the thread that logs, behind the output before it."""
        hand = here.hand or self._taker
        if self._is_copy:
            return
        if self._output is not None:
            self._output.look(hand)
        self._printed(hand, what, text)

    def _hold_output(self, is_held: bool) -> None:
        self._fields[HELD] = is_held

    def _rest(self, was_short: bool) -> None:
        """Nothing to do: say what there is to say, and wait."""
        self._send()
        self._is_busy = False
        with self._reading:
            if not self._queue:  # the other thread may have received some since we looked
                began_ns = monotonic_ns()
                if not (was_short and self._rests_briefly and self._spin(began_ns + SPIN_NS)):
                    mappings = self.runner.mappings
                    if mappings is not None and mappings.is_holding and not self._has_orders_within(IDLE_S):
                        mappings.let_go()
                    self._receive(0)
                self._rests_briefly = monotonic_ns() - began_ns < SPIN_NS
        self._is_busy = True
        self._be_watched()

    def _has_orders_within(self, seconds: float) -> bool:
        return bool(select.select([self._link], [], [], seconds)[0])

    def _be_watched(self) -> None:
        """Wake the second thread if it sleeps."""
        if not self._is_watched:
            self._is_watched = True
            if self._wake.locked():
                self._wake.release()

    def _spin(self, until_ns: int) -> bool:
        """Poll for orders, and yield the processor in between; have any come?"""
        receive, give_way = self._receive, os.sched_yield
        while monotonic_ns() < until_ns:
            try:
                receive(MSG_DONTWAIT)
                return True
            except BlockingIOError:
                give_way()
        return False

    def _send(self) -> None:
        with self._sending:
            reports = self._reports[:]
            del self._reports[: len(reports)]  # the other thread may have added some meanwhile
            if reports:
                frame_of(ends_together(reports), self._buffer)
                self._link.sendall(self._buffer)
                if len(self._buffer) > BUFFER_MAX_BYTES:
                    self._buffer = bytearray()

    def _receive(self, flags: int) -> None:
        count = self._link.recv_into(self._reader.room, 0, flags)
        if not count:
            end_group()
        for frame in self._reader.arrived(count):
            orders = ORDERS.decode(frame)
            if ExecuteTogether in map(type, orders):
                orders = _apart(orders)
            if AT_ONCE.isdisjoint(map(type, orders)):
                self._queue.extend(orders)
                continue
            for order in orders:
                if isinstance(order, Recall):
                    self._recall(order.run)
                elif isinstance(order, ResumeOrder | Told):
                    if order.run in self._nests:
                        self._nests[order.run].hear(order.ended)
                elif isinstance(order, Discard):
                    if order.run in self._nests:
                        self._nests[order.run].discard()
                else:
                    self._queue.append(order)

    def _recall(self, run: int) -> None:
        # In the second thread: the first one may take orders from the queue between any two lines of this.
        for order in tuple(self._queue):
            if type(order) is Execute and order.run == run:
                try:
                    self._queue.remove(order)
                except ValueError:
                    return
                self._reports.append(Recalled(run))
                return

    def _watch(self) -> None:
        """The second thread."""
        try:
            idle_ticks = 0
            bell = select.poll()
            bell.register(BELL_FD, select.POLLIN)
            while True:
                if self._has_runs() and monotonic_ns() - self._fields[1] > LONG_NS:
                    self._dozes = True
                    if not self._reports:  # a thread that comes later with one rings
                        bell.poll(DOZE_MS)
                    self._dozes = False
                    with suppress(BlockingIOError):
                        eventfd_read(BELL_FD)
                else:
                    sleep(TICK_S)
                if self._has_runs():
                    idle_ticks = 0
                    self._look()
                    continue
                idle_ticks += 1
                if idle_ticks > IDLE_TICKS_MAX:
                    self._is_watched = False
                    if not self._has_runs():
                        self._wake.acquire()
                    idle_ticks = 0
        except BaseException:
            end_group()  # the link is broken, and the owner would not notice

    def _has_runs(self) -> bool:
        """Does any run go on, with the baton or without?"""
        return self._is_busy or bool(self._beside)

    def _look(self) -> None:
        mappings = self.runner.mappings
        if mappings is not None and mappings.is_holding and monotonic_ns() - self._fields[1] > IDLE_S * 1e9:
            mappings.let_go(self._fields[1])
        if self._output is not None:
            self._output.look(self._taker if self._is_busy else next(iter([*self._beside]), None))
        if self._reading.acquire(False):
            try:
                while True:  # the bell rings once, however much has come
                    self._receive(MSG_DONTWAIT)
            except BlockingIOError:
                pass
            finally:
                self._reading.release()
        if self._reports:
            self._send()

    def _on_copied(self) -> None:
        """A task has forked: the copy must not go on as if it were the worker."""
        self._is_copy = self._signs.any = True
        self._queue.clear()
        self._reports.clear()
        if self._output is not None:
            self._output.leave()
        self._link.close()


def _apart(orders: list[OrderType]) -> list[OrderType]:
    found: list[OrderType] = []
    for order in orders:
        if type(order) is ExecuteTogether:
            found += calls_apart(order)
        else:
            found.append(order)
    return found


def main(link_fd: int) -> NoReturn:
    """A fresh fork of the fork server becomes a worker."""
    code = 1
    try:
        signal.signal(signal.SIGINT, _ignore)  # not SIG_IGN, which programs started by tasks would inherit
        os.dup2(link_fd, LINK_FD, inheritable=False)
        os.close(link_fd)
        link = socket(fileno=LINK_FD)
        take_bell(link)
        sleep_precisely()
        sys.modules["__main__"] = ModuleType("__main__")
        worker = Worker(link, first_order(link))
        gc.set_threshold(50_000, 20, 100)
        if worker.set_up():
            worker.work()
        else:
            code = UNFIT_CODE
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        end_process(code)


def _warm_up() -> None:
    """Import while there is nothing to do what functions of `__main__` will need."""
    import cloudpickle  # noqa: F401


def _ignore(*_: object) -> None:
    pass
