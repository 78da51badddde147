"""A thread with an event loop behind a client: what all such threads have in common, however many nodes there are."""

import threading
from collections import deque
from collections.abc import Callable
from errno import EMFILE, ENFILE
from typing import TYPE_CHECKING

from daws.model.errors import UnavailableError
from daws.wire.store import Submit

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


ALIVE_S = 0.5


class LoopThread:
    """Started by `start`; then any thread may append to `new_tasks` and `let_go` and call `wake`."""

    loop: "AbstractEventLoop"  # of the thread, once it runs

    def __init__(self, name: str) -> None:
        self.new_tasks: deque[Submit] = deque()
        self.let_go: deque[int] = deque()
        self.awake = False
        self.next_task = 0
        self._name = name
        self._thread: threading.Thread | None = None
        self._ident = 0  # of the thread while it runs
        self._broken: BaseException | None = None

    def start(self) -> None:
        """Start the thread. Return when tasks can be taken."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._lead, args=(ready,), name=self._name, daemon=True)
        self._thread.start()
        try:
            ready.wait()
        except BaseException:  # Ctrl-C: what has begun to start ends in good order
            ready.wait()
            self.stop()
            raise
        if self._broken is not None:
            self._thread.join()
            raise self._broken

    def _lead(self, ready: threading.Event) -> None:
        """Run the thread. If it cannot even open an event loop, `start` raises the error."""
        self._ident = threading.get_ident()
        try:
            self._run(ready)
        except BaseException as error:
            if ready.is_set():
                raise
            self._broken = error
            if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
                self._broken = UnavailableError(f"{error.strerror}; raise the limit (ulimit -n)", retry=True)
                self._broken.__cause__ = error
            ready.set()
        finally:
            self._ident = 0

    def wake(self) -> None:
        self.awake = True
        try:
            self._call(self._turn)
        except BaseException:  # Ctrl-C: else no call would ever wake it again
            self.awake = False
            raise

    def _call(self, function: Callable[..., object], *args: object) -> None:
        try:  # noqa: SIM105 (each submission comes here: `suppress` would take three calls more)
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # another thread has closed the loop, and has told all waiting threads

    @property
    def is_here(self) -> bool:
        """Is this the thread itself?"""
        return self._ident == threading.get_ident()

    def catch_up(self) -> None:
        """Return when the thread has done what it is doing now, with the callbacks of tasks that have ended."""
        done = threading.Event()
        self._call(done.set)
        self._wait_for(done)

    def _wait_for(self, event: threading.Event) -> None:
        """Wait until the thread has set an event, or has ended."""
        while not event.wait(ALIVE_S) and self._thread is not None and self._thread.is_alive():
            pass

    def stop(self) -> None:
        """End all workers, then the thread. Tasks that have not ended never will."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        self._call(self.loop.stop)
        thread.join()
        self._thread = None  # keep no reference to a thread that has ended

    def _run(self, ready: threading.Event) -> None:
        """Run in the thread. Set `ready` when tasks can be taken, or when `_broken` was set because none ever will."""
        raise NotImplementedError

    def _turn(self) -> None:
        """Take in what the client has submitted since the last turn."""
        raise NotImplementedError
