"""A session: what one client has submitted, from its side. Futures live here until they have ended."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from itertools import count, repeat
from time import monotonic_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from daws.client.brake import COUNTED_BYTES_MIN, Brake
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
from daws.client.options import OUTPUTS_MAX, USUAL, Options
from daws.client.rereading import find_again, read_again
from daws.data.codec import Packed, dumps_call, encode
from daws.data.files import ObjectFiles
from daws.data.functions import dumps_function, is_settled, name_of
from daws.data.session import Session as Folders
from daws.data.tags import named
from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import (
    ClosedError,
    ContextError,
    DamagedObjectError,
    DawsError,
    StrategyError,
    TaskCancelledError,
    TaskFailedError,
    UnavailableError,
    UsageError,
)
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import FROM_OUTSIDE, INLINE_BYTES, Input, Needs, NodeId, TaskSpec
from daws.runs.facts import Facts, FactType
from daws.runs.notes import News
from daws.runs.timeline import Timeline
from daws.runtime.engine import Crew
from daws.runtime.ports import ClusterPort, Outcome
from daws.runtime.thread import NODE, NodeThread
from daws.strategy.decisions import Assign, Newcomer, Strategy
from daws.wire.store import Submit
from daws.wire.worker import INPUTS_ALONE
from daws.workers.failures import exception_of
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.explaining import Explanation

FIRST_EXTRA_OBJECT = 1 << 62
SEED = 0
NOBODY = -1
"""In the place of a home, while there are no nodes."""
PENDING_SHARE = 2
"""One part in so many of the room for objects may be taken by arguments of tasks that have not ended."""


class Session:
    """Ids, futures and functions of one client; the engine does the rest."""

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
        self.alarms: list[Any] = []  # `release`d when a task does not end well

    def start(self) -> None:
        self.engine.start()

    def close(self, reason: BaseException) -> int:
        """End everything; how many tasks had not ended. Whoever waits for them is told `reason`."""
        self._closed = self._closed or reason  # it may be broken already
        self.brake.release()
        self.engine.stop()
        left = len(self.futures)
        self._fail_all(reason)
        return left

    def abandon(self, reason: BaseException) -> None:
        """The engine is not in this process: end nothing, but let nobody wait."""
        self._closed = reason
        self._fail_all(reason)

    # -- in ------------------------------------------------------------------------------------------------------------

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number under which workers know a function."""
        known = self._settled.get(function) if function.__class__ is FunctionType else None
        if known is not None:
            return known
        pickled = dumps_function(function)
        known = self._functions.get(pickled)
        if known is None:
            known = self._functions[pickled] = self._next_function()
            self._learn(known, named(name_of(function), pickled))
            if self.timeline is not None:
                self.timeline.learn(known, name_of(function))
        if is_settled(function):
            self._settled[function] = known
        return known

    def _learn(self, number: int, pickled: bytes) -> None:
        self.engine.learn(number, pickled)

    def submit_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        """One task with one output and nothing to say about it."""
        number = self._settled.get(function) if function.__class__ is FunctionType else None
        if number is None:
            number = self.number_of(function)
        if args or kwargs or not self._is_alone:
            return self.submit(number, args, kwargs)
        # A short way for what is left, as `submit` would.
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        self.futures[task] = future
        if self._closed is not None:
            self._refuse(task)
        engine = self.engine
        self._hand_in((task, number, INPUTS_ALONE))
        if not engine.awake:
            engine.wake()
        return future

    def submit(
        self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options = USUAL
    ) -> Future[Any]:
        """One task with one output."""
        payload, above = self._arguments(args, kwargs) if args or kwargs else (INPUTS_ALONE, ())
        task = self._next_task()
        future: Future[Any] = Future(self, task, task)
        if above or options is not USUAL or not self._is_alone or len(payload) >= COUNTED_BYTES_MIN:
            self._submit(function, payload, above, options, future, (task,))
            return future
        # A short way for the usual task, as `_submit` would.
        self.futures[task] = future
        if self._closed is not None:
            self._refuse(task)
        engine = self.engine
        self._hand_in((task, function, payload))
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
            for one in args:
                if one.__class__ is not Future or one._state == INLINE or one._session is not self:
                    break
            else:
                if len(args) < 2 or len(set(args)) == len(args):
                    return INPUTS_ALONE, args
        found: dict[Future[Any], int] = {}
        collecting.found = found
        try:
            payload = dumps_call(args, kwargs)
        finally:
            collecting.found = None
        self.check_own(found)
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
        if above:
            inputs = tuple([one.object for one in above])
            parents = tuple(dict.fromkeys([one.task for one in above]))
        task = future.task
        home = NODE if self._is_alone else self._home(task, options, above)
        if len(payload) >= COUNTED_BYTES_MIN:
            self.brake.add(task, len(payload), not self.engine.is_here)
        self.futures[task] = future
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
        if self._closed is not None:
            self._refuse(task)
        engine = self.engine
        engine.new_tasks.append(Submit(spec, parents, home))
        if not engine.awake:
            engine.wake()

    def _refuse(self, task: int) -> NoReturn:
        """Asked when its future is known already: who closes meanwhile would tell it otherwise."""
        self.futures.pop(task, None)
        self.brake.remove(task)
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
        needs, members = options.needs, self.engine.members
        if needs is not None and members and not members.capable(needs):
            asked = f"{needs.cores} cores" if needs.context is None else f"the context {format_context(needs.context)}"
            raise ContextError(f"no executor offers {asked}: {_offers(members)}")

    def cancel(self, futures: Iterable[Future[Any]], running: bool = True) -> None:
        """Stop tasks; with `running=False` only those that no worker has yet."""
        tasks = tuple([future.task for future in futures if not future.done()])
        if tasks and self._closed is None:
            self.engine.cancel(tasks, running)

    def let_go(self, task: int) -> None:
        """Nobody has the future of this task any more. Called by the garbage collector."""
        self.gone.append(task)
        self.look_at_gone(task)

    def look_at_gone(self, task: int) -> None:
        """It is the last that was let go of: not urgent, unless a large object waits for it or there are many."""
        large = self.stored.pop(task, None)
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
            if not is_usual and outcome.task in counted:
                self.brake.remove(outcome.task)
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
                for alarm in tuple(self.alarms):
                    alarm.release()
            for one in (future, *others):
                if one._told is not None:
                    one._tell_all()

    def on_done(self, tasks: list[int], outputs: list[tuple[Input, ...]]) -> None:
        if self.outputs or self.brake.sizes:
            self.on_ended([*map(Outcome, tasks, outputs)])
            return
        for future, made in zip(map(self.futures.pop, tasks, repeat(None)), outputs, strict=True):
            if future is None:
                continue
            value = made[0][4]
            if value:
                future._what = value
                future._state = INLINE
            else:
                self.stored[future.task] = made
                future._state = STORED
            if future._told is not None:
                future._tell_all()

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        """What tasks print appears here, as if they ran here (when they have ended)."""
        out = sys.stderr if stream == 2 else sys.stdout
        if out is not None:
            out.write(text.decode(errors="replace"))
            out.flush()

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
        """If no place has the object any more, or what is there is damaged, a task that reads it has it made again."""
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
                raise ClosedError("the result was not asked for before its cluster was closed") from None
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
        what = future._what
        if isinstance(what, Outcome):
            if what.failure:
                return exception_of(what.failure)
            if future._state == CANCELLED:
                return TaskCancelledError(what.error or f"task {what.task} was cancelled, or one that it needs was")
            return TaskFailedError(what.error)
        assert isinstance(what, BaseException)
        again = copy(what)
        again.__cause__ = what.__cause__
        return again


def _offers(members: Members) -> str:
    """What the nodes have, in words; those that have the same are named together."""
    kinds = dict.fromkeys(info.executors for info in members.infos)
    each = "each node has " if len(kinds) == 1 else "nodes have "
    said = []
    for plain, *labelled in kinds:
        there = "".join([f", {one.count} with {format_context(one.context)}" for one in labelled])
        said.append(f"{plain.count} workers without a context{there}")
    return each + " or ".join(said)


def task_of(object_: int) -> int:
    """The task that makes an object."""
    return object_ if object_ < FIRST_EXTRA_OBJECT else (object_ - FIRST_EXTRA_OBJECT) // OUTPUTS_MAX
