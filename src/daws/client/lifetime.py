"""The life of a cluster from its first use to its end: leaving it, closing it, the end of the program, a fork of it."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakSet

import daws.data.session  # noqa: F401 (first: folders of sessions are removed after clusters are closed, see there)
from daws.client import current
from daws.client.hints import note_cure, refuse_method_option
from daws.model.errors import ClosedError

if TYPE_CHECKING:
    from daws.client.cluster import Cluster
    from daws.client.session import Session
    from daws.data.memo import MemoFolder

FORKED = "the cluster belongs to the process that this one is a fork of; make a new one"
_open: WeakSet[Lifetime] = WeakSet()
_abandoned: list[Session] = []
"""Kept, because what they share with the process that they belong to must not be closed here."""


class Lifetime:
    """A cluster that is open, about to be closed, or closed."""

    _is_forked = False
    _closer: Thread | None = None  # closes it when that cannot be done at once
    _leaving: Session | None = None  # in the place of `_session` while closing waits for tasks
    _session: Session | None = None
    _lock: Lock
    _clean_up: Callable[[], None]
    """Remove all that belonged to the session, after it was closed."""

    def _opened(self, session: Session, results: MemoFolder | None) -> None:
        """Tasks can be submitted from now on. The `results` of those with `memo=` are kept in that folder."""
        if os.environ.get("DAWS_LOG"):
            from daws.logs import set_up_by_environment

            set_up_by_environment()
        if results is not None:
            session.reuse(results)
        self._lock = Lock()
        self._session = session
        _open.add(self)

    def close(self, *, cancel: bool = False, **others: Any) -> None:
        """Wait until all submitted tasks have ended, then end the workers and remove all files.

        With `cancel=True` do not wait: tasks that have not ended are cancelled. Ctrl-C during the wait does the same,
        and prints the number of these tasks.
        """
        if others:
            refuse_method_option("close", others, ("cancel",))
        error = sys.exc_info()[1]
        is_ending = error is not None and not isinstance(error, Exception)  # Ctrl-C is under way, or an exit
        self._leave(cancel, error if is_ending else None)

    def _leave(self, cancel: bool, error: BaseException | None) -> None:
        """Close, after waiting unless `cancel` or an exception says otherwise."""
        from daws.client.leaving import in_short, is_error

        if error is not None:
            note_cure(error)
        if cancel or is_error(error):
            self._close("" if cancel else in_short(error))  # type: ignore[arg-type]
            return
        try:
            if self._finish():
                self._fetch_results()
                self._close()
        except BaseException as stop:  # Ctrl-C
            self._close(in_short(stop))
            raise

    def _finish(self) -> bool:
        """Wait until all has ended. False if this is the thread that brings the ends: then another thread waits and
        closes."""
        from daws.client.leaving import say_failed, wait_until_ended

        with self._lock:
            session = self._session or self._leaving
            if session is None:
                return True
            if not session.engine.is_here:
                self._session, self._leaving = None, session
        if session.engine.is_here:
            self._close_later()
            return False
        if self._waits_for_end():
            wait_until_ended(session)
            say_failed(session)
        return True

    def _fetch_results(self) -> None:
        """All has ended well: have results here that go with the session. Those of this machine are kept by it."""

    def _waits_for_end(self) -> bool:
        """Are tasks that have not ended lost when this cluster is closed?"""
        return True

    def _close_later(self) -> None:
        """Have a thread close this cluster when all has ended and no result is left that somebody may ask for."""
        _open.add(self)  # it may be about to be garbage collected
        self._closer = Thread(target=_close_when_unused, args=(self,), name="daws-close", daemon=True)
        self._closer.start()

    def _close(self, why: str = "") -> int:
        """Close without waiting. Returns how many tasks had not ended; if `why` is given, this is said, also when a
        second Ctrl-C comes meanwhile."""
        with self._lock:
            session = self._session or self._leaving
            if session is None or not session.engine.is_here:
                self._session = self._leaving = None
            else:  # a callback, or the garbage collector
                self._closer = Thread(target=self._close, args=(why,), name="daws-close", daemon=True)
                self._closer.start()
                return 0
        current.forget(self)
        if session is None:
            return 0
        try:
            return session.close(_closed())
        finally:
            try:
                self._clean_up()
            finally:
                if why:
                    from daws.client.leaving import say_cancelled

                    say_cancelled(session.left, why)

    def _open(self) -> Session:
        return self._session or self._late()

    def _late(self) -> Session:
        """The session of a cluster that is being closed: callbacks may still submit tasks, which are waited for as
        well."""
        session = self._leaving
        if session is not None and session.engine.is_here:
            return session
        raise ClosedError(FORKED) if self._is_forked else _closed()

    def __enter__(self) -> Self:
        self._open()
        current.use(cast("Cluster", self))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait until all that was submitted has ended, and close. An exception under way cancels what has not."""
        self._leave(False, error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Leave as `__exit__` does; the event loop goes on meanwhile."""
        import asyncio

        leaving = asyncio.ensure_future(asyncio.to_thread(self._leave, False, error))
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError as stop:
            from daws.client.leaving import in_short, say_cancelled

            say_cancelled(await asyncio.to_thread(self._close), in_short(stop))  # then the other thread ends, too
            await leaving
            raise

    def __del__(self) -> None:
        session = self._session or self._leaving
        if session is None:
            return
        if session.futures or session.stored:
            with suppress(RuntimeError):  # no thread can be started: the program ends
                self._close_later()
                return
        self._close()


def _abandon_all() -> None:
    """A fork of this process has no node: whatever it would wait for could never come."""
    reason = ClosedError(FORKED)
    for cluster in tuple(_open):
        session = cluster._session or cluster._leaving
        cluster._session = cluster._leaving = None
        if session is not None:
            session.abandon(reason)
            _abandoned.append(session)
            cluster._is_forked = True
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)


def _close_when_unused(cluster: Lifetime) -> None:
    """A thread: nobody has this cluster any more, or it was closed where one cannot wait."""
    from daws.client.leaving import LOOK_S, say_failed, wait_until_ended

    session = cluster._session or cluster._leaving
    if session is None:
        return
    if cluster._waits_for_end():
        wait_until_ended(session, quiet=True)
        while session.stored and session._closed is None:  # a future that somebody has would lose its result
            sleep(LOOK_S)
        if session._closed is None:
            say_failed(session)
    del session
    cluster._close()


@atexit.register
def _close_all() -> None:
    """A program that ends waits for what it has submitted, unless an exception ends it."""
    from daws.client.leaving import error_of_program, exit_interrupted, in_short, is_kernel, say, say_cancelled

    error = error_of_program()
    if error is not None and (cure := note_cure(error)):
        say(cure)
    why = "the notebook's kernel ends" if is_kernel() else "" if error is None else in_short(error)
    clusters = tuple(_open)
    try:
        if not why:
            for cluster in clusters:
                cluster._finish()
    except KeyboardInterrupt:
        why = "KeyboardInterrupt"
        exit_interrupted()
    left = sum([_close_now(cluster) for cluster in clusters])
    say_cancelled(left, why or "the program has ended")


def _close_now(cluster: Lifetime) -> int:
    """How many tasks had not ended? If another thread closes it, wait for that one."""
    if cluster._session is not None or cluster._leaving is not None:
        return cluster._close()
    if cluster._closer is not None:
        cluster._closer.join()
    return 0


def _closed() -> ClosedError:
    return ClosedError("the cluster is closed; make a new one")
