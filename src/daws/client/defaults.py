"""What `daws.Cluster()` goes by where nothing is said: the environment, which `daws run` sets for the script it runs.

The only place that reads these variables.
"""

import os
from itertools import count

from daws.model.errors import UsageError

WORKERS = "DAWS_WORKERS"
STRATEGY = "DAWS_STRATEGY"
TRACE = "DAWS_TRACE"
_traces = count(1)


def default_workers() -> int:
    """One per processor that this process may use, unless the environment says otherwise."""
    text = os.environ.get(WORKERS, "")
    if not text:
        return len(os.sched_getaffinity(0))
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise UsageError(f"{WORKERS}={text!r}: expected a number of workers")
    return int(text)


def default_strategy() -> str:
    return os.environ.get(STRATEGY) or "daws"


def default_trace() -> str | None:
    """A file for each cluster of this process: out.json, out-2.json, …"""
    text = os.environ.get(TRACE)
    if not text:
        return None
    number, (stem, suffix) = next(_traces), os.path.splitext(text)
    return text if number == 1 else f"{stem}-{number}{suffix}"
