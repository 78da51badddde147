"""The engine's news for a session: how tasks end, what they print, where they ran. All on the engine's thread."""

from collections.abc import Callable
from itertools import repeat
from typing import Any

from msgspec import msgpack
from msgspec.structs import replace

from daws.client.arguments import LargeArguments
from daws.client.brake import Brake
from daws.client.future import CANCELLED, FAILED, INLINE, PENDING, STORED, Future
from daws.client.printing import Printing
from daws.client.unseen import Unseen
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.task import Input
from daws.runs.facts import Facts
from daws.runs.timeline import Timeline
from daws.runtime.outcomes import ended_here
from daws.wire.ends import Outcome
from daws.wire.notes import FactType, News
from daws.wire.worker import ITEMS_FAILED
from daws.workers.roots import FailureBook


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
        while self.futures:
            task, future = self.futures.popitem()
            for one in (future, *self.outputs.pop(task, ())):
                if one._state == PENDING:
                    one._what = reason
                    one._state = state
                    one._tell_all()
