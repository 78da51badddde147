"""The engine's news for a session: how tasks end, what they print, where they ran. All on the engine's thread."""

from collections.abc import Callable
from itertools import repeat
from typing import Any

from msgspec import msgpack
from msgspec.structs import replace

from daws.client.arguments import LargeArguments
from daws.client.brake import Brake
from daws.client.future import CANCELLED, FAILED, INLINE, STORED, Future, end_pending
from daws.client.printing import Printing
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import Input
from daws.runs.facts import Facts
from daws.runs.timeline import Timeline
from daws.runtime.here import ended_here
from daws.wire.ends import Outcome
from daws.wire.notes import FactType, News
from daws.wire.worker import ITEMS_FAILED
from daws.workers.roots import FailureBook

NAMED_MAX = 64
"""The number of failures whose errors are kept."""
COUNTED_MAX = 1 << 17
"""The number of failed tasks that are known by their numbers."""


class Unseen:
    """Tasks that failed, and tasks of `map` with items that failed, until somebody asks how they ended.

    Failures are added by the thread of the engine, and removed by any thread.
    """

    __slots__ = ("_items", "_left_out", "_named", "_spoiled")

    def __init__(self) -> None:
        self._items: dict[int, int] = {}  # by task: how many of its items failed, 0 if the task itself did
        self._named: dict[int, Any] = {}  # by task, of the first ones: what it raised
        self._spoiled: dict[int, None] = {}  # tasks with items that failed, also if these were asked about
        self._left_out = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, task: int, what: Any, items: int = 0) -> None:
        """`what` is how the task ended, the exception that ended it, or what its first failed item raised as text."""
        if len(self._items) >= COUNTED_MAX:
            self._left_out = True
            return
        self._items[task] = items
        if len(self._named) < NAMED_MAX:
            self._named[task] = what

    def add_items(self, task: int, items: int, first: str) -> None:
        """Count items of a task that have failed; the task may not have ended yet."""
        self._spoiled[task] = None
        if len(self._spoiled) > COUNTED_MAX:
            del self._spoiled[next(iter(self._spoiled))]
        self.add(task, first, items)

    def remove(self, task: int) -> None:
        """Somebody knows how this task ended."""
        self._items.pop(task, None)
        self._named.pop(task, None)

    def has_failed_items(self, task: int) -> bool:
        """May items of this task have failed? Not if it has ended and nothing was said."""
        return task in self._spoiled or len(self._spoiled) >= COUNTED_MAX

    def take(self) -> tuple[str, tuple[int, Any] | None]:
        """How many tasks and items failed, in words, and one of them: its task, and what it raised. Empty if none did.

        From now on they count as asked about.
        """
        counts = [*self._items.copy().values()]
        named = next(iter(self._named.copy().items()), None)
        self._items.clear()
        self._named.clear()
        tasks, items = counts.count(0), sum(counts)
        parts = [
            f"{count:,} {noun if count == 1 else nouns}"
            for count, noun, nouns in ((tasks, "task", "tasks"), (items, "item of a map", "items of maps"))
            if count
        ]
        return ("more than " if self._left_out and parts else "") + " and ".join(parts), named


class SessionListener:
    """The futures of a session that have not ended, and what ends them."""

    brake: Brake
    large: LargeArguments
    stored: dict[int, tuple[Input, ...]]

    def __init__(self, timeline: Timeline | None, facts: Facts | None) -> None:
        self.timeline = timeline
        self.facts = facts
        self.futures: dict[int, Future[Any]] = {}  # that have not ended
        self.outputs: dict[int, list[Future[Any]]] = {}  # further ones, of tasks with several outputs
        self.watched: dict[int, Callable[[Outcome], None]] = {}  # by task: called with its end before its futures are
        self.alarms: list[Any] = []  # `release`d when a task does not end well
        self.unseen = Unseen()
        self._closed: BaseException | None = None
        self._printing = Printing()
        self._raised = FailureBook()

    def on_ended(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes if self.watched else ():
            if outcome.task in self.watched:
                self.watched.pop(outcome.task)(outcome)
        take, several, counted = self.futures.pop, self.outputs, self.brake.sizes
        is_usual = not several and not counted
        for outcome in outcomes:
            future = take(outcome.task, None)
            if is_usual and future is not None and not outcome.state and (value := outcome.outputs[0].value):
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
                    if output.value:
                        one._what = output.value
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
        """The outcome with the error of the task, or of the one that is to blame, whose future may be gone."""
        error, failure = self._raised.find(outcome.task, outcome.error, outcome.failure)
        if failure is outcome.failure:
            return outcome
        return replace(outcome, error=error, failure=failure)  # equal ones come again: all share the first

    def on_done(self, tasks: list[int], made: list[tuple[Input, ...] | bytes]) -> None:
        if self.outputs or self.brake.sizes or self.watched:
            self.on_ended([*map(ended_here, tasks, made)])
            return
        for future, one in zip(map(self.futures.pop, tasks, repeat(None)), made, strict=True):
            if future is None:
                continue
            value: Any = one if one.__class__ is bytes else one[0].value  # type: ignore[union-attr]
            if value:
                future._what = value
                future._state = INLINE
            else:
                self.stored[future.task] = one  # type: ignore[assignment]
                future._state = STORED
            if future._told is not None:
                future._tell_all()

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        """Show what tasks print and log, line by line, as if they ran here."""
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
        stop: BaseException | None = None
        while self.futures:
            task, future = next(iter(self.futures.items()), (0, None))
            if future is None:
                break
            try:
                end_pending((future, *self.outputs.pop(task, ())), state, reason)
            except BaseException as error:  # a callback exits, or Ctrl-C: the others end all the same
                stop = stop or error
            self.futures.pop(task, None)
        if stop is not None:
            raise stop
