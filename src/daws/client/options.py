"""Options of tasks: all that can be said about a task beyond its function and arguments."""

import math
from collections.abc import Callable
from typing import Any, TypedDict

from msgspec import Struct

from daws.client.given import flag, seconds, size, whole
from daws.client.hints import TASK_OPTIONS, refuse_option
from daws.model.context import parse_context
from daws.model.errors import UsageError
from daws.model.task import Needs

# A call as it was submitted:
Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]

OUTPUTS_MAX = 4096
PRIORITY_MAX = 1 << 20
TIMEOUT_MAX_S = 1_000_000_000


class TaskOptions(TypedDict, total=False):
    """The options of every task, but for `outputs`, which changes what comes back."""

    context: str
    cores: int
    memory: int | str
    priority: int
    retries: int
    timeout: float | None
    expected: float
    rank: float
    memo: bool
    version: str
    writable: bool


class ClusterSynonyms(TypedDict, total=False):
    """Names of other libraries for the number of workers."""

    n_workers: int | None
    max_workers: int | None
    n_jobs: int | None


class MapSynonyms(TypedDict, total=False):
    """Names of other libraries for `chunk`."""

    chunksize: int | None


NAMES = ("outputs", *TaskOptions.__annotations__)
OPTION_NAMES = frozenset([*NAMES, *TASK_OPTIONS])
"""Names of options, here and elsewhere: an argument of such a name may be meant as an option."""


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
    writable: bool = False


def options_of(
    *,
    outputs: int = 1,
    context: str = "",
    cores: int = 1,
    memory: int | str = 0,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    expected: float = 0,
    rank: float = 0,
    memo: Any = False,
    version: str = "",
    writable: bool = False,
    **unknown: Any,
) -> Options:
    """Check options, and refuse those that make no sense by their names.

    `memory` is in bytes or a text such as `4 GB`. All times are in seconds. `expected` is about how long the task will
    run, and `rank` the time, at best, from its start to the end of all tasks that depend on it. A `writable` task may
    change arrays that it shares with others: it gets copies of the pages that it writes to.
    """
    if unknown:
        refuse_option(min(unknown), NAMES)
    outputs = whole("outputs", outputs, 1, OUTPUTS_MAX)
    cores = whole("cores", cores, 1, 1 << 16)
    memory = size("memory", memory, 0, 1 << 62)
    priority = whole("priority", priority, -PRIORITY_MAX, PRIORITY_MAX)
    retries = whole("retries", retries, 0, 1 << 16)
    limit_ns = timeout_ns(timeout)
    estimate_ns = math.ceil(seconds("expected", expected, TIMEOUT_MAX_S, can_be_zero=True) * 1e9)
    rank_ns = math.ceil(seconds("rank", rank, TIMEOUT_MAX_S, can_be_zero=True) * 1e9)
    if not isinstance(context, str):
        raise UsageError(f"context={context!r}: give a context as text")
    if not isinstance(version, str):
        raise UsageError(f"version={version!r}: give text")
    if isinstance(memo, str):
        raise UsageError(f"memo={memo!r}: give memo=True, version={memo!r}")
    flag("memo", memo)
    flag("writable", writable)
    if version and not memo:
        raise UsageError(f"version={version!r} is of results that are reused: give memo=True as well")
    usual = cores == 1 and not memory and not context
    needs = None if usual else Needs(cores, parse_context(context), memory)
    reused = version if memo else None
    return Options(outputs, needs, priority, retries, limit_ns, estimate_ns, rank_ns, reused, writable)


def timeout_ns(timeout: float | None) -> int:
    """A time limit in seconds, checked; 0 for none."""
    return 0 if timeout is None else math.ceil(seconds("timeout", timeout, TIMEOUT_MAX_S) * 1e9)


USUAL = Options()
