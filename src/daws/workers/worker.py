"""The process behind one executor: takes orders from its link, runs them one after the other, reports in batches.

A report leaves when there is nothing left to do, or a millisecond after the run it speaks of: inside a batch a run
costs no system call. While a run goes on, a second thread looks after the link every now and then: it sends reports of
runs before this one, hands back runs that are recalled, and sees it when the owner is gone. It sleeps while the worker
is idle.
"""

import atexit
import gc
import os
import pickle
import select
import signal
import sys
from _socket import MSG_DONTWAIT, socket
from _thread import allocate_lock, start_new_thread
from collections import deque
from time import monotonic_ns, sleep
from types import ModuleType
from typing import NoReturn

from daws.wire.worker import (
    ORDERS,
    Ended,
    Execute,
    Exit,
    Fit,
    OrderType,
    Prepare,
    Printed,
    Raised,
    Recall,
    Recalled,
    ReportType,
    Unfit,
    frame_of,
)
from daws.workers.cursor import Cursor
from daws.workers.failures import failure_of
from daws.workers.frames import FrameReader
from daws.workers.output import Output
from daws.workers.running import Runner
from daws.workers.signs import Signs
from daws.workers.surroundings import Surroundings

LINK_FD = 240  # out of the way of tasks that close what they see
REPORT_NS = 1_000_000
QUIET_NS = 50_000  # shorter runs are not asked whether other programs printed on their behalf
TICK_S = 0.005
BUFFER_MAX_BYTES = 1 << 20
IDLE_TICKS_MAX = 40
FIRST_ORDER_S = 0.02
UNFIT_CODE = 97


class Worker:
    """The state of this process."""

    def __init__(self, link: socket, prepare: Prepare) -> None:
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
        self._is_busy = False
        self._is_watched = False
        self._is_copy = False
        self._fields = Cursor(os.path.join(prepare.folder, f"{prepare.name}.cursor")).fields
        self._signs = Signs()
        self._output = Output(prepare.folder, prepare.name, self._signs) if prepare.capture else None
        self._surroundings = Surroundings(self._signs)
        self._runner = Runner(prepare)

    def set_up(self) -> bool:
        """Make ready for orders; False if that went wrong."""
        self._surroundings.follow_moves()
        os.register_at_fork(after_in_child=self._on_copied)
        try:
            if self._prepare.setup:
                pickle.loads(self._prepare.setup)()
        except BaseException as error:
            self._reports.append(Unfit(failure_of(error)))
            self._send()
            return False
        self._reports.append(Fit(os.getpid()))
        self._send()
        start_new_thread(self._watch, ())
        return True

    def work(self) -> None:
        """Until the order to exit."""
        if not select.select([self._link], [], [], FIRST_ORDER_S)[0]:
            _warm_up()
        # The one loop that every run goes through: names are local because that is a tenth of its time.
        surroundings, fields, signs, reports = self._surroundings, self._fields, self._signs, self._reports
        take, execute, now = self._queue.popleft, self._runner.execute, monotonic_ns
        sent_ns = 0
        report: ReportType
        while True:
            try:
                order = take()
            except IndexError:
                self._rest()
                sent_ns = now()
                continue
            if type(order) is not Execute:
                if type(order) is Exit:
                    return
                self._runner.learn(order.function, order.pickled)  # type: ignore[union-attr]
                continue
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
            if signs.any or ended_ns - began_ns > QUIET_NS:
                self._look_around(order)
            reports.append(report)
            if ended_ns - sent_ns > REPORT_NS:
                self._send()
                sent_ns = ended_ns

    def tear_down(self) -> None:
        try:
            if self._prepare.teardown:
                pickle.loads(self._prepare.teardown)()
        finally:
            self._send()

    def _raised(self, run: int, began_ns: int, ended_ns: int, error: BaseException) -> Raised:
        if self._is_copy:
            _end_copy(error)
        return Raised(run, ended_ns - began_ns, failure_of(error), began_ns)

    def _look_around(self, order: Execute) -> None:
        """After a run that took a while, or has done something that others would notice."""
        if self._is_copy:
            os._exit(0)
        self._signs.any = False
        if self._surroundings.is_away:
            self._surroundings.go_home()
        if self._output is not None:
            for stream, text in self._output.take():
                if order.options is None or order.options.capture:
                    self._reports.append(Printed(order.run, stream, text))

    def _rest(self) -> None:
        """Nothing to do: say what there is to say, and wait."""
        self._send()
        self._is_busy = False
        with self._reading:
            if not self._queue:  # the other thread may have received some since we looked
                self._receive(0)
        self._is_busy = True
        if not self._is_watched:
            self._is_watched = True
            if self._wake.locked():
                self._wake.release()

    def _send(self) -> None:
        with self._sending:
            reports = self._reports[:]
            del self._reports[: len(reports)]  # the other thread may have added some meanwhile
            if reports:
                frame_of(reports, self._buffer)
                self._link.sendall(self._buffer)
                if len(self._buffer) > BUFFER_MAX_BYTES:
                    self._buffer = bytearray()

    def _receive(self, flags: int) -> None:
        count = self._link.recv_into(self._reader.room, 0, flags)
        if not count:
            end_group()
        for frame in self._reader.arrived(count):
            orders = ORDERS.decode(frame)
            if Recall in map(type, orders):
                for order in orders:
                    if isinstance(order, Recall):
                        self._recall(order.run)
                    else:
                        self._queue.append(order)
            else:
                self._queue.extend(orders)

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
            while True:
                sleep(TICK_S)
                if self._is_busy:
                    idle_ticks = 0
                    self._look()
                    continue
                idle_ticks += 1
                if idle_ticks > IDLE_TICKS_MAX:
                    self._is_watched = False
                    if not self._is_busy:
                        self._wake.acquire()
                    idle_ticks = 0
        except BaseException:
            end_group()  # the link is broken, and nobody would notice

    def _look(self) -> None:
        if self._output is not None:
            self._output.bound()
        if self._reading.acquire(False):
            try:
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
        self._link.close()


def main(link_fd: int) -> NoReturn:
    """A fresh fork of the fork server becomes a worker."""
    code = 1
    try:
        signal.signal(signal.SIGINT, _ignore)  # not SIG_IGN, which programs started by tasks would inherit
        os.dup2(link_fd, LINK_FD, inheritable=False)
        os.close(link_fd)
        link = socket(fileno=LINK_FD)
        sys.modules["__main__"] = ModuleType("__main__")
        worker = Worker(link, first_order(link))
        gc.set_threshold(50_000, 20, 100)
        if worker.set_up():
            worker.work()
            worker.tear_down()
            code = 0
        else:
            code = UNFIT_CODE
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def first_order(link: socket) -> Prepare:
    """The order that comes in a frame of its own before all others."""
    head = _exactly(link, 4)
    (prepare,) = ORDERS.decode(_exactly(link, int.from_bytes(head, "little")))
    if not isinstance(prepare, Prepare):
        raise TypeError(f"the first order is {prepare!r}")
    return prepare


def end_group() -> NoReturn:
    """The owner is gone: end this worker and whatever its tasks have started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _exactly(link: socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = link.recv(count - len(data))
        if not more:
            end_group()
        data += more
    return data


def _end_copy(error: BaseException) -> NoReturn:
    """An exception leaves the task in a copy that the task itself has forked."""
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
        os._exit(1)
    os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 1)


def _warm_up() -> None:
    """Import while there is nothing to do what functions of `__main__` will need."""
    import cloudpickle  # noqa: F401


def _ignore(*_: object) -> None:
    pass
