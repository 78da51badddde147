"""What can be said about a task beyond its function and arguments."""

from msgspec import Struct

from daws.model.context import parse_context
from daws.model.errors import UsageError
from daws.model.task import Needs

OUTPUTS_MAX = 4096
PRIORITY_MAX = 1 << 20


class Options(Struct, frozen=True):
    """Checked when it is made; `needs` is None for a task that runs anywhere."""

    outputs: int = 1
    needs: Needs | None = None
    priority: int = 0
    retries: int = 0


def options_of(
    outputs: int = 1, context: str = "", cores: int = 1, memory: int = 0, priority: int = 0, retries: int = 0
) -> Options:
    """Refuses what makes no sense, by name."""
    for name, value, low, high in (
        ("outputs", outputs, 1, OUTPUTS_MAX),
        ("cores", cores, 1, 1 << 16),
        ("memory", memory, 0, 1 << 62),
        ("priority", priority, -PRIORITY_MAX, PRIORITY_MAX),
        ("retries", retries, 0, 1 << 16),
    ):
        if type(value) is not int or not low <= value <= high:
            raise UsageError(f"{name}={value!r}: give a whole number from {low} to {high}")
    if cores == 1 and not memory and not context:
        return Options(outputs, None, priority, retries) if (outputs, priority, retries) != (1, 0, 0) else USUAL
    return Options(outputs, Needs(cores, parse_context(context), memory), priority, retries)


USUAL = Options()
