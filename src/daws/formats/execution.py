"""A finished run as columns: when and where each task ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct

from daws.model.columns import Column
from daws.model.errors import GraphError


class RecordedMachine(Struct, frozen=True):
    """A machine of a finished run; 0 means unknown."""

    name: str
    cores: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """Start and end of each task in nanoseconds since `started_at`, and the index of its machine.

    A task that did not run has a start of -1. Tasks that ran `earlier` are written with their lengths alone.
    """

    start_ns: Column
    end_ns: Column
    machine: Column
    machines: Sequence[RecordedMachine]
    started_at: datetime
    earlier: frozenset[int] = frozenset()

    def check(self, task_count: int) -> None:
        for name in ("start_ns", "end_ns", "machine"):
            if len(getattr(self, name)) != task_count:
                raise GraphError(f"column {name} must have {task_count} entries, not {len(getattr(self, name))}")
