"""One worker, seen by the pool: its socket, its outstanding orders, and its position.

Most runs are where the cursor shows them. Runs that have created tasks are kept by name, because they may have waited
since, or may continue beside others. A new run of such a task must be another attempt; the death of the worker makes
sure of that.

Beside the socket there is a *bell*. A worker that is on a long run reads its orders when the run is over, or every now
and then; an urgent order rings the bell.
"""

import contextlib
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket, socketpair
from asyncio import AbstractEventLoop

from daws.data.folders import remove_tree
from daws.wire.frames import NONSENSE, FrameReader
from daws.wire.worker import REPORTS, Learn, OrderType, Prepare, ReportType, RunOptions, frame_of
from daws.workers.cursor import Cursor
from daws.workers.output import HELD, STREAMS, last_output, path_of, unreported
from daws.workers.running import runs_folder

BUFFER_MAX_BYTES = 1 << 20


class WorkerConnection:
    """`outstanding` are runs in the order in which they were ordered; `known` the functions that were sent."""

    __slots__ = (
        "_backlog",
        "_bell",
        "_buffer",
        "_loop",
        "_prepare",
        "_reader",
        "_rings",
        "condemned",
        "creators",
        "cursor",
        "error",
        "is_fit",
        "is_urgent",
        "known",
        "number",
        "orders",
        "outstanding",
        "pid",
        "resumed",
        "slot",
        "sock",
        "suspended",
        "victim",
    )

    def __init__(self, slot: int, number: int, prepare: Prepare, loop: AbstractEventLoop) -> None:
        self.slot = slot
        self.number = number
        self.cursor = Cursor(self._cursor_path(prepare), create=True)
        self.known: set[int] = set()
        self.orders: list[OrderType] = [prepare]
        self.outstanding: dict[int, RunOptions | None] = {}
        self.condemned: set[int] = set()
        self.creators: set[int] = set()  # runs that have created tasks
        self.suspended: dict[int, int] = {}  # runs that wait for tasks, and for how long they had worked before
        self.resumed: dict[int, int] = {}  # runs that have waited, and when they began if waiting does not count
        self.victim: tuple[int, str] | None = None
        self.error: BaseException | None = None
        self.is_fit = False
        self.is_urgent = False  # among the orders is one that cannot wait until a run is over
        self.pid = 0
        self._prepare = prepare
        self._loop = loop
        self._reader = FrameReader(lists=True)
        self._backlog = bytearray()
        self._rings = False  # there is something in the backlog that cannot wait
        self._buffer = bytearray()  # of its own: another cluster of this process has a thread of its own

    @staticmethod
    def _cursor_path(prepare: Prepare) -> str:
        return os.path.join(prepare.folder, f"{prepare.name}.cursor")

    def open(self, ours: socket | None) -> socket | None:
        """Make the link; answers the worker's end of it, unless it has that already. If it cannot be made, nothing is
        left of it."""
        theirs = None
        with contextlib.ExitStack() as undo:
            undo.callback(os.unlink, self._cursor_path(self._prepare))
            undo.callback(self.cursor.close)
            self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            undo.callback(os.close, self._bell)
            if ours is None:
                ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
            undo.pop_all()
        self.sock = ours
        self.sock.setblocking(False)
        with contextlib.suppress(OSError):  # it is dead already, which the fork server will say
            self.sock.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, self._bell.to_bytes(4, sys.byteorder))])
        self.flush()
        return theirs

    def teach(self, function: int, pickled: bytes) -> None:
        self.known.add(function)
        self.orders.append(Learn(function, pickled))

    @property
    def current(self) -> int | None:
        """The run that it is on, or was on last, if that is still outstanding and has never waited."""
        run = self.cursor.fields[0]
        return run if run in self.outstanding and run not in self.suspended and run not in self.resumed else None

    @property
    def active(self) -> dict[int, int]:
        """The runs that go on, as far as is known, and when they began."""
        run = self.current
        return self.resumed if run is None else {**self.resumed, run: self.cursor.fields[1]}

    def forget(self, run: int) -> None:
        """Forget a run that was reported, with its state if it had created tasks."""
        self.creators.discard(run)
        self.suspended.pop(run, None)
        self.resumed.pop(run, None)

    def flush(self) -> None:
        """Send all orders in one frame. If the socket cannot take all of it now, the rest follows as soon as
        possible."""
        if not self.orders:
            return
        buffer, orders = self._buffer, self.orders
        rings, self.is_urgent = self.is_urgent, False
        frame_of(orders, buffer)
        orders.clear()
        if self._backlog:
            self._backlog += buffer
            if rings:
                self._rings = True
                os.eventfd_write(self._bell, 1)  # it may not have read the orders before yet
        else:
            sent = self._try(buffer)
            if sent < len(buffer):
                self._backlog += memoryview(buffer)[sent:]
                self._loop.add_writer(self.sock.fileno(), self._on_writable)
                self._rings = rings
            if rings:  # also for a part: there is no room for the rest before it is read
                os.eventfd_write(self._bell, 1)
        if len(buffer) > BUFFER_MAX_BYTES:
            self._buffer = bytearray()

    def _on_writable(self) -> None:
        sent = self._try(self._backlog)
        del self._backlog[:sent]
        if self._rings:
            os.eventfd_write(self._bell, 1)
        if not self._backlog:
            self._loop.remove_writer(self.sock.fileno())
            self._rings = False

    def _try(self, data: bytearray) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it is dead, which the fork server will say

    def receive(self) -> list[ReportType] | None:
        """The reports that have arrived; None when no more will come, or when they make no sense."""
        try:
            return self._received()
        except BlockingIOError:
            return []

    def rest(self) -> list[ReportType]:
        """All reports that arrived before it died and were not received yet."""
        found: list[ReportType] = []
        try:
            while (reports := self._received()) is not None:
                found += reports
        except BlockingIOError:
            pass
        return found

    def _received(self) -> list[ReportType] | None:
        try:
            count = self.sock.recv_into(self._reader.room)
            if not count:
                return None
            frames = self._reader.arrived(count)
            if len(frames) == 1:
                return REPORTS.decode(frames[0])
            return [report for frame in frames for report in REPORTS.decode(frame)]
        except BlockingIOError:
            raise
        except (OSError, *NONSENSE):
            return None

    def close(self) -> tuple[bytes, list[tuple[int, bytes]]]:
        """Close the connection of a dead worker. Returns the end of its last run's output, and the unreported output by
        stream."""
        self._loop.remove_reader(self.sock.fileno())
        if self._backlog:
            self._loop.remove_writer(self.sock.fileno())
        self.sock.close()
        os.close(self._bell)
        self.orders.clear()  # no order may ring any more
        taken, is_held = self.cursor.fields[3:5].tolist(), self.cursor.fields[HELD]
        self.cursor.close()
        remove_tree(runs_folder(self._prepare))
        folder, name = self._prepare.folder, self._prepare.name
        output = last_output(folder, name)
        left = [] if is_held else unreported(folder, name, taken)
        for path in (self._cursor_path(self._prepare), *(path_of(folder, name, stream) for stream in STREAMS)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return output, left
