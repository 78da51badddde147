"""A cluster on this machine, as users see it.

Little is imported before the process that starts the workers is there: it gets ready while this one imports the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypeVar, Unpack, overload

from daws.client import tuning
from daws.client.given import flag, size, whole
from daws.client.hints import answer_to, check_workers, refuse_method_option, workers_of
from daws.client.lifetime import Lifetime
from daws.client.signatures import ClusterMethods
from daws.client.starting import (
    WORKERS_MAX,
    Recording,
    default_nodes,
    default_strategy,
    default_workers,
    devices_of,
    fork_server,
    journal_folder,
    memo_folder,
    strategy_of,
)
from daws.data.limits import check_open_files
from daws.data.session import SessionFolders as Folders
from daws.model.errors import UsageError
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.admin import NodeDescription, SessionDescription
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future
    from daws.client.mapping import ItemFuture, Mapped
    from daws.client.memo import Memo
    from daws.client.options import Args, ClusterSynonyms, Function, Kwargs, Options
    from daws.client.tasks import Task
    from daws.data.janitor import Janitor
    from daws.runs.timeline import Timeline
    from daws.runtime.client import SessionDriver
    from daws.strategy.decisions import Strategy
    from daws.wire.notes import Counters

T = TypeVar("T")
NODES_MAX = 64
KINDS = ("processes", "threads")


class Cluster(Lifetime, ClusterMethods):
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

    _is_tuned = False
    _janitor: Janitor | None = None

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
        nodes = whole("nodes", default_nodes() if nodes is None else nodes, 1, NODES_MAX)
        if node not in ("thread", "process"):
            raise UsageError(f"node={node!r}: give 'thread' or 'process'")
        workers = whole("workers", default_workers(nodes) if workers is None else workers, 1, WORKERS_MAX)
        if kind not in KINDS:
            raise UsageError(f"kind={kind!r}: give {' or '.join(map(repr, KINDS))}")
        flag("explain", explain)
        flag("tune", tune)
        limit_bytes = None if memory_bytes is None else size("memory_bytes", memory_bytes, 1)
        labelled = devices_of(devices, kind)
        if strategy is None:
            strategy = default_strategy()
        self._recording = Recording(trace, export, plot, timeline)
        self._timeline = self._recording.timeline
        results = memo_folder(memo)
        if kind == "processes":
            check_open_files(workers)
        self._nodes = nodes
        self._since = time()
        self.workers = nodes * workers
        self._folders = Folders()
        server: ForkServer | None = None
        session: Session | None = None
        try:
            processes = nodes if nodes > 1 or node == "process" else 0
            if processes:
                server = fork_server(*self._folders.all(), become="daws.runtime.cluster.child")
            elif kind == "processes":
                server = fork_server(*self._folders.all(), hire=workers)
            else:
                from daws.data.janitor import Janitor

                self._janitor = Janitor(*self._folders.all())
            from daws.client.session import Session
            from daws.data.functions import dumps_function
            from daws.runs.facts import Facts
            from daws.wire.crew import Crew
            from daws.workers.managers import with_key

            self.strategy = strategy_of(strategy)
            given = {"setup": with_key(setup) if kind == "processes" else setup, "teardown": teardown}
            hooks = {name: dumps_function(hook, name) for name, hook in given.items() if hook is not None}
            crew = Crew(
                workers,
                kind,
                tells_runs=self._timeline is not None,
                explains=explain,
                devices=labelled,
                owns_process=tune or bool(processes),
                place=0,
                **hooks,
            )
            kept = journal_folder(journal, self.strategy)
            facts = Facts() if explain else None

            def open_nodes(session: Session) -> SessionDriver:
                if not processes:
                    from daws.runtime.thread import ThreadCluster

                    return ThreadCluster(crew, session.strategy, session.files, session, kept, server)
                from daws.runtime.cluster.private import PrivateCluster

                folders, files, pending = session.folders, session.files, session.futures.keys
                return PrivateCluster(
                    processes, crew, session.strategy, folders, limit_bytes, files, session, pending, kept, server
                )

            session = Session(
                self.strategy, self._folders, limit_bytes, open_nodes, self._timeline, facts, is_alone=not processes
            )
            server = None  # from now on the session's
            session.start()
            self._opened(session, results)
        except BaseException:
            if server is not None:
                server.bury(kill=True)
            if session is not None:
                session.engine.stop()
            self._remove_folders()
            raise
        self._is_tuned = tune
        if tune:
            tuning.begin()

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
        return session.submit(function, args, kwargs)

    def _start(self, function: Function, args: Args, kwargs: Kwargs, options: Options) -> Any:
        return self._open().start_task(function, args, kwargs, options)

    def run(self, words: Command | str | Sequence[Word], *more: Any, **described: Any) -> CommandFuture:
        """Run a program in a worker: a `daws.command(…)`, or the arguments of one.

        The result says how the program ended. `outputs` of the future has a future for each file that the program
        makes, by name.
        """
        given: object = words
        if more or (callable(given) and not isinstance(given, str | Sequence)):
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

    def _map(self, function: Function, iterables: tuple[Any, ...], chunk: int | None, options: Options) -> Mapped[Any]:
        from daws.client.mapping import map_chunks

        session = self._open()
        session.check(options)
        if options.memo is not None:
            return session.memo_tasks().map(self.workers, function, iterables, chunk, options)
        return map_chunks(session, self.workers, function, iterables, chunk, options)

    def put(self, value: T, **others: Never) -> Future[T]:
        """Store an object once that many tasks read; workers map large objects into memory instead of copying them.

        The object is deleted when its future is gone and no task reads it any more. If its only copy is lost, tasks
        that need it fail.
        """
        if others:
            refuse_method_option("put", others)
        return self._open().put(value)

    def cancel(self, futures: Future[Any] | ItemFuture[Any] | Iterable[Any] | Mapped[Any], **others: Never) -> int:
        """Stop tasks, and all tasks that need them. Returns how many of the given tasks had not ended."""
        if others:
            refuse_method_option("cancel", others)
        from daws.client.future import Future
        from daws.client.mapping import ItemFuture
        from daws.client.waiting import distinct

        given = distinct([futures] if isinstance(futures, Future | ItemFuture) else futures)
        session = self._leaving or self._open()
        session.check_own(given, "cancel it there")
        return session.cancel(given)

    def use_strategy(self, strategy: str | Strategy) -> None:
        """Use another strategy from now on. Returns when all nodes use it.

        Waiting tasks are placed and ordered again. Tasks that run, or are on their way to a node, are left as they are.
        """
        chosen = strategy_of(strategy)
        self._open().use_strategy(chosen)
        self.strategy = chosen

    def counters(self) -> list[Counters]:
        """The counters of each node: tasks that ended there, tasks that it stole, bytes read, bytes moved."""
        return self._open().engine.counters()

    @property
    def memo(self) -> Memo:
        """The number of tasks with `memo=True` that were reused, the number that ran, and why they ran."""
        return self._open().memo_tasks().counts

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

    def _clean_up(self) -> None:
        if self._is_tuned:
            tuning.end()
        self._remove_folders()
        nodes = max(1, self._nodes)
        self._recording.write(_program(), nodes, self.workers // nodes)

    def _remove_folders(self) -> None:
        self._folders.close()
        if self._janitor is not None:
            self._janitor.dismiss()

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a cluster cannot be called: list(cluster.map(f, xs)), or cluster.gather(calls of @daws.task)")

    def __repr__(self) -> str:
        session = self._session or self._leaving
        state = "closed" if session is None else f"{len(session.futures):,} tasks to end"
        nodes = f"{self._nodes} nodes, " if self._nodes > 1 else ""
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"<Cluster: {nodes}{workers}, {self.strategy.name}, {state}>"

    def _repr_html_(self) -> str:
        from daws.client.html import cluster_html

        return cluster_html(self)


answer_to(Cluster)
CLUSTER_NAMES = tuple([one for one in Cluster.__init__.__annotations__ if one not in ("more", "others", "return")])
"""The options of a cluster."""


def _program() -> str:
    """The name of the program of this process."""
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c") else "daws"
