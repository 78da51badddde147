"""A session: what one client has submitted, from its side. Futures live here until they have ended."""

import sys
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from daws.client.future import CANCELLED, FAILED, INLINE, PENDING, STORED, Future, OutputFuture, collecting
from daws.client.options import OUTPUTS_MAX, Options
from daws.data.codec import dumps, dumps_call
from daws.data.files import ObjectFiles
from daws.data.functions import dumps_function
from daws.data.session import Session as Folders
from daws.model.context import format_context
from daws.model.errors import ClosedError, ContextError, TaskCancelledError, TaskFailedError
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import TaskSpec
from daws.runs.notes import Row
from daws.runs.timeline import Timeline
from daws.runtime.engine import NODE, Engine, Outcome
from daws.strategy.decisions import Strategy
from daws.wire.store import Submit
from daws.workers.failures import exception_of

NO_ARGUMENTS = dumps(((), {}))
FIRST_EXTRA_OBJECT = 1 << 62
LET_GO_MAX = 256
"""So many futures that nobody has any more are worth waking the engine."""


class Session:
    """Ids, futures and functions of one client; the engine does the rest."""

    def __init__(
        self,
        workers: int,
        strategy: Strategy,
        folders: Folders,
        limit_bytes: int | None,
        kind: str,
        timeline: Timeline | None = None,
        **hooks: bytes,
    ) -> None:
        self.folders = folders
        self.files = ObjectFiles(*folders.node_folders(NODE), limit_bytes=limit_bytes)
        self.futures: dict[int, Future[Any]] = {}  # that have not ended
        self.outputs: dict[int, list[OutputFuture[Any]]] = {}  # further ones, of tasks with several outputs
        self.timeline = timeline
        self.engine = Engine(workers, strategy, self.files, self, kind, tells_runs=timeline is not None, **hooks)
        self._next_task = count().__next__
        self._functions: dict[bytes, int] = {}
        self._closed: BaseException | None = None

    def start(self) -> None:
        self.engine.start()

    def close(self, reason: BaseException) -> int:
        """End everything; how many tasks had not ended. Whoever waits for them is told `reason`."""
        if self._closed is not None:
            return 0
        self._closed = reason
        self.engine.stop()
        left = len(self.futures)
        self._fail_all(reason)
        return left

    # -- in ------------------------------------------------------------------------------------------------------------

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number under which workers know a function."""
        pickled = dumps_function(function)
        known = self._functions.get(pickled)
        if known is None:
            known = self._functions[pickled] = len(self._functions)
            self.engine.learn(known, pickled)
            if self.timeline is not None:
                self.timeline.learn(known, function)
        return known

    def submit(self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Future[Any]:
        """One task with one output."""
        payload, above = self._arguments(args, kwargs)
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        self._submit(function, payload, above, options, future, (task,))
        return future

    def submit_several(
        self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> tuple[Future[Any], ...]:
        """One task with several outputs."""
        payload, above = self._arguments(args, kwargs)
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        more = [FIRST_EXTRA_OBJECT + task * OUTPUTS_MAX + index for index in range(1, options.outputs)]
        others = [OutputFuture[Any](future, object_) for object_ in more]
        self.outputs[task] = others
        self._submit(function, payload, above, options, future, (task, *more))
        return (future, *others)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, Iterable[Future[Any]]]:
        """Pickled arguments, and the futures that were found in them."""
        if not args and not kwargs:
            return NO_ARGUMENTS, ()
        found: dict[Future[Any], int] = {}
        collecting.found = found
        try:
            payload = dumps_call(args, kwargs)
        finally:
            collecting.found = None
        self._check_own(found)
        return payload, found

    def _submit(
        self,
        function: int,
        payload: bytes,
        above: Iterable[Future[Any]],
        options: Options,
        future: Future[Any],
        made: tuple[int, ...],
    ) -> None:
        inputs: tuple[int, ...] = ()
        parents: tuple[int, ...] = ()
        if above:
            inputs = tuple([one.object for one in above])
            parents = tuple(dict.fromkeys([one.task for one in above]))
        task = future.task
        self.futures[task] = future
        spec = TaskSpec(
            task, function, 0, inputs, made, options.needs, options.priority, 0, NODE, False, payload, options.retries
        )
        if self._closed is not None:
            del self.futures[task]
            raise ClosedError(f"no tasks can be submitted any more: {self._closed}")
        engine = self.engine
        engine.new_tasks.append(Submit(spec, parents, NODE))
        if not engine.awake:
            engine.wake()

    def _check_own(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            if future._session is not self:
                raise ClosedError(f"{future!r} belongs to another cluster; pass its result instead")

    def check(self, options: Options) -> None:
        """Refuse what no executor of this cluster could ever run."""
        needs, info = options.needs, self.engine.info
        if needs is not None and not info.can_run(needs):
            asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
            raise ContextError(f"no executor offers {asked}: this cluster has {info.cores} workers without a context")

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        tasks = tuple([future.task for future in futures if not future.done()])
        if tasks and self._closed is None:
            self.engine.cancel(tasks)

    def let_go(self, task: int) -> None:
        """Nobody has the future of this task any more. Not urgent, and called by the garbage collector."""
        engine = self.engine
        engine.let_go.append(task)
        if not engine.awake and not len(engine.let_go) % LET_GO_MAX and self._closed is None:
            engine.wake()

    # -- out: on the engine's thread -----------------------------------------------------------------------------------

    def on_ended(self, outcomes: list[Outcome]) -> None:
        take = self.futures.pop
        for outcome in outcomes:
            future = take(outcome.task, None)
            if future is None:
                continue
            others = self.outputs.pop(outcome.task, ()) if self.outputs else ()
            if not outcome.state:
                for one, output in zip((future, *others), outcome.outputs, strict=True):
                    if output[4]:
                        one._what = output[4]
                        one._state = INLINE
                    else:
                        one._state = STORED
            else:
                for one in (future, *others):
                    one._what = outcome
                    one._state = CANCELLED if outcome.state == STATE_CANCELLED else FAILED
            for one in (future, *others):
                if one._told is not None:
                    one._tell_all()

    def on_printed(self, stream: int, text: bytes) -> None:
        """What tasks print appears here, as if they ran here (when they have ended)."""
        out = sys.stderr if stream == 2 else sys.stdout
        if out is not None:
            out.write(text.decode(errors="replace"))
            out.flush()

    def on_ran(self, node: int, rows: list[Row], busy_count: int) -> None:
        if self.timeline is not None:
            self.timeline.add(node, rows, busy_count)

    def on_broken(self, error: BaseException) -> None:
        self._closed = self._closed or error
        self._fail_all(error)

    def _fail_all(self, reason: BaseException) -> None:
        """Futures that will never end otherwise."""
        while self.futures:
            task, future = self.futures.popitem()
            for one in (future, *self.outputs.pop(task, ())):
                if one._state == PENDING:
                    one._what = reason
                    one._state = FAILED
                    one._tell_all()

    # -- what futures ask ----------------------------------------------------------------------------------------------

    def load(self, object_: int) -> Any:
        if object_ not in self.files:
            raise ClosedError("the result was not asked for before its cluster was closed")
        return self.files.value(object_)

    def exception_of(self, future: Future[Any]) -> BaseException:
        what = future._what
        if isinstance(what, Outcome):
            if what.failure:
                what = exception_of(what.failure)
            elif future._state == CANCELLED:
                what = TaskCancelledError(what.error or f"task {what.task} was cancelled")
            else:
                what = TaskFailedError(what.error)
            future._what = what
        assert isinstance(what, BaseException)
        return what
