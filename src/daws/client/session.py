"""A session: what one client has submitted, from its side. Futures live here until they have ended."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from itertools import count, repeat
from time import monotonic_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import msgpack
from msgspec.structs import replace

from daws.client import notebook
from daws.client.arguments import LargeArguments
from daws.client.brake import COUNTED_BYTES_MIN, Brake
from daws.client.cancelled import TaskCancelledError
from daws.client.future import (
    CANCELLED,
    FAILED,
    INLINE,
    LET_GO_MAX,
    PENDING,
    STORED,
    Future,
    collecting,
    output_futures,
)
from daws.client.hints import check_arguments, check_callable, cure_of_needs
from daws.client.interrupts import forget_lost_interrupts, send_lost_interrupts_again
from daws.client.leaving import named_in
from daws.client.levels import LevelWatch
from daws.client.options import NAMES, OPTION_NAMES, OUTPUTS_MAX, USUAL, Options
from daws.client.printing import Printing
from daws.client.rereading import find_again, read_again
from daws.client.unseen import SeenAtEnd, Unseen
from daws.data.buffers import BufferObject
from daws.data.codec import Packed, dumps_call, dumps_plain, encode
from daws.data.files import ObjectFiles
from daws.data.functions import Carried, LargeFunction, dumps_function, is_settled, name_of, refuse_large
from daws.data.revisions import own as revisions
from daws.data.session import SessionFolders as Folders
from daws.data.tags import leveled, named
from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import (
    ClosedError,
    ContextError,
    DamagedObjectError,
    DawsError,
    StrategyError,
    TaskFailedError,
    UnavailableError,
    UsageError,
)
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import FROM_OUTSIDE, INLINE_BYTES, Input, Needs, NodeId, TaskSpec
from daws.runs.facts import Facts, FactType
from daws.runs.notes import News
from daws.runs.timeline import Timeline
from daws.runtime.crew import Crew
from daws.runtime.outcomes import NODE, ended_here
from daws.runtime.ports import ClusterPort, Outcome, PlainTask
from daws.runtime.thread import NodeThread
from daws.strategy.decisions import Assign, Newcomer, Strategy
from daws.wire.store import Submit
from daws.wire.worker import INPUTS_ALONE, ITEMS_FAILED
from daws.workers.failures import exception_of, with_way
from daws.workers.roots import FailureBook
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.explaining import Explanation

FIRST_EXTRA_OBJECT = 1 << 62
SEED = 0
NOBODY = -1
"""In the place of a home, while there are no nodes."""
KEPT_MAX = 10_000
"""So many results in files, at most, can be asked for when their cluster is closed: each may be a mapping, of which a
process may have some ten thousands."""
PENDING_SHARE = 2
"""One part in so many of the room for objects may be taken by arguments of tasks that have not ended."""


class Session:
    """Ids, futures and functions of one client; the engine does the rest."""

    hears_of_items = True
    """Do workers tell it of items of a `map` that failed?"""

    def __init__(
        self,
        crew: Crew,
        strategy: Strategy,
        folders: Folders,
        limit_bytes: int | None,
        nodes: int = 0,
        journal: str = "",
        server: ForkServer | None = None,
        timeline: Timeline | None = None,
        facts: Facts | None = None,
        join: "Callable[[Session], ClusterPort] | None" = None,
    ) -> None:
        """`nodes` is the number of node processes, 0 for a node on a thread of this process. A fork `server` for these,
        or for the workers of that, may have been started already. With `join` the nodes are there already."""
        self.timeline = timeline
        self.facts = facts
        self.folders = folders
        self.strategy = strategy
        self.futures: dict[int, Future[Any]] = {}  # that have not ended
        self.outputs: dict[int, list[Future[Any]]] = {}  # further ones, of tasks with several outputs
        self.stored: dict[int, tuple[Input, ...]] = {}  # by task: where its outputs are, if they are in files
        self.kept: dict[int, Any] = {}  # by object: results that outlive the session
        self.engine: ClusterPort
        if join is not None:
            self.files = ObjectFiles(*folders.part("client"), limit_bytes=limit_bytes)
            self.engine = join(self)
        elif nodes:
            from daws.runtime.remote import NodeProcesses

            self.files = ObjectFiles(*folders.part("client"), limit_bytes=limit_bytes)
            self.engine = NodeProcesses(nodes, crew, strategy, folders, limit_bytes, self.files, self, journal, server)
        else:
            self.files = ObjectFiles(*folders.node_folders(NODE), limit_bytes=limit_bytes)
            self.engine = NodeThread(crew, strategy, self.files, self, journal, server)
        self.brake = Brake(self.files.limit_bytes // PENDING_SHARE)
        self.large = LargeArguments(self._put, may_wait=lambda: not self.engine.is_here)
        self._share = self.large.share
        self._is_alone = not nodes and join is None
        self._hand_in: Callable[[Any], None] = self.engine.new_tasks.append
        self.gone = self.engine.let_go
        self._assign = self._watched(strategy.assign)
        self._next_task = count().__next__
        self._next_function = count().__next__
        self._functions: dict[bytes, int] = {}
        self._settled: dict[Callable[..., Any], int] = {}  # numbers of functions that need not be looked at again
        self._turns: dict[Needs | None, int] = {}  # of the last task that needs this (see Newcomer)
        self._closed: BaseException | None = None
        self._levels = LevelWatch(self._settled.clear)
        self._printing = Printing()
        self._raised = FailureBook()
        self._names: dict[int, str] = {}  # of functions, by number
        self.alarms: list[Any] = []  # `release`d when a task does not end well
        self.unseen = Unseen()
        self.left = 0  # tasks that had not ended when the session was closed

    def start(self) -> None:
        self.engine.start()
        notebook.watch(self)
        send_lost_interrupts_again()

    def close(self, reason: BaseException) -> int:
        """End everything; how many tasks had not ended. Whoever waits for them is told `reason`."""
        if self._closed is None:
            self._keep_results()
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
        return self.left

    def _keep_results(self) -> None:
        """Have results here that lie in files and whose futures somebody has: those files go with the session."""
        self._keep_here(self.files.limit_bytes, KEPT_MAX)

    def _keep_here(self, room_bytes: int, room: int, are_away: bool = False) -> None:
        """The same for so many bytes and results, those of the last tasks first. If they `are_away` on other machines,
        none is asked for after one that did not come: each would have to be waited for."""
        for output in [one for outputs in reversed([*self.stored.values()]) for one in outputs]:
            object_, size_bytes, _, places, value = output
            if value or not room or size_bytes > room_bytes:
                continue
            try:
                self.kept[object_] = self.engine.load(object_, places)
                room_bytes, room = room_bytes - size_bytes, room - 1
            except Exception as error:  # a file of a command, or damaged: who asks for it is told
                if are_away and isinstance(error, UnavailableError | OSError):
                    return

    def abandon(self, reason: BaseException) -> None:
        """The engine is not in this process: end nothing, but let nobody wait."""
        self._closed = reason
        notebook.unwatch(self)
        self._end_all(reason)

    # -- in ------------------------------------------------------------------------------------------------------------

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number under which workers know a function."""
        known = self._settled.get(function) if function.__class__ is FunctionType else None
        if known is not None:
            return known
        try:
            pickled = self._carried(dumps_function(function, share=refuse_large))
        except LargeFunction:
            return CarriedNumber.of(function, self)
        if self._levels.known != b"":
            pickled = leveled(self._levels.now(), pickled)
        known = self._functions.get(pickled)
        if known is None:
            known = self._functions[pickled] = self._next_function()
            name = self._names[known] = name_of(function)
            self._learn(known, named(name, pickled))
            if self.timeline is not None:
                self.timeline.learn(known, name)
        if is_settled(function):
            self._settled[function] = known
        return known

    _carried = staticmethod(revisions.carried)
    """A function with what workers have to know of the modules that it may need."""

    def forget_functions(self) -> None:
        """Modules may have changed: look at all functions again."""
        self._settled.clear()

    def _learn(self, number: int, pickled: bytes) -> None:
        self.engine.learn(number, pickled)

    def submit_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        """One task with one output and nothing to say about it."""
        number = self._settled.get(function) if function.__class__ is FunctionType else None
        if number is None:
            if getattr(type(function), "_is_task", False):
                task_: Any = function
                return self.start_task(task_._sent_function(), args, kwargs, task_._checked)  # type: ignore[no-any-return]
            check_callable(function)
            number = self.number_of(function)
            if number.__class__ is CarriedNumber:
                if not OPTION_NAMES.isdisjoint(kwargs):
                    check_arguments(function, kwargs, NAMES)
                return self.submit(number, args, kwargs)
        if kwargs or not self._is_alone:
            if kwargs and not OPTION_NAMES.isdisjoint(kwargs):
                check_arguments(function, kwargs, NAMES)
            return self.submit(number, args, kwargs)
        payload = INPUTS_ALONE
        if args:
            payload = dumps_plain(args)
            if not payload or len(payload) >= COUNTED_BYTES_MIN:
                return self.submit(number, args, kwargs)
        # A short way for what is left, as `submit` would.
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

    def start_task(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        """A task with options: one future, or as many as it has outputs, as a tuple."""
        self.check(options)
        check_callable(function)
        if kwargs and not OPTION_NAMES.isdisjoint(kwargs):
            check_arguments(function, kwargs, NAMES)
        submit = self.submit if options.outputs == 1 else self.submit_several
        return submit(self.number_of(function), args, kwargs, options)

    def submit(
        self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options = USUAL
    ) -> Future[Any]:
        """One task with one output."""
        if function.__class__ is CarriedNumber:
            function, args = int(function), (function.function, *args)  # type: ignore[attr-defined]
        payload, above = self._arguments(args, kwargs) if args or kwargs else (INPUTS_ALONE, ())
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        if above or options is not USUAL or not self._is_alone or len(payload) >= COUNTED_BYTES_MIN:
            self._submit(function, payload, above, options, future, (task,))
            return future
        # A short way for the usual task, as `_submit` would.
        new = PlainTask(task, function, payload)
        self.futures[task] = future
        if self._closed is not None:
            self._refuse(task)
        engine = self.engine
        self._hand_in(new)
        if not engine.awake:
            engine.wake()
        return future

    def submit_several(
        self,
        function: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Options,
        make: "Callable[[Session, int, list[int]], list[Future[Any]]]" = output_futures,
    ) -> tuple[Future[Any], ...]:
        """One task with several outputs. `make` is given a task and its objects, and answers their futures."""
        if function.__class__ is CarriedNumber:
            function, args = int(function), (function.function, *args)  # type: ignore[attr-defined]
        payload, above = self._arguments(args, kwargs)
        task = self._next_task()
        first = FIRST_EXTRA_OBJECT + task * OUTPUTS_MAX
        made = [task, *range(first + 1, first + options.outputs)]
        future, *others = make(self, task, made)
        if others:
            self.outputs[task] = others
        self._submit(function, payload, above, options, future, tuple(made))
        return (future, *others)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, Iterable[Future[Any]]]:
        """Pickled arguments, and the futures that were found in them."""
        if not kwargs:
            if args and (plain := dumps_plain(args)):
                return plain, ()
            for one in args:
                if one.__class__ is not Future or one._state == INLINE or one._session is not self:
                    break
            else:
                if len(args) < 2 or len(set(args)) == len(args):
                    return INPUTS_ALONE, args
        found: dict[Future[Any], int] = {}
        collecting.found = found
        try:
            payload = dumps_call(args, kwargs, self._share)
            self.check_own(found)
        except BaseException:
            self.large.discard(found)
            raise
        finally:
            collecting.found = None
        return payload, found

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
        self._forget_outputs(task)
        self._uncount(task)
        self.large.discard(above)

    def _forget_outputs(self, task: int) -> None:
        self.outputs.pop(task, None)

    def _refuse(self, task: int) -> NoReturn:
        """Asked when its future is known already: who closes meanwhile would tell it otherwise."""
        self.futures.pop(task, None)
        self._uncount(task)
        raise ClosedError(f"no tasks can be submitted any more: {self._closed}")

    def _home(self, task: int, options: Options, above: Iterable[Future[Any]]) -> NodeId:
        """The node that a new task is handed to, as the strategy says."""
        known: list[Input] = []
        for one in above:
            known += [output for output in self.stored.get(one.task, ()) if output[0] == one.object]
        members, needs = self.engine.members, options.needs
        turn = self._turns[needs] = self._turns.get(needs, task - 1) + 1
        return self._assign.home(Newcomer(task, needs, tuple(known), turn), members, SEED) if members else NOBODY

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
            outputs: tuple[Input, ...] = ((task, len(made), task, (home,), made),)
        else:
            made = made.as_file(task)
            places = self._write(task, made, home)
            outputs = ((task, made.size_bytes, task, places, b""),)
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
        """Returns when all nodes go by it. Only what can be spelled out can be told to them."""
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
        self.strategy = strategy
        self._assign = self._watched(strategy.assign)

    def check_own(self, futures: Iterable[Future[Any]], instead: str = "pass its result instead") -> None:
        """Refuse futures of others: tasks are known by numbers that each session counts by itself."""
        for future in futures:
            if future._session is not self:
                raise ClosedError(f"{future!r} belongs to another cluster; {instead}")

    def check(self, options: Options) -> None:
        """Refuse what no executor of this cluster could run, unless all of its nodes are still to come."""
        if options.memo is not None:
            self.check_memo()
        needs, members = options.needs, self.engine.members
        if needs is not None and members and not members.capable(needs):
            asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
            raise ContextError(f"no executor offers {asked}: {_offers(members)}; {self._cure_of(needs, members)}")

    def _cure_of(self, needs: Needs, members: Members) -> str:
        """What to write when no executor can run tasks with these needs."""
        return cure_of_needs(needs, max(info.executors[0].count for info in members.infos))

    def check_memo(self) -> None:
        """Refuse to reuse results: there is no folder for them."""
        raise UsageError("memo: name a folder for the results first: daws.Cluster(memo='…'), or DAWS_MEMO")

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
        futures = (future, *self.outputs.pop(future.task, ()))
        self.unseen.remove(future.task)
        for one in futures:
            one._what = Outcome(future.task, (), STATE_CANCELLED)
            one._state = CANCELLED
        for one in futures:
            one._tell_all()

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

    def mark(self) -> int:
        """A number that no task has: those that are submitted from now on have larger ones."""
        return self._next_task()

    def cancel_since(self, mark: int) -> int:
        """Cancel what was submitted since a mark was set; how many tasks had not ended?"""
        left = [future for task, future in [*self.futures.items()] if task >= mark]
        self.cancel(left)
        return len(left)

    def let_go(self, task: int) -> None:
        """Nobody has the future of this task any more. Called by the garbage collector."""
        self.gone.append(task)
        self.look_at_gone(task)

    def look_at_gone(self, task: int) -> None:
        """It is the last that was let go of: not urgent, unless a large object waits for it or there are many."""
        large = self.stored.pop(task, None)
        if self.kept:
            for output in large or ():
                self.kept.pop(output[0], None)
        if (large or not len(self.gone) % LET_GO_MAX) and not self.engine.awake and self._closed is None:
            self.engine.wake()

    # -- out: on the engine's thread -----------------------------------------------------------------------------------

    def on_ended(self, outcomes: list[Outcome]) -> None:
        take, several, counted = self.futures.pop, self.outputs, self.brake.sizes
        is_usual = not several and not counted
        for outcome in outcomes:
            future = take(outcome.task, None)
            if is_usual and future is not None and not outcome.state and (value := outcome.outputs[0][4]):
                future._what = value
                future._state = INLINE
                if future._told is not None:
                    future._tell_all()
                continue
            if outcome.error:
                outcome = self._with_failure(outcome)
            if not is_usual and outcome.task in counted:
                self._uncount(outcome.task)
            if future is None:
                continue
            others = several.pop(outcome.task, ()) if several else ()
            if not outcome.state:
                for one, output in zip((future, *others), outcome.outputs, strict=True):
                    if output[4]:
                        one._what = output[4]
                        one._state = INLINE
                    else:
                        self.stored[outcome.task] = outcome.outputs
                        one._state = STORED
            else:
                for one in (future, *others):
                    one._what = outcome
                    one._state = CANCELLED if outcome.state == STATE_CANCELLED else FAILED
                if future._state == FAILED:
                    self.unseen.add(outcome.task, outcome)
                for alarm in tuple(self.alarms):
                    alarm.release()
            for one in (future, *others):
                if one._told is not None:
                    one._tell_all()

    def _uncount(self, task: int) -> None:
        """Its arguments are not needed any more."""
        self.brake.remove(task)
        self.large.ended(task)

    def _with_failure(self, outcome: Outcome) -> Outcome:
        """What the task raised, or the one that is to blame, whose future may be gone."""
        error, failure = self._raised.find(outcome.task, outcome.error, outcome.failure)
        return outcome if failure == outcome.failure else replace(outcome, error=error, failure=failure)

    def on_done(self, tasks: list[int], made: list[tuple[Input, ...] | bytes]) -> None:
        if self.outputs or self.brake.sizes:
            self.on_ended([*map(ended_here, tasks, made)])
            return
        for future, one in zip(map(self.futures.pop, tasks, repeat(None)), made, strict=True):
            if future is None:
                continue
            value: Any = one if one.__class__ is bytes else one[0][4]  # type: ignore[index]
            if value:
                future._what = value
                future._state = INLINE
            else:
                self.stored[future.task] = one  # type: ignore[assignment]
                future._state = STORED
            if future._told is not None:
                future._tell_all()

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        """What tasks print and log appears here, as if they ran here, line by line."""
        if stream == ITEMS_FAILED:
            self.unseen.add_items(task, *msgpack.decode(text))
        else:
            self._printing.show(stream, text, task)

    def on_ran(self, news: News) -> None:
        if self.timeline is not None:
            self.timeline.add(news)
        if self.facts is not None:
            self.facts.ran(news)

    def on_fact(self, fact: FactType) -> None:
        if self.facts is not None:
            self.facts.add(fact)

    def on_broken(self, error: BaseException) -> None:
        self._closed = self._closed or error
        self.brake.release()
        self.large.clear()
        for task in [*self.futures]:
            self.unseen.add(task, error)
        self._end_all(error)

    def _end_all(self, reason: BaseException, state: int = FAILED) -> None:
        """End futures that will never end otherwise."""
        while self.futures:
            task, future = self.futures.popitem()
            for one in (future, *self.outputs.pop(task, ())):
                if one._state == PENDING:
                    one._what = reason
                    one._state = state
                    one._tell_all()

    # -- what futures ask ----------------------------------------------------------------------------------------------

    def load(self, object_: int) -> Any:
        """If no place has the object any more, or what is there is damaged, a task that reads it has it made again."""
        if object_ in self.kept:
            return self.kept[object_]
        try:
            return self._loaded(object_)
        except (DamagedObjectError, FileNotFoundError, UnavailableError) as error:
            if not self._may_read_again(error):
                raise
        return read_again(self, task_of(object_), object_).result()

    def expect_reading(self, futures: list[Future[Any]]) -> None:
        """All of these are about to be read, one after the other; they have ended, and their results lie in files."""

    def _loaded(self, object_: int) -> Any:
        try:
            return self.engine.load(object_, self._places(object_))
        except (OSError, UnavailableError):
            if self._closed is not None:
                raise ClosedError(
                    "the result was not asked for before its cluster was closed; "
                    "call result() or gather() inside the with block"
                ) from None
            raise

    def _may_read_again(self, error: Exception) -> bool:
        return getattr(error, "retry", True) and self._closed is None and not self.engine.is_here

    def check_may_wait(self) -> None:
        """On the thread that brings the results, waiting for one would never end."""
        if self.engine.is_here:
            raise UsageError("callbacks run on the cluster's own thread and cannot wait; submit a task instead")

    def path_of(self, object_: int) -> str:
        """Where an object lies that is a file; it stays there as long as its future is kept."""
        if self._closed is not None:
            raise ClosedError("the file was not asked for before its cluster was closed")
        try:
            return self.engine.bring(object_, self._places(object_))
        except UnavailableError as error:
            if not self._may_read_again(error):
                raise
        find_again(self, task_of(object_), object_).result()
        self._ask_places(object_)
        return self.engine.bring(object_, self._places(object_))

    def _ask_places(self, object_: int) -> None:
        """It was made again, by whichever node."""
        task, nodes = task_of(object_), self.engine.members.nodes
        self.stored[task] = tuple([(*one[:3], (*nodes,), one[4]) for one in self.stored.get(task, ())])

    def explain(self, future: Future[Any]) -> "Explanation":
        """Where a task ran and why, as far as that is known here."""
        from daws.client.explaining import Explanation

        if self.facts is not None and not self._is_alone and self._closed is None and not self.engine.is_here:
            with suppress(DawsError):
                self.engine.counters()  # behind their answers nothing is on its way that nodes said before
        facts = None if self.facts is None else self.facts.of(future.task)
        outputs = tuple([(output[1], output[3]) for output in self.stored.get(future.task, ())])
        if future._state == INLINE:
            outputs = ((len(future._what), ()),)
        elif self._is_alone and future._state == STORED and future.object in self.files:
            outputs = ((self.files.size_bytes(future.object), (NODE,)),)
        error = ""
        if future._state in (FAILED, CANCELLED):
            raised = self.exception_of(future)
            error = f"{type(raised).__name__}: {raised}"
        return Explanation(future.task, future.state, error, outputs, facts)

    def memo_of(self, task: int) -> str | None:
        """Whether a task was reused, or why not; None if nobody asked for that."""
        return None

    def _watched(self, assign: Assign) -> Assign:
        if self.facts is None or self._is_alone:
            return assign
        from daws.runs.watching import WatchedAssign

        return WatchedAssign(assign, self.facts.add, monotonic_ns)

    def _places(self, object_: int) -> tuple[NodeId, ...]:
        found = {output[0]: output[3] for output in self.stored.get(task_of(object_), ())}
        return found.get(object_, ())

    def exception_of(self, future: Future[Any]) -> BaseException:
        """A new one each time: one that is raised refers to whoever asked, and so to the future."""
        if self.unseen:
            self.see([future])
        what = future._what
        if isinstance(what, Outcome):
            if future._state == CANCELLED and not what.failure:
                return TaskCancelledError(what.error or f"task {what.task} was cancelled, or one that it needs was")
            raised = exception_of(what.failure) if what.failure else TaskFailedError(what.error)
            return with_way(raised, what.task, what.path, what.error, lambda kind: self._names.get(kind, ""))
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
                future._tell(SeenAtEnd(future))
            else:
                for task in named_in(future._what, future.task):
                    self.unseen.remove(task)


class CarriedNumber(int):
    """The number of a function that calls another one, which goes with its arguments because it is large."""

    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any], session: Session) -> "CarriedNumber":
        carrier = Carried(name_of(function), getattr(function, "without_unpicklable", None))
        number = cls(session.number_of(carrier))
        number.function = function
        return number


def _offers(members: Members) -> str:
    """What the nodes have, in words; those that have the same are named together."""
    kinds = dict.fromkeys(info.executors for info in members.infos)
    each = "each node has " if len(kinds) == 1 else "nodes have "
    said = []
    for plain, *labelled in kinds:
        there = "".join([f", {one.count} with {format_context(one.context)}" for one in labelled])
        said.append(f"{plain.count} worker{'s' * (plain.count != 1)} without a context{there}")
    return each + " or ".join(said)


def task_of(object_: int) -> int:
    """The task that makes an object."""
    return object_ if object_ < FIRST_EXTRA_OBJECT else (object_ - FIRST_EXTRA_OBJECT) // OUTPUTS_MAX
