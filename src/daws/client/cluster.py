"""A cluster on this machine, as users see it.

Little is imported before the process that starts the workers is there: it gets ready while this one imports the rest.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from time import sleep, time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from daws.client import current, tuning
from daws.client.defaults import asks_for_files, default_memo, default_nodes, default_strategy, default_workers
from daws.client.given import size, whole
from daws.client.hints import (
    CLUSTER,
    answer_to,
    check_workers,
    names_of,
    note_cure,
    refuse_cancel_option,
    refuse_close_option,
    refuse_put_option,
    workers_of,
)
from daws.client.signatures import Signatures
from daws.data.limits import check_open_files, with_cure
from daws.data.session import SessionFolders as Folders
from daws.model.errors import ClosedError, UsageError
from daws.workers.errors import WorkerStartError
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.admin import NodeDescription, SessionDescription
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future
    from daws.client.mapping import ItemFuture, Mapped
    from daws.client.memo import Memo, MemoSession
    from daws.client.options import ClusterSynonyms, Options
    from daws.client.recording import Recording
    from daws.client.session import Session
    from daws.client.submitting import Submitter
    from daws.client.tasks import Task
    from daws.client.waiting import Errors
    from daws.data.janitor import Janitor
    from daws.runs.timeline import Timeline
    from daws.runtime.ports import Counters
    from daws.strategy.decisions import Strategy

T = TypeVar("T")
WORKERS_MAX = 4096
NODES_MAX = 64
KINDS = ("processes", "threads")
FORKED = "the cluster belongs to the process that this one is a fork of; make a new one"
_open: WeakSet[Cluster] = WeakSet()
_abandoned: list[Session] = []
"""Kept, because what they share with the process that they belong to must not be closed here."""


class Cluster(Signatures):
    """Workers on this machine, and the nodes that schedule their tasks.

        with daws.Cluster() as cluster:
            future = cluster.submit(pow, 2, 10)
            print(future.result())

    All options have defaults:

    - `workers`: the number of workers of each node. By default all nodes together have one per processor.
    - `kind`: "processes", or "threads" for tasks that release the GIL or only wait. Tasks in threads cannot be stopped.
    - `nodes`: the number of nodes. One node is a thread of this process; several nodes are processes of their own.
    - `node`: with "process" a single node is a process too, for clients that compute a lot themselves.
    - `devices`: `{"gpu": 2}` adds two workers to each node for tasks with the context "gpu". Each has a device of its
      own, whose number tasks find in CUDA_VISIBLE_DEVICES.
    - `strategy`: a preset, or a strategy as text or object.
    - `memory_bytes`: how much memory objects may take before they are spilled to disk, as number or text ("4 GB").
    - `setup`, `teardown`: functions that each worker calls when it starts and before it ends.
    - `memo`: a folder for the results of tasks with `memo=True`. Such a task runs again only if something has changed.
    - `explain`: record why each task ran where it did, for `future.explain()`.
    - `timeline`: an object that is told of each run while the cluster runs.
    - `journal`: a folder for the inputs and decisions of each node.
    - `trace`, `export`, `plot`: files that are written when the cluster is closed. `trace` shows in Perfetto when and
      where each task ran. `export` is the graph of all tasks with measured lengths and sizes, for `daws sim`. `plot` is
      a picture of busy workers over time.
    - `tune`: with True daws may call the garbage collector of this process less often, and give its own thread the
      scheduling class SCHED_BATCH, which is a little faster. By default daws changes nothing in this process.
    """

    _is_forked = False
    _closer: Thread | None = None  # closes it when that cannot be done at once
    _leaving: Session | None = None  # in the place of `_session` while closing waits for tasks
    _is_tuned = False

    def __init__(
        self,
        workers: int | None = None,
        *more: Never,
        nodes: int | None = None,
        node: Literal["thread", "process"] = "thread",
        kind: Literal["processes", "threads"] = "processes",
        devices: Mapping[str, int] | None = None,
        strategy: str | Strategy | None = None,
        memory_bytes: int | str | None = None,
        setup: Callable[[], object] | None = None,
        teardown: Callable[[], object] | None = None,
        journal: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        export: str | os.PathLike[str] | None = None,
        plot: str | os.PathLike[str] | None = None,
        timeline: Timeline | None = None,
        explain: bool = False,
        memo: str | os.PathLike[str] | None = None,
        tune: bool = False,
        **others: Unpack[ClusterSynonyms],
    ) -> None:
        if others:
            workers = workers_of(others, workers, CLUSTER_NAMES)
        if more or not (workers is None or isinstance(workers, int)):
            check_workers(workers, more)
        if nodes is None:
            nodes = default_nodes()
        nodes = whole("nodes", nodes, 1, NODES_MAX)
        if node not in ("thread", "process"):
            raise UsageError(f"node={node!r}: give 'thread' or 'process'")
        if workers is None:
            workers = default_workers(nodes)
        workers = whole("workers", workers, 1, WORKERS_MAX)
        if kind not in KINDS:
            raise UsageError(f"kind={kind!r}: give {' or '.join(map(repr, KINDS))}")
        for name, flag in (("explain", explain), ("tune", tune)):
            if type(flag) is not bool:
                raise UsageError(f"{name}={flag!r}: give True or False")
        memory_bytes = check_memory(memory_bytes)
        labelled = _devices(devices, kind)
        if strategy is None:
            strategy = default_strategy()
        self._recording = _recording(trace, export, plot, timeline)
        self._timeline = timeline if self._recording is None else self._recording.timeline
        kind_of_session, prepare = _memory(memo)
        if kind == "processes":
            check_open_files(workers)
        self._nodes = nodes
        self._since = time()
        self.workers = nodes * workers
        self._lock = Lock()
        self._session: Session | None = None
        self._folders = Folders()
        self._janitor: Janitor | None = None
        server: ForkServer | None = None
        try:
            processes = nodes if nodes > 1 or node == "process" else 0
            if processes:
                server = _fork_server(*self._folders.all(), become="daws.runtime.fork")
            elif kind == "processes":
                server = _fork_server(*self._folders.all(), hire=workers)
            else:
                self._janitor = _janitor(*self._folders.all())
            from daws.data.functions import dumps_function
            from daws.runs.facts import Facts
            from daws.runtime.crew import Crew
            from daws.workers.managers import with_key

            self.strategy = _strategy_of(strategy)
            given = {"setup": with_key(setup) if kind == "processes" else setup, "teardown": teardown}
            hooks = {name: dumps_function(hook, name) for name, hook in given.items() if hook is not None}
            crew = Crew(
                workers,
                kind,
                tells_runs=self._timeline is not None,
                explains=explain,
                devices=labelled,
                owns_process=tune or bool(processes),
                **hooks,
            )
            kept = _journal_folder(journal, self.strategy)
            facts = Facts() if explain else None
            session = (kind_of_session or _plain_session())(
                crew, self.strategy, self._folders, memory_bytes, processes, kept, server, self._timeline, facts
            )
            server = None  # from now on the session's
            prepare(session)
            session.start()
        except BaseException:
            if server is not None:
                server.bury(kill=True)
            self._remove_folders()
            raise
        self._session = session
        self._tune(tune)
        _open.add(self)

    # -- tasks ---------------------------------------------------------------------------------------------------------

    @overload
    def submit(self, function: Task[Any, T], /, *args: Any, **kwargs: Any) -> Future[T]: ...
    @overload
    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]: ...

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `function(*args, **kwargs)` in a worker and return its future.

        Futures may be anywhere inside the arguments: the task waits for them, and the function gets their results.
        """
        session = self._session
        if session is None:
            session = self._late()
        return session.submit_call(function, args, kwargs)

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        from daws.client.submitting import Submitter

        return Submitter(self, options)

    def _start(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        return self._open().start_task(function, args, kwargs, options)

    def run(self, words: Command | str | Sequence[Word], *more: Any, **described: Any) -> CommandFuture:
        """Run a program in a worker: a `daws.command(…)`, or the arguments of one.

        The result says how the program ended. `outputs` of the future has a future for each file that the program
        makes, by name.
        """
        if more or _is_function(words):
            raise UsageError("run: give a program and its arguments as one list; cluster.submit(f, x) runs a function")
        return self._run(words, described, {})

    def _run(
        self, words: Command | str | Sequence[Word], described: dict[str, Any], options: dict[str, Any]
    ) -> CommandFuture:
        from daws.client.commands import Command, changed, command, run  # most sessions have none

        if isinstance(words, Command):
            if described:
                raise UsageError("run: say all about a command in daws.command(…), or give its words here")
            return run(self._open(), changed(words, options) if options else words)
        if "outputs" in options:
            raise UsageError("run: the outputs of a command are its files: cluster.run(…, outputs=[…])")
        return run(self._open(), command(words, **{**options, **described}))

    def _map_items(
        self, function: Callable[..., Any], iterables: tuple[Iterable[Any], ...], chunk: int | None, others: Any
    ) -> Mapped[Any]:
        from daws.client.options import USUAL

        if getattr(type(function), "_is_task", False):
            return self.options()._map_items(function, iterables, chunk, others)
        return self._map(function, iterables, chunk, others, USUAL)

    def _map(
        self,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        chunk: int | None,
        others: Any,
        options: Options,
    ) -> Mapped[Any]:
        from daws.client.mapping import map_chunks

        if others:
            from daws.client.hints import chunk_of
            from daws.client.options import NAMES

            chunk = chunk_of(others, chunk, NAMES)
        session = self._open()
        session.check(options)
        if options.memo is not None:
            return _with_memo(session).map(self.workers, function, iterables, chunk, options)
        return map_chunks(session, self.workers, function, iterables, chunk, options)

    def put(self, value: T, **others: Never) -> Future[T]:
        """Store an object once that many tasks read; workers map large objects into memory instead of copying them.

        The object is deleted when its future is gone and no task reads it any more. If its only copy is lost, tasks
        that need it fail.
        """
        if others:
            refuse_put_option(next(iter(others)))
        return self._open().put(value)

    def gather(
        self,
        futures: Any,
        errors: Errors = "raise",
        timeout: float | None = None,
        progress: bool = False,
        *more: Any,
        **others: Any,
    ) -> Any:
        """Wait for all futures and return their results in the same shape.

        Futures may be in lists, tuples, sets, dicts and dataclasses, however deep. `errors="return"` puts exceptions
        where results would be, `"skip"` leaves failed ones out. `progress=True` shows a bar on terminals and in
        notebooks.
        """
        from daws.client.waiting import gather

        return gather(futures, errors, timeout, progress, *more, **others)

    def cancel(self, futures: Future[Any] | ItemFuture[Any] | Iterable[Any] | Mapped[Any], **others: Never) -> int:
        """Stop tasks, and all tasks that need them. Returns how many of the given tasks had not ended."""
        if others:
            refuse_cancel_option(next(iter(others)))
        from daws.client.future import Future
        from daws.client.mapping import ItemFuture
        from daws.client.waiting import distinct

        given = distinct([futures] if isinstance(futures, Future | ItemFuture) else futures)
        session = self._leaving or self._open()
        session.check_own(given, "cancel it there")
        return session.cancel(given)

    def _cancel_waiting(self, futures: Iterable[Future[Any]]) -> None:
        self._open().cancel_waiting(futures)

    def use_strategy(self, strategy: str | Strategy) -> None:
        """Use another strategy from now on. Returns when all nodes use it.

        Waiting tasks are placed and ordered again. Tasks that run, or are on their way to a node, are left as they are.
        """
        chosen = _strategy_of(strategy)
        self._open().use_strategy(chosen)
        self.strategy = chosen

    def counters(self) -> list[Counters]:
        """The counters of each node: tasks that ended there, tasks that it stole, bytes read, bytes moved."""
        return self._open().engine.counters()

    @property
    def memo(self) -> Memo:
        """The number of tasks with `memo=True` that were reused, the number that ran, and why they ran."""
        return _with_memo(self._open()).memo

    # -- its nodes and sessions ----------------------------------------------------------------------------------------

    def nodes(self) -> list[NodeDescription]:
        """The nodes of the cluster now: their numbers, addresses and workers."""
        from daws.client.admin import described

        return described(self._open().engine.members)

    def drain(self, node: int | NodeDescription, within: float = 60.0) -> None:
        """Drain a node: it hands over its tasks and data, and leaves. Only with `daws.connect`."""
        self._open()
        raise UsageError(f"drain({node!r}): nodes of daws.Cluster stay until it is closed; connected ones can leave")

    def sessions(self) -> list[SessionDescription]:
        """The sessions of the cluster now. A cluster of your own has one, without a name."""
        from daws.client.admin import SessionDescription

        session = self._open()
        done = sum([one.done for one in session.engine.counters()])
        return [SessionDescription("", False, True, self._since, len(session.futures), done, None)]

    def end(self, session: str | SessionDescription) -> None:
        """End a session: cancel its tasks and delete its results. Only with `daws.connect`."""
        self._open()
        raise UsageError(f"end({session!r}): the session of daws.Cluster ends with it; close() it instead")

    # -- its life ------------------------------------------------------------------------------------------------------

    def close(self, *, cancel: bool = False, **others: Any) -> None:
        """Wait until all submitted tasks have ended, then end the workers and remove all files.

        With `cancel=True` do not wait: tasks that have not ended are cancelled. Ctrl-C during the wait does the same,
        and prints the number of these tasks.
        """
        if others:
            refuse_close_option(next(iter(others)))
        error = sys.exc_info()[1]
        is_ending = error is not None and not isinstance(error, Exception)  # Ctrl-C is under way, or an exit
        self._leave(cancel, error if is_ending else None)

    def _leave(self, cancel: bool, error: BaseException | None) -> None:
        """Close, after waiting unless `cancel` or an exception says otherwise."""
        from daws.client.leaving import in_short, is_error

        if error is not None:
            note_cure(error)
        if cancel or is_error(error):
            self._give_up("" if cancel else in_short(error))  # type: ignore[arg-type]
            return
        try:
            if self._finish():
                self._fetch_results()
                self._close()
        except BaseException as stop:  # Ctrl-C
            self._close_and_say(in_short(stop))
            raise

    def _close_and_say(self, why: str) -> None:
        """Close, and say how many tasks that has cancelled, also when a second Ctrl-C comes meanwhile."""
        from daws.client.leaving import say_cancelled

        session = self._session or self._leaving
        try:
            self._close()
        finally:
            if session is not None and why:
                say_cancelled(session.left, why)

    def _give_up(self, why: str) -> None:
        """Close without waiting; `why` is said if tasks were cancelled by it."""
        session = self._session or self._leaving
        if session is not None and session.engine.is_here:  # this is a callback
            self._closer = Thread(target=self._give_up, args=(why,), name="daws-close", daemon=True)
            self._closer.start()
            return
        self._close_and_say(why)

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

    def _close(self) -> int:
        """How many tasks had not ended?"""
        with self._lock:
            session = self._session or self._leaving
            if session is None or not session.engine.is_here:
                self._session = self._leaving = None
            else:  # a callback, or the garbage collector
                self._closer = Thread(target=self._close, name="daws-close", daemon=True)
                self._closer.start()
                return 0
        current.forget(self)
        if session is None:
            return 0
        if self._is_tuned:
            tuning.end()
        try:
            left = session.close(_closed())
        finally:
            self._remove_folders()
            if self._recording is not None:
                self._recording.write(_program(), self._nodes, self.workers // self._nodes)
        return left

    def _tune(self, tune: bool) -> None:
        self._is_tuned = tune
        if tune:
            tuning.begin()

    def _remove_folders(self) -> None:
        self._folders.close()
        if self._janitor is not None:
            self._janitor.dismiss()

    def _open(self) -> Session:
        return self._session or self._late()

    def _late(self) -> Session:
        """It is closed, or about to be: then callbacks may still submit tasks, and these are waited for as well."""
        session = self._leaving
        if session is not None and session.engine.is_here:
            return session
        raise ClosedError(FORKED) if self._is_forked else _closed()

    def __enter__(self) -> Self:
        self._open()
        current.use(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until all that was submitted has ended, and close. An exception under way cancels what has not."""
        self._leave(False, error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `__exit__`; the event loop goes on meanwhile."""
        import asyncio

        leaving = asyncio.ensure_future(asyncio.to_thread(self._leave, False, error))
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError as stop:
            from daws.client.leaving import in_short, say_cancelled

            say_cancelled(await asyncio.to_thread(self._close), in_short(stop))  # then the other thread ends, too
            await leaving
            raise

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a cluster cannot be called: list(cluster.map(f, xs)), or cluster.gather(calls of @daws.task)")

    def __del__(self) -> None:
        session = getattr(self, "_session", None) or self._leaving
        if session is None:
            return
        if session.futures or session.stored:
            with suppress(RuntimeError):  # no thread can be started: the program ends
                self._close_later()
                return
        self._close()

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def __dir__(self) -> list[str]:
        return names_of(self)

    def __repr__(self) -> str:
        session = self._session or self._leaving
        state = "closed" if session is None else f"{len(session.futures):,} tasks to end"
        nodes = f"{self._nodes} nodes, " if self._nodes > 1 else ""
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"<Cluster: {nodes}{workers}, {self.strategy.name}, {state}>"

    def _repr_html_(self) -> str:
        from daws.client.html import cluster_html

        return cluster_html(self)


answer_to(Cluster, CLUSTER)
CLUSTER_NAMES = tuple([one for one in Cluster.__init__.__annotations__ if one not in ("more", "others", "return")])
"""The options of a cluster."""


def _is_function(words: object) -> bool:
    return callable(words) and not isinstance(words, str | Sequence)


def check_memory(memory_bytes: int | str | None) -> int | None:
    """A number of bytes; refuses what is none."""
    return None if memory_bytes is None else size("memory_bytes", memory_bytes, 1)


def _recording(*given: Any) -> Recording | None:
    """What is written when the cluster is closed: what was given, or what the environment says."""
    if all(path is None for path in given[:3]) and not asks_for_files():
        return None
    from daws.client.recording import recording_of

    return recording_of(*given)


def _program() -> str:
    """What this process runs, in a word."""
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c") else "daws"


def _plain_session() -> type[Session]:
    from daws.client.session import Session

    return Session


def _memory(folder: str | os.PathLike[str] | None) -> tuple[type[MemoSession] | None, Callable[[Any], None]]:
    """For a cluster that reuses results: the kind of its session, and what is to be done with it first."""
    folder = default_memo() if folder is None else folder
    if folder is None:
        return None, lambda session: None
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"memo={folder!r:.100}: name a folder for the results: memo='folder'; tasks have memo=True")
    from daws.client.memo import MemoSession
    from daws.data.memo import MemoFolder

    made = MemoFolder(folder)
    return MemoSession, lambda session: session.remember(made)


def _with_memo(session: Session) -> MemoSession:
    from daws.client.memo import MemoSession

    if isinstance(session, MemoSession):
        return session
    raise UsageError("memo: name a folder for the results first: daws.Cluster(memo='…'), or DAWS_MEMO")


def _devices(given: Mapping[Any, Any] | None, kind: str) -> tuple[tuple[str, int], ...]:
    if not given:
        return ()
    from daws.model.context import ANY, Label, parse_context

    if kind != "processes":
        raise UsageError("devices: threads share one environment; use kind='processes'")
    if not isinstance(given, Mapping):
        raise UsageError(f"devices={given!r}: give a dict of labels and numbers, such as {{'gpu': 2}}")
    for label, count in given.items():
        if type(count) is not int or not 1 <= count <= WORKERS_MAX:
            raise UsageError(f"devices: {label!r}: {count!r}: give a whole number from 1 to {WORKERS_MAX}")
        context = parse_context(label) if isinstance(label, str) else None
        if not isinstance(context, Label) or context.name == ANY:
            raise UsageError(f"devices: {label!r}: give a label, such as 'gpu'")
    return tuple(given.items())


def _strategy_of(strategy: str | Strategy) -> Strategy:
    """What was chosen; a warning if it is not itself where tasks come one by one."""
    from daws.strategy import lacks_live, parse_strategy
    from daws.strategy.decisions import Strategy

    if not isinstance(strategy, str | Strategy):
        raise UsageError(f"strategy={strategy!r:.100}: give a name, such as 'flds:tt=5', or a Strategy")
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    if lacks := lacks_live(chosen):
        warnings.warn(lacks, stacklevel=3)
    return chosen


def _journal_folder(folder: str | os.PathLike[str] | None, strategy: Strategy) -> str:
    """Refuses at once what could not be written at the end."""
    if folder is None:
        return ""
    from daws.strategy import format_strategy

    format_strategy(strategy)
    path = os.path.abspath(folder)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"journal={path!r}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"journal={path!r}: nothing can be written there")
    return path


def _fork_server(*folders: str, become: str = "daws.workers.worker", hire: int = 0) -> ForkServer:
    server = None
    try:
        server = ForkServer(*folders, become=become)
        server.hire(hire)
        return server
    except OSError as error:
        if server is not None:
            server.bury(kill=True)
        raise WorkerStartError(f"the fork server cannot be started: {with_cure(error)}", retry=False) from error


def _janitor(*folders: str) -> Janitor:
    from daws.data.janitor import Janitor

    return Janitor(*folders)


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


def _close_when_unused(cluster: Cluster) -> None:
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


def _close_now(cluster: Cluster) -> int:
    """How many tasks had not ended? If another thread closes it, wait for that one."""
    if cluster._session is not None or cluster._leaving is not None:
        return cluster._close()
    if cluster._closer is not None:
        cluster._closer.join()
    return 0


def _closed() -> ClosedError:
    return ClosedError("the cluster is closed; make a new one")
