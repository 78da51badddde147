"""Numbers, tables and JSON in the form that commands print; see `daws.predict.tables`."""

import json

import msgspec

from daws.predict.tables import count, grid, seconds, share, significant, size

__all__ = ["as_json", "count", "grid", "seconds", "share", "significant", "size"]


def as_json(document: object) -> str:
    """One JSON document in ASCII, which every terminal can show. Infinity and NaN become null, because JSON has
    neither.
    """
    return json.dumps(msgspec.json.decode(msgspec.json.encode(document)))
