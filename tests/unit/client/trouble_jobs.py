"""Tasks that misbehave, and some that do not. Workers import this file, so it imports little."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import daws

MODULUS = 1_000_003


def same(x: int) -> int:
    return x


def raises(x: int) -> int:
    raise LookupError(f"nothing is known of {x}")


def exits() -> None:
    print("on my way out")
    os._exit(3)


def exits_politely() -> None:
    sys.exit("that was all")


def is_killed() -> None:
    print("famous last words")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def runs_forever() -> None:
    while True:
        pass


def returns_a_generator() -> Iterator[int]:
    return (number for number in range(3))


def prints(line: str, times: int) -> int:
    for number in range(times):
        print(f"{line} {number}")
    return times


def returns_much(size_bytes: int) -> Any:
    import numpy as np

    return np.full(size_bytes // 8, 7.0)


def total(array: Any) -> float:
    return float(array.sum())


def forks() -> int:
    """How the child ended."""
    child = os.fork()
    if not child:
        os._exit(5)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forks_and_forgets() -> int:
    """The child returns from here too, as if it were the worker."""
    return os.fork()


def forks_a_daemon() -> int:
    child = os.fork()
    if not child:
        time.sleep(1000)
        os._exit(0)
    return child


# Some that make up a graph, each of which makes one number out of several.


def note_worker(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()


def mix(salt: int, *numbers: int) -> int:
    found = salt
    for number in numbers:
        found = (found * 31 + int(number)) % MODULUS
    return found


def mix_slowly(salt: int, *numbers: int) -> int:
    time.sleep(0.02)
    return mix(salt, *numbers)


def mix_in_tasks(salt: int, *numbers: int) -> int:
    """Each step is a task that this one submits."""
    cluster = daws.current()
    found = cluster.submit(mix, salt)
    for number in numbers:
        found = cluster.submit(mix, found, number)
    return found.result()


def spread(number: int) -> bytes:
    """Too large for a message."""
    return number.to_bytes(4, "big") * 100_000


def gathered(written: bytes) -> int:
    number = int.from_bytes(written[:4], "big")
    assert written == spread(number)
    return number
