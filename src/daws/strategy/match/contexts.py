"""Matching by contexts."""

from daws.model.context import Context, format_context, preference
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons


class MatchContexts(ParameterizedAnswer, frozen=True):
    """An executor runs a task if some pair of their labels has the same name and overlapping ranks.

    Constellation (2011), section 3: or-lists take any of their labels, priority lists prefer the earlier ones. Helps
    when executors differ; costs nothing if no task has a context. Hurts when labels are too fine: a task that only few
    executors may run waits for them.
    """

    def preference(self, task: Context | None, executor: Context | None) -> int:
        if task is None and executor is None:
            return 0
        return preference(task, executor)

    def explain(self, task: Context | None, executor: Context | None) -> Reasons:
        return {
            "task": format_context(task),
            "executor": format_context(executor),
            "choice": self.preference(task, executor),
        }
