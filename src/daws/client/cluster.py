"""A cluster on this machine, as users see it."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from daws.client.defaults import default_nodes, default_strategy, default_trace, default_workers
from daws.client.future import Future
from daws.client.mapping import Mapped, map_chunks
from daws.client.options import USUAL, options_of
from daws.client.session import Session
from daws.client.waiting import Errors, gather
from daws.data.functions import dumps_function
from daws.data.session import Session as Folders
from daws.model.errors import ClosedError, UsageError
from daws.runtime.engine import Crew
from daws.strategy import format_strategy, parse_strategy
from daws.strategy.decisions import Strategy
from daws.workers.port import POOLS

if TYPE_CHECKING:
    from daws.runs.timeline import Timeline

T = TypeVar("T")
WORKERS_MAX = 4096
NODES_MAX = 64


class Cluster:
    """Workers on this machine, and a node on a thread of this process that feeds them.

        with daws.Cluster() as cluster:
            future = cluster.submit(pow, 2, 10)
            print(future.result())

    `workers` is the number of workers (one per processor unless given), `kind` what they are: processes, or threads for
    tasks that release the GIL or only wait (those cannot be stopped while they run). `strategy` is a preset or a
    strategy as text, `memory_bytes` how much memory objects may take before they are spilled to disk. `trace` is a file
    that is written when the cluster is closed and shows in Perfetto when and where each task ran; a `timeline` is told
    the same while the cluster runs.

    With `node="process"` the node is a process of its own, for clients that compute a lot themselves. With several
    `nodes` each of them is one, with `workers` workers of its own. `journal` is a folder for what each node was told
    and did.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        nodes: int | None = None,
        node: Literal["thread", "process"] = "thread",
        kind: Literal["processes", "threads"] = "processes",
        strategy: str | Strategy | None = None,
        memory_bytes: int | None = None,
        setup: Callable[[], object] | None = None,
        teardown: Callable[[], object] | None = None,
        journal: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        timeline: "Timeline | None" = None,
    ) -> None:
        if nodes is None:
            nodes = default_nodes()
        if type(nodes) is not int or not 1 <= nodes <= NODES_MAX:
            raise UsageError(f"nodes={nodes!r}: give a whole number from 1 to {NODES_MAX}")
        if node not in ("thread", "process"):
            raise UsageError(f"node={node!r}: give 'thread' or 'process'")
        if workers is None:
            workers = default_workers(nodes)
        if type(workers) is not int or not 1 <= workers <= WORKERS_MAX:
            raise UsageError(f"workers={workers!r}: give a whole number from 1 to {WORKERS_MAX}")
        if kind not in POOLS:
            raise UsageError(f"kind={kind!r}: give {' or '.join(map(repr, POOLS))}")
        if strategy is None:
            strategy = default_strategy()
        chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
        self.timeline = timeline
        self._trace = trace = default_trace() if trace is None else trace
        if trace is not None:
            from daws.runs.timeline import Timeline
            from daws.runs.trace import check_trace_target

            check_trace_target(trace)
            self.timeline = timeline or Timeline()
        self.nodes = nodes
        self.workers = nodes * workers
        self.strategy = chosen
        self._folders = Folders()
        self._lock = Lock()
        self._session: Session | None = None
        given = {"setup": setup, "teardown": teardown}
        try:
            hooks = {name: dumps_function(hook, name) for name, hook in given.items() if hook is not None}
            crew = Crew(workers, kind, tells_runs=self.timeline is not None, **hooks)
            processes = nodes if nodes > 1 or node == "process" else 0
            folder = _journal_folder(journal, chosen)
            session = Session(crew, chosen, self._folders, memory_bytes, processes, folder, self.timeline)
            session.start()
        except BaseException:
            self._folders.close()
            raise
        self._session = session

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `function(*args, **kwargs)` in a worker. Futures anywhere inside the arguments become its inputs."""
        session = self._session
        if session is None:
            raise _closed()
        return session.submit(session.number_of(function), args, kwargs, USUAL)

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Like `submit`, with options: outputs, context, cores, memory, priority, retries.

        With `outputs=n` the function returns n values, and there are n futures, as a tuple.
        """
        session = self._open()
        try:
            given = options_of(**options)
        except TypeError as error:
            raise UsageError(str(error).replace("options_of()", "call")) from None
        session.check(given)
        submit = session.submit if given.outputs == 1 else session.submit_several
        return submit(session.number_of(function), tuple(args), kwargs or {}, given)

    def map(self, function: Callable[..., T], *iterables: Iterable[Any], chunk: int | None = None) -> Mapped[T]:
        """Call `function` for each item (of several iterables: with one of each), several items per task.

        `chunk` is the number of items per task; left out, chunks are large at first and small towards the end.
        """
        return map_chunks(self._open(), self.workers, function, iterables, chunk)

    def gather(self, futures: Any, errors: Errors = "raise", timeout: float | None = None) -> Any:
        """The results of futures in lists, tuples and dicts, however deep, in the same shape."""
        return gather(futures, errors, timeout)

    def cancel(self, futures: Future[Any] | Iterable[Future[Any]]) -> None:
        """Stop tasks, and all that need them."""
        self._open().cancel([futures] if isinstance(futures, Future) else futures)

    # -- its life ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the workers and remove all files. Tasks that have not ended are given up."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            left = session.close(_closed())
            self._folders.close()
            if self._trace is not None and self.timeline is not None:
                from daws.runs.trace import write_trace

                write_trace(self._trace, self.timeline)
            if left and sys.exc_info()[0] is KeyboardInterrupt:
                print(f"daws: {left:,} tasks were not finished", file=sys.stderr)

    def _open(self) -> Session:
        if self._session is None:
            raise _closed()
        return self._session

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_session", None) is not None:
            self.close()

    def __repr__(self) -> str:
        session = self._session
        state = "closed" if session is None else f"{len(session.futures):,} tasks to end"
        nodes = f"{self.nodes} nodes, " if self.nodes > 1 else ""
        return f"<Cluster: {nodes}{self.workers} workers, {self.strategy.name}, {state}>"


def _journal_folder(folder: str | os.PathLike[str] | None, strategy: Strategy) -> str:
    """Refuses at once what could not be written at the end."""
    if folder is None:
        return ""
    format_strategy(strategy)
    path = os.path.abspath(folder)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"journal={path!r}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"journal={path!r}: nothing can be written there")
    return path


def _closed() -> ClosedError:
    return ClosedError("the cluster is closed; make a new one")
