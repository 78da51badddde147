"""A cluster on this machine, as users see it.

Little is imported before the process that starts the workers is there: it gets ready while this one imports the rest.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar
from weakref import WeakSet

from daws.client import current, patience
from daws.client.defaults import default_memo, default_nodes, default_strategy, default_trace, default_workers
from daws.client.given import whole
from daws.data.limits import check_open_files, with_cure
from daws.data.session import Session as Folders
from daws.model.errors import ClosedError, UsageError
from daws.workers.errors import WorkerStartError
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future
    from daws.client.mapping import Mapped
    from daws.client.memo import Memo, MemoSession
    from daws.client.options import Options
    from daws.client.session import Session
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


class Cluster:
    """Workers on this machine, and nodes that feed them: one on a thread of this process unless you say otherwise.

        with daws.Cluster() as cluster:
            future = cluster.submit(pow, 2, 10)
            print(future.result())

    `workers` is the number of workers (one per processor unless given), `kind` what they are: processes, or threads for
    tasks that release the GIL or only wait (those cannot be stopped while they run). `strategy` is a preset or a
    strategy as text, `memory_bytes` how much memory objects may take before they are spilled to disk. `trace` is a file
    that is written when the cluster is closed and shows in Perfetto when and where each task ran; a `timeline` is told
    the same while the cluster runs. With `explain` it is recorded why each task ran where it did, for
    `future.explain()`.

    `devices={"gpu": 2}` adds two workers to each node for tasks with that context, each with a device of its own, whose
    number tasks find in CUDA_VISIBLE_DEVICES.

    With `node="process"` the node is a process of its own, for clients that compute a lot themselves. With several
    `nodes` each of them is one, with `workers` workers of its own. `journal` is a folder for what each node was told
    and did.

    `memo` is a folder for results of tasks with `memo=True`, which are not run again while nothing changes that they
    were made of.
    """

    _is_forked = False

    def __init__(
        self,
        workers: int | None = None,
        *,
        nodes: int | None = None,
        node: Literal["thread", "process"] = "thread",
        kind: Literal["processes", "threads"] = "processes",
        devices: Mapping[str, int] | None = None,
        strategy: str | Strategy | None = None,
        memory_bytes: int | None = None,
        setup: Callable[[], object] | None = None,
        teardown: Callable[[], object] | None = None,
        journal: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        timeline: Timeline | None = None,
        explain: bool = False,
        memo: str | os.PathLike[str] | None = None,
    ) -> None:
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
        if type(explain) is not bool:
            raise UsageError(f"explain={explain!r}: give True or False")
        memory_bytes = check_memory(memory_bytes)
        labelled = _devices(devices, kind)
        if strategy is None:
            strategy = default_strategy()
        self.timeline = timeline
        self._trace = trace = default_trace() if trace is None else trace
        if trace is not None:
            from daws.runs.timeline import Timeline
            from daws.runs.trace import check_trace_target

            check_trace_target(trace)
            self.timeline = timeline or Timeline()
        kind_of_session, prepare = _memory(memo)
        if kind == "processes":
            check_open_files(workers)
        self.nodes = nodes
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
            from daws.runtime.engine import Crew

            self.strategy = _strategy_of(strategy)
            given = {"setup": setup, "teardown": teardown}
            hooks = {name: dumps_function(hook, name) for name, hook in given.items() if hook is not None}
            crew = Crew(
                workers, kind, tells_runs=self.timeline is not None, explains=explain, devices=labelled, **hooks
            )
            kept = _journal_folder(journal, self.strategy)
            facts = Facts() if explain else None
            session = (kind_of_session or _plain_session())(
                crew, self.strategy, self._folders, memory_bytes, processes, kept, server, self.timeline, facts
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
        patience.begin()
        _open.add(self)

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `function(*args, **kwargs)` in a worker. Futures anywhere inside the arguments become its inputs."""
        session = self._session
        if session is None:
            raise self._refusal()
        return session.submit_call(function, args, kwargs)

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Like `submit`, with options: outputs, context, cores, memory, priority, retries, timeout, expected and rank
        (in seconds: when to stop it, how long it will run, how long all takes that hangs on it).

        With `outputs=n` the function returns n values, and there are n futures, as a tuple.
        """
        from daws.client.given import arguments
        from daws.client.options import options_of

        return self._start(function, *arguments(args, kwargs), options_of(**options))

    def _start(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        session = self._open()
        session.check(options)
        if options.memo is not None:
            return _with_memo(session).call(function, args, kwargs, options)
        submit = session.submit if options.outputs == 1 else session.submit_several
        return submit(session.number_of(function), args, kwargs, options)

    def run(self, words: Command | str | Sequence[Word], **described: Any) -> CommandFuture:
        """Run a program in a worker: a `daws.command(…)`, or what would be given to it.

        The result says how it ended; `outputs` of the future are the futures of the files that it makes, by name.
        """
        from daws.client.commands import Command, command, run  # most sessions have none

        if isinstance(words, Command) and described:
            raise UsageError("run: say all about a command in daws.command(…), or give its words here")
        return run(self._open(), words if isinstance(words, Command) else command(words, **described))

    def map(
        self,
        function: Callable[..., T],
        *iterables: Iterable[Any],
        chunk: int | None = None,
        memo: bool | str | None = None,
    ) -> Mapped[T]:
        """Call `function` for each item (of several iterables: with one of each), several items per task.

        `chunk` is the number of items per task; left out, chunks are large at first and small towards the end. With
        `memo` each item is looked up by itself among the results of earlier runs.
        """
        from daws.client.mapping import check_map, map_chunks

        if memo is not None and memo is not False:
            from daws.client.options import options_of

            check_map(iterables, chunk)
            session = _with_memo(self._open())
            return session.map(self.workers, function, iterables, chunk, options_of(memo=memo))
        return map_chunks(self._open(), self.workers, function, iterables, chunk)

    def put(self, value: T) -> Future[T]:
        """Hand in an object once that many tasks read; workers map large ones into memory instead of copying them.

        It goes when its future is gone and no task reads it any more. Nothing can make it again if it is lost.
        """
        return self._open().put(value)

    def gather(
        self, futures: Any, errors: Errors = "raise", timeout: float | None = None, progress: bool = False
    ) -> Any:
        """The results of futures in lists, tuples, sets, dicts and dataclasses, however deep, in the same shape.

        `errors="return"` puts exceptions where results would be, `"skip"` leaves failed ones out. `progress=True` shows
        a bar on terminals and in notebooks.
        """
        from daws.client.waiting import gather

        return gather(futures, errors, timeout, progress)

    def cancel(self, futures: Future[Any] | Iterable[Future[Any]] | Mapped[Any]) -> None:
        """Stop tasks, and all that need them."""
        from daws.client.future import Future
        from daws.client.mapping import Mapped
        from daws.client.waiting import distinct

        if isinstance(futures, Mapped):
            futures = futures.futures
        given = distinct([futures] if isinstance(futures, Future) else futures)
        session = self._open()
        session.check_own(given, "cancel it there")
        session.cancel(given)

    def _cancel_waiting(self, futures: Iterable[Future[Any]]) -> None:
        self._open().cancel(futures, running=False)

    def use_strategy(self, strategy: str | Strategy) -> None:
        """Go by another strategy from now on. Returns when all nodes do.

        What waits is placed and ordered anew; what runs, or is on its way, goes on as it was decided.
        """
        chosen = _strategy_of(strategy)
        self._open().use_strategy(chosen)
        self.strategy = chosen

    def counters(self) -> list[Counters]:
        """What each node has seen so far: tasks that ended there, tasks that it stole, bytes read, bytes moved."""
        return self._open().engine.counters()

    @property
    def memo(self) -> Memo:
        """How many tasks with `memo=` were reused, how many ran, and why."""
        return _with_memo(self._open()).memo

    # -- its life ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the workers and remove all files. Tasks that have not ended are given up."""
        left = self._close()
        if left and sys.exc_info()[0] is KeyboardInterrupt:
            _say_unfinished(left)

    def _close(self) -> int:
        """How many tasks had not ended?"""
        with self._lock:
            session, self._session = self._session, None
            if session is not None and session.engine.is_here:  # a callback, or the garbage collector
                self._session = session
                Thread(target=self._close, name="daws-close").start()
                return 0
        current.forget(self)
        if session is None:
            return 0
        patience.end()
        left = session.close(_closed())
        self._remove_folders()
        if self._trace is not None and self.timeline is not None:
            from daws.runs.trace import write_trace

            write_trace(self._trace, self.timeline)
        return left

    def _remove_folders(self) -> None:
        self._folders.close()
        if self._janitor is not None:
            self._janitor.dismiss()

    def _open(self) -> Session:
        if self._session is None:
            raise self._refusal()
        return self._session

    def _refusal(self) -> ClosedError:
        return ClosedError(FORKED) if self._is_forked else _closed()

    def __enter__(self) -> Cluster:
        self._open()
        return current.use(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_session", None) is not None:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def __repr__(self) -> str:
        session = self._session
        state = "closed" if session is None else f"{len(session.futures):,} tasks to end"
        nodes = f"{self.nodes} nodes, " if self.nodes > 1 else ""
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"<Cluster: {nodes}{workers}, {self.strategy.name}, {state}>"


def check_memory(memory_bytes: int | None) -> int | None:
    """Refuse a number of bytes that is none."""
    return None if memory_bytes is None else whole("memory_bytes", memory_bytes, 1)


def _plain_session() -> type[Session]:
    from daws.client.session import Session

    return Session


def _memory(folder: str | os.PathLike[str] | None) -> tuple[type[MemoSession] | None, Callable[[Any], None]]:
    """For a cluster that reuses results: the kind of its session, and what is to be done with it first."""
    folder = default_memo() if folder is None else folder
    if folder is None:
        return None, lambda session: None
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
    from daws.strategy import parse_strategy
    from daws.strategy.decisions import Strategy

    if not isinstance(strategy, str | Strategy):
        raise UsageError(f"strategy={strategy!r:.100}: give a name, such as 'flds:tt=5', or a Strategy")
    return parse_strategy(strategy) if isinstance(strategy, str) else strategy


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
        session, cluster._session = cluster._session, None
        if session is not None:
            session.abandon(reason)
            _abandoned.append(session)
            cluster._is_forked = True
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)


@atexit.register
def _close_all() -> None:
    """A program that ends, in whatever way, ends what it has not closed itself, and hears what that has cost."""
    left = sum([cluster._close() for cluster in tuple(_open)])
    if left:
        _say_unfinished(left)


def _say_unfinished(count: int) -> None:
    if sys.stderr is not None:
        print(f"daws: {count:,} {'task was' if count == 1 else 'tasks were'} not finished", file=sys.stderr)


def _closed() -> ClosedError:
    return ClosedError("the cluster is closed; make a new one")
