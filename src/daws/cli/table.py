"""Numbers and tables as commands print them; see `daws.predict.tables`."""

from daws.predict.tables import count, grid, seconds, share, significant, size

__all__ = ["count", "grid", "seconds", "share", "significant", "size"]
