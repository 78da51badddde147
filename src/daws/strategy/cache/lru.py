"""Moved data is kept within a limit; the copies that were used last are kept longest (LRU)."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View

BYTES_PER_GB = 1e9


class CacheLru(ParameterizedAnswer, frozen=True):
    """A node keeps fetched objects up to `lru-gb`. Beyond it the least recently used copies are evicted, unless a task
    here is about to read them.

    This is the default of data diffusion (2008), and of operating systems. An object larger than the whole limit is not
    kept. The node's own limit (`--set cache-gb` in simulations) holds beside it.

    Helps when memory is scarce and some data is read again and again. Hurts scans: data that many tasks read in turn is
    evicted just before it is needed again.
    """

    by_use: ClassVar[bool] = True

    lru_gb: Annotated[float, Meta(ge=0, le=1e6, description="GB of fetched objects that a node keeps")] = 4.0

    @property
    def limit_bytes(self) -> int:
        return int(self.lru_gb * BYTES_PER_GB)

    def keeps(self, view: View, size_bytes: int) -> bool:
        return size_bytes <= self.lru_gb * BYTES_PER_GB

    def explain(self, view: View, size_bytes: int) -> Reasons:
        return {"size_bytes": size_bytes, "limit_bytes": self.limit_bytes, "choice": self.keeps(view, size_bytes)}
