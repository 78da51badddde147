"""A session: what one client has submitted, from its side. Futures live here until they have ended."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import count
from time import monotonic_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from daws.client import notebook
from daws.client.arguments import LargeArguments
from daws.client.brake import COUNTED_BYTES_MIN, Brake
from daws.client.cancelled import TaskCancelledError
from daws.client.functions import CarriedNumber, Functions
from daws.client.future import CANCELLED, INLINE, LET_GO_MAX, PENDING, STORED, Future, end_pending
from daws.client.hints import check_arguments, check_callable, cure_of_needs
from daws.client.interrupts import forget_lost_interrupts, send_lost_interrupts_again
from daws.client.leaving import named_in
from daws.client.listening import SessionListener
from daws.client.options import NAMES, OPTION_NAMES, USUAL, Args, Function, Kwargs, Options
from daws.client.results import KEPT_MAX, MakeFutures, StoredResults, objects_of, output_futures
from daws.data.buffers import BufferObject
from daws.data.codec import Packed, dumps_plain, encode
from daws.data.files import ObjectFiles
from daws.data.session import SessionFolders as Folders
from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import ClosedError, ContextError, StrategyError, TaskFailedError, UsageError
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import FROM_OUTSIDE, INLINE_BYTES, NOBODY, Input, Needs, NodeId, TaskSpec
from daws.runs.facts import Facts
from daws.runs.timeline import Timeline
from daws.runtime.client import SessionDriver
from daws.runtime.here import NODE
from daws.runtime.ports import PlainTask
from daws.strategy.decisions import Assign, Newcomer, Strategy
from daws.wire.ends import Outcome
from daws.wire.store import Submit
from daws.wire.worker import INPUTS_ALONE
from daws.workers.failures import exception_of, with_way

if TYPE_CHECKING:
    from daws.client.memo import MemoTasks
    from daws.data.memo import MemoFolder

NO_MEMO = "memo: name a folder for the results first: daws.Cluster(memo='…'), or DAWS_MEMO"
SEED = 0
"""The home of a task while there are no nodes."""
PENDING_SHARE = 2
"""One part in so many of the room for objects may be taken by arguments of tasks that have not ended."""


class Session(SessionListener):
    """Ids, futures and functions of one client; the engine does the rest."""

    hears_of_items = True
    """Do workers tell it of items of a `map` that failed?"""

    def __init__(
        self,
        strategy: Strategy,
        folders: Folders,
        limit_bytes: int | None,
        open_nodes: "Callable[[Session], SessionDriver]",
        timeline: Timeline | None,
        facts: Facts | None,
        is_alone: bool = False,
    ) -> None:
        """`open_nodes` makes the nodes, or connects to them. There is one, on a thread of this process, if the session
        `is_alone`."""
        super().__init__(timeline, facts)
        self.folders = folders
        self._is_alone = is_alone
        self._decide_by(strategy)
        self.results = StoredResults(self)
        self.stored = self.results.stored
        places = folders.node_folders(NODE) if is_alone else folders.part("client")
        self.files = ObjectFiles(*places, limit_bytes=limit_bytes)
        self.engine = open_nodes(self)
        self.brake = Brake(self.files.limit_bytes // PENDING_SHARE)
        self.large = LargeArguments(self._put, may_wait=lambda: not self.engine.is_here)
        self._hand_in: Callable[[Any], None] = self.engine.new_tasks.append
        self.gone = self.engine.let_go
        self._next_task = count().__next__
        self.functions = self._make_functions()
        self.number_of = self.functions.number_of
        self._settled = self.functions.settled
        self._turns: dict[Needs | None, int] = {}  # of the last task that needs this (see Newcomer)
        self.load, self.path_of = self.results.load, self.results.path_of
        self.expect_reading = self.results.expect_reading
        self._memo: MemoTasks | None = None
        self.memo_notes: dict[int, str] = {}  # by task with `memo=`: whether it was reused, or why it ran
        self.left = 0  # tasks that had not ended when the session was closed

    def _make_functions(self) -> Functions:
        return Functions(self.engine.learn, self.timeline)

    def reuse(self, results: "MemoFolder") -> None:
        """Keep the results of tasks with `memo=` in a folder, and look there for those of earlier runs."""
        from daws.client.memo import MemoTasks  # most sessions have no such tasks

        self._memo = MemoTasks(self, results)

    def memo_tasks(self) -> "MemoTasks":
        """The tasks with `memo=`; UsageError if there is no folder for their results."""
        if self._memo is None:
            raise UsageError(NO_MEMO)
        return self._memo

    def start(self) -> None:
        self.engine.start()
        if not self._is_alone:
            self._next_task = self.functions.next_number = count(self.engine.next_task).__next__
        notebook.watch(self)
        send_lost_interrupts_again()

    def close(self, reason: BaseException) -> int:
        """End everything; how many tasks had not ended. Threads that wait for them are told `reason`."""
        try:
            if self._memo is not None:
                self._memo.close()
            if self._closed is None:
                self._keep_results()
        finally:  # also when Ctrl-C ends the reading of results
            self._end(reason)
        return self.left

    def _end(self, reason: BaseException) -> None:
        self._closed = self._closed or reason  # it may be broken already
        notebook.unwatch(self)
        self.brake.release()
        self.large.clear()
        try:
            self.engine.stop()
        finally:  # also when Ctrl-C ends the wait for workers: nobody may wait for these futures for ever
            self.left = len(self.futures)
            self._end_all(TaskCancelledError("the task was cancelled: its cluster was closed"), CANCELLED)
            forget_lost_interrupts()

    def _keep_results(self) -> None:
        """Read the results whose futures somebody has: their files go with the session."""
        self.results.keep(self.files.limit_bytes, KEPT_MAX)

    def abandon(self, reason: BaseException) -> None:
        """The engine is not in this process: end nothing, but let nobody wait."""
        self._closed = reason
        notebook.unwatch(self)
        self._end_all(reason)

    # -- in ------------------------------------------------------------------------------------------------------------

    def forget_functions(self) -> None:
        """Modules may have changed: look at all functions again."""
        self.functions.settled.clear()

    def submit(self, function: Any, args: Args, kwargs: Kwargs) -> Future[Any]:
        """Submit a task with one output and without options. Most tasks have no futures and no large values among their
        arguments, and take the short way."""
        number = self._settled.get(function) if function.__class__ is FunctionType else None
        if number is None:
            if getattr(type(function), "_is_task", False):
                return self.start_task(function._sent_function(), args, kwargs, function._checked)  # type: ignore[no-any-return]
            number = self._checked_number(function)
        if kwargs and not OPTION_NAMES.isdisjoint(kwargs):
            check_arguments(function, kwargs, NAMES)
        if not self._is_alone or number.__class__ is CarriedNumber:
            return self.submit_number(number, args, kwargs)
        payload = INPUTS_ALONE
        if args or kwargs:
            payload = b"" if kwargs else dumps_plain(args)
            above: Iterable[Future[Any]] = ()
            if not payload:
                payload, above = self._arguments(args, kwargs)
            if above or len(payload) >= COUNTED_BYTES_MIN:
                return self._submit_one(number, payload, above, USUAL)
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        new = PlainTask(task, number, payload)  # before the future is known (see `_submit`)
        self.futures[task] = future
        if self._closed is not None:
            self._refuse(task)
        engine = self.engine
        self._hand_in(new)
        if not engine.awake:
            engine.wake()
        return future

    def submit_number(self, number: int, args: Args, kwargs: Kwargs, options: Options = USUAL) -> Future[Any]:
        """Submit a task with one output, of a function that has been sent."""
        if isinstance(number, CarriedNumber):
            args, number = (number.function, *args), int(number)
        plain = b"" if kwargs or not args else dumps_plain(args)
        payload, above = (plain, ()) if plain else self._arguments(args, kwargs)
        return self._submit_one(number, payload, above, options)

    def _submit_one(self, number: int, payload: bytes, above: Iterable[Future[Any]], options: Options) -> Future[Any]:
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        self._submit(number, payload, above, options, future, (task,))
        return future

    def _checked_number(self, function: Function) -> int:
        check_callable(function)
        return self.number_of(function)

    def start_task(self, function: Function, args: Args, kwargs: Kwargs, options: Options) -> Any:
        """A task with options: one future, or as many as it has outputs, as a tuple."""
        if options is USUAL:
            return self.submit(function, args, kwargs)
        self.check(options)
        if options.memo is not None:
            return self.memo_tasks().start(function, args, kwargs, options)
        number = self._settled.get(function) if function.__class__ is FunctionType else None
        if number is None or not self._is_alone:
            number = self._checked_number(function)
        if kwargs and not OPTION_NAMES.isdisjoint(kwargs):
            check_arguments(function, kwargs, NAMES)
        submit = self.submit_number if options.outputs == 1 else self.submit_several
        return submit(number, args, kwargs, options)

    def submit_several(
        self, function: int, args: Args, kwargs: Kwargs, options: Options, make: MakeFutures = output_futures
    ) -> tuple[Future[Any], ...]:
        """One task with several outputs. `make` is given a task and its objects, and answers their futures."""
        if isinstance(function, CarriedNumber):
            args, function = (function.function, *args), int(function)
        payload, above = self._arguments(args, kwargs)
        task = self._next_task()
        made = objects_of(task, options.outputs)
        future, *others = make(self, task, made)
        if others:
            self.outputs[task] = others
        self._submit(function, payload, above, options, future, tuple(made))
        return (future, *others)

    def _arguments(self, args: Args, kwargs: Kwargs) -> tuple[bytes, Iterable[Future[Any]]]:
        """Pickled arguments, and the futures that were found in them."""
        if not kwargs:
            for one in args:
                if one.__class__ is not Future or one._state == INLINE or one._session is not self:
                    break
            else:
                if len(args) < 2 or len(set(args)) == len(args):
                    return INPUTS_ALONE, args
        return self.large.pickled(args, kwargs, self.check_own)

    def _submit(
        self,
        function: int,
        payload: bytes,
        above: Iterable[Future[Any]],
        options: Options,
        future: Future[Any],
        made: tuple[int, ...],
        leaf: bool = False,
    ) -> None:
        inputs: tuple[int, ...] = ()
        parents: tuple[int, ...] = ()
        if len(payload) >= COUNTED_BYTES_MIN or payload[:1] == b"s":
            payload, above = self._bounded(future.task, payload, above)
        if options.writable and above:
            payload = b"w" + payload
        if above:
            inputs = tuple([one.object for one in above])
            parents = tuple(dict.fromkeys([one.task for one in above]))
        task = future.task
        try:
            home = NODE if self._is_alone else self._home(task, options, above)
            spec = TaskSpec(
                task,
                function,
                options.estimate_ns,
                inputs,
                made,
                options.needs,
                options.priority,
                options.rank_ns,
                home,
                leaf,
                payload,
                options.retries,
                options.timeout_ns,
            )
            engine, submit = self.engine, Submit(spec, parents, home)
        except BaseException:  # Ctrl-C
            self._withdraw(task, above)
            raise
        # Nothing is called in between: after a Ctrl-C there, closing would wait for a task that no node knows.
        self.futures[task] = future
        if self._closed is not None:
            self._refuse(task)
        engine.new_tasks.append(submit)
        if not engine.awake:
            engine.wake()

    def _bounded(self, task: int, payload: bytes, above: Iterable[Future[Any]]) -> tuple[bytes, Iterable[Future[Any]]]:
        """Count the arguments of a task that has large ones, or many. If there is no room, they go into a file."""
        try:
            self.large.submitted(task, above)
            if not self.brake.add(task, len(payload), not self.engine.is_here):
                above = [*above, self._put(BufferObject(memoryview(payload)))]
                payload = b"p%d" % (len(above) - 1)
        except BaseException:  # Ctrl-C while it waits for room, or no room for the file
            self._withdraw(task, above)
            raise
        return payload, above

    def _withdraw(self, task: int, above: Iterable[Future[Any]]) -> None:
        """The task is not submitted after all."""
        self.outputs.pop(task, None)
        self._uncount(task)
        self.large.discard(above)

    def _refuse(self, task: int) -> NoReturn:
        """Asked when its future is known already: who closes meanwhile would tell it otherwise."""
        self.futures.pop(task, None)
        self._withdraw(task, ())
        raise ClosedError(f"no tasks can be submitted any more: {self._closed}")

    def _home(self, task: int, options: Options, above: Iterable[Future[Any]]) -> NodeId:
        """The node that a new task is handed to, as the strategy says."""
        known: list[Input] = []
        for one in above:
            known += [output for output in self.stored.get(one.task, ()) if output.object == one.object]
        members, needs, turns = self.engine.members, options.needs, self._turns
        turn = turns[needs] = turns.get(needs, task - 1) + 1
        newcomer = Newcomer(task, needs, tuple(known) if known else (), turn)
        return self._assign.home(newcomer, members, SEED) if members.infos else NOBODY

    def put(self, value: object) -> Future[Any]:
        """An object that tasks read as if a task had made it: small ones inside messages, others from a file."""
        if self._closed is not None:
            raise ClosedError(f"nothing can be put in any more: {self._closed}")
        return self._put(encode(value, INLINE_BYTES, "the object"))

    def _put(self, made: bytes | Packed) -> Future[Any]:
        task = self._next_task()
        home = NODE if self._is_alone else self._home(task, USUAL, ())
        future: Future[Any] = Future(self, task, task)
        if isinstance(made, bytes):
            future._what, future._state = made, INLINE
            outputs: tuple[Input, ...] = (Input(task, len(made), task, (home,), made),)
        else:
            made = made.as_file(task)
            places = self._write(task, made, home)
            outputs = (Input(task, made.size_bytes, task, places, b""),)
            home = places[0]
            self.stored[task] = outputs
            future._state = STORED
        engine = self.engine
        engine.new_tasks.append(Submit(TaskSpec(task, FROM_OUTSIDE, outputs=(task,)), (), home, outputs))
        if not engine.awake:
            engine.wake()
        return future

    def _write(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        try:
            return self.engine.store_object(object_, packed, home)
        except OSError:
            if self._closed is not None:  # by another thread, with all its folders
                raise ClosedError(f"nothing can be put in any more: {self._closed}") from None
            raise

    def use_strategy(self, strategy: Strategy) -> None:
        """Change the strategy, and return when all nodes use it. Only what can be spelled out can be told to them."""
        from daws.strategy import DECISIONS, check_fitting, format_strategy
        from daws.strategy.fitting import is_ours

        if self._closed is not None:
            raise ClosedError(f"the strategy cannot be changed any more: {self._closed}")
        self.check_may_wait()
        check_fitting(strategy)
        text = format_strategy(strategy)
        if not self._is_alone and not is_ours(*[getattr(strategy, decision) for decision in DECISIONS]):
            raise StrategyError(
                "nodes in processes of their own do not know your answers by name; "
                "give such a strategy to daws.Cluster(strategy=…), which sends it as it is"
            )
        self.engine.use_strategy(text)
        self._decide_by(strategy)

    def check_own(self, futures: Iterable[Future[Any]], instead: str = "pass its result instead") -> None:
        """Refuse futures of others: tasks are known by numbers that each session counts by itself."""
        for future in futures:
            if future._session is not self:
                raise ClosedError(f"{future!r} belongs to another cluster; {instead}")

    def check(self, options: Options) -> None:
        """Refuse what no executor of this cluster could run, unless all of its nodes are still to come."""
        if options.memo is not None:
            self.memo_tasks()
        needs, members = options.needs, self.engine.members
        if needs is not None and members and not members.capable(needs):
            asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
            raise ContextError(f"no executor offers {asked}: {_offers(members)}; {self._cure_of(needs, members)}")

    def _cure_of(self, needs: Needs, members: Members) -> str:
        """The cure when no executor can run tasks with these needs."""
        return cure_of_needs(needs, max(info.executors[0].count for info in members.infos))

    def cancel(self, futures: Iterable[Future[Any]]) -> int:
        """Stop tasks; how many of them had not ended. Their futures have ended when this returns."""
        if self._closed is not None:
            return 0
        futures = [*futures]
        found: list[Future[Any]] = []
        try:
            for task in dict.fromkeys([future.task for future in futures]):
                future = self.futures.pop(task, None)
                if future is not None:  # else the engine's thread was faster
                    found.append(future)
            if not found:
                return 0
            self.engine.cancel(tuple([future.task for future in found]))
            for future in found:
                self._end_cancelled(future)
        except BaseException:  # Ctrl-C, or a callback that exits: nobody may wait for the rest for ever
            self._end_orphans(futures)
            raise
        for alarm in tuple(self.alarms):
            alarm.release()
        return len(found)

    def _end_orphans(self, futures: Iterable[Future[Any]]) -> None:
        """End those of these futures that are pending and that no end will reach any more, and stop their tasks."""
        left = [one for one in futures if one._state == PENDING and one.task not in self.futures]
        if left:
            self.engine.cancel(tuple([one.task for one in left]))
        for one in left:
            with suppress(BaseException):  # callbacks; the first exception is raised already
                self._end_cancelled(one)

    def _end_cancelled(self, future: Future[Any]) -> None:
        """A future keeps its first end: what the nodes say later of its task is for nobody."""
        futures, outcome = (future, *self.outputs.pop(future.task, ())), Outcome(future.task, (), STATE_CANCELLED)
        if future.task in self.watched:
            self.watched.pop(future.task)(outcome)
        self.unseen.remove(future.task)
        end_pending(futures, CANCELLED, outcome)

    def cancel_waiting(self, futures: Iterable[Future[Any]]) -> None:
        """Stop those tasks that no worker has yet. Which ones these are is found out later."""
        tasks = tuple([future.task for future in futures if not future.done()])
        if tasks and self._closed is None:
            self.engine.cancel(tasks, running=False)

    def is_running(self, task: int) -> bool:
        """Does a worker have this task, or is it on its way to one?"""
        if self._closed is not None:
            return False
        if not self._is_alone:
            self.check_may_wait()
        return task in self.engine.started()

    def look_at_gone(self, task: int) -> None:
        """Look at the task that was let go of last. It is not urgent, unless a large object waits for it or there are
        many. Called by the garbage collector."""
        is_stored = self.results.forget(task)
        if (is_stored or not len(self.gone) % LET_GO_MAX) and not self.engine.awake and self._closed is None:
            self.engine.wake()

    # -- what futures ask ----------------------------------------------------------------------------------------------

    def check_may_wait(self) -> None:
        """Refuse to wait on the thread that brings the results: that would never end."""
        if self.engine.is_here:
            raise UsageError("callbacks run on the cluster's own thread and cannot wait; submit a task instead")

    def _decide_by(self, strategy: Strategy) -> None:
        assign: Assign = strategy.assign
        if self.facts is not None and not self._is_alone:
            from daws.runs.watching import WatchedAssign

            assign = WatchedAssign(assign, self.facts.add, monotonic_ns)
        self.strategy, self._assign = strategy, assign

    def exception_of(self, future: Future[Any]) -> BaseException:
        """A new one each time: one that is raised refers to whoever asked, and so to the future."""
        if self.unseen:
            self.see([future])
        what = future._what
        if isinstance(what, Outcome):
            if future._state == CANCELLED and not what.failure:
                return TaskCancelledError(what.error or f"task {what.task} was cancelled, or one that it needs was")
            raised = exception_of(what.failure) if what.failure else TaskFailedError(what.error)
            return with_way(raised, what.task, what.path, what.error, lambda kind: self.functions.names.get(kind, ""))
        assert isinstance(what, BaseException)
        again = copy(what)
        again.__cause__ = what.__cause__
        return again

    def may_have_failed_items(self, task: int) -> bool:
        """Of a task of `map` that has ended well: may the calls of some of its items have raised?"""
        return self.unseen.has_failed_items(task)

    def see(self, futures: Iterable[Future[Any]]) -> None:
        """Somebody knows how these have ended, and what made them fail: leaving need not tell of it."""
        for future in futures:
            if future._state == PENDING:
                future._tell(partial(self.see, [future]))
            else:
                for task in named_in(future._what, future.task):
                    self.unseen.remove(task)


def _offers(members: Members) -> str:
    """The executors of the nodes, in words; nodes that have the same are named together."""
    kinds = dict.fromkeys(info.executors for info in members.infos)
    each = "each node has " if len(kinds) == 1 else "nodes have "
    said = []
    for plain, *labelled in kinds:
        there = "".join([f", {one.count} with {format_context(one.context)}" for one in labelled])
        said.append(f"{plain.count} worker{'s' * (plain.count != 1)} without a context{there}")
    return each + " or ".join(said)
