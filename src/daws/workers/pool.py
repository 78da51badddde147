"""The workers of a node, one per slot, on the node's own event loop.

Every run that was handed over by `execute` is reported exactly once. A live worker reports it (Ended, Raised,
Recalled). For a dead worker the pool does: Died for the run it was on and for those that had created tasks, Recalled
for the others. Dead workers are replaced at once. All methods belong to the thread of the loop.
"""

import asyncio
import os
import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from time import monotonic_ns

import msgspec

from daws.data.folders import remove_tree
from daws.data.limits import with_cure
from daws.model.errors import InternalError
from daws.wire.worker import (
    MEMORY,
    STOPPED,
    TIMEOUT,
    Asks,
    ChildEnd,
    Died,
    Discard,
    Dropped,
    Ended,
    EndedTogether,
    Execute,
    ExecuteTogether,
    Exit,
    Fit,
    Forget,
    Prepare,
    Printed,
    Raised,
    Recall,
    Recalled,
    ReportType,
    ResumeOrder,
    RunOptions,
    Spawned,
    Taught,
    Told,
    Unfit,
    WaitReport,
    ends_apart,
)
from daws.workers.cursor import NO_RUN
from daws.workers.errors import WorkerStartError
from daws.workers.failures import exception_of
from daws.workers.limits import held_bytes
from daws.workers.link import WorkerConnection
from daws.workers.server import BORN, GONE, ForkServer, end_group
from daws.workers.system import wait_for_turns

Reports = list[ReportType]

INLINE_MAX_BYTES = 1 << 16
STARTS_MAX = 5
WATCH_S = 0.02
END_S = 5.0
ASIDE_MAX = 64
SETTLING = frozenset((Ended, Raised, Recalled))
ENDED_ALONE = {Ended}
MISSING = RunOptions(cores=-1)  # stands for no run at all


