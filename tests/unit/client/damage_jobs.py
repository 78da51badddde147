"""Tasks that make and read objects which tests damage. Workers import this file."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import daws
from daws.workers.process import LINK_FD


def array(log: str, start: int) -> Any:
    """A small stream and a large buffer."""
    note(log)
    return np.arange(start, start + 100_000)


def numbers(log: str, start: int) -> list[int]:
    """A large stream and no buffer."""
    note(log)
    return list(range(start, start + 20_000))


def note(log: str) -> None:
    with open(log, "a") as file:
        print(os.getpid(), file=file)


def total(value: Any) -> int:
    return int(sum(value) if isinstance(value, list) else value.sum())


def slow_total(value: Any) -> int:
    """So slow that other nodes take some of them."""
    time.sleep(0.02)
    return total(value)


def total_of_file(file: daws.File) -> int:
    return len(file.read_bytes())


def interrupts(data: bytes) -> int:
    """Writes into what its worker says to the node."""
    os.write(LINK_FD, data)
    return 1


def nested(log: str) -> int:
    """Reads what a task of its own has made, and damages it the first time."""
    future = daws.current().submit(numbers, log, 5)
    daws.wait([future])
    path = Path(future._session._files[future.object].path)  # type: ignore[attr-defined]
    if len(Path(log).read_text().splitlines()) == 1:
        content = bytearray(path.read_bytes())
        content[5000] ^= 4
        path.write_bytes(content)
    return sum(future.result())
