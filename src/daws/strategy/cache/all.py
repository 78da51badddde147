"""Moved data is kept."""

from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View


class CacheAll(ParameterizedAnswer, frozen=True):
    """A node keeps every object that it fetched, for its other tasks. (Other nodes fetch the object from where it was
    made.)

    MATRIX (2015): without caching, all-pairs stays below half of its best. Helps when objects are read more than once.
    Hurts only memory: the node's own limit is the only one. Beyond it the oldest copies are evicted first, even
    useful ones, unless a task here is about to read them.
    """

    def keeps(self, view: View, size_bytes: int) -> bool:
        return True

    def explain(self, view: View, size_bytes: int) -> Reasons:
        return {"size_bytes": size_bytes, "choice": True}
