"""Contexts: requirements of a task and offers of an executor, in words that the application chose.

A label is a name with an optional rank or range of ranks; a context is one label or a list of them. Names mean nothing
to daws: `gpu`, `dataset-7` and `amsterdam` are all the same to this file. There is one exception: a missing context
stands for the label `any`. An executor labelled only `gpu` therefore refuses tasks without a context, and `gpu>any`
takes them as its second choice.

Written form: `gpu`, `gpu@3` (a rank), `gpu@1..5` (a range), `a|b` (either), `a>b` (a, else b), empty (no context).
"""

import re
from typing import Literal

from msgspec import Struct

from daws.model.errors import ContextError

ANY = "any"
OPTION_COUNT_MAX = 1024
NAME_LENGTH_MAX = 200
RANK_MAX = 2**62

_LABEL = re.compile(r"(?P<name>[^@]*)(?:@(?P<low>-?\d{1,19})(?:\.\.(?P<high>-?\d{1,19}))?)?", re.ASCII)
# The characters that separate labels here, and keys and values where contexts are written inside a longer spec.
_RESERVED = frozenset("@|>,=:;")


class Label(Struct, frozen=True, array_like=True, tag="label", gc=False):
    """A name, and the ranks that it covers. No ranks means every rank; `low == high` is a single rank."""

    name: str
    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        if self.low is None:
            return self.name
        return f"{self.name}@{self.low}" if self.low == self.high else f"{self.name}@{self.low}..{self.high}"


class AnyOf(Struct, frozen=True, array_like=True, tag="any-of", gc=False):
    """Several labels of which one is enough; `ordered` means that earlier ones are preferred."""

    options: tuple[Label, ...]
    ordered: bool = False

    def __str__(self) -> str:
        return (">" if self.ordered else "|").join(map(str, self.options))


Context = Label | AnyOf


class Wish(Struct, frozen=True, array_like=True, gc=False):
    """The tasks that a thief prefers: biggest rank first, smallest first, oldest first (`any`), or in the victim's
    order.

    Only tasks with ranks from `low` to `high` count. A task without a rank has rank 0.
    """

    by: Literal["order", "biggest", "smallest", "any"] = "order"
    low: int = -RANK_MAX
    high: int = RANK_MAX


_ANY_ALONE = (Label(ANY),)


def options_of(context: Context | None) -> tuple[Label, ...]:
    """The labels of a context, most preferred first."""
    if context is None:
        return _ANY_ALONE
    return (context,) if isinstance(context, Label) else context.options


def labels(context: Context | None) -> tuple[str, ...]:
    """The names in a context, without their ranks; queues are kept by name."""
    return tuple(label.name for label in options_of(context))


def _overlap(one: Label, other: Label) -> bool:
    if one.name != other.name:
        return False
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high


def matches(task: Context | None, executor: Context | None) -> bool:
    """Whether the executor may run the task: some pair of labels has the same name and overlapping ranks."""
    if task is executor:
        return True
    wanted, offered = options_of(task), options_of(executor)
    return any(_overlap(one, other) for one in wanted for other in offered)


def preference(task: Context | None, executor: Context | None) -> int:
    """How well the task suits the executor: 0 is best, larger is worse, -1 means that it may not run there.

    The executor's order of labels counts more than the task's, so numbers of different tasks compare for one executor.
    """
    if task is None and executor is None:
        return 0
    task_step = int(isinstance(task, AnyOf) and task.ordered)
    executor_step = OPTION_COUNT_MAX * int(isinstance(executor, AnyOf) and executor.ordered)
    wanted, offered = options_of(task), options_of(executor)
    return min(
        (
            executor_step * i + task_step * j
            for i, other in enumerate(offered)
            for j, one in enumerate(wanted)
            if _overlap(one, other)
        ),
        default=-1,
    )


def rank_of(context: Context | None) -> int:
    """The number that biggest-first and smallest-first compare: the first rank given (a range's low end), else 0."""
    return next((label.low for label in options_of(context) if label.low is not None), 0)


def format_context(context: Context | None) -> str:
    """The written form, which `parse_context` reads back."""
    return "" if context is None else str(context)


def parse_context(text: str) -> Context | None:
    """Read the written form (see the top of this file); empty text is no context."""
    text = text.strip()
    if not text:
        return None
    if "|" in text and ">" in text:
        raise ContextError(f"context {_shown(text)}: use either '|' (any of) or '>' (in this order), not both")
    ordered = ">" in text
    parts = tuple(_parse_label(part, text) for part in text.split(">" if ordered else "|"))
    context: Context = parts[0] if len(parts) == 1 else AnyOf(parts, ordered)
    check_context(context)
    return context


def check_context(context: Context | None) -> None:
    """Refuse a context that could not be written down and read back."""
    if context is None:
        return
    options = options_of(context)
    if not 0 < len(options) <= OPTION_COUNT_MAX:
        raise ContextError(f"a context needs between 1 and {OPTION_COUNT_MAX} labels, not {len(options)}")
    for label in options:
        _check_label(label)


def _check_label(label: Label) -> None:
    name, low, high = label.name, label.low, label.high
    if not name or len(name) > NAME_LENGTH_MAX or name != name.strip() or not name.isprintable() or _RESERVED & {*name}:
        raise ContextError(
            f"context label {_shown(name)}: a name has 1 to {NAME_LENGTH_MAX} characters, none of {_reserved()}"
        )
    if (low is None) != (high is None):
        raise ContextError(f"context label {_shown(name)}: a range needs both ends")
    if low is not None and high is not None:
        if low > high:
            raise ContextError(f"context label {_shown(name)}: the range {low}..{high} is empty")
        if max(abs(low), abs(high)) > RANK_MAX:
            raise ContextError(f"context label {_shown(name)}: ranks lie between -2**62 and 2**62")


def _parse_label(part: str, text: str) -> Label:
    found = _LABEL.fullmatch(part.strip())
    if found is None:
        raise ContextError(
            f"context {_shown(text)}: cannot read {_shown(part)}; write name, name@rank or name@low..high, "
            "joined by '|' (any of) or '>' (in this order)"
        )
    name, low, high = found.group("name", "low", "high")
    if low is None:
        return Label(name)
    return Label(name, int(low), int(high if high is not None else low))


def _reserved() -> str:
    return " ".join(sorted(_RESERVED))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
