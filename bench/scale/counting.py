"""What the links of a process carried: counted inside it, written to a file when it is asked by a signal.

Nothing in daws counts frames, because nobody but this tool asks for them; so the counting is put around the two
functions that carry everything.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

from msgspec import Struct

from daws.core.effects import CallStore
from daws.net.link import Link
from daws.runtime.cluster.serving import Caller, StoreServer

ASK = signal.SIGUSR1


class Counts(Struct):
    """Of one process, or of many added up: frames and messages that left it, calls and rows that its store got."""

    frames: int = 0
    messages: int = 0
    calls: int = 0
    rows: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*[getattr(self, name) + getattr(other, name) for name in self.__struct_fields__])

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*[getattr(self, name) - getattr(other, name) for name in self.__struct_fields__])


def count_here(folder: Path) -> None:
    """From now on, in this process. Its file is named by its number."""
    counts = Counts()
    write, answer = Link._write_batch, StoreServer._call

    def write_batch(self: Link[Any], messages: list[Any]) -> None:
        counts.frames += 1
        counts.messages += len(messages)
        write(self, messages)

    def call_store(self: StoreServer, caller: Caller, call: CallStore, now_ns: int) -> None:
        counts.calls += 1
        counts.rows += len(call.rows)
        answer(self, caller, call, now_ns)

    def tell(*_: object) -> None:
        path = folder / str(os.getpid())
        part = path.with_suffix(".part")
        part.write_text(json.dumps([getattr(counts, name) for name in Counts.__struct_fields__]))
        part.replace(path)

    Link._write_batch = write_batch  # type: ignore[method-assign]
    StoreServer._call = call_store  # type: ignore[method-assign]
    signal.signal(ASK, tell)
