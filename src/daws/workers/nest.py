"""Runs that create tasks and wait for them: the worker's side, the same in processes and in threads.

Such a run gets a *nest*, which has the ends of the tasks that it has created. While the run waits, it keeps its own
thread, and its executor runs other tasks in another one.
"""

import sys
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from threading import local
from time import monotonic_ns
from typing import Any, Protocol

from daws.data.functions import dumps_function, name_of
from daws.data.tags import leveled, named, rooted
from daws.model.errors import ClosedError, UsageError
from daws.model.session import brought_id, session_of
from daws.wire.worker import Asks, ChildEnd, Dropped, Execute, ReportType, Seed, Spawned, Taught, WaitReport
from daws.workers.running import Runner


class Discarded(BaseException):
    """The exception that ends a waiting run that is not needed any more. It is no `Exception`, so tasks do not catch it
    by chance."""


class Host(Protocol):
    """The owner of the threads, which talks to the node."""

    workers: int
    runner: Runner
    taught: set[int]

    def open_nest(self, hand: "Hand") -> "RunNest":
        """Open the nest of the run that this thread is on."""

    def say(self, hand: "Hand", report: ReportType) -> None:
        """Send a report that is not urgent."""

    def pause(self, hand: "Hand", waits: WaitReport) -> None:
        """Give the executor back; returns when the nest's gate was opened."""

    def ask(self, hand: "Hand", asks: Asks) -> None:
        """Keep the executor; returns when the nest's gate was opened."""


class Hand:
    """A thread that runs tasks, one at a time: the order that it is on, and the nest of that run, if it has one."""

    __slots__ = ("host", "lines", "nest", "order")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.order: Execute | None = None
        self.nest: RunNest | None = None
        self.lines: dict[int, str] | None = None  # that it has begun to print; see `sharedstreams`


class _CurrentHand(local):
    hand: Hand | None = None


here = _CurrentHand()
"""Set by each thread that runs tasks."""


def current_nest() -> "RunNest | None":
    """The nest of the run that this thread is on; None outside of tasks."""
    hand = here.hand
    if hand is None or hand.order is None:
        return None
    return hand.nest or hand.host.open_nest(hand)


class RunNest:
    """The tasks that one run has created. `session` belongs to the layer that shows the nest to the user."""

    def __init__(self, hand: Hand, run: int, began_ns: int) -> None:
        self.run = run
        self.workers = hand.host.workers
        self.ends: dict[int, ChildEnd] = {}
        self.gate = allocate_lock()
        self.gate.acquire()
        self.waited_ns = 0
        self.session: Any = None
        self.on_end: Callable[[ChildEnd], None] | None = None
        self._hand = hand
        self._host = hand.host
        self._began_ns = began_ns
        self._thread = get_ident()
        self._count = 0
        self._spawning = allocate_lock()
        self._news: deque[ChildEnd] = deque()
        self._is_discarded = False
        self._is_over = False

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number under which the node knows a function. If another session has brought the same function in, its
        number is not used: it goes with that session, and output of the new task would go there."""
        order = self._hand.order
        known = self._host.runner.number_of(function)
        if known is not None and (order is None or known == order.function or self._is_shared(known, order.function)):
            return known
        root, tag = self._host.runner.origin_of(order.function) if order is not None else (0, b"")
        pickled = dumps_function(function)
        if not tag and "daws.data.revisions" in sys.modules:  # modules of its client have come this way
            pickled = sys.modules["daws.data.revisions"].own.passed_on(pickled)
        if order is not None:
            pickled = leveled(self._host.runner.levels_of(order.function), pickled)
        brought = rooted(root, tag + named(name_of(function), pickled))
        number = brought_id(session_of(root), blake2b(brought, digest_size=8).digest())
        if number not in self._host.taught:
            self._host.say(self._hand, Taught(self.run, number, brought))
            self._host.taught.add(number)
        return number

    def _is_shared(self, function: int, other: int) -> bool:
        """Whether two functions belong to the same session."""
        origin_of = self._host.runner.origin_of
        return session_of(origin_of(function)[0]) == session_of(origin_of(other)[0])

    def spawn(self, seed: Seed) -> int:
        """Create a task; answers its number among those of this run."""
        self._check()
        with self._spawning:  # the numbers follow from the order in which the node hears of them
            number = self._count
            self._count += 1
            self._host.say(self._hand, Spawned(self.run, (seed,)))
        return number

    def drop(self, numbers: tuple[int, ...]) -> None:
        """Say that the outputs of these tasks are not needed any more."""
        if not self._is_over:
            self._host.say(self._hand, Dropped(self.run, numbers))

    def wait(self, numbers: Iterable[int]) -> None:
        """Wait until all these tasks have ended, without an executor meanwhile."""
        left = tuple([number for number in numbers if number not in self.ends])
        if not left:
            return
        self._check_thread("wait for tasks")
        began_ns = monotonic_ns()
        used_ns = began_ns - self._began_ns - self.waited_ns
        self._host.pause(self._hand, WaitReport(self.run, used_ns, left))
        self.waited_ns += monotonic_ns() - began_ns
        self._take_in()

    def look(self) -> None:
        """Take in the tasks that have ended, without waiting for more."""
        self._check_thread("ask for tasks")
        self._host.ask(self._hand, Asks(self.run))
        self._take_in()

    def hear(self, ended: tuple[ChildEnd, ...]) -> None:
        """Receive ends, in the thread that listens to the node. The thread at the gate takes them in."""
        for end in ended:
            self.ends[end.number] = end
            self._news.append(end)
        if self.gate.locked():
            self.gate.release()

    def discard(self) -> None:
        """The run, which waits, is not needed any more."""
        self._is_discarded = True
        self.hear(())

    def close(self) -> None:
        """The run has ended."""
        self._is_over = True
        self.session = self.on_end = None

    def _take_in(self) -> None:
        self._check()
        while self._news:
            end = self._news.popleft()
            if self.on_end is not None:
                self.on_end(end)

    def _check(self) -> None:
        if self._is_discarded:
            raise Discarded
        if self._is_over:
            raise ClosedError("the task that this belongs to has ended")

    def _check_thread(self, what: str) -> None:
        self._check()
        if get_ident() != self._thread:
            raise UsageError(f"only the thread in which a task was called can {what}")
