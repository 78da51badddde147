"""Moved data is not kept."""

from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View


class CacheNone(ParameterizedAnswer, frozen=True):
    """A node drops a fetched object as soon as the task that asked for it is done.

    Constellation (2011) knows no data at all. Helps when memory is scarce and nothing is read twice. Hurts otherwise.
    """

    def keeps(self, view: View, size_bytes: int) -> bool:
        return False

    def explain(self, view: View, size_bytes: int) -> Reasons:
        return {"size_bytes": size_bytes, "choice": False}