class WorkerPool:
    """The pool of worker processes.

    `report` gets batches of (slot, report). `failed` is called when workers cannot be started any more, `gone` for each
    dead worker, after all its reports were passed on.

    `folder` is made if it does not exist. It is removed with everything in it when the pool is closed or its process
    ends in whatever way. `memory` and `scratch` are the folders of the node's objects (see `Prepare`). `setup` and
    `teardown` are pickled callables that each worker calls first and last. A `server` that was started earlier, for
    this folder or for one around it, saves the time that it takes to start.
    """

    def __init__(
        self,
        slots: int,
        folder: str,
        loop: AbstractEventLoop,
        report: Callable[[Reports], None],
        *,
        failed: Callable[[WorkerStartError], None] | None = None,
        gone: Callable[[int], object] | None = None,
        inline_max_bytes: int = INLINE_MAX_BYTES,
        held_max_bytes: object = None,
        memory: str = "",
        scratch: str = "",
        capture: bool = True,
        setup: bytes = b"",
        teardown: bytes = b"",
        server: ForkServer | None = None,
    ) -> None:
        self._loop = loop
        self._report = report
        self._failed = failed
        self._gone = gone
        self._folder = os.path.abspath(folder)
        self._prepare = Prepare("", self._folder, inline_max_bytes, memory, scratch, capture, setup, teardown, slots)
        self._server = server
        self._folders = (self._folder,) if server is None else server.folders
        self._links: list[WorkerConnection] = []
        self._by_number: dict[int, WorkerConnection] = {}
        self._numbers = 0
        self._starts = [0] * slots
        self._functions: dict[int, bytes] = {}
        self._dirty: list[WorkerConnection] = []
        self._watcher: asyncio.TimerHandle | None = None
        self._error: WorkerStartError | None = None
        self._is_closing = False
        self._server_falls = 0
        self._started: asyncio.Future[None] | None = None
        self._emptied: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        runs = sum(len(link.outstanding) for link in self._by_number.values())
        return f"WorkerPool({len(self._starts)} slots, {runs} runs)"

    @property
    def pids(self) -> list[int]:
        """The process behind each slot; 0 while it is being started."""
        return [link.pid for link in self._links]

    async def start(self) -> None:
        """Start all workers and wait until they take orders. WorkerStartError if they do not."""
        self._started = self._loop.create_future()
        self.begin()
        await self._started

    def begin(self) -> None:
        """Start all workers. They can be given orders from now on, and will find them when they are ready."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._serve(self._server)
        self._links = [self._hired(slot) for slot in range(len(self._starts))]

    def learn(self, function: int, pickled: bytes) -> None:
        """Let orders name this function from now on. Each worker gets it before its first call."""
        self._functions[function] = pickled
        for link in self._links:
            link.known.discard(function)

    def forget(self, functions: tuple[int, ...]) -> None:
        """No order names these any more, unless they are learnt anew. All workers hear of it: one that has never called
        a function may have brought it in. It leaves with the next `flush`."""
        for function in functions:
            self._functions.pop(function, None)
        for link in self._by_number.values():
            link.known.difference_update(functions)
            if not link.orders:
                self._dirty.append(link)
            link.orders.append(Forget(functions))

    def execute(self, slot: int, order: Execute) -> None:
        """Hand a run to a worker, behind what it has already. It leaves with the next `flush`."""
        options = order.options
        is_limited = options is not None and _is_limited(options)
        if is_limited and (self._links[slot].suspended or self._links[slot].resumed):
            self._set_aside(slot)  # runs that wait there must not end with it
        link = self._addressed(slot)
        if order.function not in link.known:
            link.teach(order.function, self._functions[order.function])
        link.orders.append(order)
        link.outstanding[order.run] = options
        if is_limited:
            self._watch_soon()

    def execute_together(self, slot: int, order: ExecuteTogether) -> None:
        """Hand over many usual runs of one function."""
        link = self._addressed(slot)
        if order.function not in link.known:
            link.teach(order.function, self._functions[order.function])
        link.orders.append(order)
        link.outstanding.update(dict.fromkeys(order.runs))

    def execute_all(self, slot: int, orders: list[Execute]) -> None:
        """Hand over many runs without limits of their own, in this order."""
        link = self._addressed(slot)
        if len(orders) == 1:  # in few steps: somebody may wait for this one
            (order,) = orders
            if order.function in link.known:
                link.orders.append(order)
                link.outstanding[order.run] = None
                return
        for function in {order.function for order in orders} - link.known:
            link.teach(function, self._functions[function])
        link.orders += orders
        link.outstanding.update([(order.run, None) for order in orders])

    def _addressed(self, slot: int) -> WorkerConnection:
        """A worker that will have something to read after the next `flush`."""
        if self._error is not None:
            raise self._error
        link = self._links[slot]
        if not link.orders:
            self._dirty.append(link)
        return link

    def recall(self, slot: int, run: int) -> None:
        """Ask for a run that has not started: answered by Recalled or, too late, by what becomes of it."""
        self._order(self._with(slot, run), Recall(run))

    def resume(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None:
        """Let a run go on that waited for tasks. It does so in its own process, whichever slot the node gave to it."""
        link = self._with(slot, run)
        if run in link.suspended:
            link.resumed[run] = monotonic_ns() - link.suspended.pop(run)
            self._order(link, ResumeOrder(run, ended))

    def tell(self, slot: int, run: int, ended: tuple[ChildEnd, ...]) -> None:
        """Answer a run that asked which of its tasks have ended."""
        self._order(self._with(slot, run), Told(run, ended))

    def set_aside(self, slot: int, run: int) -> None:
        """Leave the worker in which this run waits to it, unless it was left to it before."""
        if run in self._links[slot].suspended:
            self._set_aside(slot)

    def _set_aside(self, slot: int) -> None:
        """Leave a worker to its runs that wait, or that go on after they have waited, and let another worker take the
        orders of its slot.

        The end of the new worker then does not end those runs. If there are too many such workers, runs share one.
        """
        if self._error is None and len(self._by_number) < len(self._starts) + ASIDE_MAX:
            with suppress(OSError):  # too many files are open: the worker stays shared
                self._links[slot] = self._hired(slot)

    def _with(self, slot: int, run: int) -> WorkerConnection:
        """The worker of a slot that has this run."""
        link = self._links[slot]
        if run not in link.outstanding and len(self._by_number) > len(self._links):
            return next((one for one in self._by_number.values() if run in one.outstanding), link)
        return link

    def _dismiss(self, link: WorkerConnection) -> None:
        """Dismiss a worker that was set aside and whose waiting runs have ended. Its tear-down may take some time, but
        not for ever."""
        link.orders.append(Exit())
        link.flush()
        self._loop.call_later(END_S, self._end_dismissed, link)

    def _end_dismissed(self, link: WorkerConnection) -> None:
        if link.number in self._by_number and self._server is not None and not self._is_closing:
            self._kill(link)

    def _order(self, link: WorkerConnection, order: Recall | ResumeOrder | Told | Discard) -> None:
        """Something about a run, if it is outstanding still. None of these stands in line."""
        if order.run in link.outstanding:
            if not link.orders:
                self._dirty.append(link)
            link.orders.append(order)
            link.is_urgent = True

    def kill(self, slot: int, run: int) -> None:
        """Stop a run, with its worker if it has started and does not wait. It is reported as Died, Recalled or (if it
        waited) Raised, or it was over already."""
        link = self._with(slot, run)
        if run not in link.outstanding:
            return
        if run in link.suspended:
            self._order(link, Discard(run))
        elif run == link.current or run in link.resumed:
            self._end(link, run, STOPPED)
        else:
            self.recall(slot, run)
            link.condemned.add(run)
            self._watch_soon()

    def flush(self) -> None:
        """Send all orders, in one frame per worker."""
        for link in self._dirty:
            link.flush()
        self._dirty.clear()

    async def close(self, grace_s: float = 2.0) -> None:
        """End all workers: those that are idle with their tear-down, within that time, the others at once."""
        if self._is_closing:
            return
        self._is_closing = True
        self._error = self._error or WorkerStartError("the pool of workers is closed", retry=False)
        if self._watcher is not None:
            self._watcher.cancel()
        if self._started is not None:
            self._started.cancel()
        if self._server is not None:
            await self._let_go(self._server, grace_s)
        if self._links:
            remove_tree(self._folder)  # the fork server has done so, unless it is dead itself

    async def _let_go(self, server: ForkServer, grace_s: float) -> None:
        self._emptied, self._ended = self._loop.create_future(), self._loop.create_future()
        for link in self._by_number.values():
            if link.is_fit and not link.outstanding:
                link.orders.append(Exit())
                link.flush()
            else:
                self._kill(link)
        if self._by_number:
            await asyncio.wait([self._emptied, self._ended], timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        server.let_go()
        await asyncio.wait([self._ended], timeout=END_S)
        self._loop.remove_reader(server.link.fileno())
        self._loop.remove_writer(server.link.fileno())
        server.bury(kill=not self._ended.done())
        self._server = None
        for link in tuple(self._by_number.values()):
            self._on_gone(link, -signal.SIGKILL)

    # Workers come and go.

    def _hired(self, slot: int) -> WorkerConnection:
        self._numbers += 1
        number, server = self._numbers, self._server_now
        link = WorkerConnection(
            slot, number, msgspec.structs.replace(self._prepare, name=f"worker-{number}"), self._loop
        )
        theirs = link.open(server.early.pop(number, None))
        self._by_number[number] = link
        self._loop.add_reader(link.sock.fileno(), self._on_readable, link)
        if not (server.send() if theirs is None else server.fork(number, theirs)):
            self._loop.add_writer(server.link.fileno(), self._on_server_writable)
        return link

    def _kill(self, link: WorkerConnection) -> None:
        if not self._server_now.kill(link.number):
            self._loop.add_writer(self._server_now.link.fileno(), self._on_server_writable)

    def _end(self, link: WorkerConnection, run: int, why: str) -> None:
        """End a worker because of one run."""
        if link.victim is None:
            link.victim = run, why
            self._kill(link)

    def _on_gone(self, link: WorkerConnection, code: int) -> None:
        """Handle a dead worker: take its last reports, replace it, and answer for its runs."""
        batch = self._settled(link, link.rest())
        del self._by_number[link.number]
        current = link.current
        # It was on a command, whose program may not even have been announced yet: the fork server finds it.
        if link.cursor.fields[2] and self._server is not None and not self._server.sweep():
            self._loop.add_writer(self._server.link.fileno(), self._on_server_writable)
        output, left = link.close()
        run, why = link.victim or (current, "")
        batch += [Printed(NO_RUN if run is None else run, stream, text) for stream, text in left]
        for other in link.outstanding:
            if other == run:
                batch.append(Died(other, code, output, why))
            elif other in link.creators:
                waited = other in link.suspended or link.victim is not None
                under = -1 if run is None else run
                batch.append(Died(other, code, b"" if waited else output, "", waited, under))
            else:
                batch.append(Recalled(other))
        link.outstanding.clear()
        self._replace(link, code, output)
        if batch:
            self._report(batch)
        if self._gone is not None and link.pid:
            self._gone(link.pid)
        if self._emptied is not None and not self._by_number and not self._emptied.done():
            self._emptied.set_result(None)

    def _replace(self, link: WorkerConnection, code: int, output: bytes) -> None:
        if self._is_closing or self._error is not None or self._links[link.slot] is not link:
            return
        if not link.is_fit:
            self._starts[link.slot] += 1
            if self._starts[link.slot] >= STARTS_MAX:
                self._give_up(_start_error(link, code, output))
                return
        try:
            self._links[link.slot] = self._hired(link.slot)
        except OSError as error:
            self._give_up(WorkerStartError(f"a worker cannot be replaced: {with_cure(error)}", retry=False))

    def _give_up(self, error: WorkerStartError) -> None:
        self._error = error
        if self._started is not None and not self._started.done():
            self._started.set_exception(error)
        elif self._failed is not None:
            self._failed(error)

    # What they say.

    def _on_readable(self, link: WorkerConnection) -> None:
        reports = link.receive()
        if reports is None:  # it has closed its end, or speaks nonsense
            self._loop.remove_reader(link.sock.fileno())
            self._kill(link)
        elif reports and (batch := self._settled(link, reports)):
            self._report(batch)
            if not link.outstanding and self._links[link.slot] is not link:
                self._dismiss(link)

    def _settled(self, link: WorkerConnection, reports: list[ReportType]) -> Reports:
        """The reports for the owner: every run once."""
        outstanding, creators = link.outstanding, link.creators
        if not creators and set(map(type, reports)) == ENDED_ALONE:  # by far the most common
            settle = outstanding.pop
            return [one for one in reports if settle(one.run, MISSING) is not MISSING]  # type: ignore[union-attr]
        batch: Reports = []
        for report in reports:
            kind = report.__class__
            if kind is EndedTogether:
                batch += self._settled_together(link, report)  # type: ignore[arg-type]
            elif kind in SETTLING:
                if outstanding.pop(report.run, MISSING) is not MISSING:  # type: ignore[union-attr]
                    batch.append(report)
                    if creators:
                        link.forget(report.run)  # type: ignore[union-attr]
            elif kind is Printed or kind is Asks or kind is Dropped or kind is Taught:
                batch.append(report)
            elif kind is Spawned or kind is WaitReport:
                self._on_nested(link, report)  # type: ignore[arg-type]
                batch.append(report)
            elif kind is Fit:
                link.pid = report.pid  # type: ignore[union-attr]
                self._on_fit(link)
            elif kind is Unfit:
                link.error = exception_of(report.error)  # type: ignore[union-attr]
        return batch

    def _settled_together(self, link: WorkerConnection, report: EndedTogether) -> Reports:
        if link.creators:
            return self._settled(link, [*ends_apart(report)])
        known = [*map(link.outstanding.pop, report.runs, repeat(MISSING))]
        if known.count(None) == len(known):
            return [report]
        return [end for end, options in zip(ends_apart(report), known, strict=True) if options is not MISSING]

    def _on_nested(self, link: WorkerConnection, report: Spawned | WaitReport) -> None:
        link.creators.add(report.run)
        if isinstance(report, WaitReport):
            link.resumed.pop(report.run, None)
            link.suspended[report.run] = report.used_ns

    def _on_fit(self, link: WorkerConnection) -> None:
        link.is_fit = True
        self._starts[link.slot] = 0
        self._server_falls = 0
        if self._started is not None and not self._started.done() and all(each.is_fit for each in self._links):
            self._started.set_result(None)

    # The fork server.

    @property
    def _server_now(self) -> ForkServer:
        if self._server is None:
            raise InternalError("the pool of workers is not running")
        return self._server

    def _serve(self, server: ForkServer | None) -> None:
        wait_for_turns(False)  # or all workers would be like this thread
        try:
            self._server = server or ForkServer(*self._folders)
        except OSError as error:
            raise WorkerStartError(f"the fork server cannot be started: {with_cure(error)}", retry=False) from error
        self._loop.add_reader(self._server.link.fileno(), self._on_server)

    def _on_server(self) -> None:
        said = self._server_now.receive()
        if said is None:
            self._on_server_gone()
            return
        for what, number, value in said:
            link = self._by_number.get(number)
            if link is None:
                continue
            if what == BORN:
                link.pid = value
            elif what == GONE:
                self._on_gone(link, value)

    def _on_server_writable(self) -> None:
        if self._server_now.send():
            self._loop.remove_writer(self._server_now.link.fileno())

    def _on_server_gone(self) -> None:
        """Handle the end of the fork server: it was killed, or was told to end."""
        server = self._server_now
        self._loop.remove_reader(server.link.fileno())
        self._loop.remove_writer(server.link.fileno())
        if self._ended is not None:
            self._ended.set_result(None)
            return
        server.bury()
        self._server_falls += 1
        orphans = tuple(self._by_number.values())
        for link in orphans:
            for group in (link.pid, link.cursor.fields[2]):
                if group > 0:
                    end_group(group)
        if self._server_falls >= STARTS_MAX:
            self._give_up(WorkerStartError("the fork server ends as soon as it is started", retry=False))
            self._server = None
        else:
            try:
                self._serve(None)
            except WorkerStartError as error:
                self._server = None
                self._give_up(error)
        for link in orphans:
            self._on_gone(link, -signal.SIGKILL)

    # Limits.

    def _watch_soon(self) -> None:
        if self._watcher is None and not self._is_closing:
            self._watcher = self._loop.call_later(WATCH_S, self._watch)

    def _watch(self) -> None:
        self._watcher = None
        now_ns = monotonic_ns()
        for link in self._by_number.values():
            link.condemned &= link.outstanding.keys()
            if link.condemned or any(map(_is_limited, link.outstanding.values())):
                self._watch_soon()
                self._check(link, now_ns)

    def _check(self, link: WorkerConnection, now_ns: int) -> None:
        for run, began_ns in link.active.items():
            options = link.outstanding[run]
            if run in link.condemned:
                self._end(link, run, STOPPED)
            elif options is not None and 0 < options.timeout_ns < now_ns - began_ns:
                self._end(link, run, TIMEOUT)
            elif options is not None and 0 < options.memory_bytes < held_bytes(link.pid):
                self._end(link, run, MEMORY)


def _is_limited(options: RunOptions | None) -> bool:
    return options is not None and (options.timeout_ns > 0 or options.memory_bytes > 0)


def _start_error(link: WorkerConnection, code: int, output: bytes) -> WorkerStartError:
    if link.error is not None:
        return WorkerStartError(f"the set-up of workers fails: {type(link.error).__name__}: {link.error}", retry=False)
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    last = output.decode(errors="replace").strip()
    return WorkerStartError(
        f"workers end as soon as they are started ({how})" + (f":\n{last}" if last else ""), retry=False
    )
