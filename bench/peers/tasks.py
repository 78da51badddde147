"""What tasks do. Functions of a module, so that every system sends them by name."""

import os
import time
from typing import Any

OBJECT_BYTES = 5_000_000
TRUE = "/bin/true"


def no_op() -> None:
    return None


def increment(x: int) -> int:
    return x + 1


def increment_all(items: list[int]) -> list[int]:
    return [increment(x) for x in items]


def deepest(*depths: int) -> int:
    """How deep a task of a graph lies, from what its parents said: a wrong or lost edge changes the answer."""
    return max(depths, default=0) + 1


def spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def hold(path: str) -> None:
    """Keep a worker busy until a file is gone."""
    while os.path.exists(path):
        time.sleep(0.005)


def make_array(number: int) -> Any:
    import numpy as np

    return np.full(OBJECT_BYTES // 8, float(number))


def read_arrays(one: Any, two: Any) -> float:
    """Reads every byte."""
    return float(one.sum() + two.sum())


def run_true() -> int:
    """Start a program and wait for it, by the cheapest way Python has."""
    program = os.posix_spawn(TRUE, [TRUE], os.environ)
    return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
