"""What can be said about a task beyond its function and arguments."""

import math
from typing import Any

from msgspec import Struct

from daws.client.given import seconds, whole
from daws.model.context import parse_context
from daws.model.errors import UsageError
from daws.model.task import Needs

OUTPUTS_MAX = 4096
PRIORITY_MAX = 1 << 20
NAMES = ("outputs", "context", "cores", "memory", "priority", "retries", "timeout", "expected", "rank", "memo")
TIMEOUT_MAX_S = 1_000_000_000


class Options(Struct, frozen=True):
    """Checked when it is made; `needs` is None for a task that runs anywhere."""

    outputs: int = 1
    needs: Needs | None = None
    priority: int = 0
    retries: int = 0
    timeout_ns: int = 0
    estimate_ns: int = 0
    rank_ns: int = 0
    memo: str | None = None  # a version, "" for the only one


def options_of(**given: Any) -> Options:
    """Refuses what makes no sense, by name. `memory` is in bytes, all times in seconds: `expected` is how long it will
    run, about, and `rank` how long it takes, at best, from its start to the end of all that hangs on it."""
    unknown = given.keys() - NAMES
    if unknown:
        raise UsageError(f"there is no option {min(unknown)!r} of tasks; there are {', '.join(NAMES)}")
    return _checked(**given)


def _checked(
    outputs: int = 1,
    context: str = "",
    cores: int = 1,
    memory: int = 0,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    expected: float = 0,
    rank: float = 0,
    memo: bool | str | None = None,
) -> Options:
    outputs = whole("outputs", outputs, 1, OUTPUTS_MAX)
    cores = whole("cores", cores, 1, 1 << 16)
    memory = whole("memory", memory, 0, 1 << 62, "bytes")
    priority = whole("priority", priority, -PRIORITY_MAX, PRIORITY_MAX)
    retries = whole("retries", retries, 0, 1 << 16)
    times = [
        0.0 if timeout is None else seconds("timeout", timeout, TIMEOUT_MAX_S),
        seconds("expected", expected, TIMEOUT_MAX_S, can_be_zero=True),
        seconds("rank", rank, TIMEOUT_MAX_S, can_be_zero=True),
    ]
    if not isinstance(context, str):
        raise UsageError(f"context={context!r}: give a context as text")
    if memo is not None and not isinstance(memo, bool | str):
        raise UsageError(f"memo={memo!r}: give True, False or a version as text")
    version = (memo if isinstance(memo, str) else "") if memo is not None and memo is not False else None
    usual = cores == 1 and not memory and not context
    needs = None if usual else Needs(cores, parse_context(context), memory)
    timeout_ns, estimate_ns, rank_ns = [math.ceil(time_s * 1e9) for time_s in times]
    return Options(outputs, needs, priority, retries, timeout_ns, estimate_ns, rank_ns, version)


USUAL = Options()
